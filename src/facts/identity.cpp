#include "facts/identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ff::facts {
namespace {

const Known<std::string>* variable(const Machine& machine, std::string_view name) {
  const auto it = machine.env.find(std::string(name));
  return it != machine.env.end() && it->second ? &it->second : nullptr;
}

bool cannot_open(const Machine& machine, const Gpu& gpu) {
  if (!gpu.render_minor) return false;
  const std::string path = fmt::format("/dev/dri/renderD{}", *gpu.render_minor);
  for (const auto& node : machine.access.nodes)
    if (node.path == path) return node.absent_known || node.open_errno.value_or(0) != 0;
  return false;
}

std::optional<std::size_t> find_entry(std::string_view entry, const std::vector<std::size_t>& gpus, const Machine& machine) {
  if (entry.starts_with("GPU-")) {
    const std::string id = lower(entry.substr(4));
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < gpus.size() && !id.empty(); ++i) {
      const auto& unique = machine.gpus[gpus[i]].unique_id;
      if (!unique || !unique->starts_with(id)) continue;
      if (found) return std::nullopt;  // shortened until it fits two
      found = i;
    }
    return found;
  }
  const auto index = to_integer<std::size_t>(entry);
  return index && *index < gpus.size() ? index : std::nullopt;
}

}  // namespace

std::vector<std::size_t> visible(std::string_view list, const std::vector<std::size_t>& gpus, const Machine& machine) {
  std::vector<std::size_t> out;
  for (const std::string_view part : split(list, ',')) {
    const auto found = find_entry(trim(part), gpus, machine);
    if (!found) break;
    if (std::ranges::find(out, gpus[*found]) == out.end()) out.push_back(gpus[*found]);
  }
  return out;
}

void number_for_hip(Machine& machine) {
  const auto* rocr = variable(machine, "ROCR_VISIBLE_DEVICES");
  const Known<std::string>* hip = nullptr;
  for (const char* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"})
    if (const auto* v = variable(machine, name); hip == nullptr && v != nullptr && !(*v)->empty()) hip = v;
  if (!machine.env_known && rocr == nullptr && hip == nullptr) return;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i)
    if (machine.gpus[i].kfd_node && !cannot_open(machine, machine.gpus[i])) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return *machine.gpus[i].kfd_node; });
  // An empty ROCR list hides everything; an empty HIP list counts as unset.
  if (rocr != nullptr) order = visible(**rocr, order, machine);
  if (hip != nullptr) order = visible(**hip, order, machine);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Gpu& gpu = machine.gpus[order[i]];
    gpu.hip_index = {static_cast<int>(i), hip != nullptr ? hip->origin : rocr != nullptr ? rocr->origin : gpu.kfd_node.origin};
  }
}

}  // namespace ff::facts
