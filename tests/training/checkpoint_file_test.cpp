// What is wrong with a file of a checkpoint, by its name and content alone.
#include <gtest/gtest.h>

#include "training/checkpoint.h"

namespace ff::training {
namespace {

std::string problem(std::string_view name, std::string_view bytes) { return content_problem(name, bytes, bytes.size()); }

TEST(CheckpointFile, AStateThatHoldsNothingIsNoState) {
  for (const char* name : {"rng_state.json", "scheduler_state.json", "training_step.json", "trainer_state.json"})
    for (const char* nothing : {"{}", "[]", "null"})
      EXPECT_NE(problem(name, nothing).find("holds nothing"), std::string::npos) << name << " " << nothing;
  EXPECT_EQ(problem("scheduler_state.json", R"({"last_epoch": 60})"), "");
  EXPECT_EQ(problem("rng_state.json", "[1, 2]"), "");
  EXPECT_EQ(problem("adapter_config.json", "{}"), "") << "a configuration may be empty";
}

TEST(CheckpointFile, CutDocumentsAndEmptyFilesAreNamed) {
  EXPECT_NE(problem("rng_state.json", "{\"a\": 1").find("no whole JSON document"), std::string::npos);
  EXPECT_EQ(problem("model.safetensors", ""), "is empty");
}

}  // namespace
}  // namespace ff::training
