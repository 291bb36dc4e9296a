#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace ff::binary {

/// What one target offers; a row of knowledge/tables/targets.yaml.
struct TargetLimits {
  std::string name;
  int generation = 0;  ///< 9, 10, 11, 12: the major version of the instruction set
  std::uint64_t waves_per_simd = 0, max_workgroup = 0;
  std::uint64_t vgpr_total_w32 = 0, vgpr_total_w64 = 0, vgpr_granule_w32 = 0, vgpr_granule_w64 = 0;
  std::uint64_t lds_per_workgroup = 0, lds_granule = 0;
  bool unified_registers = false;  ///< vector and accumulation registers share one file (gfx90a, gfx942, gfx950)
};
/// Nothing when the table has no such target.
std::optional<TargetLimits> limits_of(const Value& targets_table, std::string_view processor);

/// What a kernel needs, from its metadata.
struct KernelNeeds {
  std::uint64_t wavefront = 64, vgprs = 0, agprs = 0, sgprs = 0, lds_bytes = 0;
  std::uint64_t workgroup = 0;      ///< work-items; the largest it may be launched with when nobody says
  bool workgroup_processor = true;  ///< gfx10+: WGP mode (two CUs share their LDS) instead of CU mode
};

struct Occupancy {
  std::uint64_t waves_per_simd = 0, waves_per_simd_max = 0;
  std::string limited_by;                              ///< "vgpr", "sgpr", "lds", "workgroup", or "hardware" when nothing but the hardware limits it
  std::uint64_t by_vgpr = 0, by_sgpr = 0, by_lds = 0;  ///< waves per SIMD that each would allow; by_lds covers barriers as well
};
/// Waves that can be resident on one SIMD: the compiler's own rule (LLVM AMDGPUBaseInfo.cpp, getNumWavesPerEUWithNumVGPRs,
/// getOccupancyWithNumSGPRs; AMDGPUSubtarget.cpp, getOccupancyWithLocalMemSize).
Occupancy occupancy(const TargetLimits& limits, const KernelNeeds& needs);

}  // namespace ff::binary
