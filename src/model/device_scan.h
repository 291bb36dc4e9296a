#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "model/survey.h"

namespace ff::model {

/// What only `model check --device` says to the checks; they find it in CheckContext::scratch.
inline constexpr std::string_view device_scan_key = "model.device-scan";

/// A tensor whose count of NaN and Inf, or the first one's place, is another on the device than in the file.
struct DeviceDifference {
  std::string file, tensor;
  std::uint64_t in_file = 0, on_device = 0;
};

/// What the scan on a device found.
struct DeviceScan {
  Value device;  ///< api, name, target, runtime
  std::uint64_t tensors = 0, bytes = 0;
  double seconds = 0;       ///< copying and scanning
  double scan_seconds = 0;  ///< scanning alone, of what is on the device
  std::vector<DeviceDifference> different;
};

/// Copies every floating-point tensor (FP8 too) of the survey to a device and counts NaN and Inf there, with the kernels of
/// gpu/finite.h, in a child process with a time limit. `device`: "cpu", "cuda", "hip", or "gpu": the first that opens, HIP before CUDA.
/// Errors: no device opens, the child crashed or hung, memory cannot be had.
Result<DeviceScan> scan_on_device(const Survey& survey, const std::string& device);

}  // namespace ff::model
