#include "facts/kfd.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace ff::facts {
namespace {

constexpr int link_pcie = 2;
constexpr std::uint32_t no_atomics_32 = 1U << 2;
constexpr std::uint32_t no_atomics_64 = 1U << 3;
constexpr std::int64_t heap_public = 1;   ///< VRAM that the CPU can map
constexpr std::int64_t heap_private = 2;  ///< VRAM that it cannot

/// Where the topology stands, with "/nodes"; empty when it was not captured.
std::string find_root(const Evidence& evidence) {
  for (const char* root : {"/sys/class/kfd/kfd/topology/nodes", "/sys/devices/virtual/kfd/kfd/topology/nodes"})
    if (evidence.capture().exists(root)) return root;
  return {};
}

/// Bits 15:0 are bus, device and function. In partition modes kernels add the partition's number: first in the low
/// bits, later in bits 31:28 (kfd_topology.c). GPUs have function 0 except virtual functions, so that low bits that
/// differ between nodes of one bus and device are partition numbers.
struct Location {
  PciAddress address;
  std::uint32_t high = 0;
  Origin origin;
};

std::optional<Location> location_of(const Properties& properties) {
  const auto id = properties.integer<std::uint32_t>("location_id");
  if (!id || *id == 0) return std::nullopt;
  const auto domain = properties.integer<std::uint32_t>("domain");
  return Location{{domain.value_or(0), (*id >> 8) & 0xff, (*id >> 3) & 0x1f, *id & 7}, *id >> 28, id.origin};
}

std::vector<KfdLink> read_links(const Evidence& evidence, const std::string& node) {
  std::vector<KfdLink> out;
  for (const char* kind : {"io_links", "p2p_links"}) {
    const std::string directory = node + "/" + kind;
    for (const std::string& name : evidence.capture().list(directory)) {
      const std::string path = directory + "/" + name + "/properties";
      const Properties properties(evidence, path);
      const auto to = properties.integer<int>("node_to");
      const auto type = properties.integer<int>("type");
      if (!to || !type) continue;
      out.push_back({*to, *type, properties.integer<std::int64_t>("weight").value_or(0),
                     properties.integer<std::int64_t>("max_bandwidth").value_or(0), properties.integer<std::uint32_t>("flags").value_or(0),
                     std::string_view(kind) == "p2p_links", evidence.origin(path, 0, fmt::format("type {} node_to {}", *type, *to))});
    }
  }
  return out;
}

void read_memory(KfdGpu& gpu, const Evidence& evidence, const std::string& node) {
  std::uint64_t total = 0;
  std::uint64_t visible = 0;
  Origin origin;
  for (const std::string& name : evidence.capture().list(node + "/mem_banks")) {
    const std::string path = node + "/mem_banks/" + name + "/properties";
    const Properties properties(evidence, path);
    const auto heap = properties.integer<std::int64_t>("heap_type");
    const auto size = properties.integer<std::uint64_t>("size_in_bytes");
    if (!heap || !size || (*heap != heap_public && *heap != heap_private)) continue;
    constexpr std::uint64_t largest = std::uint64_t{1} << 50;
    if (*size > largest) continue;
    total += *size;
    if (*heap == heap_public) visible += *size;
    if (origin.source.empty()) origin = size.origin;
  }
  if (total == 0) return;
  gpu.vram_total_bytes = {total, origin};
  gpu.visible_vram_bytes = {visible, origin};
}

KfdGpu read_gpu(const Evidence& evidence, int number, const std::string& node, const Properties& p) {
  KfdGpu gpu;
  gpu.node = number;
  gpu.origin = evidence.origin(node + "/properties", 0, fmt::format("node {}", number));
  gpu.gpu_id = evidence.known_integer<std::uint32_t>(node + "/gpu_id");
  gpu.vendor_id = p.integer<std::uint32_t>("vendor_id");
  gpu.device_id = p.integer<std::uint32_t>("device_id");
  gpu.wavefront = p.integer<int>("wave_front_size");
  gpu.lds_kib = p.integer<int>("lds_size_in_kb");
  gpu.xcc = p.integer<int>("num_xcc");
  if (const auto minor = p.integer<int>("drm_render_minor"); minor && *minor > 0) gpu.render_minor = minor;
  if (const auto version = p.integer<std::uint64_t>("gfx_target_version"))
    if (std::string name = gfx_of_target_version(*version); !name.empty()) gpu.gfx = {std::move(name), version.origin};
  const auto simds = p.integer<int>("simd_count");
  const auto per_cu = p.integer<int>("simd_per_cu");
  if (simds && per_cu && *per_cu > 0) gpu.compute_units = {*simds / *per_cu, simds.origin};
  if (const auto hive = p.integer<std::uint64_t>("hive_id"); hive && *hive != 0) gpu.hive = {fmt::format("{:016x}", *hive), hive.origin};
  if (const auto id = p.integer<std::uint64_t>("unique_id"); id && *id != 0) gpu.unique_id = {fmt::format("{:016x}", *id), id.origin};
  read_memory(gpu, evidence, node);
  gpu.links = read_links(evidence, node);
  return gpu;
}

/// Addresses of the GPUs, once all nodes are read: partitions are told from functions by comparing neighbours.
void place(std::vector<KfdGpu>& gpus, const std::vector<std::optional<Location>>& locations) {
  struct Slot {
    std::set<std::uint32_t> functions, highs;
    std::set<std::optional<std::string>> ids;
  };
  const auto device_of = [](const Location& location) {
    PciAddress device = location.address;
    device.function = 0;
    return device;
  };
  std::map<PciAddress, Slot> slots;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!locations[i]) continue;
    Slot& slot = slots[device_of(*locations[i])];
    slot.functions.insert(locations[i]->address.function);
    slot.highs.insert(locations[i]->high);
    slot.ids.insert(gpus[i].unique_id.value);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (!locations[i]) continue;
    const Location& location = *locations[i];
    const Slot& slot = slots[device_of(location)];
    PciAddress address = location.address;
    // Several nodes with one unique id are partitions; different functions have different ids or none.
    if (slot.ids.size() == 1 && slot.highs.size() > 1) {
      gpus[i].partition = {static_cast<int>(location.high), location.origin};
    } else if (slot.ids.size() == 1 && slot.functions.size() > 1) {
      gpus[i].partition = {static_cast<int>(address.function), location.origin};
      address.function = 0;
    }
    gpus[i].pci = {address.to_string(), location.origin};
  }
}

/// The GPU's own link to a CPU says whether the driver could switch on atomic requests (kfd_topology.c,
/// kfd_set_iolink_no_atomics). Links over XGMI always can.
void read_atomics(KfdGpu& gpu, const std::set<int>& gpu_nodes) {
  for (const auto& link : gpu.links) {
    if (link.type != link_pcie || link.peer || gpu_nodes.contains(link.to)) continue;
    gpu.pcie_atomics = {(link.flags & (no_atomics_32 | no_atomics_64)) == 0, link.origin};
    gpu.pcie_atomics.origin.text = fmt::format("flags {}", link.flags);
    return;
  }
}

}  // namespace

std::string gfx_of_target_version(std::uint64_t version) {
  const std::uint64_t major = version / 10000;
  const std::uint64_t minor = version / 100 % 100;
  const std::uint64_t step = version % 100;
  if (major == 0 || major > 99 || minor > 15 || step > 15) return {};
  return fmt::format("gfx{}{:x}{:x}", major, minor, step);
}

Kfd read_kfd(const Evidence& evidence) {
  Kfd out;
  const std::string root = find_root(evidence);
  if (root.empty()) {
    // Looked for and not there: a topology with no node at all.
    for (const char* path : {"/sys/class/kfd", "/sys/class/kfd/kfd", "/sys/class/kfd/kfd/topology", "/sys/class/kfd/kfd/topology/nodes"})
      if (!out.listed && evidence.capture().known_absent(path)) {
        out.listed = {true, evidence.origin(path, 0, "no such directory")};
        out.nodes = {0, out.listed.origin};
      }
    return out;
  }
  std::vector<std::optional<Location>> locations;
  std::set<int> gpu_nodes;
  int count = 0;
  for (const std::string& name : evidence.capture().list(root)) {
    const auto number = number_after(name, "");
    if (!number) continue;
    ++count;
    const std::string node = root + "/" + name;
    const Properties properties(evidence, node + "/properties");
    const auto id = evidence.known_integer<std::uint32_t>(node + "/gpu_id");
    const bool is_gpu = properties.integer<std::int64_t>("simd_count").value_or(0) > 0 ||
                        properties.integer<std::int64_t>("gfx_target_version").value_or(0) > 0 || (id && *id != 0);
    if (!is_gpu) continue;
    gpu_nodes.insert(*number);
    out.gpus.push_back(read_gpu(evidence, *number, node, properties));
    locations.push_back(location_of(properties));
  }
  place(out.gpus, locations);
  for (auto& gpu : out.gpus) {
    read_atomics(gpu, gpu_nodes);
    std::erase_if(gpu.links, [&](const KfdLink& link) { return !gpu_nodes.contains(link.to); });
  }
  out.nodes = {count, evidence.origin(root, 0, fmt::format("{} nodes", count))};
  out.listed = {true, out.nodes.origin};
  return out;
}

}  // namespace ff::facts
