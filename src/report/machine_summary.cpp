#include "report/machine_summary.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "base/text.h"
#include "facts/machine.h"

namespace ff::report {

std::string machine_summary(const facts::Machine& machine) {
  std::vector<std::string> parts;
  std::vector<std::pair<std::string, int>> models;  // in order of first appearance
  for (const auto& gpu : machine.gpus) {
    const std::string gfx = gpu.gfx.value_or("");
    std::string name = gpu.product ? *gpu.product : gpu.device_id ? fmt::format("AMD device {:04x}", *gpu.device_id) : std::string("AMD GPU");
    if (!gfx.empty()) name += " (" + gfx + ")";
    bool known = false;
    for (auto& [model, count] : models)
      if (model == name) {
        ++count;
        known = true;
      }
    if (!known) models.emplace_back(name, 1);
  }
  for (const auto& [model, count] : models) parts.push_back(count == 1 ? model : fmt::format("{} x {}", count, model));
  if (models.empty() && machine.pci_listed.value_or(false)) parts.emplace_back("no AMD GPU");
  for (const auto& rocm : machine.rocm) {
    if (!rocm.version) continue;
    parts.push_back("ROCm " + *rocm.version);
    break;
  }
  for (const auto& python : machine.pythons) {
    if (!python.torch_version) continue;
    parts.push_back("torch " + *python.torch_version);
    break;
  }
  if (machine.host.kernel_release) parts.push_back("kernel " + *machine.host.kernel_release);
  if (machine.host.os_name) parts.push_back(*machine.host.os_name);
  if (machine.container.kind && !machine.container.kind->empty()) parts.push_back("in a " + *machine.container.kind + " container");
  return join(parts, ", ");
}

}  // namespace ff::report
