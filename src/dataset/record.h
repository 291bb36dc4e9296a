#pragma once

#include <string>

#include "dataset/parquet.h"
#include "reference/dataset.h"

namespace ff::dataset {

/// Writes demonstrations of the built-in workload as a LeRobot v3.0 dataset below `root`, which is made: state and action
/// (float32[4]), two cameras of 12 x 12 pixels as PNG pictures in the Parquet file (dtype "image"), statistics and tasks.
/// Error: a file cannot be written.
Result<void> write_demonstrations(const reference::Dataset& data, const std::string& root, const Parquet& parquet);

}  // namespace ff::dataset
