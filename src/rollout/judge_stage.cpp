// Where do the episodes fail, and which of the findings explains it?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/judge.h"
#include "rollout/linear.h"

namespace ff::rollout {
namespace {

/// What an undertrained policy and nothing else looks like is said last.
constexpr const char* undertrained = "closed-loop.undertrained";

/// Failed episodes that reach every stage of the task that can be seen, place or release among them: then the test of
/// success is in question, and not the policy.
void tell_of_success_test(Survey& s, const std::array<StageCount, stage_count>& counts, std::int64_t failed) {
  constexpr std::int64_t least = 3;
  std::int64_t through = 0, say_success = 0;
  std::vector<Evidence> evidence;
  for (const auto& j : s.episodes) {
    if (j.outcome.success) continue;
    bool all = true, ends = false;
    for (std::size_t i = 0; i < stage_count; ++i) {
      const auto& r = j.stages.stages[i];
      if (r.reached == Reached::not_observable || !counts[i].in_task) continue;
      all = all && r.reached == Reached::yes;
      ends = ends || ((all_stages[i] == Stage::place || all_stages[i] == Stage::release) && r.reached == Reached::yes);
    }
    if (!all || !ends) continue;
    ++through;
    const bool said = std::ranges::any_of(j.episode.frames, [](const Frame& f) { return f.success.value_or(false); });
    say_success += said ? 1 : 0;
    if (evidence.size() < 5)
      evidence.push_back(
          {j.episode.file, j.episode.line,
           fmt::format("episode {}: goes through every stage{}, and ends as a failure", j.outcome.index, said ? ", says success in a frame" : "")});
  }
  if (through < least || through * 2 < failed) return;
  Finding f{"episode.stage",
            "success-test",
            "training.configuration",
            0.7,
            true,
            fmt::format("{} of {} failed episodes go through every stage of the task: what counts as success is in question, not the policy", through,
                        failed)};
  if (say_success > 0) f.summary += fmt::format("; in {} of them a frame says success and the closing line does not", say_success);
  f.measured = Value::object({{"through_every_stage", static_cast<long long>(through)},
                              {"failed", static_cast<long long>(failed)},
                              {"frame_says_success", static_cast<long long>(say_success)}});
  f.evidence = std::move(evidence);
  s.findings.push_back(std::move(f));
}

void tell(Survey& s, const std::array<StageCount, stage_count>& counts) {
  std::size_t worst = 0;
  std::int64_t stuck = 0;
  for (std::size_t i = 0; i < stage_count; ++i) {
    stuck += counts[i].first_missing;
    if (counts[i].first_missing > counts[worst].first_missing) worst = i;
  }
  const std::int64_t failed = std::ranges::count_if(s.episodes, [](const auto& j) { return !j.outcome.success; });
  tell_of_success_test(s, counts, failed);
  if (stuck == 0 || (!s.findings.empty() && s.findings.back().source == "success-test")) return;
  const Stage stage = all_stages[worst];
  Finding f{"episode.stage", std::string(stage_name(stage)),
            undertrained,    0.3,
            s.fails(),       fmt::format("{} of {} failed episodes get stuck at {}", counts[worst].first_missing, failed, stage_name(stage))};
  Value funnel = Value::object();
  for (std::size_t i = 0; i < stage_count; ++i)
    if (counts[i].seen > 0 && counts[i].in_task)
      funnel.set(stage_name(all_stages[i]), Value::object({{"seen", static_cast<long long>(counts[i].seen)},
                                                           {"reached", static_cast<long long>(counts[i].reached)},
                                                           {"first_missing", static_cast<long long>(counts[i].first_missing)}}));
  f.measured = Value::object({{"stage", std::string(stage_name(stage))}, {"stages", std::move(funnel)}});
  std::size_t shown = 0;
  for (const auto& j : s.episodes) {
    if (j.outcome.success || j.stages.first_missing != stage || ++shown > 5) continue;
    f.evidence.push_back({j.episode.file, j.episode.line, fmt::format("episode {}: {}", j.outcome.index, j.stages[stage].detail)});
  }
  // The likeliest sources first.
  std::vector<const Finding*> sources;
  for (const auto& other : s.findings)
    if (other.check.starts_with("episode.") && other.fails) sources.push_back(&other);
  std::stable_sort(sources.begin(), sources.end(), [](const Finding* a, const Finding* b) { return a->score > b->score; });
  Value likely = Value::list();
  std::vector<std::string> words;
  for (const auto* other : sources) {
    likely.push(Value::object({{"source", other->source}, {"cause", other->cause}, {"score", other->score}, {"check", other->check}}));
    words.push_back(other->source);
  }
  f.measured.set("likely_sources", std::move(likely));
  if (!sources.empty()) {
    f.cause = sources.front()->cause;
    f.score = sources.front()->score;
    f.summary += "; likely source: " + list(words, 3);
    f.evidence.insert(f.evidence.begin(), {sources.front()->check, 0, sources.front()->summary});
  } else {
    f.summary += "; nothing is seen to be wrong in the chain from observation to environment";
    // Only what was written was looked at.
    std::vector<std::string> fields;
    for (const auto& u : s.unanswered)
      if (u.source != "stage" && std::ranges::find(fields, u.field) == fields.end()) fields.push_back(u.field);
    if (!fields.empty()) f.summary += ", as far as it was written: " + list(fields, 4) + " would tell more (episode.recorded)";
  }
  s.findings.push_back(std::move(f));
}

/// What only the tool's motion tells of is no fault beside a surer one, which may have made the tool move so.
void yield(Survey& s) {
  const Finding* surest = nullptr;
  for (const auto& f : s.findings)
    if (f.check.starts_with("episode.") && f.fails && !f.by_motion && (surest == nullptr || f.score > surest->score)) surest = &f;
  if (surest == nullptr) return;
  for (auto& f : s.findings) {
    if (!f.by_motion || !f.fails || f.score > surest->score) continue;
    f.fails = false;
    f.summary += "; this may follow from " + surest->source;
  }
}

}  // namespace

std::array<StageCount, stage_count> count_stages(const Survey& s) {
  std::array<StageCount, stage_count> out;
  std::array<std::int64_t, stage_count> good{}, good_reached{};
  std::array<std::vector<double>, stage_count> steps;
  for (const auto& j : s.episodes)
    for (std::size_t i = 0; i < stage_count; ++i) {
      const auto& r = j.stages.stages[i];
      if (r.reached == Reached::not_observable || !j.outcome.success) continue;
      ++good[i];
      good_reached[i] += r.reached == Reached::yes ? 1 : 0;
    }
  // One or two successes that lack what most episodes reach may be told wrong themselves.
  std::array<std::int64_t, stage_count> any{}, any_reached{};
  for (const auto& j : s.episodes)
    for (std::size_t i = 0; i < stage_count; ++i) {
      const auto& r = j.stages.stages[i];
      any[i] += r.reached != Reached::not_observable ? 1 : 0;
      any_reached[i] += r.reached == Reached::yes ? 1 : 0;
    }
  for (std::size_t i = 0; i < stage_count; ++i)
    out[i].in_task = good[i] == 0 || good_reached[i] * 2 >= good[i] || (good[i] < 3 && any_reached[i] * 2 > any[i]);
  for (const auto& j : s.episodes) {
    bool first = true;
    for (std::size_t i = 0; i < stage_count; ++i) {
      const auto& r = j.stages.stages[i];
      if (r.reached == Reached::not_observable) continue;
      ++out[i].seen;
      if (r.reached == Reached::yes) {
        ++out[i].reached;
        steps[i].push_back(static_cast<double>(r.step));
      } else if (first && out[i].in_task && !j.outcome.success) {
        ++out[i].first_missing;
        first = false;
      }
    }
  }
  for (std::size_t i = 0; i < stage_count; ++i) out[i].median_step = median(steps[i]);
  return out;
}

void judge_stage(Survey& survey) {
  // A difference that does no harm is a remark: the batch succeeds.
  if (!survey.fails())
    for (auto& f : survey.findings)
      if (f.check.starts_with("episode.")) f.fails = false;
  yield(survey);
  tell(survey, count_stages(survey));
}

}  // namespace ff::rollout
