#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ff::elf {

struct Header;

/// A setting of a target id. `any`: the code runs with the setting on or off.
enum class Feature : std::uint8_t { unsupported, any, off, on };

/// What a code object was made for, or what a device is: "gfx90a:sramecc+:xnack-", "gfx11-generic", "amdgcnspirv".
struct TargetId {
  std::string processor;
  Feature sramecc = Feature::any;
  Feature xnack = Feature::any;
  std::uint8_t generic_version = 0;  ///< of a generic code object's header; 0: not generic or not known (ids do not carry it)

  /// "gfx90a:sramecc+:xnack-": settings that are neither on nor off are left out, in the order that ids use.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] bool generic() const { return processor.ends_with("-generic"); }
  friend bool operator==(const TargetId&, const TargetId&) = default;
};

/// Reads "gfx90a:xnack-", "amdgcn-amd-amdhsa--gfx90a:xnack-", "amdgcn-amd-amdhsa-unknown-gfx90a" (LLVM 23),
/// "amdgpu9.0a-amd-amdhsa-unknown-gfx90a", and the old "gfx906+xnack". Nothing when no processor stands there.
std::optional<TargetId> parse_target_id(std::string_view text);

/// One row of LLVM's EF_AMDGPU_MACH list.
struct Mach {
  std::uint8_t value;
  std::string_view processor;
  bool xnack, sramecc;  ///< can be chosen in the target id
};
/// All rows, by value. Source: LLVM 24 llvm/BinaryFormat/ELF.h and TargetParser; 0x40 and 0x4b (gfx940, gfx941) from LLVM 19.
std::span<const Mach> machs();
const Mach* mach(std::uint8_t value);
const Mach* mach(std::string_view processor);

/// What an AMDGPU ELF header says about its code.
struct CodeObjectHeader {
  TargetId target;              ///< processor "unknown (mach 0x99)" when newer than the table
  int code_object_version = 0;  ///< 2 to 6; 0: another ABI than HSA or newer than this program
  bool known_processor = false;
};
/// Nothing when the machine is not AMDGPU.
std::optional<CodeObjectHeader> read_code_object_header(const Header& header);

}  // namespace ff::elf
