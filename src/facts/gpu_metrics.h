#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::facts {

/// A decoded gpu_metrics table.
struct GpuMetrics {
  int format = 0;   ///< format revision: 1 discrete, 2 and 3 APUs
  int content = 0;  ///< content revision
  Value values;     ///< object: field name -> number or list; what the firmware marks as not available is left out
};

/// Decodes the binary file /sys/class/drm/cardN/device/gpu_metrics with the layouts of the knowledge table
/// "gpu_metrics" (Linux kgd_pp_interface.h). Numbers stand in the file's own units: see docs/facts.md. Fields with all bits set are
/// not supported by the part. A table that is shorter than its layout gives the fields that are there.
/// Errors: too short for a header, a revision without a layout, records beyond the end.
Result<GpuMetrics> decode_gpu_metrics(std::string_view bytes, const Value& layouts);

/// Names of the bits of `indep_throttle_status` (Linux amdgpu_smu.h, SMU_THROTTLER_*), lowest first: "TEMP_HOTSPOT".
std::vector<std::string> throttle_reasons(std::uint64_t bits);

}  // namespace ff::facts
