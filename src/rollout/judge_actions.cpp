// Are the actions alive, and do they come through unchanged from the network to the environment?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/judge.h"
#include "rollout/linear.h"

namespace ff::rollout {
namespace {

struct Column {
  Moments sent, raw, normalized;
  double steps = 0, step_squares = 0, spread = 0;  ///< within episodes: differences to the action before; squares about the episode's mean
  double at_low = 0, at_high = 0;                  ///< exactly at its own smallest or largest
  double cut = 0;                                  ///< the raw value lies beyond what was sent, which is at its extreme
  double beyond_one = 0;                           ///< of the raw values (else sent)
};

class Judge : ActionJudge {
 public:
  explicit Judge(Survey& s) : ActionJudge(s) {}

  void run() {
    if (action_.dimensions == 0) return;
    measure();
    const bool dead = alive();
    if (!dead) {
      if (!relative() && !normalized_sent()) {
        traced();
        normalisation();
      }
      bounds();
    }
  }

 private:
  [[nodiscard]] std::string name(std::size_t d) const { return action_.name(d); }

  void measure() {
    columns_.resize(action_.dimensions);
    each_frame(s_, [&](const Judged& j, std::size_t i) {
      const Frame& f = j.episode.frames[i];
      for (std::size_t d = 0; d < columns_.size(); ++d) {
        auto& c = columns_[d];
        if (d < f.sent.size()) c.sent.add(f.sent[d]);
        if (d < f.raw.size()) c.raw.add(f.raw[d]);
        if (d < f.normalized.size()) c.normalized.add(f.normalized[d]);
      }
    });
    for (const auto& j : s_.episodes) wander(j.episode);
    each_frame(s_, [&](const Judged& j, std::size_t i) {
      const Frame& f = j.episode.frames[i];
      for (std::size_t d = 0; d < columns_.size() && d < f.sent.size(); ++d) {
        auto& c = columns_[d];
        const bool low = f.sent[d] == c.sent.min, high = f.sent[d] == c.sent.max;
        c.at_low += low ? 1 : 0;
        c.at_high += high ? 1 : 0;
        if (d < f.raw.size() && ((high && f.raw[d] > f.sent[d] + tiny(c)) || (low && f.raw[d] < f.sent[d] - tiny(c)))) c.cut += 1;
        const double value = d < f.raw.size() ? f.raw[d] : f.sent[d];
        c.beyond_one += std::abs(value) > 1 ? 1 : 0;
      }
    });
  }

  void wander(const Episode& e) {
    for (std::size_t d = 0; d < columns_.size(); ++d) {
      Moments all;
      double before = missing;
      for (const auto& f : e.frames) {
        const Numbers& own = outgoing(f);
        if (d >= own.size()) continue;
        all.add(own[d]);
        if (std::isfinite(before) && std::isfinite(own[d])) {
          columns_[d].step_squares += (own[d] - before) * (own[d] - before);
          columns_[d].steps += 1;
        }
        before = own[d];
      }
      columns_[d].spread += all.squares;
    }
  }

  static double tiny(const Column& c) { return 1e-6 + 1e-4 * (c.sent.max - c.sent.min); }

  /// The network's own number, else what was sent.
  static const Numbers& outgoing(const Frame& f) { return !f.normalized.empty() ? f.normalized : !f.raw.empty() ? f.raw : f.sent; }
  [[nodiscard]] const Moments& outgoing(const Column& c) const { return c.normalized.n > 0 ? c.normalized : c.raw.n > 0 ? c.raw : c.sent; }

  /// True when the actions say nothing, so that nothing else need be asked.
  bool alive() {
    for (const auto& j : s_.episodes)
      if (j.episode.header.from_scratch) {
        Finding f{"episode.actions-alive",
                  "random-weights",
                  "model.not-loaded",
                  0.97,
                  true,
                  "the policy ran on random weights: the header says \"from_scratch\": true"};
        f.evidence.push_back({j.episode.file, j.episode.line, "policy.from_scratch is true"});
        s_.findings.push_back(std::move(f));
        return true;
      }
    double not_finite = 0, n = 0, moving = 0;
    for (const auto& c : columns_) {
      not_finite += c.sent.not_finite + c.raw.not_finite + c.normalized.not_finite;
      n = std::max(n, outgoing(c).n);
      moving += outgoing(c).std() > 1e-5 * std::max(1.0, std::abs(outgoing(c).mean())) ? 1 : 0;
    }
    if (not_finite > 0) {
      Finding f{"episode.actions-alive",
                "nonfinite-actions",
                "model.nonfinite",
                0.95,
                true,
                fmt::format("{:.0f} numbers of the actions are NaN or missing", not_finite),
                Value::object({{"not_finite", not_finite}})};
      show_first_not_finite(f);
      s_.findings.push_back(std::move(f));
      return true;
    }
    if (n < few) return true;
    if (moving == 0) {
      bool zero = true;
      for (const auto& c : columns_) zero = zero && c.sent.min == 0 && c.sent.max == 0;
      Finding f{"episode.actions-alive",
                "constant-actions",
                "model.not-loaded",
                0.95,
                true,
                zero ? fmt::format("every action of {} steps is zero", n) : fmt::format("every action of {} steps is the same", n)};
      f.evidence.push_back({"action", 0, fmt::format("all {} dimensions: smallest equals largest", columns_.size())});
      s_.findings.push_back(std::move(f));
      return true;
    }
    return lost() || barely() || noise();
  }

  /// The policy gives actions that change, and one and the same arrives.
  bool lost() {
    bool gives = false, arrives = false;
    for (const auto& c : columns_) {
      gives = gives || c.raw.std() > 1e-5 * std::max(1.0, std::abs(c.raw.mean()));
      arrives = arrives || c.sent.n < few || c.sent.std() > 1e-9;
    }
    if (!gives || arrives) return false;
    bool zero = true;
    for (const auto& c : columns_) zero = zero && c.sent.min == 0 && c.sent.max == 0;
    Finding f{"episode.actions-alive",
              "constant-actions",
              "closed-loop.action-convention",
              0.96,
              true,
              fmt::format("the policy's actions change, and what is sent is always {}: they are lost between policy and environment",
                          zero ? "zero" : "the same")};
    f.evidence.push_back({"action.raw, action.sent", 0, "raw varies, sent does not"});
    s_.findings.push_back(std::move(f));
    return true;
  }

  void show_first_not_finite(Finding& f) const {
    for (const auto& j : s_.episodes)
      for (const auto& frame : j.episode.frames)
        for (const auto* list : {&frame.normalized, &frame.raw, &frame.sent})
          for (std::size_t d = 0; d < list->size(); ++d)
            if (!std::isfinite((*list)[d])) {
              f.evidence.push_back({j.episode.file, frame.line, fmt::format("action {} at t = {:.3f} s", name(d), frame.t)});
              return;
            }
  }

  /// A policy that hardly listens: its answers vary far less than the actions that it was trained on.
  bool barely() {
    const auto& training = action_.training.action;
    if (training.std.size() < columns_.size()) return false;
    double largest = 0;
    std::size_t judged = 0;
    for (std::size_t d = 0; d < columns_.size(); ++d) {
      const auto& c = columns_[d];
      const bool normalized = c.normalized.n > 0;
      const double usual = normalized ? 1.0 : training.std[d];
      if (!(usual > 1e-9)) continue;
      largest = std::max(largest, (normalized ? c.normalized : c.raw.n > 0 ? c.raw : c.sent).std() / usual);
      ++judged;
    }
    if (judged == 0 || largest > 0.08 || !s_.fails()) return false;
    Finding f{"episode.actions-alive",
              "constant-actions",
              "model.not-loaded",
              0.85,
              true,
              fmt::format("the actions hardly change: no dimension varies by more than {:.1f} % of what it does in the training data", 100 * largest),
              Value::object({{"largest_share_of_training_std", largest}})};
    f.evidence.push_back({"action", 0, fmt::format("largest standard deviation {:.2g} of the training's", largest)});
    s_.findings.push_back(std::move(f));
    return true;
  }

  /// White noise: each action has nothing to do with the one before it. The mean squared step over the variance (von
  /// Neumann's ratio) is 2 for noise and far below 1 for a motion.
  bool noise() {
    double lowest = INFINITY, highest = 0;
    std::size_t judged = 0;
    for (const auto& c : columns_) {
      if (c.steps < 100 || !(c.spread > 1e-12)) continue;
      lowest = std::min(lowest, c.step_squares / c.spread);
      highest = std::max(highest, c.step_squares / c.spread);
      ++judged;
    }
    // A loop that swings between its bounds has 4.
    if (judged < 2 || lowest < 1.8 || highest > 3.5 || !s_.fails()) return false;
    Finding f{
        "episode.actions-alive",
        "random-weights",
        "model.not-loaded",
        0.7,
        true,
        fmt::format("the actions are noise: an action says nothing about the next one (mean squared step {:.1f} times the variance; noise has 2)",
                    lowest),
        Value::object({{"von_neumann_ratio", lowest}})};
    f.evidence.push_back(
        {"action", 0, fmt::format("mean squared step over variance within episodes: {:.2f} at least; a motion is far below 1", lowest)});
    s_.findings.push_back(std::move(f));
    return true;
  }

  // raw -> sent ------------------------------------------------------------------------------------------------------

  /// Is the position of the tool added to (or taken off) the raw action on its way?
  bool relative() {
    if (action_.tool.size() != 3) return false;
    double plus = 0, minus = 0, same = 0, n = 0;
    each_frame(s_, [&](const Judged& j, std::size_t i) {
      const Frame& f = j.episode.frames[i];
      const auto& tool = f.arms[j.stages.arm].tool;
      if (tool.size() < 3) return;
      double added = 0, taken = 0, kept = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        const auto d = action_.tool[k];
        if (d >= f.raw.size() || d >= f.sent.size()) return;
        const double change = f.sent[d] - f.raw[d];
        added = std::max(added, std::abs(change - tool[k]));
        taken = std::max(taken, std::abs(change + tool[k]));
        kept = std::max(kept, std::abs(change));
      }
      n += 1;
      plus += added < 1e-4 ? 1 : 0;
      minus += taken < 1e-4 ? 1 : 0;
      same += kept < 1e-4 ? 1 : 0;
    });
    if (n < few || same > 0.5 * n || std::max(plus, minus) < 0.7 * n) return false;
    Finding f{"episode.actions-traced",
              "delta-absolute",
              "closed-loop.action-convention",
              0.95,
              true,
              plus > minus ? "the tool's position is added to the action on its way: an absolute target is taken for a difference"
                           : "the tool's position is taken off the action on its way, although the policy gives differences"};
    f.evidence.push_back(
        {"action.raw -> action.sent", 0,
         fmt::format("sent less raw is {}the tool's position in {:.0f} of {:.0f} steps", plus > minus ? "" : "minus ", std::max(plus, minus), n)});
    s_.findings.push_back(std::move(f));
    return true;
  }

  /// Is the network's own number sent although an un-normalised one is there?
  bool normalized_sent() {
    double equal = 0, raw_equal = 0, n = 0;
    each_frame(s_, [&](const Judged& j, std::size_t i) {
      const Frame& f = j.episode.frames[i];
      if (f.normalized.size() < columns_.size() || f.raw.size() < columns_.size() || f.sent.size() < columns_.size()) return;
      for (std::size_t d = 0; d < columns_.size(); ++d) {
        n += 1;
        equal += std::abs(f.sent[d] - f.normalized[d]) < 1e-6 ? 1 : 0;
        raw_equal += std::abs(f.sent[d] - f.raw[d]) < 1e-6 ? 1 : 0;
      }
    });
    if (n < few || equal < 0.8 * n || raw_equal > 0.5 * n) return false;
    Finding f{"episode.actions-traced",
              "action-scale",
              "closed-loop.action-scale",
              0.97,
              true,
              "the network's answers are sent as they are, not un-normalised"};
    f.evidence.push_back({"action.normalized, action.sent", 0, fmt::format("equal in {:.0f} of {:.0f} numbers", equal, n)});
    s_.findings.push_back(std::move(f));
    return true;
  }

  /// Is what was sent the raw action of the same step? True when something was found.
  bool traced() {
    const std::size_t n = columns_.size();
    std::vector<Line> lines(n * n);
    std::vector<double> equal(n * n), opposite(n * n), seen(n);
    double frames = 0;
    each_frame(s_, [&](const Judged& j, std::size_t i) {
      const Frame& f = j.episode.frames[i];
      if (f.raw.size() < n || f.sent.size() < n) return;
      frames += 1;
      for (std::size_t to = 0; to < n; ++to) {
        // A cut value says nothing about the rule by which values come through.
        const auto& c = columns_[to];
        if ((f.sent[to] == c.sent.min && c.at_low > 2) || (f.sent[to] == c.sent.max && c.at_high > 2)) continue;
        seen[to] += 1;
        for (std::size_t from = 0; from < n; ++from) {
          lines[to * n + from].add(f.raw[from], f.sent[to]);
          equal[to * n + from] += std::abs(f.raw[from] - f.sent[to]) < tiny(c) ? 1 : 0;
          opposite[to * n + from] += std::abs(f.raw[from] + f.sent[to]) < tiny(c) ? 1 : 0;
        }
      }
    });
    if (frames < few) return false;
    bool found = false;
    std::vector<std::string> swapped, flipped, scaled;
    Value map = Value::list();
    Numbers factors;
    for (std::size_t to = 0; to < n; ++to) {
      if (action_.gripper && *action_.gripper == to) continue;  // judge_gripper
      const Line& own = lines[to * n + to];
      if (own.n < few || own.std_x() < 1e-9) continue;
      // The very same number says more than a correlation: a loop that runs away makes all dimensions alike.
      const auto same = [&](std::size_t from) { return std::max(equal[to * n + from], opposite[to * n + from]) / std::max(1.0, seen[to]); };
      std::size_t best = to;
      for (std::size_t from = 0; from < n; ++from)
        if (from != to && same(from) > 0.9 && same(from) > same(best)) best = from;
      if (best == to && same(to) < 0.9)
        for (std::size_t from = 0; from < n; ++from)
          if (from != to && same(to) < 0.5 && std::abs(lines[to * n + from].r()) > std::abs(lines[to * n + best].r()) + 0.02) best = from;
      const Line& l = lines[to * n + best];
      if (std::abs(l.r()) < 0.97) continue;
      const double slope = l.slope();
      map.push(Value::object({{"sent", name(to)}, {"raw", name(best)}, {"factor", slope}, {"offset", l.intercept()}}));
      if (best != to) {
        swapped.push_back(fmt::format("{} gets the raw {}", name(to), name(best)));
      } else if (slope < 0) {
        flipped.push_back(name(to));
      } else if (std::abs(slope - 1) > 0.03) {
        scaled.push_back(fmt::format("{} by {:.3g}", name(to), slope));
        factors.push_back(slope);
      }
    }
    const auto add = [&](const char* source, const char* cause, double score, std::string summary, const std::vector<std::string>& shown) {
      Finding f{"episode.actions-traced", source, cause, score, true, std::move(summary), Value::object({{"map", map}})};
      for (const auto& line : shown) f.evidence.push_back({"action.raw -> action.sent", 0, line});
      s_.findings.push_back(std::move(f));
      found = true;
    };
    if (swapped.size() >= 2)
      add("axis-order", "closed-loop.action-convention", 0.95,
          "between policy and environment the order of the action's dimensions changes: " + list(swapped), swapped);
    if (!flipped.empty())
      add("action-sign", "closed-loop.action-convention", 0.95,
          fmt::format("between policy and environment the sign of {} turns round", list(flipped)), flipped);
    if (!scaled.empty()) {
      const bool all_alike = std::ranges::max(factors) < 1.1 * std::ranges::min(factors);
      add("action-scale", "closed-loop.action-scale", 0.9,
          all_alike ? fmt::format("between policy and environment the action is multiplied by {:.3g}", median(factors))
                    : "between policy and environment the action's dimensions are multiplied: " + list(scaled),
          scaled);
    }
    return found;
  }

  // normalized -> raw -------------------------------------------------------------------------------------------------

  void normalisation() {
    const auto& training = action_.training.action;
    const std::size_t n = columns_.size();
    if (training.std.size() < n || training.mean.size() < n) return by_range();
    std::vector<Line> lines(n);
    each_frame(s_, [&](const Judged& j, std::size_t i) {
      const Frame& f = j.episode.frames[i];
      const Numbers& to = f.raw.empty() ? f.sent : f.raw;
      if (f.normalized.size() < n || to.size() < n) return;
      for (std::size_t d = 0; d < n; ++d) lines[d].add(f.normalized[d], to[d]);
    });
    if (lines[0].n < few) return by_range();
    std::size_t judged = 0, identity = 0, right = 0, twice = 0;
    std::vector<std::string> shown;
    for (std::size_t d = 0; d < n; ++d) {
      const Line& l = lines[d];
      if (l.std_x() < 1e-9 || std::abs(l.r()) < 0.99) continue;
      const double by_std = training.std[d];
      const double by_range_ = d < training.max.size() && d < training.min.size() ? (training.max[d] - training.min[d]) / 2 : by_std;
      if (std::abs(by_std - 1) < 0.2 || std::abs(by_range_ - 1) < 0.2) continue;  // both readings look alike
      ++judged;
      const double slope = l.slope();
      const auto near = [&](double expected) { return std::abs(slope - expected) < 0.15 * expected; };
      if (near(by_std) || near(by_range_))
        ++right;
      else if (near(1))
        ++identity;
      else if (near(by_std * by_std) || near(by_range_ * by_range_))
        ++twice;
      shown.push_back(fmt::format("{}: factor {:.3g}; the training data's standard deviation is {:.3g}, half its range {:.3g}", name(d), slope,
                                  by_std, by_range_));
    }
    if (judged < 2 || right * 2 >= judged) return;
    const bool none = identity * 2 > judged, double_ = twice * 2 > judged;
    Finding f{"episode.actions-traced",
              "action-scale",
              "closed-loop.action-scale",
              none || double_ ? 0.95 : 0.8,
              true,
              none      ? "the policy's answers reach the environment without being un-normalised"
              : double_ ? "the policy's answers are un-normalised twice"
                        : "the policy's answers are un-normalised with other statistics than those of the training data"};
    for (auto& line : shown) f.evidence.push_back({"action.normalized -> action.raw", 0, std::move(line)});
    s_.findings.push_back(std::move(f));
  }

  /// Without the network's own numbers: do the actions exceed everything that was in the training data?
  void by_range() {
    const auto& training = action_.training.action;
    const std::size_t n = columns_.size();
    if (training.min.size() < n || training.max.size() < n) return;
    Numbers ratios;
    std::vector<std::string> shown;
    for (std::size_t d = 0; d < n; ++d) {
      if (action_.gripper && *action_.gripper == d) continue;
      const auto& c = columns_[d].raw.n > 0 ? columns_[d].raw : columns_[d].sent;
      const double usual = std::max(std::abs(training.min[d]), std::abs(training.max[d]));
      if (!(usual > 1e-9) || c.n < few) continue;
      ratios.push_back(std::max(std::abs(c.min), std::abs(c.max)) / usual);
      shown.push_back(
          fmt::format("{}: {:.3g}..{:.3g}; in the training data {:.3g}..{:.3g}", name(d), c.min, c.max, training.min[d], training.max[d]));
    }
    if (ratios.size() < 2 || std::ranges::min(ratios) < 1.8) return;
    Finding f{"episode.actions-traced",
              "action-scale",
              "closed-loop.action-scale",
              0.7,
              true,
              fmt::format("the actions are {:.3g} times as large as any in the training data", std::ranges::min(ratios))};
    for (auto& line : shown) f.evidence.push_back({"action", 0, std::move(line)});
    s_.findings.push_back(std::move(f));
  }

  // bounds --------------------------------------------------------------------------------------------------------------

  void bounds() {
    const auto& training = action_.training.action;
    std::vector<std::string> shown;
    Value table = Value::list();
    double worst = 0;
    for (std::size_t d = 0; d < columns_.size(); ++d) {
      const auto& c = columns_[d];
      if (c.sent.n < few || c.sent.std() < 1e-9) continue;
      const double saturated = std::max(c.at_low, c.at_high) / c.sent.n, cut = c.cut / c.sent.n;
      table.push(Value::object({{"dimension", name(d)},
                                {"low", c.sent.min},
                                {"high", c.sent.max},
                                {"share_at_low", c.at_low / c.sent.n},
                                {"share_at_high", c.at_high / c.sent.n},
                                {"share_cut", cut},
                                {"share_beyond_one", c.beyond_one / c.sent.n}}));
      if (action_.gripper && *action_.gripper == d) continue;
      const bool training_goes_on = d < training.max.size() && d < training.min.size() &&
                                    ((c.at_high / c.sent.n > 0.03 && training.max[d] > c.sent.max + 0.1 * std::abs(c.sent.max)) ||
                                     (c.at_low / c.sent.n > 0.03 && training.min[d] < c.sent.min - 0.1 * std::abs(c.sent.min)));
      if (cut > 0.03)
        shown.push_back(fmt::format("{}: {:.0f} % of the values are cut at {:.3g} or {:.3g}; the policy gave {:.3g}..{:.3g}", name(d), 100 * cut,
                                    c.sent.min, c.sent.max, c.raw.min, c.raw.max));
      else if (c.raw.n == 0 && training_goes_on && saturated > 0.03)
        shown.push_back(fmt::format("{}: {:.0f} % of the values are exactly {:.3g} or {:.3g}; the training data goes from {:.3g} to {:.3g}", name(d),
                                    100 * saturated, c.sent.min, c.sent.max, training.min[d], training.max[d]));
      else
        continue;
      worst = std::max(worst, std::max(cut, saturated));
    }
    s_.bounds = table;
    if (shown.empty()) return;
    Finding f{"episode.actions-bounds",
              "action-clipped",
              "closed-loop.action-clipped",
              0.85 + std::min(0.1, worst / 5),
              true,
              fmt::format("actions are cut before they reach the environment in {} dimension{}: {}", shown.size(), shown.size() == 1 ? "" : "s",
                          shown.front()),
              Value::object({{"dimensions", table}})};
    for (auto& line : shown) f.evidence.push_back({"action.sent", 0, std::move(line)});
    s_.findings.push_back(std::move(f));
  }

  std::vector<Column> columns_;
};

}  // namespace

void judge_actions(Survey& survey) { Judge(survey).run(); }

}  // namespace ff::rollout
