// What labelled values say that stand side by side.
#include <gtest/gtest.h>

#include <string>

#include "diagnosis/extract.h"

namespace ff::diagnosis {
namespace {

/// Text of the first fact of this name; "(none)" when there is none.
std::string fact(std::string_view text, std::string_view name, std::string_view source = "evidence.txt") {
  std::vector<facts::NamedFact> out;
  extract_all(text, source, out);
  for (const auto& f : out)
    if (f.name == name) return f.value.to_string();
  return "(none)";
}

TEST(ExtractLabelled, ComparesTheGrippersRanges) {
  EXPECT_EQ(fact("gripper in dataset: 0 (closed) .. 100 (open)\ngripper sent      : 0.00 .. 1.00\n", "gripper.range_ratio"), "100");
  EXPECT_EQ(fact("dataset gripper = 0 .. 1\nsent gripper = 0.0 to 1.0\n", "gripper.range_ratio"), "1");
  EXPECT_EQ(fact("gripper, recorded: 0 (closed) .. 1 (open)\ngripper, robot: 0 (open) .. 1 (closed)\n", "gripper.ends_reversed"), "yes");
  EXPECT_EQ(fact("gripper, recorded: 0 (closed) .. 1 (open)\ngripper, robot: 1 (open) .. 0 (closed)\n", "gripper.ends_reversed"), "(none)")
      << "the same ends, named from the other side";
}

TEST(ExtractLabelled, ComparesWhatIsSentWithWhatWasRecorded) {
  const std::string text =
      "dataset action[0]     : [ 12.4 -33.1  71.8]\npolicy output, raw    : [  0.41 -1.10  0.88]\nsent to the robot     : [  0.41 -1.10  0.88]\n";
  EXPECT_EQ(fact(text, "actions.sent_raw"), "yes");
  const std::string scaled =
      "dataset action[0] : [ 12.4 -33.1  71.8]\npolicy output, raw : [ 0.41 -1.10 0.88]\nsent to the robot : [ 12.1 -30.2 70.0]\n";
  EXPECT_EQ(fact(scaled, "actions.sent_raw"), "(none)");
}

TEST(ExtractLabelled, ReadsRatesAndPeriods) {
  EXPECT_EQ(fact("dataset fps: 30\n", "rate.data_hz"), "30");
  EXPECT_EQ(fact("loop time: mean 0.2 s, max 0.31 s\n", "rate.loop_high"), "5.5");
  EXPECT_EQ(fact("control period: 20 ms\n", "rate.loop_low"), "45");
  EXPECT_EQ(fact(R"({"policy":{"control_hz":50},"env":{"hz":25}})", "rate.sides_ratio"), "2");
  EXPECT_EQ(fact(R"({"policy":{"control_hz":50},"env":{"hz":50}})", "rate.sides_ratio"), "(none)");
  EXPECT_EQ(fact(R"({"policy":{"hz":10},"camera":{"fps":30}})", "rate.sides_ratio"), "(none)") << "a camera may be faster";
  EXPECT_EQ(fact("learning rate: 30\nsuccess rate: 1\n", "rate.data_hz"), "(none)");
}

TEST(ExtractLabelled, SeesOneSeedSucceedAndFail) {
  EXPECT_EQ(fact("seed 7 run A: success True\nseed 7 run B: success False\n", "eval.seed_repeats_differ"), "yes");
  EXPECT_EQ(fact("seed 7 run A: success True\nseed 8 run A: success False\n", "eval.seed_repeats_differ"), "(none)");
  EXPECT_EQ(fact("seed 7 policy A run 1: success True\nseed 7 policy B run 1: success False\n", "eval.seed_repeats_differ"), "(none)")
      << "two policies may differ";
}

TEST(ExtractLabelled, TakesReplaysAndOfflineErrors) {
  EXPECT_EQ(fact("replay of dataset episode 0 in the env: success\n", "eval.replay_succeeds"), "yes");
  EXPECT_EQ(fact("replay of dataset episode 0 in the env: fails\n", "eval.replay_succeeds"), "(none)");
  EXPECT_EQ(fact("policy on dataset frames: mean abs error 0.30 rad (std of the actions 0.40)\n", "report.offline_error_share"), "0.75");
}

TEST(ExtractLabelled, FindsTheCameraThatIsNotThere) {
  const std::string asks = "policy.config.image_features: ['observation.images.front', 'observation.images.wrist']\n";
  EXPECT_EQ(fact(asks + "robot.get_observation().keys(): ['j1.pos', 'laptop', 'wrist']\n", "names.cameras_absent"), "front");
  EXPECT_EQ(fact(asks + "robot.get_observation().keys(): ['j1.pos', 'front', 'wrist']\n", "names.cameras_absent"), "(none)");
  EXPECT_EQ(fact(asks, "names.cameras_absent"), "(none)");
}

TEST(ExtractLabelled, ReadsSharesOnABoundAndRenderers) {
  EXPECT_EQ(fact("joint 2: 87 % of the sent actions are exactly 1.0\n", "actions.saturated_share"), "0.87");
  EXPECT_EQ(fact("92 % of the actions are inside the limits\n", "actions.saturated_share"), "(none)");
  EXPECT_EQ(fact("train renders: egl (radeonsi)\neval renders : osmesa (llvmpipe)\n", "compare.backends_by_role"), "yes");
  EXPECT_EQ(fact("train renders: egl (radeonsi)\neval renders : egl (radeonsi)\n", "compare.backends_by_role"), "(none)");
}

TEST(ExtractCode, APolicyThatIsClearedBeforeTheLoopIsNotClearedInIt) {
  const std::string loop = "    obs, _ = env.reset(seed=ep)\n    a = policy.select_action(obs)\n    obs, r, done, t, _ = env.step(post(a))\n";
  EXPECT_EQ(fact("policy.reset()\nfor ep in range(50):\n" + loop, "code.policy_not_reset", "loop.py"), "yes");
  EXPECT_EQ(fact("for ep in range(50):\n    policy.reset()\n" + loop, "code.policy_not_reset", "loop.py"), "(none)");
  EXPECT_EQ(fact("def run():\n    policy.reset()\n" + loop + "for ep in range(50):\n    run()\n", "code.policy_not_reset", "loop.py"), "(none)");
  EXPECT_EQ(fact("for ep in range(50):\n" + loop, "code.unprocessed_actions", "loop.py"), "(none)") << "post(a) is a postprocessor";
}

TEST(ExtractCode, SeesAnActionThatIsAddedToTheState) {
  EXPECT_EQ(fact("def f(action):\n    env.step(env.qpos + action[:7])\n", "code.action_added_to_state", "loop.py"), "yes");
  EXPECT_EQ(fact("def f(action):\n    env.step(action[:7])\n", "code.action_added_to_state", "loop.py"), "(none)");
}

TEST(ExtractRows, InterleavedEpisodesAreAnOrderAndNoNumbering) {
  const std::string rows = "   episode_index  frame_index  index\n0  3  0  900\n1  0  0  0\n2  0  1  1\n3  3  1  901\n4  0  2  2\n";
  EXPECT_EQ(fact(rows, "dataset.rows.index_fits_sorted"), "yes");
  const std::string merged = "   episode_index  frame_index  index\n0  0  0  0\n1  0  1  1\n2  1  0  0\n3  1  1  1\n";
  EXPECT_EQ(fact(merged, "dataset.rows.index_fits_sorted"), "no");
}

}  // namespace
}  // namespace ff::diagnosis
