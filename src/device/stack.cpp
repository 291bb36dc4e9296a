#include "device/stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ff::device {

const Known<std::string>* variable(const Machine& machine, std::string_view name) {
  const auto found = machine.env.find(std::string(name));
  return found == machine.env.end() || !found->second ? nullptr : &found->second;
}

bool environment_known(const Machine& machine) { return machine.env_known.value_or(false); }

std::optional<std::string> torch_version(const facts::PythonEnv& env) {
  if (env.torch_version && !env.torch_version->empty()) return *env.torch_version;
  if (const auto* package = env.package("torch")) return package->version;
  return std::nullopt;
}

const facts::PythonEnv* judged_python(const CheckContext& context) {
  const auto& pythons = context.machine.pythons;
  const auto& asked = context.inputs.python;
  if (!asked.empty())
    for (const auto& env : pythons)
      if ((env.executable && *env.executable == asked) || env.prefix == asked || (!env.prefix.empty() && asked.starts_with(env.prefix + "/")))
        return &env;
  for (const auto& env : pythons)
    if (torch_version(env)) return &env;
  return pythons.empty() ? nullptr : &pythons.front();
}

bool brings_rocm(const facts::PythonEnv& env) {
  for (const auto& library : env.bundled_libraries)
    if (contains(library, "libamdhip64")) return true;
  return env.package("rocm-sdk-core") != nullptr;
}

std::string major_minor(std::string_view version) {
  std::size_t dots = 0, end = 0;
  while (end < version.size()) {
    const char c = version[end];
    if (c == '.' && ++dots == 2) break;
    if (c != '.' && (c < '0' || c > '9')) break;
    ++end;
  }
  return std::string(version.substr(0, end));
}

int major_of(std::string_view version) { return static_cast<int>(to_integer<int>(version.substr(0, version.find('.'))).value_or(-1)); }

const facts::RocmInstall* system_rocm(const Machine& machine) {
  const facts::RocmInstall* best = nullptr;
  for (const auto& install : machine.rocm) {
    if (install.kind != "system" && install.kind != "distribution") continue;
    if (!install.version) continue;
    if (install.root == "/opt/rocm") return &install;
    if (best == nullptr || compare_versions(*best->version, *install.version) < 0) best = &install;
  }
  return best;
}

namespace {

/// The GPU that a token of a list names, out of those that are left.
const Gpu* chosen(std::string_view token, const std::vector<const Gpu*>& from) {
  if (lower(token).starts_with("gpu-")) {
    const auto id = lower(token.substr(4));
    for (const auto* gpu : from)
      if (gpu->unique_id && lower(*gpu->unique_id) == id) return gpu;
    return nullptr;
  }
  const auto index = to_integer<std::int64_t>(token);
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= from.size()) return nullptr;
  return from[static_cast<std::size_t>(*index)];
}

std::vector<const Gpu*> apply(std::string_view name, std::string_view value, const std::vector<const Gpu*>& from,
                              std::vector<std::string>& problems) {
  std::vector<const Gpu*> out;
  for (const auto piece : split(value, ',')) {
    const auto token = trim(piece);
    const auto* gpu = chosen(token, from);
    if (gpu == nullptr) {
      if (lower(token).starts_with("gpu-"))
        problems.push_back(fmt::format("{} names {}, and no GPU here has that id", name, token));
      else if (token == "-1" || token.empty())
        problems.push_back(fmt::format("{}={} hides what follows", name, value.empty() ? "\"\"" : std::string(value)));
      else
        problems.push_back(fmt::format("{} names device {}, and there {} at that point (numbers start at 0)", name, token,
                                       from.size() == 1 ? std::string("is 1 device") : fmt::format("are {} devices", from.size())));
      break;
    }
    if (std::find(out.begin(), out.end(), gpu) != out.end()) {
      problems.push_back(fmt::format("{} names device {} twice", name, token));
      break;
    }
    out.push_back(gpu);
  }
  return out;
}

}  // namespace

Selection select_devices(const Machine& machine) {
  Selection out;
  for (const auto* gpu : usable_gpus(machine))
    if (gpu->kfd_node) out.all.push_back(gpu);
  std::sort(out.all.begin(), out.all.end(), [](const Gpu* a, const Gpu* b) { return *a->kfd_node < *b->kfd_node; });
  out.visible = out.all;
  const auto use = [&](std::string_view name, const Known<std::string>& value) {
    out.names.emplace_back(name);
    out.variables.push_back(&value);
    out.visible = apply(name, *value, out.visible, out.problems);
  };
  if (const auto* rocr = variable(machine, "ROCR_VISIBLE_DEVICES")) use("ROCR_VISIBLE_DEVICES", *rocr);
  const auto* hip = variable(machine, "HIP_VISIBLE_DEVICES");
  const auto* cuda = variable(machine, "CUDA_VISIBLE_DEVICES");
  // HIP itself takes an empty list for none at all; PyTorch takes it for "no device". The reader is told, nothing is hidden.
  if (hip != nullptr && !(*hip)->empty())
    use("HIP_VISIBLE_DEVICES", *hip);
  else if (cuda != nullptr && !(*cuda)->empty())
    use("CUDA_VISIBLE_DEVICES", *cuda);
  return out;
}

}  // namespace ff::device
