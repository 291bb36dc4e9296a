#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "capture/probes.h"
#include "capture/split_library.h"
#include "elf/code_objects.h"

namespace ff::capture {
namespace {

bool is_directory(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}
bool is_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : slash == 0 ? "/" : path.substr(0, slash);
}

/// "key = value" of pyvenv.cfg.
std::string setting(std::string_view text, std::string_view key) {
  for (const std::string_view line : lines(text)) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && lower(trim(line.substr(0, equals))) == key) return std::string(trim(line.substr(equals + 1)));
  }
  return {};
}

/// 'name = "value"' or "name: Optional[str] = 'value'" in torch/version.py; nothing for None or when it is not there.
std::optional<std::string> assigned(std::string_view text, std::string_view name) {
  for (const std::string_view line : lines(text)) {
    if (!line.starts_with(name)) continue;
    const std::string_view rest = line.substr(name.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != ':' && rest[0] != '=')) continue;
    const auto equals = rest.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = trim(rest.substr(equals + 1));
    if (value.size() >= 2 && (value[0] == '\'' || value[0] == '"')) {
      const auto end = value.find(value[0], 1);
      if (end != std::string_view::npos) return std::string(value.substr(1, end - 1));
    }
  }
  return std::nullopt;
}

/// Directories below site-packages in which packages bundle GPU, communication and video libraries.
struct Bundle {
  std::string_view package;    ///< as a prefix of the directory's name
  std::string_view directory;  ///< below it; empty: itself
};
constexpr std::array bundles{
    Bundle{"torch", "lib"},        Bundle{"torchvision", ""},
    Bundle{"torchaudio", "lib"},   Bundle{"torchcodec", ""},
    Bundle{"triton", "_C"},        Bundle{"triton", "backends/amd/lib"},
    Bundle{"_rocm_sdk", "lib"},    Bundle{"bitsandbytes", ""},
    Bundle{"flash_attn", ""},      Bundle{"vllm", ""},
    Bundle{"aiter", ""},           Bundle{"aiter", "jit"},
    Bundle{"onnxruntime", "capi"}, Bundle{"jax_rocm", ""},
    Bundle{"jaxlib", ""},          Bundle{"xformers", ""},
    Bundle{"tensorflow", ""},      Bundle{"nvidia", ""},
    Bundle{"mujoco", ""},          Bundle{"torch_rocm", ""},
};

/// The gfx targets of the device code in a library; headers only, whatever its size.
Value library_code(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return Value::list();
  std::set<std::string> targets;
  const auto listing = elf::list_code_objects(file->bytes());
  for (const auto& object : listing.objects) targets.insert(object.target.to_string());
  if (listing.kpack_split) add_split_targets(path, listing, targets);
  return Value::list_of(targets);
}

class Environment {
 public:
  Environment(ProbeContext& context, std::string given, std::string_view asked_by) : context_(context), asked_by_(asked_by) {
    locate(std::move(given));
  }

  void describe() {
    out_.set("prefix", prefix_);
    out_.set("executable", executable_.empty() ? Value() : Value(executable_));
    out_.set("asked_by", asked_by_);
    const auto configuration = read_file(context_.path(prefix_ + "/pyvenv.cfg"), 65536);
    const bool virtual_env = configuration.has_value();
    out_.set("conda", is_directory(context_.path(prefix_ + "/conda-meta")));
    out_.set("virtual_env", virtual_env);
    const bool system = virtual_env && lower(setting(*configuration, "include-system-site-packages")) == "true";
    out_.set("system_site_packages", system);
    std::string base = prefix_;
    if (virtual_env) {
      base = parent_of(setting(*configuration, "home"));
      out_.set("base_prefix", base);
    }
    find_site_packages(prefix_, false);
    set_version(configuration ? *configuration : std::string(), base);
    if (system && !base.empty()) find_site_packages(base, false);
    if (!virtual_env || system) find_user_site();
    Value directories = Value::list();
    for (const auto& [path, user] : sites_) directories.push(path);
    out_.set("site_packages", directories);

    Value packages = Value::list();
    std::set<std::string> seen;
    for (const auto& [path, user] : sites_) read_packages(path, user, packages, seen);
    out_.set("packages", packages);
    read_torch();
    read_libraries();
    context_.emitter.probe("pythons", Value::list({out_}));
  }

 private:
  void locate(std::string given) {
    while (given.size() > 1 && given.ends_with('/')) given.pop_back();
    if (is_directory(context_.path(given))) {
      prefix_ = given;
      for (const std::string_view name : {"python3", "python"})
        if (executable_.empty() && is_file(context_.path(prefix_ + "/bin/" + std::string(name)))) executable_ = prefix_ + "/bin/" + std::string(name);
      return;
    }
    executable_ = given;
    prefix_ = parent_of(parent_of(given));
    if (is_file(context_.path(prefix_ + "/pyvenv.cfg"))) return;
    // Not a virtual environment: the interpreter's real place decides.
    const std::unique_ptr<char, decltype(&::free)> real(::realpath(context_.path(given).c_str(), nullptr), &::free);
    if (real == nullptr) return;
    std::string path = real.get();
    const std::string& root = context_.options.root;
    if (!context_.live() && path.starts_with(root)) path = path.substr(root.size() - (root.ends_with('/') ? 1 : 0));
    real_executable_ = path;
    if (!parent_of(path).empty()) prefix_ = parent_of(parent_of(path));
  }

  void find_site_packages(const std::string& prefix, bool user) {
    int error = 0;
    const std::string base = prefix == "/" ? "" : prefix;
    std::vector<std::string> libraries{base + "/lib", base + "/lib64"};
    if (prefix == "/usr") libraries.insert(libraries.begin(), "/usr/local/lib");
    for (const std::string& library : libraries) {
      for (const std::string& name : directory_names(context_.path(library), error)) {
        if (!name.starts_with("python3")) continue;
        // A prefix may hold several Pythons (Debian's /usr/lib/python3.11, python3.12): the interpreter's own counts.
        const std::string own = wanted_version();
        if (!own.empty() && name != "python" + own && name != "python3") continue;
        if (name != "python3" && version_.empty()) version_ = name.substr(6);
        for (const std::string_view kind : {"/site-packages", "/dist-packages"}) {
          const std::string path = library + "/" + name + std::string(kind);
          struct stat status{};
          if (!is_directory(context_.path(path)) || ::stat(context_.path(path).c_str(), &status) != 0) continue;
          if (inodes_.insert({status.st_dev, status.st_ino}).second) sites_.emplace_back(path, user);  // lib64 may be a link to lib
        }
      }
    }
  }

  /// "3.11" from the name of the interpreter's real file, when it says so.
  [[nodiscard]] std::string wanted_version() const {
    for (const std::string& path : {real_executable_, executable_}) {
      const auto at = path.rfind("/python3.");
      if (at != std::string::npos) return path.substr(at + 7);
    }
    return {};
  }

  void set_version(std::string_view configuration, const std::string& base) {
    std::string full = setting(configuration, "version_info");
    if (full.empty()) full = setting(configuration, "version");
    if (full.empty() && !version_.empty())
      if (const auto header = read_file(context_.path(base + "/include/python" + version_ + "/patchlevel.h"), 65536))
        if (const auto text = between(*header, "PY_VERSION", "\n")) full = trim(replace_all(std::string(*text), "\"", ""));
    int error = 0;
    if (full.empty())
      for (const std::string& name : directory_names(context_.path(prefix_ + "/conda-meta"), error))
        if (name.starts_with("python-3.")) full = name.substr(7, name.find('-', 7) - 7);
    // pyenv and uv name the directory after the version: ".../versions/3.11.7", ".../cpython-3.12.3-linux-x86_64-gnu".
    if (full.empty()) {
      std::string name = base.substr(base.rfind('/') + 1);
      if (name.starts_with("cpython-")) name = name.substr(8, name.find('-', 8) - 8);
      if (!version_.empty() && name.starts_with(version_ + ".")) full = name;
    }
    if (const auto parts = split(full, '.'); parts.size() > 3)
      full = std::string(parts[0]) + "." + std::string(parts[1]) + "." + std::string(parts[2]);
    if (full.empty()) full = version_;
    out_.set("version", full.empty() ? Value() : Value(full));
  }

  void find_user_site() {
    out_.set("user_site", nullptr);
    const std::string_view base = context_.variable("PYTHONUSERBASE");
    std::string directory = !base.empty() ? std::string(base) : std::string(context_.variable("HOME")) + "/.local";
    if (version_.empty() || !directory.starts_with('/') || !context_.variable("PYTHONNOUSERSITE").empty()) return;
    directory += "/lib/python" + version_ + "/site-packages";
    if (!is_directory(context_.path(directory))) return;
    out_.set("user_site", directory);
    sites_.insert(sites_.begin(), {directory, true});  // Python looks there first
  }

  void read_packages(const std::string& site, bool user, Value& packages, std::set<std::string>& seen) {
    int error = 0;
    if (!context_.emitter.begin(site + "/")) return;
    for (const std::string& name : directory_names(context_.path(site), error)) {
      std::string file;
      if (name.ends_with(".dist-info"))
        file = site + "/" + name + "/METADATA";
      else if (name.ends_with(".egg-info"))
        file = is_directory(context_.path(site + "/" + name)) ? site + "/" + name + "/PKG-INFO" : site + "/" + name;
      else
        continue;
      read_package(file, site + "/" + name, user, packages, seen);
    }
    if (error != 0) context_.emitter.error(site, error);
  }

  void read_package(const std::string& file, const std::string& directory, bool user, Value& packages, std::set<std::string>& seen) {
    constexpr std::size_t metadata_limit_bytes = 4u << 20;
    const auto text = read_file(context_.path(file), metadata_limit_bytes);
    std::string name, version;
    std::int64_t line_number = 0, version_line = 0;
    if (text) {
      for (const std::string_view line : lines(std::string_view(*text).substr(0, 65536))) {
        ++line_number;
        if (line.empty()) break;  // the end of the headers
        if (line.starts_with("Name:")) name = trim(line.substr(5));
        if (line.starts_with("Version:")) {
          version = trim(line.substr(8));
          version_line = line_number;
        }
        if (!name.empty() && !version.empty()) break;
      }
    }
    if (name.empty()) {
      // No metadata: the directory's name tells ("torch-2.9.0.dist-info").
      std::string stem = directory.substr(directory.rfind('/') + 1);
      stem = stem.substr(0, stem.rfind('.'));
      const auto dash = stem.find('-');
      name = stem.substr(0, dash);
      if (dash != std::string::npos) version = stem.substr(dash + 1, stem.find('-', dash + 1) - dash - 1);
    }
    if (name.empty() || !seen.insert(lower(replace_all(replace_all(name, "_", "-"), ".", "-"))).second) return;  // an earlier directory wins
    Value package =
        Value::object({{"name", to_utf8(name)}, {"version", to_utf8(version)}, {"path", text ? file : directory}, {"line", version_line}});
    bool editable = false;
    if (const auto direct = read_file(context_.path(directory + "/direct_url.json"), 65536))
      if (const auto json = parse_json(*direct)) editable = (*json)["dir_info"]["editable"].as_bool();
    package.set("editable", editable);
    package.set("user_site", user);
    packages.push(std::move(package));
  }

  void read_torch() {
    out_.set("torch", nullptr);
    for (const auto& [site, user] : sites_) {
      const std::string path = site + "/torch/version.py";
      const auto text = read_file(context_.path(path), 65536);
      if (!text) continue;
      context_.emitter.file(path, *text);
      const auto version = assigned(*text, "__version__");
      const auto hip = assigned(*text, "hip");
      const auto cuda = assigned(*text, "cuda");
      out_.set("torch", Value::object({{"version", version ? Value(*version) : Value()},
                                       {"hip", hip ? Value(*hip) : Value()},
                                       {"cuda", cuda ? Value(*cuda) : Value()},
                                       {"path", path}}));
      return;
    }
  }

  void read_libraries() {
    Value libraries = Value::list();
    Value targets = Value::object(), library_targets = Value::object();
    for (const auto& [site, user] : sites_) {
      int error = 0;
      for (const std::string& package : directory_names(context_.path(site), error)) {
        for (const Bundle& bundle : bundles) {
          if (!package.starts_with(bundle.package) || package.ends_with("-info")) continue;
          const std::string below = package + (bundle.directory.empty() ? "" : "/" + std::string(bundle.directory));
          read_bundle(site, below, libraries, targets, library_targets);
          if (package.starts_with("_rocm_sdk") && bundle.directory == "lib") read_wheel_rocm(site + "/" + package);
        }
      }
    }
    out_.set("libraries", libraries);
    if (!targets.members().empty()) out_.set("kernel_targets", targets);
    if (!library_targets.members().empty()) out_.set("library_targets", library_targets);
  }

  void read_bundle(const std::string& site, const std::string& below, Value& libraries, Value& targets, Value& library_targets) {
    int error = 0;
    const std::string directory = site + "/" + below;
    for (const std::string& name : directory_names(context_.path(directory), error)) {
      if (!contains(name, ".so")) continue;
      libraries.push(to_utf8(below + "/" + name));
      const Value held = library_code(context_.path(directory + "/" + name));
      if (!held.items().empty()) library_targets.set(to_utf8(below + "/" + name), held);
    }
    for (const std::string_view kernels : {"rocblas/library", "hipblaslt/library", "hipsparselt/library", "aotriton.images", "rocfft"}) {
      const Value list = kernel_targets(context_.path(directory + "/" + std::string(kernels)));
      if (!list.items().empty()) targets.set(below + "/" + std::string(kernels), list);
    }
  }

  /// ROCm as Python wheels (_rocm_sdk_core, _rocm_sdk_libraries_gfx…): an installation of its own.
  void read_wheel_rocm(const std::string& root) {
    Value install = Value::object({{"root", root}, {"kind", "wheel"}, {"libraries", rocm_libraries(context_, root + "/lib")}});
    if (const auto text = read_file(context_.path(root + "/.info/version"), 4096)) {
      install.set("version", trim(*text));
      install.set("version_file", root + "/.info/version");
    }
    Value targets = Value::object();
    for (const std::string_view library : {"rocblas", "hipblaslt"}) {
      const Value list = kernel_targets(context_.path(root + "/lib/" + std::string(library) + "/library"));
      if (!list.items().empty()) targets.set(library, list);
    }
    if (!targets.members().empty()) install.set("kernel_targets", targets);
    context_.emitter.probe("rocm", Value::list({install}));
  }

  ProbeContext& context_;
  std::string asked_by_, prefix_, executable_, real_executable_, version_;
  std::vector<std::pair<std::string, bool>> sites_;  ///< (directory, it is the user's)
  std::set<std::pair<dev_t, ino_t>> inodes_;
  Value out_ = Value::object();
};

std::string variable(const CollectOptions& options, std::string_view name) {
  const auto it = options.environment.find(name);
  return it != options.environment.end() ? it->second : std::string();
}

/// pyenv puts a shell script of the interpreter's name first in PATH; the interpreter behind it.
std::string behind_shim(const CollectOptions& options, const std::string& program) {
  const auto shims = program.find("/shims/");
  if (shims == std::string::npos) return program;
  const std::string root = program.substr(0, shims);
  std::string version = variable(options, "PYENV_VERSION");
  if (version.empty())
    if (const auto text = read_file(below_root(options.root, root + "/version"), 4096))
      version = trim(std::string_view(*text).substr(0, text->find('\n')));
  version = version.substr(0, version.find(':'));
  const std::string found = root + "/versions/" + version + "/bin/python3";
  return !version.empty() && is_file(below_root(options.root, found)) ? found : program;
}

}  // namespace

void probe_python(ProbeContext& context, const std::string& given, std::string_view asked_by) {
  if (!context.emitter.begin("python: " + given)) return;
  if (::access(context.path(given).c_str(), F_OK) != 0) {
    context.emitter.error(given, errno);
    return;
  }
  Environment(context, given, asked_by).describe();
}

std::vector<std::pair<std::string, std::string>> python_environments(const CollectOptions& options) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& given : options.pythons) {
    std::string path = given;
    if (!given.empty() && given.find('/') == std::string::npos)
      path = find_program(options, given);
    else if (!given.starts_with('/') && options.root == "/")
      if (const std::unique_ptr<char, decltype(&::free)> here(::getcwd(nullptr, 0), &::free); here != nullptr)
        path = std::string(here.get()) + "/" + given;
    out.emplace_back(path.empty() ? given : behind_shim(options, path), "--python");
  }
  if (!out.empty()) return out;
  for (const std::string_view name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = variable(options, name); prefix.starts_with('/')) return {{prefix, std::string(name)}};
  for (const std::string_view name : {"python3", "python"})
    if (const std::string program = find_program(options, name); !program.empty()) return {{behind_shim(options, program), "PATH"}};
  return out;
}

}  // namespace ff::capture
