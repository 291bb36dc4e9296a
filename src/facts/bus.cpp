#include "facts/bus.h"

#include <algorithm>
#include <set>

namespace ff::facts {
namespace {

constexpr std::string_view pci_root = "/sys/bus/pci/devices";
constexpr std::string_view drm_root = "/sys/class/drm";
constexpr std::uint32_t vendor_ati = 0x1002;

/// A value of a uevent file ("DRIVER=amdgpu").
Known<std::string> uevent_value(const Evidence& evidence, const std::string& path, std::string_view key) {
  const auto content = evidence.text(path);
  if (!content) return {};
  std::uint64_t number = 0;
  for (const std::string_view line : lines(*content)) {
    ++number;
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == '=')
      return {std::string(trim(line.substr(key.size() + 1))), evidence.origin(path, number, line)};
  }
  return {};
}

void add_unique(std::vector<std::string>& to, std::string value) {
  if (std::ranges::find(to, value) == to.end()) to.push_back(std::move(value));
}

/// The bridges in a path like "../../devices/pci0000:00/0000:00:01.1/0000:01:00.0/drm/card0", nearest first.
void take_parents(BusDevice& device, std::string_view path) {
  if (device.parents_known || !contains(path, "pci")) return;
  const auto chain = pci_addresses_of_path(path);
  const auto self = std::ranges::find(chain, device.address);
  if (self == chain.end()) return;
  device.parents.assign(std::make_reverse_iterator(self), chain.rend());
  device.parents_known = true;
}

}  // namespace

std::string_view base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_amd_gpu(std::optional<std::uint32_t> vendor_id, std::optional<std::uint32_t> device_class) {
  if (vendor_id != vendor_ati || !device_class) return false;
  return *device_class >> 16 == 0x03 || *device_class >> 8 == 0x1200;
}

Bus::Bus(const Evidence& evidence) : evidence_(evidence) {
  for (const char* command : {"lspci-vvv", "lspci"})
    for (const auto& [source, text] : evidence.outputs(command)) {
      if (!lspci_.empty()) continue;
      lspci_ = parse_lspci(evidence, source, text);
      lspci_source_ = source;
    }
  add_sysfs();
  add_drm();
  add_lspci();
  for (auto& device : devices_) describe(device);
}

const BusDevice* Bus::find(std::string_view address) const {
  const auto it = index_.find(address);
  return it != index_.end() ? &devices_[it->second] : nullptr;
}

BusDevice& Bus::at(const std::string& address) {
  if (!address.empty()) {
    const auto it = index_.find(address);
    if (it != index_.end()) return devices_[it->second];
    index_.emplace(address, devices_.size());
  }
  devices_.push_back({});
  devices_.back().address = address;
  return devices_.back();
}

void Bus::add_sysfs() {
  const auto& capture = evidence_.capture();
  for (const std::string& name : capture.list(pci_root)) {
    const auto address = parse_pci(name);
    if (!address) continue;
    BusDevice& device = at(address->to_string());
    const std::string directory = std::string(pci_root) + "/" + name;
    add_unique(device.directories, directory);
    if (const auto target = capture.link(directory)) take_parents(device, *target);
  }
  if (!devices_.empty() && capture.kind() != "loose") listed_ = {true, evidence_.origin(pci_root, 0, std::to_string(devices_.size()) + " devices")};

  // A copied tree keeps the devices where they really are.
  constexpr std::string_view real_root = "/sys/devices/pci";
  std::set<std::string> seen;
  const auto& files = capture.files();
  for (auto it = files.lower_bound(real_root); it != files.end() && it->first.starts_with(real_root); ++it) {
    const std::string_view directory = std::string_view(it->first).substr(0, it->first.rfind('/'));
    const auto address = parse_pci(base_name(directory));
    if (!address || base_name(directory).size() < 12 || !seen.emplace(directory).second) continue;
    BusDevice& device = at(address->to_string());
    add_unique(device.directories, std::string(directory));
    take_parents(device, directory);
  }
}

void Bus::add_drm() {
  const auto& capture = evidence_.capture();
  for (const std::string& name : capture.list(drm_root)) {
    const auto card = number_after(name, "card");
    const auto render = number_after(name, "renderD");
    if (!card && !render) continue;
    const std::string directory = std::string(drm_root) + "/" + name;
    const std::string below = directory + "/device";
    std::string address;
    std::string_view parents_from;
    if (const auto target = capture.link(directory)) {
      // A partition of an MI300 is a platform device without a PCI address of its own.
      if (contains(*target, "amdgpu_xcp")) continue;
      if (const auto chain = pci_addresses_of_path(*target); !chain.empty()) {
        address = chain.back();
        parents_from = *target;
      }
    }
    if (address.empty())
      if (const auto target = capture.link(below))
        if (const auto parsed = parse_pci(base_name(*target))) address = parsed->to_string();
    if (address.empty())
      if (const auto slot = uevent_value(evidence_, below + "/uevent", "PCI_SLOT_NAME"))
        if (const auto parsed = parse_pci(*slot)) address = parsed->to_string();
    if (address.empty() && !capture.exists(below)) continue;
    BusDevice& device = at(address);
    if (capture.exists(below)) add_unique(device.directories, below);
    if (!parents_from.empty()) take_parents(device, parents_from);
    auto& number = card ? device.card : device.render_minor;
    fill(number, Known<int>{card ? *card : *render, evidence_.origin(directory, 0, name)});
  }
}

void Bus::add_lspci() {
  for (const auto& listed : lspci_) {
    BusDevice& device = at(listed.address.to_string());
    device.lspci = &listed;
    const auto from = [&] { return listed.origin; };
    if (listed.vendor_id) device.vendor_id = {*listed.vendor_id, from()};
    if (listed.device_id) device.device_id = {*listed.device_id, from()};
    if (listed.device_class) device.device_class = {*listed.device_class, from()};
    if (listed.revision) device.revision = {*listed.revision, from()};
    device.driver = listed.driver;
  }
  // Bridges say which bus is behind them: the chain upwards, when sysfs gave none.
  std::map<std::pair<std::uint32_t, std::uint32_t>, const LspciDevice*> bridge_of_bus;
  for (const auto& listed : lspci_)
    if (listed.secondary_bus) bridge_of_bus[{listed.address.domain, *listed.secondary_bus}] = &listed;
  for (const auto& listed : lspci_) {
    BusDevice& device = at(listed.address.to_string());
    if (device.parents_known || bridge_of_bus.empty()) continue;
    const LspciDevice* below = &listed;
    while (device.parents.size() < 32) {
      const auto bridge = bridge_of_bus.find({below->address.domain, below->address.bus});
      if (bridge == bridge_of_bus.end() || bridge->second == below) break;
      below = bridge->second;
      device.parents.push_back(below->address.to_string());
    }
    device.parents_known = !device.parents.empty();
  }
  // A grep of a listing is no listing: a whole one has the host bridges.
  for (const auto& listed : lspci_)
    if (!listed_ && listed.device_class && *listed.device_class >> 8 == 0x0600)
      listed_ = {true, evidence_.origin(lspci_source_, 0, std::to_string(lspci_.size()) + " devices")};
}

void Bus::describe(BusDevice& device) {
  const auto prefer = [](auto& to, auto from) {
    if (from) to = std::move(from);
  };
  prefer(device.vendor_id, integer<std::uint32_t>(device, "vendor", 16));
  prefer(device.device_id, integer<std::uint32_t>(device, "device", 16));
  prefer(device.device_class, integer<std::uint32_t>(device, "class", 16));
  prefer(device.revision, integer<std::uint32_t>(device, "revision", 16));
  if (const auto target = link(device, "driver"))
    device.driver = {std::string(base_name(*target)), evidence_.origin(device.directories.front() + "/driver", 0, *target)};
  if (const auto uevent = path(device, "uevent")) {
    fill(device.driver, uevent_value(evidence_, *uevent, "DRIVER"));
    if (const auto ids = uevent_value(evidence_, *uevent, "PCI_ID")) {
      const auto parts = split(*ids, ':');
      if (parts.size() == 2) {
        if (const auto v = to_integer<std::uint32_t>(parts[0], 16)) fill(device.vendor_id, {*v, ids.origin});
        if (const auto d = to_integer<std::uint32_t>(parts[1], 16)) fill(device.device_id, {*d, ids.origin});
      }
    }
    if (const auto kind = uevent_value(evidence_, *uevent, "PCI_CLASS"))
      if (const auto c = to_integer<std::uint32_t>(*kind, 16)) fill(device.device_class, {*c, kind.origin});
  }
  // Looked at and without the link: no driver is bound.
  if (!device.driver && !device.directories.empty() && (known_absent(device, "driver") || (listed_ && evidence_.capture().kind() != "loose")))
    device.driver = {std::string(), evidence_.origin(device.directories.front() + "/driver", 0, "no such link")};
  if (!device.driver && device.lspci != nullptr && device.lspci->max_width) device.driver = {std::string(), device.lspci->origin};
  device.amd_gpu = is_amd_gpu(device.vendor_id.value, device.device_class.value) ||
                   (device.driver && *device.driver == "amdgpu" && (device.card || device.render_minor)) ||
                   ((!device.vendor_id || *device.vendor_id == vendor_ati) && has_amdgpu_files(device));
}

bool Bus::has_amdgpu_files(const BusDevice& device) const {
  const auto& capture = evidence_.capture();
  for (const char* name : {"mem_info_vram_total", "gpu_busy_percent", "pp_dpm_sclk", "pp_features", "vbios_version"})
    if (path(device, name)) return true;
  for (const auto& directory : device.directories) {
    for (const std::string& file : capture.list(directory + "/ras"))
      if (file.ends_with("_err_count")) return true;
    for (const std::string& monitor : capture.list(directory + "/hwmon"))
      if (evidence_.value(directory + "/hwmon/" + monitor + "/name").value_or("") == "amdgpu") return true;
  }
  return false;
}

std::optional<std::string> Bus::path(const BusDevice& device, std::string_view name) const {
  for (const auto& directory : device.directories) {
    std::string candidate = directory + "/" + std::string(name);
    if (evidence_.capture().file(candidate)) return candidate;
  }
  return std::nullopt;
}

std::optional<std::string_view> Bus::link(const BusDevice& device, std::string_view name) const {
  for (const auto& directory : device.directories)
    if (const auto target = evidence_.capture().link(directory + "/" + std::string(name))) return target;
  return std::nullopt;
}

bool Bus::known_absent(const BusDevice& device, std::string_view name) const {
  return std::ranges::any_of(device.directories, [&](const auto& d) { return evidence_.capture().known_absent(d + "/" + std::string(name)); });
}

Known<std::string> Bus::text(const BusDevice& device, std::string_view name) const {
  const auto p = path(device, name);
  return p ? evidence_.known_text(*p) : Known<std::string>{};
}

}  // namespace ff::facts
