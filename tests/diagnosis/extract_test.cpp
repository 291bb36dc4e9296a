#include "diagnosis/extract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ff::diagnosis {
namespace {

using facts::NamedFact;

std::vector<NamedFact> facts_of(std::string_view text, std::string_view source = "evidence.txt") {
  std::vector<NamedFact> out;
  extract_all(text, source, out);
  return out;
}

/// Text of the first fact of this name; "(none)" when there is none.
std::string value(const std::vector<NamedFact>& facts, std::string_view name) {
  for (const NamedFact& f : facts)
    if (f.name == name) return f.value.to_string();
  return "(none)";
}

bool has(const std::vector<NamedFact>& facts, std::string_view name) { return value(facts, name) != "(none)"; }

TEST(ExtractDataset, ReadsTotalsAndDimensionsOfInfoJson) {
  const auto f = facts_of(R"({"codebase_version": "v3.0", "total_episodes": 36, "total_frames": 14545, "fps": 30.0, "splits": {"train": "0:40"},
    "features": {"action": {"dtype": "float32", "shape": [14]}, "observation.images.top": {"dtype": "video", "shape": [480, 640, 3]}}})");
  EXPECT_EQ(value(f, "dataset.info.codebase_version"), "v3.0");
  EXPECT_EQ(value(f, "dataset.info.fps"), "30") << "a whole number prints as one";
  EXPECT_EQ(value(f, "dataset.info.last_index"), "14544");
  EXPECT_EQ(value(f, "dataset.info.last_episode"), "35");
  EXPECT_EQ(value(f, "dataset.info.splits_end"), "40");
  EXPECT_EQ(value(f, "dataset.info.action_dim"), "14");
  EXPECT_EQ(value(f, "dataset.info.cameras[0]"), "observation.images.top");
}

TEST(ExtractDataset, FindsJsonBehindAShellPrompt) {
  const auto f = facts_of("$ cat meta/info.json\n{\n  \"codebase_version\": \"v2.1\",\n  \"total_frames\": 10\n}\n$ ls\n");
  EXPECT_EQ(value(f, "dataset.info.total_frames"), "10");
}

TEST(ExtractDataset, CountsNonFiniteAndConstantStatistics) {
  const auto f = facts_of(
      R"({"action": {"min": [-1, 0.3], "max": [1, 0.3], "mean": [0, NaN], "std": [0.5, 0.0], "count": [90]}, "index": {"min": [0], "max": [89], "mean": [44.5], "std": [26], "count": [90]}})");
  EXPECT_EQ(value(f, "dataset.stats.action.dim"), "2");
  EXPECT_EQ(value(f, "dataset.stats.action.zero_std"), "1");
  EXPECT_EQ(value(f, "dataset.stats.nonfinite"), "1");
  EXPECT_EQ(value(f, "dataset.stats.index.max"), "89");
}

TEST(ExtractDataset, SeesEpisodesOutOfOrder) {
  const auto f = facts_of(
      "{\"episode_index\": 9, \"tasks\": [\"a\"], \"length\": 10}\n{\"episode_index\": 0, \"tasks\": [\"a\"], \"length\": 11}\n{\"episode_index\": "
      "1, \"tasks\": [\"a\"], \"length\": 12}\n");
  EXPECT_EQ(value(f, "dataset.episodes.count"), "3");
  EXPECT_EQ(value(f, "dataset.episodes.frames"), "33");
  EXPECT_EQ(value(f, "dataset.episodes.out_of_order"), "1");
}

TEST(ExtractRows, TellsShuffledRowsFromARestartedIndex) {
  const auto shuffled = facts_of(" index  episode_index  frame_index  timestamp\n 0 0 0 0.0\n 2 0 2 0.066667\n 1 0 1 0.033333\n 3 0 3 0.1\n");
  EXPECT_EQ(value(shuffled, "dataset.rows.index_descents"), "1");
  EXPECT_EQ(value(shuffled, "dataset.rows.index_restarts"), "0");
  EXPECT_NE(value(shuffled, "dataset.rows.frame_jumps"), "0");
  const auto restarted =
      facts_of(" index  episode_index  frame_index  timestamp\n 118 0 118 3.933333\n 119 0 119 3.966667\n 0 1 0 0.0\n 1 1 1 0.033333\n");
  EXPECT_EQ(value(restarted, "dataset.rows.index_restarts"), "1");
  EXPECT_EQ(value(restarted, "dataset.rows.frame_jumps"), "0");
}

TEST(ExtractRows, DoesNotJudgeAcrossAnEllipsis) {
  const auto f = facts_of(" index  episode_index  frame_index  timestamp\n 0 0 0 0.0\n 1 0 1 0.033333\n...\n 900 3 12 0.4\n 901 3 13 0.433333\n");
  EXPECT_EQ(value(f, "dataset.rows.index_jumps"), "0");
  EXPECT_EQ(value(f, "dataset.rows.frame_jumps"), "0");
}

TEST(ExtractRows, MeasuresHowFarStartTimesAreFromWholeFrames) {
  const std::string head = "episode_index length videos/observation.images.wrist/from_timestamp videos/observation.images.wrist/to_timestamp\n";
  EXPECT_EQ(value(facts_of(head + "0 402 0.0 13.4\n1 377 13.4 25.966667\n"), "dataset.segments.length_errors"), "0");
  const auto drift = facts_of(head + "0 402 0.0 13.4\n34 409 457.999936 471.633269\n");
  const auto found = std::find_if(drift.begin(), drift.end(), [](const NamedFact& f) { return f.name == "dataset.segments.off_grid_frames"; });
  ASSERT_NE(found, drift.end());
  EXPECT_GT(found->value.as_real(), 0.001);
}

TEST(ExtractVideo, ComparesTheAskedFrameWithTheNumberOfFramesInThreeSpellings) {
  EXPECT_EQ(value(facts_of("RuntimeError: Invalid frame index=4610 for streamIndex=0; must be less than 4610"), "video.index_excess"), "0");
  EXPECT_EQ(value(facts_of("RuntimeError: Invalid frame index=145 for streamIndex=0 numFrames=70"), "video.index_excess"), "75");
  EXPECT_EQ(value(facts_of("RuntimeError: Invalid frame index=71 for stream_index=0 num_frames=70"), "video.index_excess"), "1");
}

TEST(ExtractVideo, KnowsShiftedBoundariesFromJitter) {
  const auto shifted = facts_of(
      "[{'diff': np.float32(-31.2), 'episode_index': 4, 'timestamps': [np.float32(31.2), np.float32(0.0)]},\n {'diff': tensor([-22.4]),\n "
      "'episode_index': 5,\n 'timestamps': [tensor([22.4]), tensor([0.])]}]");
  EXPECT_EQ(value(shifted, "dataset.time_check.resets"), "2");
  const auto jitter = facts_of("[{'diff': np.float32(0.041239), 'episode_index': 2, 'timestamps': [np.float32(7.33), np.float32(7.371)]}]");
  EXPECT_EQ(value(jitter, "dataset.time_check.resets"), "0");
  EXPECT_EQ(value(jitter, "dataset.time_check.small"), "1");
}

TEST(ExtractVideo, TellsOneFrameFromSeconds) {
  const auto frame = facts_of(
      "One or several query timestamps unexpectedly violate the tolerance (tensor([0.0333]) > tolerance_s=0.0001).\nqueried timestamps: "
      "tensor([471.6333])\nloaded timestamps: tensor([471.6000])\n");
  EXPECT_EQ(value(frame, "dataset.query.one_frame"), "yes");
  const auto far = facts_of(
      "One or several query timestamps unexpectedly violate the tolerance (tensor([460.4000]) > tolerance_s=0.05).\nqueried timestamps: "
      "tensor([1058.8667])\nloaded timestamps: tensor([598.4667])\n");
  EXPECT_EQ(value(far, "dataset.query.one_frame"), "no");
}

TEST(ExtractVideo, ReadsTheBareAnswerOfFfprobe) {
  EXPECT_EQ(value(facts_of("$ ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 a.mp4\n4610\n"), "video.frames"),
            "4610");
}

TEST(ExtractModel, ReadsTheHeaderLengthOutOfADump) {
  const auto f = facts_of("$ xxd -l 32 m.safetensors\n00000000: 9049 7c07 0000 0000 7b22 6578 7065 7274  .I|.....{\"expert\n");
  EXPECT_EQ(value(f, "file.magic"), "safetensors");
  EXPECT_EQ(value(f, "safetensors.header_bytes"), "125585808");
  EXPECT_EQ(value(facts_of("00000000  76 65 72 73 69 6f 6e 20  68 74 74 70 73 3a 2f 2f  |version https://|"), "file.magic"), "git-lfs");
  EXPECT_EQ(value(facts_of("00000000: 504b 0304 0000 0800 0000 0000 0000 0000  PK.."), "file.magic"), "zip");
}

TEST(ExtractModel, SeesFilesOfPointerSizeInAListing) {
  const auto f =
      facts_of("total 8\n-rw-r--r-- 1 root root 134 Sep  4 02:18 model.safetensors\n-rw-r--r-- 1 root root 2048 Sep  4 02:18 config.json\n");
  EXPECT_EQ(value(f, "files.weights.pointer_sized"), "1");
  EXPECT_EQ(value(facts_of("-rw-r--r-- 1 root root 6410227712 Sep  4 02:18 a.safetensors\n"), "files.weights.pointer_sized"), "0");
}

TEST(ExtractModel, PutsNormaliserFeaturesBesideTheKeysOfTheStatistics) {
  const auto f = facts_of(
      R"({"steps": [{"registry_name": "normalizer_processor", "config": {"features": {"action": {"type": "ACTION", "shape": [6]}, "observation.images.top": {"type": "VISUAL", "shape": [3, 4, 4]}}, "norm_map": {"VISUAL": "IDENTITY", "ACTION": "MEAN_STD"}}}]})");
  EXPECT_EQ(value(f, "policy.normalizer.features[0]"), "action");
  EXPECT_FALSE(has(f, "policy.normalizer.features[1]")) << "IDENTITY needs no statistics";
  EXPECT_EQ(value(facts_of("so100.buffer.action.mean\nso100.buffer.action.std\n"), "normalizer.keys[0]"), "so100.buffer.action");
}

TEST(ExtractTraining, ReadsRecordsOfEveryProgram) {
  EXPECT_EQ(value(facts_of("step:6.2K smpl:1K ep:3 epch:0.06 loss:7.147 grdn:88.107 lr:1.0e-05 updt_s:0.186 data_s:0.005"), "train.step_last"),
            "6200");
  EXPECT_EQ(value(facts_of("{'loss': 0.6931, 'grad_norm': 1.234, 'learning_rate': 1.9e-05, 'epoch': 0.12}"), "train.loss.first"), "0.6931");
  EXPECT_EQ(value(facts_of("Step 100: grad_norm=0.1234, loss=0.0456, param_norm=1801.2345"), "train.loss.first"), "0.0456");
  EXPECT_EQ(value(facts_of("step 1000 | train/loss 0.0213"), "train.loss.last"), "0.0213");
  EXPECT_EQ(value(facts_of(R"({"global_step": 2, "log_history": [{"epoch": 0.1, "loss": NaN, "step": 1}]})"), "train.loss.nonfinite"), "1");
}

TEST(ExtractTraining, SplitsRecordsThatTheProgressBarJoined) {
  EXPECT_EQ(value(facts_of("step:200 smpl:1K loss:0.4 grdn:3.1 lr:1.0e-05Training: 2%|#| 400/20000 step:400 smpl:3K loss:0.3 grdn:2.9 lr:1.0e-05"),
                  "train.records"),
            "2");
}

TEST(ExtractTraining, SaysWhereTheFirstBadLossStands) {
  const auto f = facts_of("step 1 loss 0.5\nstep 2 loss 0.4\nstep 3 loss nan\nstep 4 loss nan\n");
  EXPECT_EQ(value(f, "train.loss.nonfinite"), "2");
  EXPECT_EQ(value(f, "train.loss.nonfinite_at"), "2");
}

TEST(ExtractTraining, TakesRoundedStepsForNoFall) {
  EXPECT_EQ(value(facts_of("step:800 loss:0.5 lr:1e-5\nstep:1K loss:0.5 lr:1e-5\nstep:1K loss:0.4 lr:1e-5\n"), "train.step_falls"), "0");
  EXPECT_EQ(value(facts_of("step:9800 loss:0.5 lr:1e-5\nstep:200 loss:0.5 lr:1e-5\n"), "train.step_falls"), "1");
}

TEST(ExtractTraining, NeedsThreeZeroGradientsInARow) {
  EXPECT_EQ(value(facts_of("step:1 loss:0.5 grdn:0.000\nstep:2 loss:0.5 grdn:0.000\nstep:3 loss:0.5 grdn:0.1\nstep:4 loss:0.5 grdn:0.000\n"),
                  "train.grad.zero_run"),
            "2");
}

TEST(ExtractTraining, DoesNotTakeProseForRecords) {
  EXPECT_FALSE(has(facts_of("The loss of the match was 3 to 1, and step by step they recovered.\n"), "train.records"));
}

TEST(ExtractEvaluation, NamesTheSettingOfTheBetterLine) {
  const auto f = facts_of(
      "suite      checkpoint   episodes  success\nlibero_10  30000        500       0.604\nlibero_10  30000, same data, extra_delta_transform=False  "
      "500  0.852\n");
  EXPECT_EQ(value(f, "eval.better_with"), "extra_delta_transform=False");
  EXPECT_EQ(value(f, "eval.contrast_clear"), "yes");
  EXPECT_EQ(value(f, "eval.same_weights"), "yes");
}

TEST(ExtractEvaluation, DoesNotCallSmallSamplesClear) {
  EXPECT_EQ(value(facts_of("policy a success 3/5\npolicy b success 2/5\n"), "eval.contrast_clear"), "no");
}

TEST(ExtractEvaluation, KnowsThatAnotherCheckpointWasBetter) {
  const auto f =
      facts_of("own checkpoint, step 9000     : success_rate 0.000 (0/500)\npublished checkpoint, same rig: success_rate 0.842 (421/500)\n");
  EXPECT_EQ(value(f, "eval.other_weights"), "yes");
  EXPECT_FALSE(has(f, "eval.same_weights"));
}

TEST(ExtractEvaluation, CountsInitialStates) {
  const auto f = facts_of("episode 0 init_state_id 0 success 0\nepisode 1 init_state_id 0 success 0\nepisode 2 init_state_id 0 success 1\n");
  EXPECT_EQ(value(f, "eval.init_states.episodes"), "3");
  EXPECT_EQ(value(f, "eval.init_states.distinct"), "1");
}

TEST(ExtractComparison, ComparesTurnedFramesWithFramesAsTheyAre) {
  const auto f = facts_of(
      "first camera frame against dataset frame 0: mean absolute difference 61.4\nrotated by 180 degrees first: mean absolute difference 3.2\n");
  EXPECT_EQ(value(f, "compare.turned_ratio").substr(0, 4), "19.1");
}

TEST(ExtractComparison, SeesANormaliserThatDoesNothing) {
  EXPECT_EQ(value(facts_of("observation.state before normalizer: [-2.11 98.42]\nobservation.state after  normalizer: [-2.11 98.42]\n"),
                  "normalizer.passthrough"),
            "yes");
  EXPECT_EQ(value(facts_of("observation.state before normalizer: [-2.11 98.42]\nobservation.state after  normalizer: [-0.1 0.3]\n"),
                  "normalizer.passthrough"),
            "no");
}

TEST(ExtractComparison, ReadsGripperRanges) {
  const auto f = facts_of("dataset: gripper range [0, 1], 1 = open\nenv: gripper in -1 to 1\n");
  EXPECT_EQ(std::count_if(f.begin(), f.end(), [](const NamedFact& x) { return x.name == "gripper.low"; }), 2);
}

TEST(ExtractCode, SeesAResetAfterTheInitialStateInOneFunctionOnly) {
  EXPECT_EQ(value(facts_of("def a(env):\n    env.set_init_state(s)\n    obs = env.reset()\n", "a.py"), "code.reset_after_set_state"), "yes");
  EXPECT_FALSE(has(facts_of("def a(env):\n    env.set_init_state(s)\ndef b(env):\n    env.reset()\n", "a.py"), "code.reset_after_set_state"));
  EXPECT_FALSE(has(facts_of("def a(env):\n    env.reset()\n    env.set_init_state(s)\n    policy.reset()\n", "a.py"), "code.reset_after_set_state"));
}

TEST(ExtractCode, SeesANumberThatNeverAdvances) {
  const std::string fixed =
      "class A:\n    def __init__(self):\n        self._init_state_id = 0\n    def start(self):\n        "
      "self.env.set_init_state(self.s[self._init_state_id])\n";
  EXPECT_EQ(value(facts_of(fixed, "a.py"), "code.state_number_fixed"), "yes");
  EXPECT_FALSE(has(facts_of(fixed + "        self._init_state_id += 1\n", "a.py"), "code.state_number_fixed"));
}

TEST(ExtractCode, LeavesOutComments) {
  EXPECT_FALSE(has(facts_of("def a(img):\n    # img[::-1, ::-1] was here\n    return img\n", "a.py"), "code.image_turns"));
  EXPECT_EQ(value(facts_of("def a(img):\n    return img[::-1, ::-1]\n", "a.py"), "code.image_turns"), "1");
}

TEST(ExtractCode, NamesVariablesThatAreSetTooLate) {
  EXPECT_EQ(value(facts_of("import os\nimport mujoco\nos.environ['MUJOCO_GL'] = 'egl'\n", "a.py"), "code.environ_after_import"), "MUJOCO_GL");
  EXPECT_FALSE(has(facts_of("import os\nos.environ['MUJOCO_GL'] = 'egl'\nimport mujoco\n", "a.py"), "code.environ_after_import"));
}

TEST(ExtractDataset, FindsDimensionsThatHardlyMove) {
  const auto f = facts_of(R"({"norm_stats": {"actions": {"q01": [-1.2, -2.1, 1.5707, 0.0], "q99": [0.7, 1.4, 1.5716, 0.0]}}})");
  EXPECT_EQ(value(f, "norm_stats.actions.narrow"), "1");
  EXPECT_EQ(value(f, "norm_stats.actions.zero_range"), "1");
}

TEST(ExtractRows, ReadsAPrintedTableOfRanges) {
  const auto f = facts_of("dim   q01       q99       delta\n0    -0.8123    0.9034    1.7157\n1     0.0000    0.0000    0.0000\n");
  EXPECT_EQ(value(f, "dataset.table.zero_range"), "1");
}

TEST(ExtractTraining, MeasuresTheLongestPause) {
  std::string log;
  for (int i = 0; i < 8; ++i)
    log += "INFO 2026-01-22 09:0" + std::to_string(i) + ":00 step:" + std::to_string(200 + 200 * i) + " loss:0.5 grdn:1.0\n";
  EXPECT_EQ(value(facts_of(log), "train.gap_ratio"), "1");
  log += "INFO 2026-01-22 10:37:00 step:2K loss:0.5 grdn:1.0\n";
  EXPECT_EQ(value(facts_of(log), "train.gap_s"), "5400");
}

TEST(ExtractEvaluation, CountsRepeatedInitialStatesWithinOneSeries) {
  std::string cycling, tasks;
  for (int i = 0; i < 8; ++i) cycling += "episode " + std::to_string(i) + " init_state_id " + std::to_string(i % 2) + " success 1\n";
  for (int task = 0; task < 4; ++task)
    for (int i = 0; i < 3; ++i) tasks += "episode " + std::to_string(i) + " init_state_id " + std::to_string(i) + " success 1\n";
  EXPECT_EQ(value(facts_of(cycling), "eval.init_states.repeats"), "4");
  EXPECT_EQ(value(facts_of(tasks), "eval.init_states.repeats"), "1") << "each task begins again with its first state";
}

TEST(ExtractEvaluation, SeesOneSeedWithTwoResults) {
  EXPECT_EQ(value(facts_of("seed 7 success 7/10\nseed 7 success 4/10\n"), "eval.seed_repeats_differ"), "yes");
  EXPECT_FALSE(has(facts_of("seed 7 success 7/10\nseed 8 success 4/10\n"), "eval.seed_repeats_differ"));
}

TEST(ExtractCode, SeesThatOnlyTheFirstActionOfAChunkIsUsed) {
  EXPECT_EQ(value(facts_of("def step(obs):\n    chunk = policy.get_action(obs)\n    env.step(chunk[0])\n", "a.py"), "code.first_action_only"), "yes");
  EXPECT_FALSE(has(facts_of("def step(obs):\n    chunk = policy.get_action(obs)\n    for a in chunk:\n        env.step(a)\n", "a.py"),
                   "code.first_action_only"));
}

TEST(ExtractCode, ReadsTheRangesOfAGripper) {
  const auto f = facts_of(
      "GRIPPER_JOINT_OPEN = 2.487\nGRIPPER_JOINT_CLOSE = 1.5\ndef _gripper_from_angular(v):\n    return _unnormalize(v, min_val=0.4, max_val=1.5)\n",
      "a.py");
  EXPECT_EQ(value(f, "gripper.hardware_high"), "2.487");
  EXPECT_EQ(value(f, "gripper.code_low"), "0.4");
}

TEST(ExtractComparison, KeepsTheRateOfTheDataFromThatOfTheLoop) {
  const auto f = facts_of("demonstrations recorded at 50 Hz\nthe control loop runs at 10 Hz\nphysics at 250 Hz\n");
  EXPECT_EQ(value(f, "rate.data_hz"), "50");
  EXPECT_EQ(value(f, "rate.loop_hz"), "10");
}

TEST(ExtractSession, SeesACheckpointWithoutTrainingState) {
  const auto f = facts_of(
      "$ ls out/checkpoints out/checkpoints/020000\nout/checkpoints:\n010000  020000  last -> 010000\nout/checkpoints/020000:\npretrained_model\n");
  EXPECT_EQ(value(f, "checkpoint.has_training_state"), "no");
  EXPECT_EQ(value(facts_of("$ ls -l checkpoints\n020000\nlast -> 010000\n"), "checkpoint.last_behind"), "yes");
}

TEST(ExtractSession, ReadsVersionsAndPadding) {
  const auto f = facts_of(
      ">>> import lerobot; lerobot.__version__\n'0.4.3'\n>>> len(ds)\n118\n>>> sum(bool(ds[i][\"x_is_pad\"].all()) for i in range(len(ds)))\n118\n");
  EXPECT_EQ(value(f, "pythons[0].packages.lerobot"), "0.4.3");
  EXPECT_EQ(value(f, "dataset.pad.all_frames"), "yes");
}

TEST(ExtractSession, ReadsEmbeddingAndTokenSizes) {
  const auto f = facts_of("model: vocab_size 32000, Embedding(32000, 2048)\nstep 3 batch max token id 32001\n");
  EXPECT_EQ(value(f, "model.embedding_rows"), "32000");
  EXPECT_EQ(value(f, "model.token_id_max"), "32001");
}

TEST(Extract, LeavesForeignTextAlone) {
  EXPECT_TRUE(facts_of("2026-01-01 nginx: 502 Bad Gateway, upstream timed out\n").empty());
  EXPECT_TRUE(facts_of("").empty());
  EXPECT_TRUE(facts_of(std::string(1 << 16, '\0')).empty());
}

TEST(Extract, RefusesWhatIsTooLargeToHold) {
  std::string text = "step 1 loss 0.5\n";
  text.resize(max_extract_bytes + 1, 'x');
  EXPECT_TRUE(facts_of(text).empty());
  EXPECT_FALSE(facts_of(std::string_view(text).substr(0, 16)).empty());
}

TEST(Extract, EveryEntryOfTheTableSaysItsNames) {
  for (const ExtractorEntry& entry : extractors()) {
    EXPECT_FALSE(entry.name.empty());
    EXPECT_FALSE(entry.prefix.empty());
    EXPECT_NE(entry.run, nullptr);
  }
}

}  // namespace
}  // namespace ff::diagnosis
