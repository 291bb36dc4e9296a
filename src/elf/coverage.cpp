#include "elf/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ff::elf {
namespace {

struct Family {
  std::string_view generic;
  std::string_view members;  ///< blank-separated
};
// LLVM 23 AMDGPUUsage.rst, table "AMDGPU Generic Processors".
constexpr std::array families = std::to_array<Family>({
    {"gfx9-generic", "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c"},
    {"gfx9-4-generic", "gfx942 gfx950"},
    {"gfx10-1-generic", "gfx1010 gfx1011 gfx1012 gfx1013"},
    {"gfx10-3-generic", "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036"},
    {"gfx11-generic", "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154"},
    {"gfx11-7-generic", "gfx1170 gfx1171 gfx1172"},
    {"gfx12-generic", "gfx1200 gfx1201"},
    {"gfx12-5-generic", "gfx1250 gfx1251"},
    {"gfx13-generic", "gfx1310"},
});

constexpr std::string_view same_isa_103 = "gfx103x parts share one instruction set (gfx10-3-generic has no restrictions)";
constexpr std::string_view subset_101 = "gfx1010 code is a subset of what this part runs";
constexpr std::string_view smaller_file = "gfx1100 code may assume 1536 vector registers, this part has 1024: kernels may fail to launch";
constexpr std::string_view hazards_115 = "gfx1100 code lacks the hazard work-arounds that gfx115x needs";

constexpr std::array rules = std::to_array<OverrideRule>({
    {"gfx902", "9.0.0", "gfx900", false, "an APU of the same family; works in part"},
    {"gfx904", "9.0.0", "gfx900", false, "gfx900 code may use v_mad_mix, which this part lacks"},
    {"gfx906", "9.0.0", "gfx900", false, "gfx900 code may use v_mad_mix, which this part lacks"},
    {"gfx909", "9.0.0", "gfx900", false, "an APU of the same family; works in part"},
    {"gfx90c", "9.0.0", "gfx900", false, "an APU of the same family; works in part, and only code without xnack"},
    {"gfx90a", "9.0.8", "gfx908", false, "the register files differ: vector and accumulation registers are one file here"},
    {"gfx942", "9.0.10", "gfx90a", false, "another architecture generation"},
    {"gfx950", "9.4.2", "gfx942", false, "FP8 has another encoding and XF32 is missing here"},
    {"gfx1010", "10.3.0", "gfx1030", false, "gfx1030 code uses instructions that this part lacks"},
    {"gfx1011", "10.1.0", "gfx1010", true, subset_101},
    {"gfx1012", "10.1.0", "gfx1010", true, subset_101},
    {"gfx1013", "10.1.0", "gfx1010", true, subset_101},
    {"gfx1011", "10.3.0", "gfx1030", false, "gfx1030 code uses instructions that this part lacks"},
    {"gfx1012", "10.3.0", "gfx1030", false, "gfx1030 code uses instructions that this part lacks"},
    {"gfx1013", "10.3.0", "gfx1030", false, "gfx1030 code uses instructions that this part lacks"},
    {"gfx1031", "10.3.0", "gfx1030", true, same_isa_103},
    {"gfx1032", "10.3.0", "gfx1030", true, same_isa_103},
    {"gfx1033", "10.3.0", "gfx1030", true, same_isa_103},
    {"gfx1034", "10.3.0", "gfx1030", true, same_isa_103},
    {"gfx1035", "10.3.0", "gfx1030", true, same_isa_103},
    {"gfx1036", "10.3.0", "gfx1030", true, same_isa_103},
    {"gfx1101", "11.0.0", "gfx1100", true, "the same instruction set and register file"},
    {"gfx1102", "11.0.0", "gfx1100", false, smaller_file},
    {"gfx1103", "11.0.2", "gfx1102", true, "the same instruction set and register file (an APU: its memory is smaller)"},
    {"gfx1103", "11.0.0", "gfx1100", false, smaller_file},
    {"gfx1151", "11.0.0", "gfx1100", false, hazards_115},
    {"gfx1150", "11.5.1", "gfx1151", false, "gfx1151 code may assume 1536 vector registers, this part has 1024"},
    {"gfx1150", "11.0.0", "gfx1100", false, hazards_115},
    {"gfx1152", "11.5.0", "gfx1150", false, "not tested"},
    {"gfx1152", "11.5.1", "gfx1151", false, "not tested; gfx1151 code may assume 1536 vector registers"},
    {"gfx1153", "11.5.0", "gfx1150", false, "not tested"},
    {"gfx1200", "12.0.1", "gfx1201", true, "gfx120x parts share one instruction set (gfx12-generic has no restrictions)"},
    {"gfx1201", "12.0.0", "gfx1200", true, "gfx120x parts share one instruction set (gfx12-generic has no restrictions)"},
});

/// The code's setting runs on a device with the other setting.
bool fits(Feature code, Feature device) {
  const bool code_free = code == Feature::any || code == Feature::unsupported;
  const bool device_unknown = device == Feature::any || device == Feature::unsupported;
  return code_free || device_unknown || code == device;
}

std::string setting_text(const TargetId& code, const TargetId& device) {
  std::string out;
  if (!fits(code.xnack, device.xnack))
    out = code.xnack == Feature::on ? "the code was built for XNACK on: start the process with HSA_XNACK=1 (where the GPU supports it)"
                                    : "the code was built for XNACK off: start the process with HSA_XNACK=0";
  if (!fits(code.sramecc, device.sramecc))
    out += fmt::format("{}the code was built for SRAM ECC {}, the device has it {}", out.empty() ? "" : "; ",
                       code.sramecc == Feature::on ? "on" : "off", device.sramecc == Feature::on ? "on" : "off");
  return out;
}

}  // namespace

std::string_view cover_name(Cover cover) {
  switch (cover) {
    case Cover::native:
      return "covered";
    case Cover::generic:
      return "covered through a generic target";
    case Cover::spirv:
      return "covered through SPIR-V";
    case Cover::setting:
      return "only with another setting";
    case Cover::override_ok:
      return "only with an override (safe)";
    case Cover::override_unsafe:
      return "only with an override (not safe)";
    case Cover::none:
      break;
  }
  return "not covered";
}

std::string_view cover_id(Cover cover) {
  switch (cover) {
    case Cover::native:
      return "native";
    case Cover::generic:
      return "generic";
    case Cover::spirv:
      return "spirv";
    case Cover::setting:
      return "setting";
    case Cover::override_ok:
      return "override-safe";
    case Cover::override_unsafe:
      return "override-unsafe";
    case Cover::none:
      break;
  }
  return "none";
}

std::string_view generic_target(std::string_view processor) {
  for (const auto& family : families) {
    std::string_view rest = family.members;
    while (!rest.empty()) {
      const auto blank = rest.find(' ');
      if (rest.substr(0, blank) == processor) return family.generic;
      rest = blank == std::string_view::npos ? std::string_view{} : rest.substr(blank + 1);
    }
  }
  return {};
}

std::span<const OverrideRule> override_rules() { return rules; }

Coverage covers(const TargetId& device, std::span<const TargetId> targets) {
  const TargetId* wrong_setting = nullptr;
  for (const auto& code : targets) {
    if (code.processor != device.processor) continue;
    if (fits(code.xnack, device.xnack) && fits(code.sramecc, device.sramecc)) {
      Coverage out{.cover = Cover::native, .by = code.to_string(), .override_version = {}, .why = {}};
      return out;
    }
    if (wrong_setting == nullptr) wrong_setting = &code;
  }
  const auto generic = generic_target(device.processor);
  for (const auto& code : targets)
    if (!generic.empty() && code.processor == generic && fits(code.xnack, device.xnack) && fits(code.sramecc, device.sramecc))
      return {.cover = Cover::generic,
              .by = code.to_string(),
              .override_version = {},
              .why = "needs a runtime that loads generic targets (ROCm 6.4 or newer)"};
  for (const auto& code : targets)
    if (code.processor == "amdgcnspirv")
      return {.cover = Cover::spirv,
              .by = code.processor,
              .override_version = {},
              .why = "compiled for the device when it is loaded (ROCm 7.0 or newer)"};
  if (wrong_setting != nullptr)
    return {.cover = Cover::setting, .by = wrong_setting->to_string(), .override_version = {}, .why = setting_text(*wrong_setting, device)};
  // A safe override before an unsafe one, else in the table's order.
  for (const bool safe : {true, false})
    for (const auto& rule : rules) {
      if (rule.processor != device.processor || rule.safe != safe) continue;
      for (const auto& code : targets)
        if (code.processor == rule.as && fits(code.xnack, device.xnack) && fits(code.sramecc, device.sramecc))
          return {.cover = safe ? Cover::override_ok : Cover::override_unsafe,
                  .by = code.to_string(),
                  .override_version = std::string(rule.version),
                  .why = std::string(rule.why)};
    }
  return {};
}

std::optional<Coverage> covers(std::string_view device, std::span<const std::string> targets) {
  const auto wanted = parse_target_id(device);
  if (!wanted) return std::nullopt;
  std::vector<TargetId> list;
  for (const auto& text : targets)
    if (auto target = parse_target_id(text)) list.push_back(std::move(*target));
  return covers(*wanted, list);
}

}  // namespace ff::elf
