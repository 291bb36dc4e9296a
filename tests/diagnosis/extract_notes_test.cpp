// What two numbers of a note say when they are held together; and what they do not say.
#include <gtest/gtest.h>

#include <string>

#include "diagnosis/extract.h"

namespace ff::diagnosis {
namespace {

/// Text of the first fact of this name; "(none)" when there is none.
std::string fact(std::string_view text, std::string_view name) {
  std::vector<facts::NamedFact> out;
  extract_all(text, "notes.txt", out);
  for (const auto& f : out)
    if (f.name == name) return f.value.to_string();
  return "(none)";
}

TEST(ExtractNotes, RangesOfAGripperMayHaveUnits) {
  const std::string note = "Training data: gripper width 0.0 m to 0.08 m.\nThe controller takes 0..255.\n";
  EXPECT_EQ(fact(note, "gripper.high"), "0.08");
  EXPECT_EQ(fact("The controller takes 0..255.\n", "gripper.high"), "(none)") << "of what, nobody says";
}

TEST(ExtractNotes, ExtremesBesideTheirLimits) {
  const std::string head = "joint  min  max  urdf_lower  urdf_upper\n";
  EXPECT_EQ(fact(head + "elbow  -7.40  1.66  -1.69  1.69\n", "report.beyond_limits"), "1");
  EXPECT_EQ(fact(head + "elbow  -1.70  1.66  -1.69  1.69\n", "report.beyond_limits"), "(none)") << "a hair beyond is a rounding";
}

TEST(ExtractNotes, LongStepsOfATable) {
  std::string table = "step,ms\n";
  for (int i = 0; i < 12; ++i) table += std::to_string(i) + "," + (i == 5 ? "800" : "80") + "\n";
  EXPECT_EQ(fact(table, "series.tail_ratio"), "10");
}

TEST(ExtractNotes, OneWorkOnTwoLibraries) {
  EXPECT_EQ(fact("matmul: 25 TFLOP/s with hipBLASLt, 100 TFLOP/s with rocBLAS\n", "report.library_rate_ratio"), "4");
  EXPECT_EQ(fact("matmul: 25 TFLOP/s with hipBLASLt\n", "report.library_rate_ratio"), "(none)");
  EXPECT_EQ(fact("max abs error  MIOpen (Winograd): 0.2     direct: 0.002\n", "report.error_contrast"), "100");
  EXPECT_EQ(fact("mean error left arm: 0.2     right arm: 0.002\n", "report.error_contrast"), "(none)") << "two arms are not two ways to compute";
}

TEST(ExtractNotes, CountsInWords) {
  const std::string note = "meta/episodes.jsonl: 48 lines\ninfo.json: total_episodes 50\n";
  EXPECT_EQ(fact(note, "dataset.episodes.count"), "48");
  EXPECT_EQ(fact(note, "dataset.info.total_episodes"), "50");
  const std::string tasks =
      ">>> df[\"task_index\"].unique()\narray([0, 1, 2])\n{\"task_index\": 0, \"task\": \"pick\"}\n{\"task_index\": 1, \"task\": \"place\"}\n";
  EXPECT_EQ(fact(tasks, "report.counts_differ"), "tasks");
}

TEST(ExtractNotes, HalfThatOverflowsWhereAWiderTypeDoesNot) {
  EXPECT_EQ(fact("layer 17 dtype float16  absmax out inf\nlayer 17 dtype bfloat16 absmax out 88064.0\n", "report.half_only_nonfinite"), "yes");
  EXPECT_EQ(fact("layer 17 dtype float16  absmax out inf\nlayer 17 dtype bfloat16 absmax out inf\n", "report.half_only_nonfinite"), "(none)");
  EXPECT_EQ(fact("layer 17 dtype float16  absmax out 12.0\nlayer 17 dtype bfloat16 absmax out 12.0\n", "report.half_only_nonfinite"), "(none)");
}

TEST(ExtractNotes, LearningRatesOfSeveralRunsAndOfOneSchedule) {
  EXPECT_EQ(fact("step 5000 loss 0.90 lr 1e-3\nsame with lr 1e-5: step 5000 loss 0.10\n", "report.rate_contrast"), "9");
  EXPECT_EQ(fact("step 100 loss 4.0 lr 1e-6\nstep 200 loss 2.0 lr 1e-5\nstep 300 loss 1.0 lr 1e-4\n", "report.rate_contrast"), "(none)")
      << "a warm-up";
}

TEST(ExtractNotes, ANoteOnAnotherRunIsNoStepBackwards) {
  const std::string note = "log: step 5000 loss 0.91\nlog: step 50000 loss 0.90\nsame with lr 1e-5: step 5000 loss 0.11\n";
  EXPECT_EQ(fact(note, "train.step_falls"), "0");
  EXPECT_EQ(fact("log: step 50000 loss 0.90\nlog: step 5000 loss 0.11\n", "train.step_falls"), "1");
}

TEST(ExtractNotes, ANewerFileThatIsSmaller) {
  const std::string listing = "a/010000/m:\n-rw-r--r-- 1 u u 200000000 model.safetensors\na/020000/m:\n-rw-r--r-- 1 u u 50000000 model.safetensors\n";
  EXPECT_EQ(fact(listing, "files.same_name_share"), "0.25");
}

TEST(ExtractNotes, SameSeedsAndTimeStamps) {
  EXPECT_EQ(fact("one checkpoint, same 50 seeds: 31/50 and 19/50\n", "eval.same_seeds_differ"), "yes");
  EXPECT_EQ(fact("two policies, same 50 seeds: 31/50 and 19/50\n", "eval.same_seeds_differ"), "(none)");
  EXPECT_EQ(fact("timestamp: [0.0, 0.034, 0.0679, 0.1021]\nfps: 30\n", "dataset.rows.time_errors"), "3");
  EXPECT_EQ(fact("timestamp: [0.0, 0.03, 0.07, 0.10]\nfps: 30\n", "dataset.rows.time_errors"), "0") << "printed with two digits";
}

TEST(ExtractNotes, PausesScalesAndMissingFrames) {
  EXPECT_EQ(fact("policy server round trip: 400 ms\nchunk 15 actions at 30 Hz\n", "rate.pause_share"), "0.8");
  EXPECT_EQ(fact("training images: mean 0.5 after /255\nlive images: mean 100\n", "report.scale_255"), "yes");
  EXPECT_EQ(fact("training images: mean 0.5 after /255\nlive images: mean 0.4\n", "report.scale_255"), "(none)");
  EXPECT_EQ(fact("episode 12: frame_index 0..417, 415 rows\n", "dataset.rows.frame_jumps"), "3");
  EXPECT_EQ(fact("episode 12: frame_index 0..417, 418 rows\n", "dataset.rows.frame_jumps"), "0");
}

TEST(ExtractNotes, AClockThatFallsAsTheCardGetsHot) {
  const std::string head = "time,junction_c,sclk_mhz\n";
  EXPECT_EQ(fact(head + "0,74,2482\n30,101,2440\n60,110,1205\n", "report.hot_and_slow"), "yes");
  EXPECT_EQ(fact(head + "0,74,2482\n30,101,2440\n60,104,2430\n", "report.hot_and_slow"), "(none)");
}

TEST(ExtractTraining, AResumptionThatNamesItsStep) {
  EXPECT_EQ(fact("Resuming training from checkpoint-5000\nstep 100 loss 0.4\nstep 200 loss 0.3\n", "train.resume.behind"), "4900");
  EXPECT_EQ(fact("Resuming training from checkpoint-5000\nstep 5100 loss 0.4\nstep 5200 loss 0.3\n", "train.resume.behind"), "0");
}

}  // namespace
}  // namespace ff::diagnosis
