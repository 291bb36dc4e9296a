#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/machine.h"
#include "facts/read.h"

namespace ff::facts {

/// One device of an `lspci` text, with whatever the verbosity of the listing gave.
struct LspciDevice {
  PciAddress address;
  Origin origin;     ///< the device's first line
  std::string name;  ///< what stands behind the class, without "(rev ..)"
  std::optional<std::uint32_t> vendor_id, device_id, device_class, revision;
  Known<std::string> driver;               ///< "Kernel driver in use"
  Known<std::string> slot;                 ///< "Physical Slot"
  Known<double> speed_gts, max_speed_gts;  ///< LnkSta, LnkCap
  Known<int> width, max_width;
  Known<bool> atomics_requested;  ///< AtomicOpsCtl: ReqEn+
  Known<bool> acs_redirect;       ///< ACSCtl: ReqRedir+
  Known<std::string> iommu_group;
  Known<int> numa_node;
  std::optional<std::uint32_t> secondary_bus;  ///< of a bridge
  std::vector<Bar> bars;
};

/// Reads `lspci` in any of its forms (short, -nn, -k, -vvv, with or without domain).
std::vector<LspciDevice> parse_lspci(const Evidence& evidence, std::string_view source, std::string_view text);

}  // namespace ff::facts
