#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace ff {

/// How fast something ran, and with what. What nobody says stays empty (a text) or NaN (a number), and is recorded as "not stated".
struct Performance {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::string device;                           ///< "cuda: NVIDIA H200"
  std::map<std::string, std::string> versions;  ///< by package
  std::string precision, resolution;            ///< "float32 weights", "96x96"
  std::string video;                            ///< what video has to do with the times: "pictures are decoded from video"
  double batch = none, cameras = none;
  std::vector<double> steps_s;                                 ///< what each step took
  double step_s = none;                                        ///< the mean, where single steps are not told
  double data_s = none, update_s = none;                       ///< medians of its two parts: without the loader, a step takes the second
  double per_second = none;                                    ///< samples, or episodes
  double peak_device_bytes = none, peak_process_bytes = none;  ///< on the device; of the largest process
  std::map<std::string, std::string> from;                     ///< by member, who says it

  /// All members under the names that every rung uses; "not_stated" lists those that nobody says.
  [[nodiscard]] Value to_value() const;
  /// "step 0.01 s (median), …; NVIDIA H200, batch 512, 1 camera 96x96; not stated: precision".
  [[nodiscard]] std::string text(std::string_view unit = "samples") const;
};

/// "96x96" (width, height) of a picture's shape; channels stand first in a policy's configuration and last in a dataset. Empty: it has
/// not three dimensions.
[[nodiscard]] std::string picture_size(const Value& shape);

}  // namespace ff
