#include "facts/lspci.h"

#include <array>

namespace ff::facts {
namespace {

struct ClassName {
  std::string_view text;
  std::uint32_t id;
};
/// Class names of pci.ids that matter here, for listings without -nn.
constexpr std::array<ClassName, 7> class_names{{{"VGA compatible controller", 0x030000},
                                                {"Display controller", 0x038000},
                                                {"3D controller", 0x030200},
                                                {"Processing accelerators", 0x120000},
                                                {"PCI bridge", 0x060400},
                                                {"Host bridge", 0x060000},
                                                {"Non-Essential Instrumentation", 0x130000}}};

std::optional<double> speed_of(std::string_view s) {
  const auto at = s.find("Speed ");
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = s.substr(at + 6);
  const auto unit = rest.find("GT/s");
  return unit == std::string_view::npos ? std::nullopt : to_real(trim(rest.substr(0, unit)));
}

std::optional<int> width_of(std::string_view s) {
  const auto at = s.find("Width x");
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = s.substr(at + 7);
  const auto width = to_integer<int>(rest.substr(0, rest.find_first_not_of("0123456789")));
  return width && *width > 0 ? width : std::nullopt;
}

/// "[size=16G]" in bytes.
std::optional<std::uint64_t> size_of(std::string_view s) {
  const auto size = between(s, "[size=", "]");
  if (!size || size->empty()) return std::nullopt;
  std::string_view digits = *size;
  unsigned shift = 0;
  switch (digits.back()) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    case 'T':
      shift = 40;
      break;
    default:
      break;
  }
  if (shift != 0) digits.remove_suffix(1);
  const auto number = to_integer<std::uint64_t>(digits);
  if (!number || *number > (std::uint64_t{1} << 20)) return std::nullopt;
  return *number << shift;
}

/// "[1002:744c]" or "[0300]" at the end of what is before `end`.
std::optional<std::uint32_t> hex4(std::string_view s) {
  if (s.size() != 4) return std::nullopt;
  return to_integer<std::uint32_t>(s, 16);
}

void read_head(LspciDevice& out, std::string_view rest) {
  const auto colon = rest.find(": ");
  if (colon == std::string_view::npos) return;
  std::string_view kind = rest.substr(0, colon);
  std::string_view name = trim(rest.substr(colon + 2));
  if (const auto id = between(kind, "[", "]"); id && hex4(*id)) {
    out.device_class = *hex4(*id) << 8;
    kind = trim(kind.substr(0, kind.rfind('[')));
  } else {
    for (const auto& known : class_names)
      if (kind == known.text) out.device_class = known.id;
  }
  if (const auto rev = name.rfind("(rev "); rev != std::string_view::npos) {
    out.revision = to_integer<std::uint32_t>(name.substr(rev + 5, 2), 16);
    name = trim(name.substr(0, rev));
  }
  // The ids stand in the last bracket that holds "xxxx:xxxx".
  for (auto at = name.rfind('['); at != std::string_view::npos; at = at == 0 ? std::string_view::npos : name.rfind('[', at - 1)) {
    const std::string_view inside = name.substr(at + 1, 9);
    if (inside.size() == 9 && inside[4] == ':' && hex4(inside.substr(0, 4)) && hex4(inside.substr(5))) {
      out.vendor_id = hex4(inside.substr(0, 4));
      out.device_id = hex4(inside.substr(5));
      name = trim(name.substr(0, at));
      break;
    }
  }
  // pci.ids calls vendor 1002 "... [AMD/ATI]" and vendor 1022 "... [AMD]".
  if (!out.vendor_id && contains(name, "[AMD/ATI]")) out.vendor_id = 0x1002;
  out.name = name;
}

void read_detail(LspciDevice& out, const Evidence& evidence, std::string_view source, std::uint64_t number, std::string_view line) {
  const auto from = [&] { return evidence.origin(source, number, line); };
  const auto after = [&](std::string_view key) -> std::optional<std::string_view> {
    if (!line.starts_with(key)) return std::nullopt;
    return trim(line.substr(key.size()));
  };
  if (const auto v = after("Kernel driver in use:")) {
    out.driver = {std::string(*v), from()};
  } else if (const auto slot = after("Physical Slot:")) {
    out.slot = {std::string(*slot), from()};
  } else if (const auto group = after("IOMMU group:")) {
    out.iommu_group = {std::string(*group), from()};
  } else if (const auto node = after("NUMA node:")) {
    if (const auto n = to_integer<int>(*node)) out.numa_node = {*n, from()};
  } else if (const auto cap = after("LnkCap:")) {
    if (const auto s = speed_of(*cap)) out.max_speed_gts = {*s, from()};
    if (const auto w = width_of(*cap)) out.max_width = {*w, from()};
  } else if (const auto sta = after("LnkSta:")) {
    if (const auto s = speed_of(*sta)) out.speed_gts = {*s, from()};
    if (const auto w = width_of(*sta)) out.width = {*w, from()};
  } else if (const auto atomics = after("AtomicOpsCtl:")) {
    if (contains(*atomics, "ReqEn+")) out.atomics_requested = {true, from()};
    if (contains(*atomics, "ReqEn-")) out.atomics_requested = {false, from()};
  } else if (const auto acs = after("ACSCtl:")) {
    if (contains(*acs, "ReqRedir+")) out.acs_redirect = {true, from()};
    if (contains(*acs, "ReqRedir-")) out.acs_redirect = {false, from()};
  } else if (const auto bus = after("Bus:")) {
    const auto at = bus->find("secondary=");
    if (at != std::string_view::npos) out.secondary_bus = to_integer<std::uint32_t>(bus->substr(at + 10, 2), 16);
  } else if (const auto region = after("Region ")) {
    const auto index = to_integer<int>(region->substr(0, region->find(':')));
    const auto size = size_of(*region);
    if (index && size && *index >= 0 && *index < 6)
      out.bars.push_back({*index, *size, !contains(*region, "<unassigned>") && !contains(*region, "<ignored>")});
  }
}

}  // namespace

std::vector<LspciDevice> parse_lspci(const Evidence& evidence, std::string_view source, std::string_view text) {
  std::vector<LspciDevice> out;
  std::uint64_t number = 0;
  bool in_device = false;
  for (const std::string_view line : lines(cut_at_nul(text))) {
    ++number;
    if (!line.empty() && line[0] != ' ' && line[0] != '\t') {
      const auto blank = line.find(' ');
      const auto address = blank == std::string_view::npos ? std::nullopt : parse_pci(line.substr(0, blank));
      in_device = address.has_value();
      if (!in_device) continue;
      LspciDevice device;
      device.address = *address;
      device.origin = evidence.origin(source, number, line);
      read_head(device, trim(line.substr(blank + 1)));
      out.push_back(std::move(device));
    } else if (in_device) {
      read_detail(out.back(), evidence, source, number, trim(line));
    }
  }
  return out;
}

}  // namespace ff::facts
