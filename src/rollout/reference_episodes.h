#pragma once

#include <string>

#include "check/check.h"
#include "rollout/evaluation.h"

namespace ff::rollout {

/// Episodes of the built-in workload.
struct ReferenceEpisodes {
  std::string path;  ///< the file that holds them
  Rate untrained;    ///< a network with its initial weights on the same held-out seeds
};

/// Runs the policy that is part of the program in the built-in world, on seeds of its training data and on unseen ones, and
/// an untrained one on the unseen ones; writes the episodes of the former below the run's artifacts. It shows the rungs and
/// proves nothing about the user's own stack.
Result<ReferenceEpisodes> write_reference_episodes(const CheckContext& context);

}  // namespace ff::rollout
