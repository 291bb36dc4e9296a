#include "facts/pcie.h"

#include <fmt/format.h>

#include <algorithm>

#include "facts/pci_config.h"

namespace ff::facts {
namespace {

constexpr std::uint32_t class_pci_bridge = 0x0604;
constexpr std::uint32_t vendor_ati = 0x1002;
constexpr std::uint64_t resource_unset = 0x20000000;   ///< IORESOURCE_UNSET
constexpr std::uint64_t resource_memory = 0x00000200;  ///< IORESOURCE_MEM

struct Link {
  Known<double> speed, max_speed;
  Known<int> width, max_width;
};

/// "16.0 GT/s PCIe", "8 GT/s"; "Unknown" stays unknown.
Known<double> speed_file(const Bus& bus, const BusDevice& device, std::string_view name) {
  const auto text = bus.text(device, name);
  if (!text) return {};
  const auto unit = text->find("GT/s");
  if (unit == std::string::npos) return {};
  const auto speed = to_real(trim(std::string_view(*text).substr(0, unit)));
  if (!speed || *speed <= 0) return {};
  return {*speed, text.origin};
}

Known<int> width_file(const Bus& bus, const BusDevice& device, std::string_view name) {
  const auto width = bus.integer<int>(device, name);
  return width && *width > 0 && *width <= 32 ? width : Known<int>{};
}

Link link_of(const Bus& bus, const BusDevice& device) {
  Link out;
  out.speed = speed_file(bus, device, "current_link_speed");
  out.max_speed = speed_file(bus, device, "max_link_speed");
  out.width = width_file(bus, device, "current_link_width");
  out.max_width = width_file(bus, device, "max_link_width");
  if (device.lspci != nullptr) {
    fill(out.speed, device.lspci->speed_gts);
    fill(out.max_speed, device.lspci->max_speed_gts);
    fill(out.width, device.lspci->width);
    fill(out.max_width, device.lspci->max_width);
  }
  if (const auto path = bus.path(device, "config")) {
    const PciConfig config = decode_pci_config(bus.evidence().capture().file(*path).value_or(""));
    const auto from = [&] { return bus.evidence().origin(*path, 0, "PCI Express capability"); };
    if (const auto s = gts_of_speed_code(config.speed_code.value_or(0))) fill(out.speed, Known<double>{*s, from()});
    if (const auto s = gts_of_speed_code(config.max_speed_code.value_or(0))) fill(out.max_speed, Known<double>{*s, from()});
    if (config.width.value_or(0) > 0) fill(out.width, Known<int>{*config.width, from()});
    if (config.max_width.value_or(0) > 0) fill(out.max_width, Known<int>{*config.max_width, from()});
  }
  return out;
}

void read_link(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  const BusDevice& port = board_port(device, bus);
  const Link link = link_of(bus, port);
  fill(gpu.link.speed_gts, link.speed);
  fill(gpu.link.width, link.width);
  fill(gpu.link.max_speed_gts, link.max_speed);
  fill(gpu.link.max_width, link.max_width);
  gpu.link.judged_at = port.address;
  gpu.link.parents_known = device.parents_known;
  const auto at = std::ranges::find(device.parents, port.address);
  const auto above = &port == &device ? device.parents.begin() : at == device.parents.end() ? at : at + 1;
  if (above == device.parents.end()) return;
  if (const BusDevice* slot = bus.find(*above)) {
    const Link upper = link_of(bus, *slot);
    gpu.link.slot_max_speed_gts = upper.max_speed;
    gpu.link.slot_max_width = upper.max_width;
  }
}

/// "RxErr 0" lines, summed over the GPU and the ports above it; the origin is the device that counted most.
void read_aer(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  struct File {
    const char* name;
    const char* prefix;
  };
  constexpr File files[] = {{"aer_dev_correctable", "cor."}, {"aer_dev_fatal", "fatal."}, {"aer_dev_nonfatal", "nonfatal."}};
  std::map<std::string, std::uint64_t> most;
  const auto add = [&](const BusDevice& at) {
    for (const auto& file : files) {
      const auto path = bus.path(at, file.name);
      if (!path) continue;
      std::uint64_t number = 0;
      for (const std::string_view line : lines(bus.evidence().text(*path).value_or(""))) {
        ++number;
        const auto parts = words(line);
        if (parts.size() != 2 || parts[0].starts_with("TOTAL_")) continue;
        const auto count = to_integer<std::uint64_t>(parts[1]);
        if (!count) continue;
        const std::string key = file.prefix + std::string(parts[0]);
        auto& known = gpu.aer[key];
        const bool first = !known;
        known.value = known.value_or(0) + *count;
        if (first || *count > most[key]) {
          known.origin = bus.evidence().origin(*path, number, line);
          most[key] = *count;
        }
      }
    }
  };
  add(device);
  for (const auto& parent : device.parents)
    if (const BusDevice* bridge = bus.find(parent)) add(*bridge);
}

void read_bars(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  if (const auto path = bus.path(device, "resource")) {
    int index = 0;
    for (const std::string_view line : lines(bus.evidence().text(*path).value_or(""))) {
      if (index == 6) break;  // what follows are the ROM and bridge windows
      const auto parts = words(line);
      if (parts.size() != 3) break;
      const auto start = to_integer<std::uint64_t>(parts[0], 16);
      const auto end = to_integer<std::uint64_t>(parts[1], 16);
      const auto flags = to_integer<std::uint64_t>(parts[2], 16);
      if (start && end && flags && (*flags & resource_memory) != 0 && *end >= *start && *end - *start != ~std::uint64_t{0})
        gpu.bars.push_back({index, *end - *start + 1, *start != 0 && (*flags & resource_unset) == 0});
      ++index;
    }
  } else if (device.lspci != nullptr && gpu.bars.empty()) {
    gpu.bars = device.lspci->bars;
  }
}

void read_atomics_and_acs(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  if (device.lspci != nullptr) fill(gpu.pcie_atomics, device.lspci->atomics_requested);
  if (const auto path = bus.path(device, "config")) {
    const PciConfig config = decode_pci_config(bus.evidence().capture().file(*path).value_or(""));
    if (config.atomic_requester_enabled)
      fill(gpu.pcie_atomics, Known<bool>{*config.atomic_requester_enabled, bus.evidence().origin(*path, 0, "Device Control 2, AtomicOp requester")});
  }
  for (const auto& parent : device.parents) {
    const BusDevice* bridge = bus.find(parent);
    if (bridge == nullptr) continue;
    Known<bool> redirect;
    if (bridge->lspci != nullptr) redirect = bridge->lspci->acs_redirect;
    if (const auto path = bus.path(*bridge, "config")) {
      const PciConfig config = decode_pci_config(bus.evidence().capture().file(*path).value_or(""));
      if (config.acs_request_redirect)
        redirect = {*config.acs_request_redirect, bus.evidence().origin(*path, 0, "ACS Control, P2P request redirect")};
    }
    if (redirect && (!gpu.acs_redirect || (*redirect && !*gpu.acs_redirect))) gpu.acs_redirect = redirect;
  }
}

void read_iommu(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  if (const auto group = bus.link(device, "iommu_group"))
    gpu.iommu_group = {std::string(base_name(*group)), bus.evidence().origin(device.directories.front() + "/iommu_group", 0, *group)};
  if (device.lspci != nullptr) fill(gpu.iommu_group, device.lspci->iommu_group);
  if (gpu.iommu_group) gpu.iommu_domain = bus.evidence().known_text("/sys/kernel/iommu_groups/" + *gpu.iommu_group + "/type");
}

/// /sys/bus/pci/slots/<label>/address holds the address of the slot's device without its function.
void read_slot(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  const std::string board = board_port(device, bus).address;
  for (const std::string& name : bus.evidence().capture().list("/sys/bus/pci/slots")) {
    const std::string path = "/sys/bus/pci/slots/" + name + "/address";
    const auto address = bus.evidence().value(path);
    if (!address || address->size() < 7) continue;
    const std::string prefix = std::string(*address) + ".";
    if (board.starts_with(prefix) || device.address.starts_with(prefix)) {
      gpu.slot = {name, bus.evidence().origin(path, 1, *address)};
      return;
    }
  }
  if (device.lspci != nullptr) fill(gpu.slot, device.lspci->slot);
  for (const auto& parent : device.parents)
    if (const BusDevice* bridge = bus.find(parent); bridge != nullptr && bridge->lspci != nullptr) fill(gpu.slot, bridge->lspci->slot);
}

}  // namespace

const BusDevice& board_port(const BusDevice& device, const Bus& bus) {
  const BusDevice* port = &device;
  for (std::size_t i = 0; i < device.parents.size(); ++i) {
    const BusDevice* bridge = bus.find(device.parents[i]);
    // Processors' root ports carry vendor 1022; AMD's old chipsets had root ports of vendor 1002, and a root port is
    // never part of a board.
    const bool root_port = i + 1 == device.parents.size();
    if (bridge == nullptr || root_port || bridge->vendor_id.value != vendor_ati) break;
    if (bridge->device_class && *bridge->device_class >> 8 != class_pci_bridge) break;
    port = bridge;
  }
  return *port;
}

void read_pcie(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  if (!device.address.empty())
    fill(gpu.pci, {device.address,
                   device.directories.empty() ? device.device_class.origin : bus.evidence().origin(device.directories.front(), 0, device.address)});
  gpu.drm_card = device.card;
  fill(gpu.vendor_id, device.vendor_id);
  fill(gpu.device_id, device.device_id);
  fill(gpu.revision, device.revision);
  gpu.driver = device.driver;
  fill(gpu.reset_method, bus.text(device, "reset_method"));
  fill(gpu.runtime_status, bus.text(device, "power/runtime_status"));
  if (const auto node = bus.integer<int>(device, "numa_node"); node && *node >= 0) fill(gpu.numa_node, node);
  if (device.lspci != nullptr) fill(gpu.numa_node, device.lspci->numa_node);
  if (const auto physical = bus.link(device, "physfn"))
    gpu.virtual_function = {true, bus.evidence().origin(device.directories.front() + "/physfn", 0, *physical)};
  read_link(gpu, device, bus);
  read_aer(gpu, device, bus);
  read_bars(gpu, device, bus);
  read_atomics_and_acs(gpu, device, bus);
  read_iommu(gpu, device, bus);
  read_slot(gpu, device, bus);
}

}  // namespace ff::facts
