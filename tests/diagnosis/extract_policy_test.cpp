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
  EXPECT_EQ(fact(traceback, "exception.file"), "lerobot/policies/factory.py") << "the innermost frame of this field, not of app.py";
}

TEST(ExtractException, NamesTheFileFromThePackageOn) {
  const auto file = [](const std::string& path) {
    return fact("Traceback (most recent call last):\n  File \"" + path + "\", line 3, in read\n    x()\nTimeoutError: no answer\n", "exception.file");
  };
  EXPECT_EQ(file("/h/venv/lib/python3.12/site-packages/lerobot/motors/motors_bus.py"), "lerobot/motors/motors_bus.py");
  EXPECT_EQ(file("/opt/work/deep/openpi/shared/array_typing.py"), "deep/openpi/shared/array_typing.py");
  EXPECT_EQ(file("lerobot/train.py"), "lerobot/train.py");
  EXPECT_EQ(file("/lerobot"), "lerobot");
  EXPECT_EQ(file("lerobot/"), "lerobot/");
}

TEST(ExtractException, LeavesOutWhatPythonIgnored) {
  const std::string ended =
      "Exception ignored in: <function EGLGLContext.__del__ at 0x7f21a01e2dd0>\nTraceback (most recent call last):\n"
      "  File \"/v/site-packages/robosuite/renderers/context/egl_context.py\", line 149, in free\nTypeError: 'NoneType' object is not callable\n";
  EXPECT_EQ(fact(ended, "exception.text"), "(none)");
  EXPECT_EQ(fact(ended + std::string(traceback), "exception.text"), "AssertionError: assert kind in CONFIGS[\"arm\"]") << "only the one";
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

TEST(ExtractCode, FindsWeightsThatNobodyTakes) {
  EXPECT_EQ(fact("import x\npolicy = P(cfg)\npolicy.from_pretrained(path)\n", "code.weights_discarded", "c.py"), "policy");
  EXPECT_EQ(fact("import x\npolicy = P.from_pretrained(path)\n", "code.weights_discarded", "c.py"), "(none)");
  EXPECT_EQ(fact("import x\nreturn policy.from_pretrained(path)\n", "code.weights_discarded", "c.py"), "(none)");
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

TEST(ExtractReport, ReadsAnswersOfASession) {
  EXPECT_EQ(fact(">>> df[\"index\"].is_unique\nFalse\n", "dataset.rows.index_unique"), "no");
  EXPECT_EQ(fact(">>> np.isnan(a).sum(axis=0)\narray([0, 0, 41])\n", "report.nonfinite_data"), "41");
  EXPECT_EQ(fact(">>> np.isnan(a).sum(axis=0)\narray([0, 0, 0])\n", "report.nonfinite_data"), "(none)");
  EXPECT_EQ(fact(">>> {k: int(torch.isnan(v).sum()) for k, v in sd.items()}\n{'a.weight': 7}\n", "report.nonfinite_weights"), "7");
  EXPECT_EQ(fact(">>> df[\"frame_index\"].tolist()\n[0, 2, 1, 3]\n", "dataset.rows.frame_descents"), "1");
  EXPECT_EQ(fact("$ jq '.total_episodes,.total_frames' info.json\n50\n900\n", "dataset.info.total_frames"), "900");
}

TEST(ExtractReport, ComparesWhatStandsSideBySide) {
  EXPECT_EQ(fact("ep 1: length in meta 402, rows 397\n", "report.counts_differ"), "frames");
  EXPECT_EQ(fact("ep 1: length in meta 402, rows 402\n", "report.counts_differ"), "(none)");
  EXPECT_EQ(fact("dataset R 140 G 120 B 80\nlive R 82 G 119 B 141\n", "report.channels_exchanged"), "yes");
  EXPECT_EQ(fact("dataset R 140 G 120 B 80\nlive R 138 G 119 B 82\n", "report.channels_exchanged"), "(none)");
  EXPECT_EQ(fact("commanded dx 0.02 observed dx -0.02\n", "report.sign_flips"), "1");
  EXPECT_EQ(fact("gripper 0.04, command 0.96\ngripper 0.97, command 0.03\n", "report.gripper_complement"), "2");
  EXPECT_EQ(fact("predicted action: [0.1 0.4]\ndataset action: [8.0 -40.0]\n", "report.action_ratio"), "100");
  EXPECT_EQ(fact("batch wait 300 ms\nforward 60 ms\nbackward 40 ms\n", "report.load_share"), "0.75");
  EXPECT_EQ(fact("loop dt: mean 100 ms\n", "rate.loop_high"), "11");
}

TEST(ExtractEvaluation, NamesTheWordsOfTheBetterLine) {
  EXPECT_EQ(fact("instruction sentence success 0/40\ninstruction task name success 30/40\n", "eval.better_label"), "instruction / task name ");
}

TEST(ExtractReport, ReadsLearningCurves) {
  EXPECT_EQ(fact("checkpoint 1000 success 1/10\ncheckpoint 2000 success 3/10\ncheckpoint 3000 success 5/10\n", "eval.rises_with_steps"), "yes");
  EXPECT_EQ(fact("checkpoint 1000 success 5/10\ncheckpoint 2000 success 3/10\ncheckpoint 3000 success 5/10\n", "eval.rises_with_steps"), "(none)");
  EXPECT_EQ(fact("replay of dataset actions: success 10/10\n", "eval.replay_succeeds"), "yes");
}

TEST(ExtractTraining, SeesRestartsAndGradientsThatStayLarge) {
  EXPECT_EQ(fact("step:1K loss:0.2 lr:1e-4\nstep:2K loss:0.1 lr:1e-8\nstep:3K loss:0.1 lr:9e-5\n", "train.lr.restarts"), "1");
  EXPECT_EQ(
      fact("step 1 loss 1 grad_norm 1\nstep 2 loss 1 grad_norm 2\nstep 3 loss 9 grad_norm 400\nstep 4 loss 9 grad_norm 900\n", "train.grad.runaway"),
      "200");
}

TEST(ExtractComparison, ReadsTheEndsOfAGripper) { EXPECT_EQ(fact("gripper action: -1 open, +1 close\n", "gripper.low"), "-1"); }

TEST(ExtractTraining, ReadsCsvAndDeadSchedules) {
  EXPECT_EQ(fact("step,loss,lr\n100,0.5,1e-4\n200,nan,1e-4\n", "train.loss.nonfinite"), "1");
  EXPECT_EQ(fact("step:1K loss:0.2 lr:1e-4\nstep:5K loss:0.1 lr:1e-8\nstep:10K loss:0.1 lr:1e-8\n", "train.lr.dead_share"), "0.5");
}

TEST(ExtractNames, KeepsTheOrderOfJointsAsDeclaredAndAsPrinted) {
  const std::string info =
      R"({"features": {"action": {"names": ["l_0", "l_1", "r_0", "r_1"]}, "observation.image": {"names": ["height", "width", "channel"]}}})";
  EXPECT_EQ(fact(info, "names.declared_order"), "l_0 l_1 r_0 r_1");
  EXPECT_EQ(fact(info, "names.printed_order"), "(none)");
  const std::string log = "INFO action_features: ['r_0.pos', 'r_1.pos', 'l_0.pos', 'l_1.pos']\n";
  EXPECT_EQ(fact(log, "names.printed_order"), "r_0 r_1 l_0 l_1");
  EXPECT_EQ(fact(log, "names.printed_set"), "l_0 l_1 r_0 r_1");
  EXPECT_EQ(fact("joint_names = ('a', 'b', 'c')\n", "names.printed_order"), "(none)") << "three names are written in any order by custom";
  EXPECT_EQ(fact("joint_names = ['a', 'b', 'c', 'a']\n", "names.printed_order"), "(none)") << "a name twice is no list of joints";
  EXPECT_EQ(fact("joint_names = ['a', 'b', 'c', 'd'\n", "names.printed_order"), "(none)") << "cut off";
}

}  // namespace
}  // namespace ff::diagnosis
