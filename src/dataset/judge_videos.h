#pragma once

#include <vector>

#include "dataset/dataset.h"

namespace ff::dataset {

/// Findings of dataset.videos-whole and dataset.videos-aligned from the boxes of each video file: codec, size, rate and
/// frame count against the metadata. Nothing is decoded.
std::vector<Finding> judge_videos(const Dataset& dataset);

}  // namespace ff::dataset
