// A package in a partition mode is several GPUs to the compute driver: is each of them there?
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "device/judge.h"

namespace ff::device {
namespace {

struct Package {
  std::set<int> partitions;  ///< the numbers that KFD gives
  const Gpu* gpu = nullptr;  ///< any of its nodes
  std::string mode;          ///< "CPX"; empty: unknown
  std::uint32_t device_id = 0;
};

/// Partitions of a mode. CPX makes one of each XCC, and how many a product has differs (MI300X 8, MI300A 6): 0, not known from it.
/// Source: amdgpu_xcp.h, enum amdgpu_gfx_partition.
int partitions_of(std::string_view mode) { return mode == "DPX" ? 2 : mode == "TPX" ? 3 : mode == "QPX" ? 4 : 0; }

std::map<std::string, Package> packages(const facts::Machine& machine) {
  std::map<std::string, Package> out;
  for (const auto& gpu : machine.gpus) {
    if (!gpu.pci || !gpu.kfd_node) continue;
    auto& package = out[*gpu.pci];
    package.gpu = &gpu;
    package.partitions.insert(gpu.partition.value_or(0));
    if (gpu.compute_partition) package.mode = *gpu.compute_partition;
    package.device_id = gpu.device_id.value_or(0);
  }
  return out;
}

}  // namespace

void judge_partitions(const CheckContext& context, Findings& findings) {
  // A container may have been given some partitions on purpose, and loose evidence may hold some.
  if (!complete(context) || !context.machine.container.kind.value_or("").empty()) return;
  const auto all = packages(context.machine);
  for (const auto& [pci, package] : all) {
    if (package.mode.empty() || package.mode == "SPX") continue;
    int expected = std::max(partitions_of(package.mode), *package.partitions.rbegin() + 1);
    // The same product in the same mode has as many partitions elsewhere in this machine.
    std::string sibling;
    for (const auto& [other_pci, other] : all)
      if (other.mode == package.mode && other.device_id == package.device_id && *other.partitions.rbegin() + 1 > expected) {
        expected = *other.partitions.rbegin() + 1;
        sibling = other_pci;
      }
    std::vector<std::string> missing;
    for (int i = 0; i < expected; ++i)
      if (!package.partitions.contains(i)) missing.push_back(std::to_string(i));
    findings.measured("partitions",
                      Value::object({{"pci", pci}, {"mode", package.mode}, {"in_kfd", package.partitions.size()}, {"expected", expected}}));
    if (missing.empty()) continue;
    findings.fail("driver.kfd-unavailable",
                  fmt::format("The driver offers compute on {} of the {} partitions of {} ({} mode{}): {} {} missing from the KFD nodes",
                              package.partitions.size(), expected, name_of(*package.gpu), package.mode,
                              sibling.empty() ? "" : ", as many as " + sibling + " has", missing.size() == 1 ? "number" : "numbers",
                              join(missing, ", ") + (missing.size() == 1 ? " is" : " are")),
                  {evidence(package.gpu->compute_partition), evidence(context.machine.kfd_listed)});
  }
}

}  // namespace ff::device
