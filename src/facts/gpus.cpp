#include "facts/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "facts/drm.h"
#include "facts/pcie.h"

namespace ff::facts {
namespace {

constexpr int link_xgmi = 11;
constexpr std::int64_t weight_within_package = 13;  ///< KFD: 13 between the dies of one package, 15 a hop between packages

Gpu from_kfd(const KfdGpu& node) {
  Gpu gpu;
  gpu.kfd_node = {node.node, node.origin};
  gpu.kfd_gpu_id = node.gpu_id;
  gpu.pci = node.pci;
  gpu.partition = node.partition;
  gpu.vendor_id = node.vendor_id;
  gpu.device_id = node.device_id;
  gpu.gfx = node.gfx;
  gpu.compute_units = node.compute_units;
  gpu.wavefront = node.wavefront;
  gpu.lds_kib = node.lds_kib;
  gpu.xcc = node.xcc;
  gpu.render_minor = node.render_minor;
  gpu.hive = node.hive;
  gpu.unique_id = node.unique_id;
  gpu.pcie_atomics = node.pcie_atomics;
  for (const auto& link : node.links)
    if (link.type == link_xgmi) gpu.xgmi.push_back({link.to, link.weight, link.max_bandwidth_mbs});
  return gpu;
}

const BusDevice* device_of(const KfdGpu& node, const Kfd& kfd, const Bus& bus) {
  if (node.pci)
    if (const BusDevice* device = bus.find(*node.pci)) return device;
  const BusDevice* unnamed = nullptr;
  std::size_t count = 0;
  for (const auto& device : bus.devices()) {
    if (!device.amd_gpu) continue;
    if (node.render_minor && device.render_minor && *device.render_minor == *node.render_minor) return &device;
    if (device.address.empty()) {
      unnamed = &device;
      ++count;
    }
  }
  // One card without an address and one GPU: no doubt which is which.
  return count == 1 && kfd.gpus.size() == 1 ? unnamed : nullptr;
}

/// The dies that share a package: partitions by their PCI address, GCDs by the weight of their XGMI link.
void find_packages(std::vector<Gpu>& gpus, const Kfd& kfd) {
  std::map<int, std::size_t> by_node;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i].kfd_node) by_node[*gpus[i].kfd_node] = i;
  std::vector<std::size_t> leader(gpus.size());
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i];
    return i;
  };
  std::vector<Origin> because(gpus.size());
  for (const auto& node : kfd.gpus)
    for (const auto& link : node.links) {
      if (link.type != link_xgmi || link.weight != weight_within_package) continue;
      const auto a = by_node.find(node.node);
      const auto b = by_node.find(link.to);
      if (a == by_node.end() || b == by_node.end()) continue;
      const auto x = find(a->second);
      const auto y = find(b->second);
      leader[std::max(x, y)] = std::min(x, y);
      because[a->second] = link.origin;
    }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const Gpu& first = gpus[find(i)];
    if (!first.pci) continue;
    gpus[i].package = {*first.pci, because[i].source.empty() ? gpus[i].pci.origin : because[i]};
  }
}

const Value* target_of(std::string_view gfx, const Tables& tables) {
  for (const Value& target : tables.targets["targets"].items())
    if (target["name"].as_text() == gfx) return &target;
  return nullptr;
}

}  // namespace

void name_gpu(Gpu& gpu, const Tables& tables) {
  const Value* entry = nullptr;
  std::string key;
  if (gpu.device_id && (!gpu.vendor_id || *gpu.vendor_id == 0x1002)) {
    key = fmt::format("{:04x}", *gpu.device_id);
    entry = tables.pci["devices"].find(key);
  }
  if (entry != nullptr) {
    const Origin from{gpu.device_id.origin.source, gpu.device_id.origin.line, fmt::format("PCI device 1002:{}", key)};
    if (const auto gfx = (*entry)["gfx"].as_text(); !gfx.empty()) fill(gpu.gfx, Known<std::string>{std::string(gfx), from});
    const auto& names = (*entry)["names_by_revision"];
    std::string_view name;
    if (gpu.revision) name = names[fmt::format("{:02X}", *gpu.revision)].as_text();
    // Without the revision the name is known only when all revisions share it.
    std::set<std::string_view> all;
    for (const auto& [revision, n] : names.members()) all.insert(n.as_text());
    if (name.empty() && all.size() == 1) name = *all.begin();
    if (!name.empty()) gpu.product = {std::string(name), gpu.product ? gpu.product.origin : from};
  }
  if (gpu.integrated || !gpu.gfx) return;
  const Value* target = target_of(*gpu.gfx, tables);
  if (target == nullptr) return;
  const auto kind = (*target)["type"].as_text();
  // MI300A is an APU of a target whose other products are discrete.
  const bool apu = kind == "APU" || (gpu.product && contains(*gpu.product, "MI300A"));
  if (kind == "APU" || kind == "dGPU") gpu.integrated = {apu, gpu.gfx.origin};
}

void sort_gpus(std::vector<Gpu>& gpus) {
  const auto place = [](const Gpu& gpu) {
    const auto address = gpu.pci ? parse_pci(*gpu.pci) : std::nullopt;
    return std::tuple(!address.has_value(), address.value_or(PciAddress{}), gpu.kfd_node.value_or(std::numeric_limits<int>::max()));
  };
  std::ranges::stable_sort(gpus, [&](const Gpu& a, const Gpu& b) { return place(a) < place(b); });
}

std::vector<Gpu> read_gpus(const Evidence& evidence, const Bus& bus, const Kfd& kfd, const Tables& tables) {
  std::vector<Gpu> gpus;
  std::set<const BusDevice*> used;
  for (const auto& node : kfd.gpus) {
    Gpu gpu = from_kfd(node);
    const BusDevice* device = device_of(node, kfd, bus);
    // What KFD says of a partition is the partition's share; what amdgpu says of the card is the whole package.
    if (node.partition) {
      gpu.vram_total_bytes = node.vram_total_bytes;
      gpu.visible_vram_bytes = node.visible_vram_bytes;
    }
    if (device != nullptr) {
      used.insert(device);
      read_pcie(gpu, *device, bus);
      read_drm(gpu, *device, bus, tables);
      fill(gpu.render_minor, device->render_minor);
    }
    fill(gpu.vram_total_bytes, node.vram_total_bytes);
    fill(gpu.visible_vram_bytes, node.visible_vram_bytes);
    if (gpu.pci && gpu.pci.origin.source.empty()) gpu.pci.origin = evidence.origin("/sys/class/kfd", 0, *gpu.pci);
    gpus.push_back(std::move(gpu));
  }
  for (const auto& device : bus.devices()) {
    if (!device.amd_gpu || used.contains(&device)) continue;
    Gpu gpu;
    read_pcie(gpu, device, bus);
    read_drm(gpu, device, bus, tables);
    fill(gpu.render_minor, device.render_minor);
    gpus.push_back(std::move(gpu));
  }
  for (auto& gpu : gpus) name_gpu(gpu, tables);
  sort_gpus(gpus);
  find_packages(gpus, kfd);
  return gpus;
}

}  // namespace ff::facts
