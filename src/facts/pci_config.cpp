#include "facts/pci_config.h"

namespace ff::facts {
namespace {

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] std::optional<std::uint32_t> at(std::size_t offset, std::size_t width) const {
    if (offset > bytes_.size() || width > bytes_.size() - offset) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[offset + i])) << (8 * i);
    return value;
  }

 private:
  std::string_view bytes_;
};

constexpr std::uint32_t capability_pcie = 0x10;
constexpr std::uint32_t extended_acs = 0x000d;

/// Offset of the PCI Express capability; the list is followed for as many steps as fit in 192 bytes.
std::optional<std::size_t> find_pcie(const Bytes& bytes) {
  const auto status = bytes.at(0x06, 2);
  auto next = bytes.at(0x34, 1);
  if (!status || (*status & 0x10) == 0) return std::nullopt;
  for (int step = 0; step < 48 && next && *next >= 0x40; ++step) {
    const std::size_t here = *next & 0xfc;
    const auto id = bytes.at(here, 1);
    if (!id) return std::nullopt;
    if (*id == capability_pcie) return here;
    next = bytes.at(here + 1, 1);
  }
  return std::nullopt;
}

std::optional<std::size_t> find_extended(const Bytes& bytes, std::uint32_t wanted) {
  std::size_t here = 0x100;
  for (int step = 0; step < 96 && here >= 0x100; ++step) {
    const auto header = bytes.at(here, 4);
    if (!header || *header == 0 || *header == 0xffffffff) return std::nullopt;
    if ((*header & 0xffff) == wanted) return here;
    here = *header >> 20 & 0xffc;
  }
  return std::nullopt;
}

}  // namespace

PciConfig decode_pci_config(std::string_view raw) {
  const Bytes bytes(raw);
  PciConfig out;
  if (const auto pcie = find_pcie(bytes)) {
    if (const auto cap = bytes.at(*pcie + 0x0c, 4)) {
      out.max_speed_code = static_cast<int>(*cap & 0xf);
      out.max_width = static_cast<int>(*cap >> 4 & 0x3f);
    }
    if (const auto status = bytes.at(*pcie + 0x12, 2)) {
      out.speed_code = static_cast<int>(*status & 0xf);
      out.width = static_cast<int>(*status >> 4 & 0x3f);
    }
    if (const auto cap2 = bytes.at(*pcie + 0x24, 4)) {
      out.atomic_routing = (*cap2 >> 6 & 1) != 0;
      out.atomic_32_completer = (*cap2 >> 7 & 1) != 0;
      out.atomic_64_completer = (*cap2 >> 8 & 1) != 0;
    }
    if (const auto control2 = bytes.at(*pcie + 0x28, 2)) out.atomic_requester_enabled = (*control2 >> 6 & 1) != 0;
  }
  if (const auto acs = find_extended(bytes, extended_acs))
    if (const auto control = bytes.at(*acs + 6, 2)) {
      out.acs_request_redirect = (*control >> 2 & 1) != 0;
      out.acs_completion_redirect = (*control >> 3 & 1) != 0;
    }
  return out;
}

std::optional<double> gts_of_speed_code(int code) {
  switch (code) {
    case 1:
      return 2.5;
    case 2:
      return 5.0;
    case 3:
      return 8.0;
    case 4:
      return 16.0;
    case 5:
      return 32.0;
    case 6:
      return 64.0;
    default:
      return std::nullopt;
  }
}

}  // namespace ff::facts
