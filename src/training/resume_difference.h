#pragma once

#include <string>

#include "training/checkpoint.h"

namespace ff::training {

/// Why a run that goes on from a checkpoint does not print the straight run's losses to the last digit.
struct ResumeDifference {
  std::string why;        ///< which piece is not restored, as the checkpoint's files tell it; empty: they do not
  double allowed = 0.02;  ///< relative difference of losses that this explains
};

/// `checkpoint` null: none can be read. `reproducible`: two straight runs from one seed print the same.
[[nodiscard]] ResumeDifference resume_difference(const CheckpointState* checkpoint, bool reproducible);

}  // namespace ff::training
