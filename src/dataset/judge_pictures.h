#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/survey.h"

namespace ff::dataset {

/// What looking at the pictures gave.
struct PictureJudgement {
  std::size_t features = 0;        ///< cameras and image columns
  std::size_t episodes = 0;        ///< of features whose pictures were decoded
  std::int64_t frames = 0;         ///< decoded
  std::vector<std::string> notes;  ///< what was not looked at, and why
  std::vector<Finding> findings;   ///< of dataset.picture-statistics
};

/// Statistics of cameras and of image columns against the pictures of the first, a middle and the last episode: as many frames as LeRobot
/// looks at. Pictures in Parquet are decoded here (PNG); videos by ffmpeg in a child process, where `videos` allows it. The stated numbers
/// alone are judged too: layout, range, and what no values can have. Warns only, since LeRobot takes ImageNet's statistics unless told otherwise.
PictureJudgement judge_pictures(const Survey& survey, const Parquet& parquet, bool videos, const std::function<void(std::string_view)>& progress);

}  // namespace ff::dataset
