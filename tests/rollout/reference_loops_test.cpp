#include <gtest/gtest.h>

#include "loops.h"
#include "reference/episode.h"
#include "reference/policy.h"

namespace ff::rollout {
namespace {

using reference::LoopFault;

std::shared_ptr<const Survey> judge(LoopFault fault, int seed) {
  constexpr std::size_t episodes = 12;
  // The policy that is part of the program, and the demonstrations that it learnt from.
  static auto policy = reference::read_policy(reference::shipped_policy(), "");
  static const auto data = reference::record_demonstrations(reference::shipped_episodes);
  EXPECT_TRUE(policy);
  std::string text;
  reference::LoopState state;
  for (std::size_t i = 0; i < episodes; ++i) {
    reference::EpisodeOptions options;
    options.seed = reference::first_held_out_seed + static_cast<std::uint64_t>(seed) * episodes + i;
    options.fault = fault;
    const auto e = reference::run_episode(policy->network, data.statistics, options, &state);
    text += reference::episode_jsonl(e, data.statistics, options, "r", i, Value::object({{"id", "reference"}}));
  }
  return loops::judge(text, reference::loop_fault_name(fault));
}

struct Expected {
  LoopFault fault;
  const char* source;
  const char* cause;
};

TEST(ReferenceLoops, EachFaultIsToldFromAllOthersOnEverySeed) {
  const std::vector<Expected> all{Expected{LoopFault::axes_swapped, "axis-order", "closed-loop.action-convention"},
                                  Expected{LoopFault::sign_flipped, "action-sign", "closed-loop.action-convention"},
                                  Expected{LoopFault::gripper_inverted, "gripper-direction", "closed-loop.gripper-scale"},
                                  Expected{LoopFault::gripper_range, "gripper-range", "closed-loop.gripper-scale"},
                                  Expected{LoopFault::not_unnormalized, "action-scale", "closed-loop.action-scale"},
                                  Expected{LoopFault::scaled, "action-scale", "closed-loop.action-scale"},
                                  Expected{LoopFault::clipped, "action-clipped", "closed-loop.action-clipped"},
                                  Expected{LoopFault::delta_as_absolute, "delta-absolute", "closed-loop.action-convention"},
                                  Expected{LoopFault::half_rate, "control-rate", "closed-loop.control-rate"},
                                  Expected{LoopFault::chunk_too_long, "chunk-execution", "closed-loop.control-rate"},
                                  Expected{LoopFault::camera_flipped, "camera-flip", "closed-loop.observation-mismatch"},
                                  Expected{LoopFault::cameras_swapped, "camera-order", "closed-loop.observation-mismatch"},
                                  Expected{LoopFault::colors_swapped, "colour-order", "closed-loop.observation-mismatch"},
                                  Expected{LoopFault::images_not_scaled, "image-normalisation", "closed-loop.observation-mismatch"},
                                  Expected{LoopFault::observation_stale, "observation-late", "closed-loop.control-rate"},
                                  Expected{LoopFault::observation_frozen, "observation-frozen", "closed-loop.observation-mismatch"},
                                  Expected{LoopFault::actions_zero, "constant-actions", "closed-loop.action-convention"},
                                  Expected{LoopFault::state_leaks, "action-queue", "closed-loop.episode-state"},
                                  Expected{LoopFault::random_weights, "random-weights", "model.not-loaded"}};
  for (const auto& expected : all)
    for (int seed = 0; seed < loops::seeds(1); ++seed) {
      SCOPED_TRACE(testing::Message() << reference::loop_fault_name(expected.fault) << ", seed " << seed);
      loops::expect_told(*judge(expected.fault, seed), expected.source, expected.cause);
    }
}

TEST(ReferenceLoops, NothingIsSeenInCleanRuns) {
  for (int seed = 0; seed < loops::seeds(1); ++seed) {
    const auto s = judge(LoopFault::none, seed);
    EXPECT_GE(s->successes(), 9);
    for (const auto& f : s->findings)
      if (f.check != "episode.stage") ADD_FAILURE() << "seed " << seed << ": " << f.source << ": " << f.summary;
  }
}

}  // namespace
}  // namespace ff::rollout
