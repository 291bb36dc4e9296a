#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "loops.h"
#include "support/pick_world.h"

namespace ff::rollout {
namespace {

using test::LoopFault;

std::shared_ptr<const Survey> judge(LoopFault fault, int seed) {
  return loops::judge(test::write_pick_episodes(fault, static_cast<std::uint64_t>(seed), 12), "pick-world");
}

struct Expected {
  LoopFault fault;
  const char* source;
  const char* cause;
};

void PrintTo(const Expected& v, std::ostream* out) { *out << v.source; }

class EachLoopFault : public testing::TestWithParam<Expected> {};

TEST_P(EachLoopFault, IsToldFromAllOthersOnEverySeed) {
  for (int seed = 0; seed < loops::seeds(2); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    loops::expect_told(*judge(GetParam().fault, seed), GetParam().source, GetParam().cause);
  }
}

constexpr const char* convention = "closed-loop.action-convention";
constexpr const char* scale = "closed-loop.action-scale";
constexpr const char* observation = "closed-loop.observation-mismatch";
constexpr const char* rate = "closed-loop.control-rate";

INSTANTIATE_TEST_SUITE_P(
    Rollout, EachLoopFault,
    testing::Values(
        Expected{LoopFault::swapped_axes, "axis-order", convention}, Expected{LoopFault::swapped_axes_inside, "axis-order", convention},
        Expected{LoopFault::inverted_axis, "action-sign", convention}, Expected{LoopFault::turned_frame, "frame", convention},
        Expected{LoopFault::gripper_inverted, "gripper-direction", "closed-loop.gripper-scale"},
        Expected{LoopFault::gripper_inverted_inside, "gripper-direction", "closed-loop.gripper-scale"},
        Expected{LoopFault::gripper_range, "gripper-range", "closed-loop.gripper-scale"}, Expected{LoopFault::scaled_down, "action-scale", scale},
        Expected{LoopFault::scaled_up, "action-scale", scale}, Expected{LoopFault::not_unnormalised, "action-scale", scale},
        Expected{LoopFault::clipped, "action-clipped", "closed-loop.action-clipped"}, Expected{LoopFault::half_rate, "control-rate", rate},
        Expected{LoopFault::other_rate, "control-rate", rate}, Expected{LoopFault::held, "action-held", rate},
        Expected{LoopFault::late_action, "action-late", rate}, Expected{LoopFault::absolute_target, "delta-absolute", convention},
        Expected{LoopFault::flipped_camera, "camera-flip", observation}, Expected{LoopFault::flipped_camera_unknown, "camera-flip", observation},
        Expected{LoopFault::stale_observation, "observation-late", rate}, Expected{LoopFault::stale_camera, "observation-late", rate},
        Expected{LoopFault::frozen_camera, "observation-frozen", observation},
        Expected{LoopFault::black_camera, "camera-black", "render.backend-differs"},
        Expected{LoopFault::swapped_cameras, "camera-order", observation}, Expected{LoopFault::bgr, "colour-order", observation},
        Expected{LoopFault::bytes_0_255, "image-normalisation", observation},
        Expected{LoopFault::other_renderer, "renderer", "render.backend-differs"},
        Expected{LoopFault::constant_action, "constant-actions", "model.not-loaded"},
        Expected{LoopFault::noise_action, "random-weights", "model.not-loaded"},
        Expected{LoopFault::random_weights, "random-weights", "model.not-loaded"},
        Expected{LoopFault::nan_action, "nonfinite-actions", "model.nonfinite"},
        Expected{LoopFault::queue_kept, "action-queue", "closed-loop.episode-state"},
        Expected{LoopFault::not_reset, "no-reset", "closed-loop.episode-state"}, Expected{LoopFault::chunk_too_long, "chunk-execution", rate}),
    [](const auto& p) { return "fault_" + std::to_string(static_cast<int>(p.param.fault)); });

TEST(LoopFaults, NoneIsSeenInCleanRuns) {
  for (int seed = 0; seed < loops::seeds(2); ++seed) {
    const auto s = judge(LoopFault::none, seed);
    EXPECT_EQ(s->successes(), 12);
    for (const auto& f : s->findings) ADD_FAILURE() << "seed " << seed << ": " << f.source << ": " << f.summary;
  }
}

TEST(LoopFaults, ADifferenceThatDoesNoHarmIsAWarning) {
  const auto s = judge(LoopFault::scaled_down, 0);
  ASSERT_FALSE(s->fails());
  for (const auto& f : s->findings) EXPECT_FALSE(f.fails) << f.summary;
}

}  // namespace
}  // namespace ff::rollout
