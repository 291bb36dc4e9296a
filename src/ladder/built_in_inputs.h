#pragma once

#include <string>

#include "check/check.h"

namespace ff::ladder {

/// What rungs 3 and 4 climb with `--workload reference` where the user named nothing: the demonstrations of the built-in
/// workload as a LeRobot dataset, and its trained policy, written below `directory`. `only`: the one rung that is climbed.
/// Without the Parquet library the dataset is named and not written: rung 3 then says what is missing.
/// Error: a file cannot be written.
Result<void> add_built_in_inputs(CheckInputs& inputs, std::optional<Rung> only, const std::string& directory);

}  // namespace ff::ladder
