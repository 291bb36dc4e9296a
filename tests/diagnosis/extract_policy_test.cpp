// Facts that judge what no signal knows: exceptions by their words and place, kept state, offsets, rates, names.
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

constexpr std::string_view traceback =
    "Traceback (most recent call last):\n"
    "  File \"/w/lerobot/src/lerobot/policies/factory.py\", line 12, in make_policy\n"
    "    cfg = make_config(kind)\n"
    "  File \"/w/app.py\", line 3, in pick\n"
    "    assert kind in CONFIGS[\"arm\"]\n"
    "AssertionError\n";

TEST(ExtractException, KeepsWordsPlaceAndSourceLine) {
  EXPECT_EQ(fact(traceback, "exception.text"), "AssertionError: assert kind in CONFIGS[\"arm\"]");
  EXPECT_EQ(fact(traceback, "exception.code"), "assert kind in CONFIGS[\"arm\"]");
  EXPECT_EQ(fact(traceback, "exception.place"), " make_policy pick");
  EXPECT_EQ(fact(traceback, "exception.stack[0]"), "lerobot");
}

TEST(ExtractException, TakesAMessageOfSeveralLines) {
  EXPECT_EQ(fact("ValueError: Feature mismatch in `frame` dictionary:\nMissing features: {'task'}\n\nother\n", "exception.text"), "(none)")
      << "no word of this field";
  EXPECT_EQ(fact("openpi\nValueError: Prompt is needed\nby the policy\n\nother\n", "exception.text"), "ValueError: Prompt is needed by the policy");
}

TEST(ExtractException, LeavesOtherProgramsAlone) {
  EXPECT_EQ(fact("Traceback (most recent call last):\n  File \"/app/django/db.py\", line 1, in get\n    x()\nOperationalError: dataset must be set\n",
                 "exception.text"),
            "(none)");
  EXPECT_EQ(fact("ValueError: the invoice must be paid\n", "exception.text"), "(none)");
}

TEST(ExtractCode, FindsWhatAnActingMethodKeeps) {
  constexpr std::string_view kept =
      "class Policy:\n    def __init__(self):\n        self.t = 0\n        self.n = 0\n\n    def get_action(self, obs):\n        self.t += 1\n"
      "        self.n += 1\n        return self.plan[self.t]\n";
  EXPECT_EQ(fact(kept, "code.act_state_kept", "p.py"), "n");
  const std::string cleared = std::string(kept) + "\n    def reset(self):\n        self.t = 0\n        self.n = 0\n";
  EXPECT_EQ(fact(cleared, "code.act_state_kept", "p.py"), "(none)");
}

TEST(ExtractCode, FindsPicturesAndStatesCutAtDifferentEnds) {
  EXPECT_EQ(fact("import numpy\nframes = all_frames[:-1]\nstates = qpos[1:]\n", "code.slices_differ", "c.py"), "yes");
  EXPECT_EQ(fact("import numpy\nframes = all_frames[:-1]\nstates = qpos[:-1]\nactions = qpos[1:]\n", "code.slices_differ", "c.py"), "(none)");
}

TEST(ExtractCode, FindsAnObservedGripperThatIsMapped) {
  EXPECT_EQ(fact("def f(obs):\n    grip = obs[\"grip\"]\n    grip = 1 - grip * 2\n", "gripper.state_mapped", "c.py"), "yes");
  EXPECT_EQ(fact("def f(action):\n    grip = action[-1]\n    grip = 2 * grip - 1\n", "gripper.state_mapped", "c.py"), "(none)") << "a command";
}

TEST(ExtractEvaluation, SeesThatOnlyTheFirstEpisodeSucceeds) {
  EXPECT_EQ(fact("Success rate: 1/1\nSuccess rate: 1/2\nSuccess rate: 1/3\nSuccess rate: 1/4\n", "eval.first_only"), "yes");
  EXPECT_EQ(fact("Success rate: 1/1\nSuccess rate: 1/2\nSuccess rate: 2/3\nSuccess rate: 2/4\n", "eval.first_only"), "(none)");
  EXPECT_EQ(fact("episode 0 success=True\nepisode 1 success=False\nepisode 2 success=False\nepisode 3 success=False\n", "eval.first_only"), "yes");
}

TEST(ExtractComparison, ComparesWhatIsSentWithWhatIsNormalised) {
  EXPECT_EQ(fact("normalized_actions[0] = [0.1 0.2 0.3]\nenv.step action = [0.1 0.2 0.3]\n", "actions.sent_normalised"), "yes");
  EXPECT_EQ(fact("normalized_actions[0] = [0.1 0.2 0.3]\nenv.step action = [1.1 0.2 0.3]\n", "actions.sent_normalised"), "(none)");
}

TEST(ExtractComparison, MeasuresFrameOffsetAndRate) {
  EXPECT_EQ(fact("frame 0: difference 40\nframe 1: difference 2\n", "compare.frame_offset_ratio"), "20");
  EXPECT_EQ(fact("episode 0: 600 frames, wall clock 10 s\n", "rate.measured_low"), "54");
}

TEST(ExtractSession, ReadsEpisodeBoundsAndFiles) {
  EXPECT_EQ(fact(">>> e[\"dataset_from_index\"]\n[0, 10, 20]\n>>> e[\"dataset_to_index\"]\n[10, 20, 30]\n", "dataset.segments.row_errors"), "0");
  EXPECT_EQ(fact(">>> e[\"dataset_from_index\"]\n[0, 0, 20]\n>>> e[\"dataset_to_index\"]\n[10, 20, 30]\n", "dataset.segments.row_errors"), "1");
  EXPECT_EQ(fact("episode_index  length  data/file_index\n4  10  0\n5  10  0\n\nfile-000.parquet 0 4\nfile-001.parquet 5 9\n",
                 "dataset.segments.file_errors"),
            "1");
}

TEST(ExtractTraining, ComparesLossesAcrossAResume) {
  EXPECT_EQ(fact("step 10 loss 0.1 lr 1e-4\nResuming training from checkpoint x\nstep 11 loss 0.5 lr 1e-4\n", "train.resume.jump"), "5");
  EXPECT_EQ(fact("{'loss': 0.4, 'learning_rate': 2e-05, 'data_time': 3.0, 'step_time': 4.0}\n", "train.data_share"), "0.75");
}

}  // namespace
}  // namespace ff::diagnosis
