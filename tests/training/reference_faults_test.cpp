// The built-in workload with mistakes made on purpose: each found at its check, named with its cause; none without.
#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"

namespace ff::training {
namespace {

struct Kind {
  const char* fault;
  const char* told;
  bool resume = false;
};

constexpr Kind kinds[] = {
    {"nan-sample", "step.loss-finite training.loss-nonfinite"},
    {"learning-rate-high", "step.gradient training.gradient-explosion"},
    {"learning-rate-zero", "step.learning-rate training.learning-rate"},
    {"loss-detached", "step.gradient training.gradient-zero"},
    {"group-forgotten", "step.parameters-move training.gradient-zero"},
    {"frozen-moves", "step.frozen-still training.configuration"},
    {"seed-ignored", "step.reproducible precision.nondeterministic"},
    {"images-not-scaled", "step.inputs-range model.normalization-missing"},
    {"target-leaked", "step.loss-plausible training.configuration"},
    {"memory-grows", "step.memory-growth memory.leak"},
    {"loader-slow", "step.loading training.data-bound"},
    {"tail-slow", "step.tail performance.tail-latency"},
    {"schedule-short", "step.schedule training.learning-rate"},
    {"dies", "step.runs training.killed"},
    {"save-no-optimizer", "resume.state-complete training.resume-state-missing", true},
    {"save-no-scheduler", "resume.state-complete training.resume-state-missing", true},
    {"save-no-random", "resume.state-complete training.resume-state-missing", true},
    {"save-no-sampler", "resume.state-complete training.resume-state-missing", true},
    {"save-no-step", "resume.state-complete training.resume-state-missing", true},
    {"save-truncated", "resume.checkpoint-whole training.checkpoint-write-failed", true},
    {"save-old-weights", "resume.continues training.resume-state-missing", true},
    {"restore-no-optimizer", "resume.continues training.resume-state-missing", true},
    {"restore-no-scheduler", "resume.rate-continues training.resume-state-missing", true},
    {"restore-no-random", "resume.continues training.resume-state-missing", true},
    {"restore-no-sampler", "resume.continues training.resume-state-missing", true},
    {"restore-step-zero", "resume.step-continues training.resume-reset", true},
};

/// The rung where the fault belongs; for faults of saving the files of a run that was made with it.
testing::Verdict climb(const std::string& fault, unsigned seed, bool resume) {
  CheckInputs inputs;
  inputs.workload = "reference";
  inputs.workload_command = {"fault=" + fault, "seed=" + std::to_string(seed), "steps=60"};
  return testing::run_checks(inputs, nullptr, !resume, resume);
}

void PrintTo(const Kind& v, std::ostream* out) { *out << v.fault; }

class ReferenceFaults : public ::testing::TestWithParam<Kind> {};

TEST_P(ReferenceFaults, IsFoundWithItsCauseForEverySeed) {
  const Kind& kind = GetParam();
  for (unsigned seed = 1; seed <= testing::seeds(); ++seed) {
    const auto verdict = climb(kind.fault, seed, kind.resume);
    EXPECT_EQ(verdict.told(), kind.told) << kind.fault << ", seed " << seed << (verdict.first() != nullptr ? ": " + verdict.first()->summary : "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceFaults, ::testing::ValuesIn(kinds), [](const ::testing::TestParamInfo<Kind>& kind) {
  std::string name = kind.param.fault;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(ReferenceWorkload, NothingIsFoundWithoutAFault) {
  for (unsigned seed = 1; seed <= testing::seeds(); ++seed)
    for (const bool resume : {false, true}) {
      const auto verdict = climb("none", seed, resume);
      EXPECT_EQ(verdict.first(), nullptr) << "seed " << seed << ": " << verdict.told() << " " << verdict.first()->summary;
    }
}

TEST(ReferenceWorkload, WhatMeansNothingToTheWorkloadIsAnError) {
  CheckInputs inputs;
  inputs.workload = "reference";
  inputs.workload_command = {"fault=unheard-of"};
  const auto verdict = testing::run_checks(inputs, nullptr, true, false);
  ASSERT_NE(verdict.first(), nullptr);
  EXPECT_EQ(verdict.first()->status, Status::error);
}

}  // namespace
}  // namespace ff::training
