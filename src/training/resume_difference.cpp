#include "training/resume_difference.h"

#include <algorithm>

#include "base/text.h"

namespace ff::training {
namespace {

/// Other batches, or the same with other noise: only the level of the loss can be compared.
constexpr double level = 0.6;

}  // namespace

ResumeDifference resume_difference(const CheckpointState* checkpoint, bool reproducible) {
  ResumeDifference out;
  std::vector<std::string> why;
  if (!reproducible) why.emplace_back("two straight runs differ, too (step.reproducible)");
  if (checkpoint != nullptr) {
    const auto absent = [&](const char* name) {
      const auto* part = checkpoint->part(name);
      return part != nullptr && !part->present;
    };
    if (absent("random state")) why.emplace_back("the checkpoint holds no random state, so dropout and noise are drawn anew");
    if (absent("sampler")) {
      why.emplace_back("the checkpoint holds no sampler position, so the batches differ");
      out.allowed = level;
    }
    // lerobot_train.py restores the random state, then opens the loader; torch's _BaseDataLoaderIter draws its base seed from that state.
    if (checkpoint->kind == "lerobot" && !absent("random state")) {
      why.emplace_back(
          "lerobot restores the random state before it opens its loader, which takes a number from it, so dropout and noise are drawn from "
          "another place");
      out.allowed = level;
    }
  }
  out.why = join(why, "; ");
  return out;
}

}  // namespace ff::training
