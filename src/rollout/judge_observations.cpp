// Are observations alive and in time? Pictures and states that stand still, come late or are black.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/observed.h"

namespace ff::rollout {
namespace {

class Judge : ActionJudge {
 public:
  Judge(Survey& s, const Observed& o) : ActionJudge(s), o_(o) {}

  void run() {
    state();
    for (const auto& [key, seen] : o_.cameras) alive(key, seen);
  }

 private:
  void add(const char* source, const char* cause, double score, std::string summary, std::vector<Evidence> evidence,
           Value measured = Value::object()) {
    s_.findings.push_back({"episode.observations-alive", source, cause, score, true, std::move(summary), std::move(measured), std::move(evidence)});
  }

  void state() {
    if (o_.state_frames < few) return;
    if (o_.state_pairs >= few && o_.state_same > 0.9 * o_.state_pairs && o_.state_changes < 0.05 * o_.state_frames)
      return add("observation-frozen", "closed-loop.observation-mismatch", 0.92, "the state that the policy sees stands still while the tool moves",
                 {{"state", 0, fmt::format("unchanged in {:.0f} of {:.0f} steps in which the tool moved", o_.state_same, o_.state_pairs)}});
    std::size_t best = 0;
    for (std::size_t lag = 1; lag <= max_lag; ++lag)
      if (o_.state_error[lag].n >= few && o_.state_error[lag].mean() < o_.state_error[best].mean()) best = lag;
    if (best == 0 || o_.state_error[0].n < few || o_.state_error[0].mean() < 0.002 || o_.state_error[best].mean() > 0.3 * o_.state_error[0].mean())
      return;
    add("observation-late", "closed-loop.control-rate", 0.93,
        fmt::format("the state that the policy sees is {} step{} old", best, best == 1 ? "" : "s"),
        {{"state, tool", 0,
          fmt::format("distance to the tool now {:.4f} m, to where it was {} steps before {:.4f} m", o_.state_error[0].mean(), best,
                      o_.state_error[best].mean())}},
        Value::object({{"delay_steps", static_cast<unsigned long>(best)}}));
  }

  void alive(const std::string& key, const Seen& seen) {
    if (seen.frames < few) return;
    const auto mean = seen.sum.mean(), deviation = seen.sum.std();
    if (!mean.empty() && !deviation.empty() && std::ranges::max(mean) < 0.02 && std::ranges::max(deviation) < 0.02)
      return add("camera-black", "render.backend-differs", 0.95, fmt::format("the pictures of camera {} are black", key),
                 {{"cameras." + key, 0, fmt::format("mean {:.3f}, standard deviation {:.3f}", std::ranges::max(mean), std::ranges::max(deviation))}});
    // Late pictures stand still while the tool moves, and change afterwards.
    if (seen.pairs >= few && seen.same > 0.95 * seen.pairs && seen.changes < 0.05 * seen.frames)
      return add("observation-frozen", "closed-loop.observation-mismatch", 0.95,
                 fmt::format("camera {} is frozen: the picture does not change while the tool moves", key),
                 {{"cameras." + key, 0, fmt::format("the same picture in {:.0f} of {:.0f} steps in which the tool moved", seen.same, seen.pairs)}});
    if (late(key, seen)) return;
    if (seen.pairs >= few && seen.same > 0.3 * seen.pairs) {
      add("observation-held", "closed-loop.control-rate", 0.8,
          fmt::format("camera {} gives a new picture only in {:.0f} % of the steps in which the tool moves", key, 100 * (1 - seen.same / seen.pairs)),
          {{"cameras." + key, 0, fmt::format("the same picture in {:.0f} of {:.0f} steps", seen.same, seen.pairs)}});
      s_.findings.back().by_motion = true;  // a slow tool does not change a small picture either
    }
  }

  bool late(const std::string& key, const Seen& seen) {
    const double period = period_s();
    if (seen.late_n >= few && period > 0 && seen.late_sum / seen.late_n > 1.5 * period) {
      const double age = seen.late_sum / seen.late_n;
      add("observation-late", "closed-loop.control-rate", 0.95,
          fmt::format("the picture of camera {} is {:.2f} s old when the policy gets it ({:.1f} steps)", key, age, age / period),
          {{"cameras." + key + ".t", 0, fmt::format("{:.3f} s before the frame's t on average", age)}}, Value::object({{"age_s", age}}));
      return true;
    }
    // A buffer of old pictures begins with the first one several times.
    if (seen.first_run.size() >= 3) {
      const double run = median(seen.first_run);
      double equal = 0;
      for (const double r : seen.first_run) equal += r == run ? 1 : 0;
      if (run >= 2 && equal >= 0.7 * static_cast<double>(seen.first_run.size()) && seen.same < 0.5 * seen.pairs) {
        add("observation-late", "closed-loop.control-rate", 0.9,
            fmt::format(
                "the picture of camera {} is {:.0f} steps old: in each episode it stands still for the first {:.0f} steps while the tool moves", key,
                run, run),
            {{"cameras." + key + ".hash", 0,
              fmt::format("unchanged for the first {:.0f} steps in {:.0f} of {} episodes", run, equal, seen.first_run.size())}},
            Value::object({{"delay_steps", run}}));
        return true;
      }
    }
    // The picture changes when the tool moves; with old pictures it changes later.
    std::size_t best = 0;
    for (std::size_t lag = 1; lag <= max_lag; ++lag)
      if (seen.change[lag].n >= 100 && seen.change[lag].r() > seen.change[best].r()) best = lag;
    if (best >= 2 && seen.change[best].r() > 0.5 && seen.change[best].r() > seen.change[0].r() + 0.25 &&
        seen.change[best].r() > seen.change[1].r() + 0.15) {
      add("observation-late", "closed-loop.control-rate", 0.8, fmt::format("the picture of camera {} follows the tool {} steps late", key, best),
          {{"cameras." + key, 0,
            fmt::format("correlation of the picture's change with the tool's motion: {:.2f} at once, {:.2f} after {} steps", seen.change[0].r(),
                        seen.change[best].r(), best)}},
          Value::object({{"delay_steps", static_cast<unsigned long>(best)}}));
      return true;
    }
    return false;
  }

  [[nodiscard]] double period_s() const {
    for (const auto& j : s_.episodes)
      if (j.episode.header.fps > 0) return 1 / j.episode.header.fps;
    return 0;
  }

  const Observed& o_;
};

}  // namespace

void judge_observations(Survey& survey) {
  const Observed observed = observe(survey);
  Judge(survey, observed).run();
  judge_match(survey, observed);
}

}  // namespace ff::rollout
