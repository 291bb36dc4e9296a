#include "elf/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "elf/elf.h"
#include "elf/known_target.h"

namespace ff::elf {
namespace {

constexpr std::array machs_table = std::to_array<Mach>({
#include "elf/mach_table.inc"
});

constexpr std::uint8_t os_abi_hsa = 64;

bool is_processor(std::string_view text) { return (text.starts_with("gfx") && text.size() > 3) || text == "amdgcnspirv"; }

Feature feature_of(bool on) { return on ? Feature::on : Feature::off; }

bool set_feature(TargetId& target, std::string_view name, bool on) {
  if (name == "xnack")
    target.xnack = feature_of(on);
  else if (name == "sramecc" || name == "sram-ecc")
    target.sramecc = feature_of(on);
  else
    return false;
  return true;
}

}  // namespace

std::string TargetId::to_string() const {
  std::string out = processor;
  if (sramecc == Feature::on) out += ":sramecc+";
  if (sramecc == Feature::off) out += ":sramecc-";
  if (xnack == Feature::on) out += ":xnack+";
  if (xnack == Feature::off) out += ":xnack-";
  return out;
}

std::optional<TargetId> parse_target_id(std::string_view text) {
  text = trim(text);
  TargetId target;
  // A triple has four fields before the processor, the last of which may be empty; the processor itself may hold
  // hyphens ("gfx11-generic"), so hyphens are counted from the left.
  if (text.starts_with("amdgcn-") || text.starts_with("amdgpu") || text.starts_with("spirv64-")) {
    for (int field = 0; field < 4; ++field) {
      // "hip-amdgcn-amd-amdhsa-gfx906": bundles of old compilers left the fourth field out altogether.
      if (field == 3 && is_processor(text)) break;
      const auto hyphen = text.find('-');
      if (hyphen == std::string_view::npos) return std::nullopt;
      text.remove_prefix(hyphen + 1);
    }
  }
  const auto pieces = split(text, ':');
  std::string_view processor = pieces[0];
  // Code object V3 ids: "gfx906+xnack+sram-ecc" names only what is on.
  if (const auto plus = processor.find('+'); plus != std::string_view::npos) {
    for (const auto name : split(processor.substr(plus + 1), '+'))
      if (!set_feature(target, name, true)) return std::nullopt;
    processor = processor.substr(0, plus);
  }
  if (!is_processor(processor)) return std::nullopt;
  target.processor = processor;
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const std::string_view piece = pieces[i];
    if (piece.size() < 2 || (piece.back() != '+' && piece.back() != '-')) return std::nullopt;
    if (!set_feature(target, piece.substr(0, piece.size() - 1), piece.back() == '+')) return std::nullopt;
  }
  return target;
}

std::span<const Mach> machs() { return machs_table; }

const Mach* mach(std::uint8_t value) {
  const auto* found = std::ranges::find(machs_table, value, &Mach::value);
  return found == machs_table.end() ? nullptr : found;
}

const Mach* mach(std::string_view processor) {
  const auto* found = std::ranges::find(machs_table, processor, &Mach::processor);
  return found == machs_table.end() ? nullptr : found;
}

bool known_target(std::string_view id) {
  const auto target = parse_target_id(id);
  return target && (mach(target->processor) != nullptr || target->processor == "amdgcnspirv");
}

std::optional<CodeObjectHeader> read_code_object_header(const Header& header) {
  if (header.machine != machine_amdgpu) return std::nullopt;
  CodeObjectHeader out;
  const auto value = static_cast<std::uint8_t>(header.flags & 0xff);
  const Mach* known = mach(value);
  out.known_processor = known != nullptr;
  out.target.processor = known != nullptr ? std::string(known->processor) : fmt::format("unknown (mach {:#04x})", value);
  out.target.sramecc = out.target.xnack = Feature::unsupported;
  if (header.os_abi != os_abi_hsa) return out;
  // EI_ABIVERSION 0 is code object V2, 1 is V3, ... 4 is V6.
  if (header.abi_version <= 4) out.code_object_version = header.abi_version + 2;
  if (header.abi_version == 0) {
    // V2 keeps processor and settings in its notes; what later compilers wrote here too names the processor alone.
    out.target.xnack = out.target.sramecc = Feature::unsupported;
  } else if (header.abi_version == 1) {
    if (known != nullptr && known->xnack) out.target.xnack = feature_of((header.flags & 0x100U) != 0);
    if (known != nullptr && known->sramecc) out.target.sramecc = feature_of((header.flags & 0x200U) != 0);
  } else {
    out.target.xnack = static_cast<Feature>((header.flags >> 8) & 3U);
    out.target.sramecc = static_cast<Feature>((header.flags >> 10) & 3U);
    if (header.abi_version >= 4) out.target.generic_version = static_cast<std::uint8_t>(header.flags >> 24);
  }
  return out;
}

}  // namespace ff::elf
