// From files to components to an answer for one device.
#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "binary/scan.h"

namespace ff::binary {
namespace {

bool target_less(const elf::TargetId& a, const elf::TargetId& b) {
  const auto key = [](const elf::TargetId& t) {
    // gfx908 before gfx90a before gfx1030: by length, then by text; generic targets last.
    return std::tuple(t.generic(), t.processor.size(), t.to_string());
  };
  return key(a) < key(b);
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// A path as the runtime resolves it; inside a wheel, where no links are, by its text.
std::string resolved(const std::filesystem::path& path, bool in_wheel) {
  std::error_code error;
  const auto out = in_wheel ? path : std::filesystem::weakly_canonical(path, error);
  return (error ? path : out).lexically_normal().string();
}

/// "x.whl!torch/lib/y.so" is "/torch/lib/y.so" once installed; nothing when it is in no wheel.
std::string_view in_wheel(std::string_view path) {
  const auto mark = path.find(".whl!");
  return mark == std::string_view::npos ? std::string_view{} : path.substr(mark + 5);
}

/// The emptied library finds this row's archive: its name fits, and the archive lies where the library looks. A wheel and an
/// installed tree cannot be compared by place; there the names decide. ROCM_KPACK_PATH of a process is not known here.
bool looks_into(const FileReport& library, const FileReport& row) {
  constexpr std::string_view placeholder = "@GFXARCH@";
  if (row.path.size() <= row.archive.size()) return false;  // the archive itself, for its damage
  const std::string_view binary = std::string_view(row.path).substr(row.archive.size() + 1);
  if (library.kpack_binary.empty() ? name_of(binary) != name_of(library.path) : binary != library.kpack_binary) return false;
  const auto wheel_library = in_wheel(library.path), wheel_row = in_wheel(row.archive);
  if (library.kpack_paths.empty() || wheel_library.empty() != wheel_row.empty()) return true;
  const bool wheels = !wheel_row.empty();
  const std::filesystem::path base = (wheels ? std::filesystem::path(wheel_library) : std::filesystem::path(library.path)).parent_path();
  const std::string archive = resolved(wheels ? std::filesystem::path(wheel_row) : std::filesystem::path(row.archive), wheels);
  return std::ranges::any_of(library.kpack_paths, [&](const std::string& path) {
    const std::string wanted = resolved(base / path, wheels);
    const auto at = wanted.find(placeholder);
    if (at == std::string::npos) return wanted == archive;
    const std::string_view before = std::string_view(wanted).substr(0, at), after = std::string_view(wanted).substr(at + placeholder.size());
    return archive.size() >= before.size() + after.size() && archive.starts_with(before) && archive.ends_with(after);
  });
}

Value texts(const std::vector<std::string>& list) { return Value::list_of(list); }

Value coverage_json(const elf::Coverage& coverage) {
  Value out = Value::object({{"answer", elf::cover_id(coverage.cover)}});
  if (!coverage.by.empty()) out.set("by", coverage.by);
  if (!coverage.override_version.empty())
    out.set("override",
            Value::object({{"HSA_OVERRIDE_GFX_VERSION", coverage.override_version}, {"safe", coverage.cover == elf::Cover::override_ok}}));
  if (!coverage.why.empty()) out.set("why", coverage.why);
  return out;
}

}  // namespace

std::vector<ComponentReport> components(const Scan& scan) {
  using Key = std::pair<std::string, std::string>;
  // A row of a kpack archive names a library; those that were emptied say where they look for their code.
  std::vector<const FileReport*> split;
  for (const auto& file : scan.files)
    if (file.kpack_split) split.push_back(&file);
  std::map<Key, ComponentReport> by_key;
  std::map<Key, bool> has_index, is_split;
  const auto keys_of = [&](const FileReport& file) {
    std::vector<Key> keys;
    if (!file.archive.empty())
      for (const auto* library : split)
        if (looks_into(*library, file)) keys.emplace_back(library->component.id, library->component.root);
    if (keys.empty()) keys.emplace_back(file.component.id, file.component.root);
    return keys;
  };
  std::vector<std::vector<Key>> keys;
  for (const auto& file : scan.files) {
    keys.push_back(keys_of(file));
    for (const auto& key : keys.back()) {
      has_index[key] = has_index[key] || file.is_index;
      is_split[key] = is_split[key] || file.kpack_split;
    }
  }
  for (std::size_t i = 0; i < scan.files.size(); ++i) {
    const auto& file = scan.files[i];
    if (file.targets.empty() && !file.kpack_split) continue;
    for (const auto& key : keys[i]) {
      auto& report = by_key[key];
      if (report.files == 0) {
        report.component = file.component;
        report.component.root = key.second;
      }
      ++report.files;
      report.size_bytes += file.size_bytes;
      // Where libraries are loaded lazily, a target without its index file is not there, whatever else is.
      if (has_index[key] && !file.is_index) continue;
      for (const auto& row : file.targets)
        if (std::ranges::find(report.targets, row.target) == report.targets.end()) report.targets.push_back(row.target);
    }
  }
  std::vector<ComponentReport> out;
  for (auto& [key, report] : by_key) {
    std::ranges::sort(report.targets, target_less);
    report.kpack_missing = is_split[key] && report.targets.empty();
    out.push_back(std::move(report));
  }
  std::ranges::stable_sort(out, {}, [](const ComponentReport& report) { return report.component.order; });
  return out;
}

DeviceAnswer answer_for(const elf::TargetId& device, const std::vector<ComponentReport>& components) {
  DeviceAnswer answer{.device = device, .cover = elf::Cover::none, .components = {}, .first_to_fail = nullptr, .remark = {}};
  for (const auto& component : components) answer.components.push_back({&component, elf::covers(device, component.targets)});
  bool any = false;
  elf::Cover weakest = elf::Cover::native;
  for (const auto& row : answer.components) {
    if (row.component->component.fallback) continue;
    any = true;
    if (!row.coverage.works() && answer.first_to_fail == nullptr) answer.first_to_fail = &row;
    weakest = std::max(weakest, row.coverage.cover);
  }
  if (any)
    answer.cover = weakest;
  else if (!answer.components.empty()) {
    // Only components with a fallback: the best of them is the answer.
    answer.cover = std::ranges::min(answer.components, {}, [](const ComponentCoverage& row) { return row.coverage.cover; }).coverage.cover;
  }
  return answer;
}

Value scan_to_json(const Scan& scan, const std::vector<ComponentReport>& components, const std::vector<DeviceAnswer>& answers) {
  Value files = Value::list();
  for (const auto& file : scan.files) {
    Value targets = Value::list();
    for (const auto& row : file.targets) {
      Value target = Value::object({{"target", row.target.to_string()}, {"objects", row.objects}});
      if (row.size_bytes != 0) target.set("size_bytes", row.size_bytes);
      if (!row.versions.empty()) target.set("code_object_versions", Value::list_of(row.versions));
      if (row.target.generic_version != 0) target.set("generic_version", static_cast<int>(row.target.generic_version));
      targets.push(std::move(target));
    }
    Value item = Value::object({{"path", file.path},
                                {"kind", file.kind},
                                {"component", file.component.id},
                                {"size_bytes", file.size_bytes},
                                {"targets", std::move(targets)}});
    item.set("from_name", file.from_name);
    if (file.entries) {
      item.set("entries", *file.entries);
      item.set("entry_kind", file.entry_kind);
    }
    if (file.compute_units != 0) item.set("compute_units", file.compute_units);
    if (file.bundles != 0) item.set("bundles", file.bundles);
    if (file.compressed_bundles != 0) {
      item.set("compressed_bundles", file.compressed_bundles);
      item.set("newest_compression", file.newest_compression);
    }
    if (file.kpack_split) item.set("kpack_split", true);
    item.set("problems", texts(file.problems));
    files.push(std::move(item));
  }
  Value parts = Value::list();
  for (const auto& report : components) {
    Value targets = Value::list();
    for (const auto& target : report.targets) targets.push(target.to_string());
    parts.push(Value::object({{"component", report.component.id},
                              {"name", report.component.name},
                              {"path", report.component.root},
                              {"files", report.files},
                              {"size_bytes", report.size_bytes},
                              {"fallback", report.component.fallback},
                              {"kpack_missing", report.kpack_missing},
                              {"targets", std::move(targets)}}));
  }
  Value devices = Value::list();
  // What is damaged or could not be read may hold code.
  const bool incomplete = !scan.errors.empty() || std::ranges::any_of(scan.files, [](const FileReport& file) { return !file.problems.empty(); });
  for (const auto& answer : answers) {
    Value rows = Value::list();
    for (const auto& row : answer.components) {
      Value item = coverage_json(row.coverage);
      item.members_mut().insert(item.members_mut().begin(), {"component", Value(row.component->component.id)});
      item.set("path", row.component->component.root);
      rows.push(std::move(item));
    }
    Value item = Value::object(
        {{"target", answer.device.to_string()}, {"answer", answer.components.empty() && incomplete ? "unknown" : elf::cover_id(answer.cover)}});
    item.set("incomplete", incomplete);
    if (!answer.remark.empty()) item.set("remark", answer.remark);
    if (answer.first_to_fail != nullptr) {
      Value first = coverage_json(answer.first_to_fail->coverage);
      first.set("component", answer.first_to_fail->component->component.id);
      first.set("path", answer.first_to_fail->component->component.root);
      first.set("consequence", answer.first_to_fail->component->component.without);
      item.set("first_to_fail", std::move(first));
    } else {
      item.set("first_to_fail", Value());
    }
    item.set("components", std::move(rows));
    devices.push(std::move(item));
  }
  Value errors = Value::list();
  for (const auto& error : scan.errors) errors.push(error.to_string());
  return Value::object({{"schema", "firstfault/code/1"},
                        {"files_looked_at", scan.files_looked_at},
                        {"files", std::move(files)},
                        {"components", std::move(parts)},
                        {"for", std::move(devices)},
                        {"errors", std::move(errors)}});
}

}  // namespace ff::binary
