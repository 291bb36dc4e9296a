#include "binary/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>

#include "base/mapped_file.h"
#include "base/text.h"
#include "elf/dynamic.h"
#include "elf/elf.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

/// More files than this end the walk; PyTorch with every ROCm library has about 120.
constexpr std::size_t library_limit = 4096;

struct Loaded {
  LoadedLibrary shown;
  std::unique_ptr<MappedFile> file;
  elf::Dynamic dynamic;
  std::vector<std::size_t> ancestors;  ///< indices: who asked for it, and so on up to the program (for RPATH)
};

std::string_view machine_directory() { return "x86_64-linux-gnu"; }

/// "GLIBCXX_3.4.30" -> ("GLIBCXX", "3.4.30").
std::optional<std::pair<std::string_view, std::string_view>> family(std::string_view version) {
  const auto underscore = version.rfind('_');
  if (underscore == std::string_view::npos || underscore + 1 >= version.size() || version[underscore + 1] < '0' || version[underscore + 1] > '9')
    return std::nullopt;
  return std::pair(version.substr(0, underscore), version.substr(underscore + 1));
}

class Resolver {
 public:
  explicit Resolver(const LoaderOptions& options) : options_(options) {
    if (auto cache = MappedFile::open(at_root("/etc/ld.so.cache"))) {
      if (auto entries = read_loader_cache(cache->bytes())) {
        for (auto& [name, path] : *entries) cache_.emplace(std::move(name), std::move(path));  // equal names stay in their order
      } else {
        view_.remarks.push_back(entries.error().what + "; only default directories are searched");
      }
    }
  }

  Result<LoaderView> run(const std::string& program) {
    view_.program = program;
    auto opened = open(program);
    if (!opened) return std::unexpected(opened.error());
    opened->shown = {.name = program,
                     .path = program,
                     .real_path = real(program),
                     .soname = std::string(opened->dynamic.soname),
                     .by = FoundBy::program,
                     .through = {},
                     .asked_by = {}};
    {
      const auto file = elf::File::parse(opened->file->bytes());
      if (!file->problems().empty()) return fail(file->problems().front(), program, "install or build it again");
      const auto& header = file->header();
      if (header.type == elf::type_core) return fail("a core file, which the loader does not load", program, "firstfault core reads it");
      if (header.type == elf::type_relocatable)
        return fail("an object file that was not linked, which the loader does not load", program, "give the program or library it is linked into");
      if (header.machine == elf::machine_amdgpu)
        return fail("a code object for a GPU, which the loader does not load", program, "firstfault code reads it");
      if (header.machine != elf::machine_x86_64)
        return fail(fmt::format("a file for another kind of processor (ELF machine {}), which the loader here cannot load", header.machine), program,
                    "give one for x86-64");
      view_.interpreter = file->interpreter();
      if (!opened->dynamic.present) view_.remarks.push_back("a statically linked file: the loader loads nothing for it");
    }
    add(std::move(*opened));
    for (const auto& name : options_.preload) ask(name, 0);
    walk(0);
    for (const auto& name : options_.also) {
      const std::size_t from = loaded_.size();
      ask(name, 0);
      if (loaded_.size() > from) walk(from);
    }
    finish();
    return std::move(view_);
  }

 private:
  [[nodiscard]] std::string at_root(const std::string& path) const {
    return options_.root.empty() || !path.starts_with('/') ? path : options_.root + path;
  }

  [[nodiscard]] std::string real(const std::string& path) const {
    std::error_code error;
    const auto out = fs::canonical(at_root(path), error);
    return error ? path : out.string();
  }

  [[nodiscard]] Result<Loaded> open(const std::string& path) const {
    auto file = MappedFile::open(at_root(path));
    if (!file) return std::unexpected(file.error());
    Loaded out;
    out.file = std::make_unique<MappedFile>(std::move(*file));
    const std::string_view bytes = out.file->bytes();
    if (bytes.starts_with("#!"))
      return fail(fmt::format("a script for {}", trim(bytes.substr(2, std::min<std::size_t>(bytes.find('\n'), 200) - 2))), path,
                  "give the interpreter itself (in Python: sys.executable)");
    const auto parsed = elf::File::parse(bytes);
    if (!parsed) return fail(parsed.error().what, path, "give a program, a library or a Python interpreter");
    if (parsed->header().machine != elf::machine_x86_64) return fail("it is for another kind of processor", path);
    if (parsed->header().type != elf::type_shared && parsed->header().type != elf::type_executable) return fail("no program and no library", path);
    out.dynamic = elf::read_dynamic(*parsed);
    return out;
  }

  void add(Loaded loaded) {
    for (const auto& name : {loaded.shown.name, loaded.shown.soname})
      if (!name.empty()) by_name_.emplace(name, loaded_.size());
    by_real_.emplace(loaded.shown.real_path, loaded_.size());
    loaded_.push_back(std::move(loaded));
  }

  /// The loader maps level by level: all that one file needs, then all that those need.
  void walk(std::size_t from) {
    for (std::size_t i = from; i < loaded_.size() && loaded_.size() < library_limit; ++i) {
      const auto needed = loaded_[i].dynamic.needed;
      for (const auto name : needed) ask(std::string(name), i);
    }
  }

  [[nodiscard]] std::string expand(std::string_view entry, const std::string& asker) const {
    const std::string origin = fs::path(real(asker)).parent_path().string();
    std::string out(entry);
    for (const auto* token : {"${ORIGIN}", "$ORIGIN"}) out = replace_all(std::move(out), token, origin);
    for (const auto* token : {"${LIB}", "$LIB"}) out = replace_all(std::move(out), token, std::string("lib/") + std::string(machine_directory()));
    for (const auto* token : {"${PLATFORM}", "$PLATFORM"}) out = replace_all(std::move(out), token, "x86_64");
    return out;
  }

  struct Place {
    std::string path, through;
    FoundBy by;
  };

  [[nodiscard]] bool usable(const std::string& path) const {
    std::error_code error;
    if (!fs::is_regular_file(at_root(path), error)) return false;
    return open(path).has_value();  // of another class or machine: the loader goes on
  }

  std::optional<Place> in_list(std::string_view list, const std::string& asker, const std::string& name, FoundBy by) const {
    if (list.empty()) return std::nullopt;
    for (const auto piece : split(list, ':'))
      for (const auto entry : by == FoundBy::library_path ? split(piece, ';') : std::vector<std::string_view>{piece}) {
        // An empty entry of LD_LIBRARY_PATH is the current directory.
        std::string directory = entry.empty() ? "." : expand(entry, asker);
        // The loader tries processor-specific sub-directories first.
        for (const std::string_view level : {"glibc-hwcaps/x86-64-v3/", "glibc-hwcaps/x86-64-v2/", ""}) {
          std::string path = directory + (directory.ends_with('/') ? "" : "/") + std::string(level) + name;
          if (usable(path)) return Place{std::move(path), std::string(entry), by};
        }
      }
    return std::nullopt;
  }

  std::optional<Place> find(const std::string& name, std::size_t asker) const {
    const Loaded& from = loaded_[asker];
    if (contains(name, "/")) {
      std::string path = expand(name, from.shown.path);
      if (usable(path)) return Place{std::move(path), {}, FoundBy::path};
      return std::nullopt;
    }
    // RPATH of the asker and of those that asked for it, unless the asker has a RUNPATH.
    if (from.dynamic.runpath.empty()) {
      if (auto place = in_list(from.dynamic.rpath, from.shown.path, name, FoundBy::rpath)) return place;
      for (const std::size_t ancestor : from.ancestors) {
        const Loaded& above = loaded_[ancestor];
        if (!above.dynamic.runpath.empty()) continue;
        if (auto place = in_list(above.dynamic.rpath, above.shown.path, name, FoundBy::rpath)) return place;
      }
    }
    if (auto place = in_list(options_.library_path, loaded_[0].shown.path, name, FoundBy::library_path)) return place;
    if (auto place = in_list(from.dynamic.runpath, from.shown.path, name, FoundBy::runpath)) return place;
    if (from.dynamic.nodeflib) return std::nullopt;
    const auto [first, last] = cache_.equal_range(name);
    for (auto it = first; it != last; ++it)
      if (usable(it->second)) return Place{it->second, {}, FoundBy::cache};
    const std::string machine(machine_directory());
    for (const auto& directory :
         {"/lib/" + machine, "/usr/lib/" + machine, std::string("/lib64"), std::string("/usr/lib64"), std::string("/lib"), std::string("/usr/lib")}) {
      std::string path = directory + "/" + name;
      if (usable(path)) return Place{std::move(path), directory, FoundBy::default_directory};
    }
    return std::nullopt;
  }

  void ask(const std::string& name, std::size_t asker) {
    if (by_name_.contains(name)) return;
    const auto place = find(name, asker);
    const std::string asked_by = loaded_[asker].shown.path;
    if (!place) {
      if (missing_.emplace(name, asked_by).second)
        view_.missing.push_back(
            {.name = name, .path = {}, .real_path = {}, .soname = {}, .by = FoundBy::missing, .through = {}, .asked_by = asked_by});
      return;
    }
    const std::string real_path = real(place->path);
    if (const auto known = by_real_.find(real_path); known != by_real_.end()) {
      by_name_.emplace(name, known->second);  // the same file under another name is not mapped twice
      return;
    }
    auto opened = open(place->path);
    if (!opened) return;
    opened->shown = {.name = name,
                     .path = place->path,
                     .real_path = real_path,
                     .soname = std::string(opened->dynamic.soname),
                     .by = place->by,
                     .through = place->through,
                     .asked_by = asked_by};
    opened->ancestors = loaded_[asker].ancestors;
    opened->ancestors.insert(opened->ancestors.begin(), asker);
    add(std::move(*opened));
  }

  void finish() {
    check_versions();
    // Two files with one soname, or libamdhip64.so.6 beside libamdhip64.so.7.
    std::map<std::string, std::vector<std::string>> by_stem;
    for (const auto& library : loaded_) {
      const std::string soname = library.shown.soname.empty() ? fs::path(library.shown.path).filename().string() : library.shown.soname;
      const auto so = soname.find(".so");
      // Extension modules of Python packages share names and not symbols.
      if (so == std::string::npos || (library.shown.soname.empty() && !soname.starts_with("lib"))) continue;
      if (&library != &loaded_.front()) by_stem[soname.substr(0, so)].push_back(library.shown.path);
    }
    for (auto& [stem, paths] : by_stem)
      if (paths.size() > 1) view_.duplicates.push_back({stem + ".so", std::move(paths)});
    std::map<std::string, std::string> rocm;  // directory -> one of its libraries
    for (const auto& library : loaded_) {
      const auto name = fs::path(library.shown.path).filename().string();
      for (const std::string_view part : {"libamdhip64.so", "libhsa-runtime64.so", "libamd_comgr.so", "librocblas.so", "libhipblaslt.so",
                                          "libMIOpen.so", "librccl.so", "librocm_kpack.so"})
        if (name.starts_with(part)) rocm.emplace(fs::path(library.shown.real_path).parent_path().string(), name);
    }
    if (rocm.size() > 1) {
      std::vector<std::string> places;
      for (const auto& [directory, name] : rocm) places.push_back(fmt::format("{} from {}", name, directory));
      view_.mixed_rocm = std::move(places);
    }
    // With a library missing the program does not start, and each of its symbols would be listed.
    if (options_.symbols && missing_.empty()) {
      std::vector<SymbolScope> scope;
      for (const auto& library : loaded_) scope.push_back({library.shown.path, library.file->bytes(), &library.dynamic});
      view_.symbols = resolve_symbols(scope);
    }
    for (auto& library : loaded_) view_.loaded.push_back(std::move(library.shown));
  }

  void check_versions() {
    std::map<std::size_t, std::vector<std::string_view>> had;
    for (const auto& user : loaded_)
      for (const auto& need : user.dynamic.version_needs) {
        const auto found = by_name_.find(std::string(need.library));
        if (found == by_name_.end()) continue;
        const Loaded& library = loaded_[found->second];
        for (const auto& version : need.versions) {
          if (const auto wanted = family(version.name)) raise(view_.newest_needed, *wanted);
          // A library without any version definition satisfies every version (the loader warns at most).
          if (library.dynamic.version_definitions.empty() || version.weak) continue;
          if (std::ranges::find(library.dynamic.version_definitions, version.name) != library.dynamic.version_definitions.end()) continue;
          VersionProblem problem{.file = user.shown.path,
                                 .library = std::string(need.library),
                                 .library_path = library.shown.path,
                                 .version = std::string(version.name),
                                 .best_had = {}};
          const auto wanted = family(version.name);
          for (const auto have : library.dynamic.version_definitions) {
            const auto row = family(have);
            if (!wanted || !row || row->first != wanted->first) continue;
            const auto best = family(problem.best_had);
            if (!best || compare_versions(row->second, best->second) > 0) problem.best_had = std::string(have);
          }
          view_.versions.push_back(std::move(problem));
        }
      }
    for (const auto& library : loaded_)
      for (const auto have : library.dynamic.version_definitions)
        if (const auto row = family(have); row && view_.newest_needed.contains(std::string(row->first))) raise(view_.newest_had, *row);
  }

  static void raise(std::map<std::string, std::string>& newest, const std::pair<std::string_view, std::string_view>& version) {
    auto& best = newest[std::string(version.first)];
    if (best.empty() || compare_versions(version.second, best) > 0) best = version.second;
  }

  const LoaderOptions& options_;
  std::multimap<std::string, std::string> cache_;
  std::deque<Loaded> loaded_;
  std::map<std::string, std::size_t, std::less<>> by_name_, by_real_;
  std::map<std::string, std::string> missing_;
  LoaderView view_;
};

Value library_json(const LoadedLibrary& library) {
  Value out = Value::object(
      {{"name", library.name}, {"path", library.path.empty() ? Value() : Value(library.path)}, {"found_by", found_by_name(library.by)}});
  if (!library.real_path.empty() && library.real_path != library.path) out.set("real_path", library.real_path);
  if (!library.soname.empty()) out.set("soname", library.soname);
  if (!library.through.empty()) out.set("through", library.through);
  if (!library.asked_by.empty()) out.set("asked_by", library.asked_by);
  return out;
}

Value map_json(const std::map<std::string, std::string>& map) {
  Value out = Value::object();
  for (const auto& [name, value] : map) out.set(name, value);
  return out;
}

}  // namespace

std::string_view found_by_name(FoundBy by) {
  switch (by) {
    case FoundBy::program:
      return "program";
    case FoundBy::already_loaded:
      return "already-loaded";
    case FoundBy::path:
      return "path";
    case FoundBy::rpath:
      return "rpath";
    case FoundBy::library_path:
      return "LD_LIBRARY_PATH";
    case FoundBy::runpath:
      return "runpath";
    case FoundBy::cache:
      return "ld.so.cache";
    case FoundBy::default_directory:
      return "default-directory";
    case FoundBy::missing:
      break;
  }
  return "missing";
}

Result<LoaderView> resolve(const std::string& program, const LoaderOptions& options) { return Resolver(options).run(program); }

Value loader_to_json(const LoaderView& view) {
  Value loaded = Value::list(), missing = Value::list(), versions = Value::list(), duplicates = Value::list();
  for (const auto& library : view.loaded) loaded.push(library_json(library));
  for (const auto& library : view.missing) missing.push(library_json(library));
  for (const auto& problem : view.versions)
    versions.push(Value::object({{"file", problem.file},
                                 {"library", problem.library},
                                 {"library_path", problem.library_path},
                                 {"needs", problem.version},
                                 {"newest_had", problem.best_had}}));
  for (const auto& duplicate : view.duplicates)
    duplicates.push(Value::object({{"library", duplicate.soname}, {"paths", Value::list_of(duplicate.paths)}}));
  Value symbols = Value::list();
  for (const auto& problem : view.symbols.problems)
    symbols.push(Value::object({{"file", problem.file},
                                {"symbol", problem.symbol},
                                {"version", problem.version},
                                {"library", problem.library},
                                {"had", problem.had},
                                {"at_start", problem.at_start}}));
  return Value::object({{"schema", "firstfault/libs/1"},
                        {"program", view.program},
                        {"interpreter", view.interpreter},
                        {"loaded", std::move(loaded)},
                        {"missing", std::move(missing)},
                        {"unresolved_versions", std::move(versions)},
                        {"duplicates", std::move(duplicates)},
                        {"newest_needed", map_json(view.newest_needed)},
                        {"newest_had", map_json(view.newest_had)},
                        {"mixed_rocm", Value::list_of(view.mixed_rocm)},
                        {"symbols_looked_up", view.symbols.asked},
                        {"unresolved_symbols", std::move(symbols)},
                        {"unresolved_symbols_left_out", view.symbols.problems_left_out},
                        {"remarks", Value::list_of(view.remarks)}});
}

}  // namespace ff::binary
