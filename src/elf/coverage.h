#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elf/target.h"

namespace ff::elf {

enum class Cover {
  native,           ///< code for exactly this processor, and its settings fit
  generic,          ///< through a generic target ("gfx11-generic"); needs a runtime that reads code object V6 (ROCm 6.4, 7.x)
  spirv,            ///< compiled for the device at load time from SPIR-V; needs ROCm 7.x
  setting,          ///< only with another xnack or sramecc setting than the device has
  override_ok,      ///< only with HSA_OVERRIDE_GFX_VERSION, to a processor whose code this one runs
  override_unsafe,  ///< only with HSA_OVERRIDE_GFX_VERSION, to a processor whose code may fault or compute wrong numbers here
  none,
};
/// "covered", "covered through a generic target", ...
[[nodiscard]] std::string_view cover_name(Cover cover);
/// "native", "generic", "spirv", "setting", "override-safe", "override-unsafe", "none": for JSON.
[[nodiscard]] std::string_view cover_id(Cover cover);

struct Coverage {
  Cover cover = Cover::none;
  std::string by;                ///< the target that covers: "gfx11-generic"
  std::string override_version;  ///< value of HSA_OVERRIDE_GFX_VERSION, "11.0.0"
  std::string why;               ///< one sentence for everything but `native` and `none`
  /// Runs as the machine stands: native, generic or spirv.
  [[nodiscard]] bool works() const { return cover == Cover::native || cover == Cover::generic || cover == Cover::spirv; }
};

/// Will code of these targets load on this device? The rule of the loader (ROCr Isa::IsCompatible, CLR's selection order:
/// native, generic, SPIR-V), then what an override could do. Settings of the device that are not known count as fitting.
Coverage covers(const TargetId& device, std::span<const TargetId> targets);
/// The same from texts ("gfx1151", {"gfx1100", "gfx11-generic"}); texts that are no target ids are ignored.
/// Nothing when the device's text is no target id.
std::optional<Coverage> covers(std::string_view device, std::span<const std::string> targets);

/// The generic target of a processor: "gfx11-generic" for gfx1151; empty when it has none.
[[nodiscard]] std::string_view generic_target(std::string_view processor);

struct OverrideRule {
  std::string_view processor, version, as;  ///< "gfx1103", "11.0.0", "gfx1100"
  bool safe;
  std::string_view why;
};
/// What is known about HSA_OVERRIDE_GFX_VERSION, best first for each processor.
/// Source: LLVM AMDGPUUsage (restrictions of generic targets, register files), ROCm issue reports.
std::span<const OverrideRule> override_rules();

}  // namespace ff::elf
