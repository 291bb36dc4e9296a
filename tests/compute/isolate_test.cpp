#include "compute/isolate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "compute/debug_agent.h"
#include "support/paths.h"

namespace ff::compute {
namespace {

TEST(Wilson, IntervalOfSmallCounts) {
  // Values of the closed form, computed apart (scipy's proportion_confint gives the same).
  EXPECT_NEAR((Rate{5, 5}.low()), 0.5655, 1e-4);
  EXPECT_DOUBLE_EQ((Rate{5, 5}.high()), 1.0);
  EXPECT_NEAR((Rate{0, 5}.high()), 0.4345, 1e-4);
  EXPECT_NEAR((Rate{1, 10}.low()), 0.0179, 1e-4);
  EXPECT_NEAR((Rate{1, 10}.high()), 0.4042, 1e-4);
  EXPECT_DOUBLE_EQ((Rate{0, 0}.low()), 0.0);
  EXPECT_DOUBLE_EQ((Rate{0, 0}.high()), 1.0);
}

TEST(Fisher, TwoSidedProbability) {
  EXPECT_NEAR(fisher({5, 5}, {0, 5}), 2.0 / 252.0, 1e-9);  // 2 of C(10,5) tables are as unlike
  EXPECT_NEAR(fisher({3, 5}, {3, 5}), 1.0, 1e-9);
  EXPECT_NEAR(fisher({8, 10}, {1, 6}), 0.03497, 1e-4);
  EXPECT_DOUBLE_EQ(fisher({0, 0}, {1, 6}), 1.0);
}

TEST(Failure, EachExpectation) {
  IsolateOptions options;
  EXPECT_TRUE(counts_as_failure(options, 1, false, 0, ""));
  EXPECT_FALSE(counts_as_failure(options, 0, false, 0, "Error"));
  options.expect = Expect::signal;
  EXPECT_FALSE(counts_as_failure(options, 1, false, 0, ""));
  EXPECT_TRUE(counts_as_failure(options, 139, false, 0, ""));
  EXPECT_TRUE(counts_as_failure(options, -1, true, 0, ""));
  options.expect = Expect::text;
  options.text = "Memory access fault";
  EXPECT_TRUE(counts_as_failure(options, 0, false, 0, "x\nMemory access fault by GPU node-1"));
  EXPECT_FALSE(counts_as_failure(options, 1, false, 0, "fine"));
  options.expect = Expect::slow;
  options.slow_s = 2;
  EXPECT_TRUE(counts_as_failure(options, 0, false, 2.5, ""));
  EXPECT_FALSE(counts_as_failure(options, 0, false, 1.5, ""));
}

TEST(Failure, NanIsAWord) {
  EXPECT_TRUE(speaks_of_nan("step 3 loss nan"));
  EXPECT_TRUE(speaks_of_nan("loss=NaN,"));
  EXPECT_TRUE(speaks_of_nan("tensor([inf, 1.])"));
  EXPECT_TRUE(speaks_of_nan("-inf"));
  EXPECT_FALSE(speaks_of_nan("INFO: inference of nanoseconds, finance"));
  EXPECT_FALSE(speaks_of_nan(""));
}

SwitchOutcome outcome(std::string id, std::size_t failed, std::size_t runs) {
  SwitchOutcome out;
  out.id = std::move(id);
  out.rate = {failed, runs};
  out.meaning = "a race";
  return out;
}

TEST(Conclusion, TheSwitchThatCuresIsNamedWithWhatItProves) {
  Isolation isolation;
  isolation.outcomes = {outcome("unchanged", 5, 5), outcome("serialise", 0, 5), outcome("no-sdma", 5, 5)};
  conclude(isolation, 5);
  EXPECT_EQ(isolation.outcomes[1].effect, SwitchOutcome::Effect::cured);
  EXPECT_EQ(isolation.outcomes[2].effect, SwitchOutcome::Effect::none);
  EXPECT_EQ(isolation.conclusion, "serialise changes the outcome: a race.");
}

TEST(Conclusion, FewRunsAreNotEnough) {
  Isolation isolation;
  isolation.outcomes = {outcome("unchanged", 1, 5), outcome("serialise", 0, 5)};
  conclude(isolation, 5);
  EXPECT_EQ(isolation.outcomes[1].effect, SwitchOutcome::Effect::unclear);
  EXPECT_TRUE(contains(isolation.conclusion, "Too few runs to tell for: serialise"));
}

TEST(Conclusion, WhatNeverFailedSaysHowSureThatIs) {
  Isolation isolation;
  isolation.outcomes = {outcome("unchanged", 0, 5), outcome("api-log", 0, 5)};
  conclude(isolation, 5);
  EXPECT_EQ(isolation.conclusion, "It did not fail in 5 runs (95 % interval of the rate: 0 to 43 %).");
}

TEST(Conclusion, SaysNoMoreThanWasTried) {
  Isolation one;
  one.outcomes = {outcome("unchanged", 5, 5), outcome("api-log", 5, 5)};
  conclude(one, 5);
  EXPECT_EQ(one.conclusion, "api-log does not change the outcome (5 of 5 runs failed unchanged): what is switched there is not the cause.");
  Isolation few;
  few.outcomes = {outcome("unchanged", 3, 3), outcome("one-thread", 0, 3)};
  conclude(few, 3);
  EXPECT_EQ(few.conclusion,
            "one-thread does not change the outcome for certain (3 of 3 runs failed unchanged). Too few runs to tell for: one-thread (--repeat 10).");
  Isolation three;
  three.outcomes = {outcome("unchanged", 5, 5), outcome("api-log", 5, 5), outcome("one-thread", 5, 5)};
  conclude(three, 5);
  EXPECT_TRUE(three.conclusion.starts_with("None of the 2 switches that were tried changes the outcome (5 of 5")) << three.conclusion;
  Isolation none;
  none.outcomes = {outcome("unchanged", 2, 2)};
  conclude(none, 2);
  EXPECT_EQ(none.conclusion, "2 of 2 runs failed; no switch was tried.");
}

TEST(Switches, AreNotAmongTheNamesThatDoNothing) {
  // facts: names in circulation that no component reads.
  for (const auto* name : {"HIP_TRACE_API", "ROCM_VISIBLE_DEVICES", "MIOPEN_DEBUG=", "HIPRTC_USE_LEGACY", "ROCM_DEBUG", "HIP_DEBUG", "RCCL_DEBUG",
                           "TORCH_USE_HIP_DSA", "MIOPEN_FIND_MODE=0"})
    for (const auto& one : switches())
      for (const auto set : one.set) EXPECT_FALSE(set.starts_with(name)) << set;
  std::vector<std::string_view> ids;
  for (const auto& one : switches()) {
    EXPECT_FALSE(one.set.empty()) << one.id;
    EXPECT_FALSE(one.proves_cured.empty()) << one.id;
    ids.push_back(one.id);
  }
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST(Isolate, FindsTheSwitchOfARealCommand) {
  IsolateOptions options;
  options.command = {"sh", "-c", "test \"$AMD_SERIALIZE_KERNEL\" = 3"};
  options.only = {"serialise", "no-sdma"};
  options.repeat = 5;
  const auto found = isolate(options, [](std::string_view) {});
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->outcomes.size(), 3u);
  EXPECT_EQ(found->outcomes[0].rate.failed, 5u);
  EXPECT_EQ(found->outcomes[1].rate.failed, 0u);
  EXPECT_EQ(found->outcomes[2].rate.failed, 5u);
  EXPECT_TRUE(found->conclusion.starts_with("serialise changes the outcome: a race"));
}

TEST(Isolate, WhatCannotBeStartedIsAnError) {
  IsolateOptions options;
  options.command = {"/nonexistent/program"};
  const auto found = isolate(options, [](std::string_view) {});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().where, "/nonexistent/program");
}

TEST(DebugAgent, BothFormatsNameKernelInstructionAndWaves) {
  const auto old = read_debug_agent(*read_file(test::source_directory() / "tests/fuzz/corpus/debug_agent/rocm6"));
  EXPECT_EQ(old.waves, 3u);
  EXPECT_EQ(old.kernels, (std::vector<std::string>{"scatter_add(float*, int const*, int)"}));
  EXPECT_EQ(old.instructions, (std::vector<std::string>{"0x7ff77e253430 <+6192>:    s_waitcnt vmcnt(0) lgkmcnt(0)"}));
  EXPECT_EQ(old.counters, (std::map<std::string, std::size_t>{{"0x7ff77e253408", 2}, {"0x7ff77e2533fc", 1}}));
  EXPECT_TRUE(old.fault.starts_with("Memory access fault by GPU node-4"));
  EXPECT_TRUE(old.code_object.starts_with("file:///home/user/step"));
  const auto text = agent_text(old);
  EXPECT_TRUE(contains(text, "3 waves stopped: MEMORY_VIOLATION (3); program counters: 0x7ff77e253408 (2), 0x7ff77e2533fc (1)")) << text;
  const auto now = read_debug_agent(*read_file(test::source_directory() / "tests/fuzz/corpus/debug_agent/rocm7"));
  EXPECT_EQ(now.waves, 2u);
  EXPECT_EQ(now.kernels, (std::vector<std::string>{"scatter_add(float*, int const*, int)"}));
  EXPECT_EQ(now.reasons, (std::map<std::string, std::size_t>{{"ASSERT_TRAP", 1}, {"MEMORY_VIOLATION", 1}}));
  EXPECT_TRUE(now.fault.starts_with("OFFLOAD ERROR"));
}

TEST(DebugAgent, WhatItDidNotPrintIsNothing) {
  EXPECT_TRUE(read_debug_agent("").empty());
  EXPECT_TRUE(read_debug_agent("step 3 loss 0.1\nwave_height: 3\n=> 4\n").empty());
  EXPECT_EQ(agent_text(read_debug_agent("x")), "");
}

TEST(DebugAgent, AnyTruncationIsRead) {
  const auto text = *read_file(test::source_directory() / "tests/fuzz/corpus/debug_agent/rocm6");
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_LE(read_debug_agent(std::string_view(text).substr(0, size)).waves, 3u);
}

std::vector<std::string> late(std::string_view script) {
  std::vector<std::string> out;
  for (const auto& one : late_variables(script)) out.push_back(one.name + ":" + std::to_string(one.line));
  return out;
}

TEST(LateVariables, AfterTheImportOnly) {
  EXPECT_EQ(late("import os\nos.environ['HIP_VISIBLE_DEVICES'] = '0'\nimport torch\nos.environ[\"HSA_ENABLE_SDMA\"] = '0'\n"),
            (std::vector<std::string>{"HSA_ENABLE_SDMA:4"}));
  EXPECT_EQ(late("from lerobot.policies import x\nimport os\nos.environ.setdefault('PYTORCH_HIP_ALLOC_CONF', 'a:b')\n"),
            (std::vector<std::string>{"PYTORCH_HIP_ALLOC_CONF:3"}));
  EXPECT_EQ(late("import os, torch as t\nos.environ.update({'NCCL_DEBUG': 'INFO', 'X': "
                 "'1'})\nos.environ.update(OMP_NUM_THREADS='1')\nos.putenv('MIOPEN_LOG_LEVEL', '6')\n"),
            (std::vector<std::string>{"NCCL_DEBUG:2", "OMP_NUM_THREADS:3", "MIOPEN_LOG_LEVEL:4"}));
}

TEST(LateVariables, WhatIsNoAssignmentOrNoSuchVariableIsNone) {
  EXPECT_TRUE(late("import torch\nx = os.environ['HIP_VISIBLE_DEVICES']\n").empty());
  EXPECT_TRUE(late("import torch\nif os.environ['HSA_XNACK'] == '1': pass\n").empty());
  EXPECT_TRUE(late("import torch\n# os.environ['HSA_XNACK'] = '1'\n").empty());
  EXPECT_TRUE(late("import torch\n'''\nos.environ['HSA_XNACK'] = '1'\n'''\n").empty());
  EXPECT_TRUE(late("import torch\nos.environ['WANDB_MODE'] = 'offline'\n").empty());
  EXPECT_TRUE(late("import torchmetrics_like\nos.environ['HSA_XNACK'] = '1'\n").empty());
  EXPECT_TRUE(late("os.environ['HSA_XNACK'] = '1'\n").empty());
}

TEST(LateVariables, AnyTruncationIsRead) {
  const std::string script = "import torch\n\"\"\"doc\"\"\"\nos.environ.update({'NCCL_DEBUG': 'INFO'})\nos.environ['HSA_XNACK']='1' # x\n";
  EXPECT_EQ(late(script).size(), 2u);
  for (std::size_t size = 0; size < script.size(); ++size) EXPECT_LE(late(std::string_view(script).substr(0, size)).size(), 2u);
}

}  // namespace
}  // namespace ff::compute
