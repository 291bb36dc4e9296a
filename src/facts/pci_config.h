#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ff::facts {

/// What a device's PCI configuration space says (sysfs file "config", little endian; 64 bytes for ordinary users, up to
/// 4096 for root, where the capabilities are). What lies beyond the bytes, or is padding, stays unknown.
struct PciConfig {
  std::optional<int> speed_code, width;                                          ///< Link Status: 1 = 2.5, 2 = 5, 3 = 8, 4 = 16, 5 = 32, 6 = 64 GT/s
  std::optional<int> max_speed_code, max_width;                                  ///< Link Capabilities
  std::optional<bool> atomic_requester_enabled;                                  ///< Device Control 2, bit 6
  std::optional<bool> atomic_routing, atomic_32_completer, atomic_64_completer;  ///< Device Capabilities 2, bits 6 to 8
  std::optional<bool> acs_request_redirect, acs_completion_redirect;             ///< ACS Control, bits 2 and 3
};

PciConfig decode_pci_config(std::string_view bytes);

/// GT/s of a link speed code; nothing for a code that no specification has.
std::optional<double> gts_of_speed_code(int code);

}  // namespace ff::facts
