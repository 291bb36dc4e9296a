#include "ladder/fill_in.h"

#include <gtest/gtest.h>

namespace ff::ladder {
namespace {

CheckInputs inputs() {
  CheckInputs out;
  out.dataset = "/data/my set/";
  out.policy = "runs/act/pretrained_model";
  out.python = "/opt/venv/bin/python";
  out.results = "runs/act";
  return out;
}

TEST(FillIn, PutsTheInputsOfTheClimbIntoAdviceAndProof) {
  EXPECT_EQ(filled_in("firstfault data check <folder>", "data.row-order", inputs()), "firstfault data check '/data/my set/'");
  EXPECT_EQ(filled_in("firstfault data check <folder> --fix -o <new folder>", "data.row-order", inputs()),
            "firstfault data check '/data/my set/' --fix -o '/data/my set-repaired'");
  EXPECT_EQ(filled_in("firstfault model check <folder> --dataset <folder>", "model.normalization-missing", inputs()),
            "firstfault model check runs/act/pretrained_model --dataset '/data/my set/'");
  EXPECT_EQ(filled_in("firstfault model load <folder> --python <python>", "model.key-mismatch", inputs()),
            "firstfault model load runs/act/pretrained_model --python /opt/venv/bin/python");
  EXPECT_EQ(filled_in("firstfault train resume <run>", "training.resume-reset", inputs()), "firstfault train resume runs/act");
}

TEST(FillIn, LeavesWhatIsNotKnownToAPerson) {
  for (const char* line : {"firstfault data check <folder>", "AMD_SERIALIZE_KERNEL=3 <your command>", "firstfault hang <pid>"})
    EXPECT_EQ(filled_in(line, "data.row-order", {}), line);
  CheckInputs policy_only;
  policy_only.policy = "p";
  EXPECT_EQ(filled_in("firstfault model check <folder> --dataset <folder>", "model.normalization-missing", policy_only),
            "firstfault model check <folder> --dataset <folder>")
      << "half filled in it would name the policy as the dataset";
}

TEST(FillIn, AProofNamesTheCopyThatTheFixWrites) {
  knowledge::CauseText cause;
  cause.id = "data.row-order";
  cause.fix = {"Write a corrected copy with firstfault data check <folder> --fix -o <new folder>."};
  EXPECT_EQ(filled_in_proof("firstfault data check <folder>", cause, inputs()), "firstfault data check '/data/my set-repaired'");
  cause.fix = {"Record it anew."};
  EXPECT_EQ(filled_in_proof("firstfault data check <folder>", cause, inputs()), "firstfault data check '/data/my set/'");
  EXPECT_EQ(filled_in_proof("firstfault data check <folder>", cause, {}), "firstfault data check <folder>");
}

TEST(FillIn, QuotesForAShell) {
  CheckInputs hostile;
  hostile.dataset = "a'; rm -rf x; '";
  EXPECT_EQ(filled_in("firstfault data check <folder>", "data.row-order", hostile), R"(firstfault data check 'a'\''; rm -rf x; '\''')");
}

}  // namespace
}  // namespace ff::ladder
