#include "capture/hardware.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/file.h"
#include "base/text.h"
#include "capture/reader.h"

namespace ff::capture {
namespace {

std::string value_at(const std::string& path) {
  const auto content = read_file(path, 4096);
  return content ? std::string(trim(*content)) : std::string();
}

std::string link_at(const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Display controllers and processing accelerators.
bool is_gpu_class(std::string_view value) { return value.starts_with("0x03") || value.starts_with("0x12"); }

bool is_numbered(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         std::ranges::all_of(name.substr(prefix.size()), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// PCI addresses in "../../../devices/pci0000:00/0000:00:01.1/0000:01:00.0", in order.
std::vector<std::string> addresses_in(std::string_view link) {
  std::vector<std::string> out;
  for (const std::string_view part : split(link, '/'))
    if (is_pci_address(part)) out.emplace_back(part);
  return out;
}

/// The PCI address that /sys/class/drm/cardN belongs to; from the link, else from uevent (copied trees have no links).
std::string address_of_card(const std::string& device) {
  const auto link = addresses_in(link_at(device));
  if (!link.empty()) return link.back();
  const auto uevent = read_file(device + "/uevent", 65536);
  if (uevent)
    for (const std::string_view line : lines(*uevent))
      if (line.starts_with("PCI_SLOT_NAME=")) return std::string(line.substr(14));
  return {};
}

FoundGpu* gpu_at(std::vector<FoundGpu>& gpus, std::string_view pci) {
  const auto it = std::ranges::find(gpus, pci, &FoundGpu::pci);
  return it != gpus.end() ? &*it : nullptr;
}

void find_cards(const std::string& root, FoundHardware& found) {
  int error = 0;
  for (const std::string& name : directory_names(below_root(root, "/sys/class/drm"), error)) {
    if (is_numbered(name, "renderD")) found.render_links.push_back("/sys/class/drm/" + name);
    if (!is_numbered(name, "card")) continue;
    const std::string device = below_root(root, "/sys/class/drm/" + name + "/device");
    const std::string pci = address_of_card(device);
    FoundGpu* gpu = pci.empty() ? nullptr : gpu_at(found.gpus, pci);
    if (gpu == nullptr) {
      if (value_at(device + "/vendor") != "0x1002") continue;
      found.gpus.push_back({.pci = pci});
      gpu = &found.gpus.back();
      gpu->runtime_status = value_at(device + "/power/runtime_status");
    }
    gpu->card = name;
    gpu->nodes.push_back("/dev/dri/" + name);
    for (const std::string& node : directory_names(device + "/drm", error))
      if (is_numbered(node, "renderD")) gpu->nodes.push_back("/dev/dri/" + node);
  }
}

}  // namespace

bool is_pci_address(std::string_view text) {
  // domain (4 or more hex digits) : bus : device . function
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4 || text.size() != colon + 8) return false;
  const auto hex = [](std::string_view s) { return std::ranges::all_of(s, [](unsigned char c) { return std::isxdigit(c) != 0; }); };
  return hex(text.substr(0, colon)) && hex(text.substr(colon + 1, 2)) && text[colon + 3] == ':' && hex(text.substr(colon + 4, 2)) &&
         text[colon + 6] == '.' && text[colon + 7] >= '0' && text[colon + 7] <= '7';
}

bool FoundHardware::is_asleep(std::string_view pci) const { return std::ranges::find(asleep, pci) != asleep.end(); }

FoundHardware find_hardware(const std::string& root) {
  FoundHardware found;
  found.pci_devices = directory_names(below_root(root, "/sys/bus/pci/devices"), found.pci_error);
  std::erase_if(found.pci_devices, [](const std::string& name) { return !is_pci_address(name); });
  for (const std::string& address : found.pci_devices) {
    const std::string directory = below_root(root, "/sys/bus/pci/devices/" + address);
    const std::string status = value_at(directory + "/power/runtime_status");
    if (status.starts_with("suspend")) found.asleep.push_back(address);
    if (value_at(directory + "/vendor") != "0x1002" || !is_gpu_class(value_at(directory + "/class"))) continue;
    FoundGpu gpu{.pci = address, .runtime_status = status};
    gpu.bridges = addresses_in(link_at(directory));
    if (!gpu.bridges.empty() && gpu.bridges.back() == address) gpu.bridges.pop_back();
    found.gpus.push_back(std::move(gpu));
  }
  find_cards(root, found);
  return found;
}

}  // namespace ff::capture
