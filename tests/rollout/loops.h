#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/file.h"
#include "rollout/checks.h"
#include "rollout/survey.h"

/// What the tests of seeded closed-loop faults share: how many seeds, and how a batch of episodes is judged.
namespace ff::rollout::loops {

/// Seeds a fault is tried with: `quick` in the quick suite, FIRSTFAULT_SEEDS=20 in the long one.
inline int seeds(int quick) {
  const char* asked = std::getenv("FIRSTFAULT_SEEDS");
  return asked == nullptr ? quick : std::max(1, std::atoi(asked));
}

/// The survey of these episodes; `name` is the file's under $FIRSTFAULT_KEEP, where it stays for a closer look.
inline std::shared_ptr<const Survey> judge(const std::string& episodes, std::string_view name) {
  const auto directory = TemporaryDirectory::make();
  EXPECT_TRUE(directory);
  const auto path = (directory->path() / "episodes.jsonl").string();
  EXPECT_TRUE(write_file(path, episodes));
  if (const char* keep = std::getenv("FIRSTFAULT_KEEP")) {
    EXPECT_TRUE(write_file(std::string(keep) + "/" + std::string(name) + ".jsonl", episodes));
  }
  SurveyOptions options;
  options.paths = {path};
  const auto out = survey(options);
  EXPECT_TRUE(out) << out.error().to_string();
  return out ? *out : std::make_shared<Survey>();
}

inline const Finding* likeliest(const Survey& s) {
  const Finding* best = nullptr;
  for (const auto& f : s.findings)
    if (f.check != "episode.stage" && f.check.starts_with("episode.") && (best == nullptr || f.score > best->score)) best = &f;
  return best;
}

/// What the first check that does not hold says first; null when all hold.
inline const Finding* first_fault(const Survey& s) {
  for (const auto& check : episode_file_checks()) {
    const Finding* first = nullptr;
    for (const auto& f : s.findings)
      if (f.check == check.id && f.fails && (first == nullptr || f.score > first->score)) first = &f;
    if (first != nullptr) return first;
  }
  return nullptr;
}

/// The likeliest source is the fault's. Where episodes fail, the failed stage names its cause, and the first check that fails is the fault's own:
/// what follows from a fault must not come before it.
inline void expect_told(const Survey& s, std::string_view source, std::string_view cause) {
  const auto* f = likeliest(s);
  if (f == nullptr) {
    ADD_FAILURE() << "nothing found with " << s.successes() << " successes";
    return;
  }
  EXPECT_EQ(f->source, source) << f->summary;
  EXPECT_EQ(f->cause, cause);
  EXPECT_FALSE(f->evidence.empty()) << "a fault must show the fields it was seen in";
  if (!s.fails()) return;
  const auto stage = std::ranges::find(s.findings, "episode.stage", &Finding::check);
  ASSERT_NE(stage, s.findings.end());
  EXPECT_EQ(stage->cause, cause) << "the stage's likely source is the fault's";
  const auto* first = first_fault(s);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->source, source) << "the first fault is " << first->check << ": " << first->summary;
  EXPECT_EQ(first->cause, cause);
}

}  // namespace ff::rollout::loops
