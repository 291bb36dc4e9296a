// Commands with their answers, and the short series of measurements that such transcripts hold.
#include "diagnosis/answers.h"

#include <gtest/gtest.h>

#include <string>

#include "diagnosis/extract.h"

namespace ff::diagnosis {
namespace {

TEST(Answers, EachCommandStandsWithWhatItPrinted) {
  const Unwrapped u = answers("$ uname -r\n6.8.0-45-generic\n$ lsmod | grep amdgpu\n$ ls /lib/modules\n6.8.0-41-generic\n6.8.0-45-generic\n");
  EXPECT_EQ(u.text, "uname -r => 6.8.0-45-generic\nlsmod | grep amdgpu => (nothing)\nls /lib/modules => 6.8.0-41-generic ; 6.8.0-45-generic");
  EXPECT_EQ(u.line_numbers, (std::vector<std::uint64_t>{1, 3, 4}));
}

TEST(Answers, TheLastCommandMayHaveBeenCut) { EXPECT_EQ(answers("$ uname -r\n6.8.0\n$ dmesg\n").text, "uname -r => 6.8.0"); }

TEST(Answers, PythonSessionsAreRead) {
  EXPECT_EQ(answers(">>> import torch\n>>> torch.cuda.is_available()\nFalse\n").text, "torch.cuda.is_available() => False");
  EXPECT_EQ(answers("In [1]: 1 + 1\nOut[1]: 2\n\nIn [2]: x\n").text, "1 + 1 => 2");
}

TEST(Answers, LongAnswersAndPlainTextAreLeftAlone) {
  std::string many = "$ dmesg\n";
  for (int i = 0; i < 20; ++i) many += "line\n";
  EXPECT_TRUE(answers(many).text.empty());
  EXPECT_TRUE(answers("the committee met\nand failed\n").text.empty());
  EXPECT_TRUE(answers("").text.empty());
  EXPECT_TRUE(answers("In [").text.empty());
}

const facts::NamedFact* find(const std::vector<facts::NamedFact>& all, std::string_view name) {
  for (const auto& f : all)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<facts::NamedFact> facts_of(std::string_view text) {
  std::vector<facts::NamedFact> out;
  extract_all(text, "t.txt", out);
  return out;
}

double number(const facts::NamedFact* f) { return f == nullptr ? -1 : f->value.as_real(-1); }

TEST(ExtractSeries, FirstOfEqualCallsOverTheOthers) {
  EXPECT_NEAR(number(find(facts_of("image 1: 200 s\nimage 2: 4 s\nimage 3: 4 s\n"), "series.first_ratio")), 50, 0.1);
  EXPECT_EQ(find(facts_of("image 1: 200 s\nimage 2: 4 s\n"), "series.first_ratio"), nullptr);
}

TEST(ExtractSeries, TailOverMedian) {
  EXPECT_NEAR(number(find(facts_of("latency ms: p50 10 p90 11 p99 12 p99.9 400\n"), "series.tail_ratio")), 40, 0.1);
  EXPECT_EQ(find(facts_of("p99 12 ms\n"), "series.tail_ratio"), nullptr);
}

TEST(ExtractSeries, MemoryThatOnlyGrows) {
  const char* grows = "step 1 mem 6.0 GiB\nstep 2 mem 7.0 GiB\nstep 3 mem 8.0 GiB\nstep 4 mem 9.0 GiB\n";
  EXPECT_NEAR(number(find(facts_of(grows), "series.memory_growth")), 1.5, 0.01);
  const char* level = "step 1 mem 6.0 GiB\nstep 2 mem 7.0 GiB\nstep 3 mem 6.5 GiB\nstep 4 mem 9.0 GiB\n";
  EXPECT_EQ(find(facts_of(level), "series.memory_growth"), nullptr);
}

TEST(ExtractSeries, ChecksumsOfALoop) {
  const auto differ = facts_of("$ for i in 1 2; do ./run | md5sum; done\na1b2c3d4e5f60718  -\na1b2c3d4e5f60719  -\n");
  ASSERT_NE(find(differ, "series.runs_differ"), nullptr);
  EXPECT_TRUE(find(differ, "series.runs_differ")->value.as_bool());
  const auto equal = facts_of("$ for i in 1 2; do ./run | md5sum; done\na1b2c3d4e5f60718  -\na1b2c3d4e5f60718  -\n");
  ASSERT_NE(find(equal, "series.runs_differ"), nullptr);
  EXPECT_FALSE(find(equal, "series.runs_differ")->value.as_bool(true));
}

}  // namespace
}  // namespace ff::diagnosis
