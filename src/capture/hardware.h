#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ff::capture {

/// One AMD GPU as found on the PCI bus or under /sys/class/drm, before anything of it is read that could hang or wake it.
struct FoundGpu {
  std::string pci;                   ///< "0000:03:00.0"; empty when only the DRM tree is there
  std::string card;                  ///< "card1"; empty: no driver with a DRM node is bound
  std::vector<std::string> nodes;    ///< "/dev/dri/card1", "/dev/dri/renderD128"
  std::vector<std::string> bridges;  ///< PCI addresses above it, root port first
  std::string runtime_status;        ///< of power/runtime_status; empty when not there
  [[nodiscard]] bool asleep() const { return runtime_status == "suspended" || runtime_status == "suspending"; }
};

struct FoundHardware {
  std::vector<FoundGpu> gpus;
  std::vector<std::string> pci_devices;   ///< all addresses
  std::vector<std::string> asleep;        ///< PCI addresses of sleeping devices of any kind
  std::vector<std::string> render_links;  ///< "/sys/class/drm/renderD128"
  int pci_error = 0;                      ///< errno when the bus could not be listed
  [[nodiscard]] bool is_asleep(std::string_view pci) const;
};

/// Looks at names, links and values that the kernel remembers (vendor, class, runtime status); asks no device.
FoundHardware find_hardware(const std::string& root);

/// "0000:03:00.0".
[[nodiscard]] bool is_pci_address(std::string_view text);

}  // namespace ff::capture
