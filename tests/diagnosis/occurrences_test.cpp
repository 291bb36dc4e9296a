// A line can show a signal several times, with other fields each time: each is an occurrence, the line counts once.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diagnosis/explain.h"
#include "diagnosis/scanner.h"

namespace ff::diagnosis {
namespace {

std::vector<std::string> parameters(const std::string& text) {
  auto scanner = Scanner::make(knowledge::Knowledge::built_in());
  EXPECT_TRUE(scanner);
  scanner->begin("boot.txt", knowledge::kind_text);
  scanner->feed(text);
  const Evidence evidence = scanner->take();
  std::vector<std::string> out;
  if (auto it = evidence.signals.find("boot.parameter"); it != evidence.signals.end())
    for (const Occurrence& o : it->second.occurrences) out.push_back(*o.field("parameter") + "=" + *o.field("value"));
  return out;
}

using Names = std::vector<std::string>;

TEST(Occurrences, EveryWordOfAListIsOne) {
  EXPECT_EQ(parameters("options amdgpu noretry=0 sched_policy=2\n"), (Names{"noretry=0", "sched_policy=2"}));
  EXPECT_EQ(parameters("options amdgpu  a=1\tb=2 c=3\noptions i915 modeset=1\n"), (Names{"a=1", "b=2", "c=3"}));
}

TEST(Occurrences, SeveralPlacesOfALineAreSeveral) {
  EXPECT_EQ(parameters("root=/dev/sda1 amdgpu.gttsize=4096 quiet amdgpu.dpm=0 i915.modeset=1\n"), (Names{"gttsize=4096", "dpm=0"}));
  EXPECT_EQ(parameters("amdgpu.dpm=0 amdgpu.dpm=0\n"), Names{"dpm=0"}) << "the same fields say nothing new";
}

TEST(Occurrences, ALineCountsOnce) {
  auto scanner = Scanner::make(knowledge::Knowledge::built_in());
  ASSERT_TRUE(scanner);
  scanner->begin("boot.txt", knowledge::kind_text);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "options amdgpu noretry=0 sched_policy=2\n";
  scanner->feed(text);
  const Evidence evidence = scanner->take();
  const auto it = evidence.signals.find("boot.parameter");
  ASSERT_NE(it, evidence.signals.end());
  EXPECT_EQ(it->second.count, 100u);
  EXPECT_EQ(it->second.occurrences.size(), max_occurrences);
}

TEST(Occurrences, ALineOfManyIsBounded) {
  std::string text = "options amdgpu";
  for (int i = 0; i < 500; ++i) text += " p" + std::to_string(i) + "=1";
  EXPECT_LE(parameters(text + "\n").size(), 33u);
}

TEST(Occurrences, ARuleReadsEachOfThem) {
  const std::string dmesg = "[   91.100000] amdgpu: HWS hang detected, resetting GPU\n[   91.200000] amdgpu: qcm fence wait loop timeout expired\n";
  const auto judged = [&](const std::string& options) {
    auto e = explain_texts({{"modprobe.conf", options}, {"dmesg.txt", dmesg}}, knowledge::Knowledge::built_in());
    EXPECT_TRUE(e);
    for (const Diagnosis& d : e->judgement.diagnoses)
      if (d.cause == "driver.module-parameter") return true;
    return false;
  };
  EXPECT_TRUE(judged("options amdgpu gttsize=4096 sched_policy=2\n"));
  EXPECT_FALSE(judged("options amdgpu gttsize=4096 audio=0\n"));
}

}  // namespace
}  // namespace ff::diagnosis
