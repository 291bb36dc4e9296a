// What does an action do to the tool? The action of frame i shows in the motion from frame i to i + 1. A linear map from the
// sent action to the motion tells sign, order, frame and delay; two readings of the action (added to the position, or a target)
// tell delta from absolute.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/judge.h"
#include "rollout/linear.h"

namespace ff::rollout {
namespace {

constexpr std::array<const char*, 3> axes{"x", "y", "z"};
constexpr std::size_t max_lag = 4, early_frames = 12;
using Point = std::array<double, 3>;
using Maps = std::array<LinearMap3, max_lag + 1>;

class Judge : ActionJudge {
 public:
  explicit Judge(Survey& s) : ActionJudge(s) {}

  void run() {
    if (action_.tool.size() != 3) return;
    measure();
    // A loop that runs away ends at a wall, where actions do nothing: the beginnings of the episodes can say more.
    const Maps& delta_maps = better(delta_, delta_early_);
    const Maps& target_maps = better(target_, target_early_);
    const auto best_delta = best(delta_maps), best_target = best(target_maps);
    const auto delta = delta_maps[best_delta].fit(), target = target_maps[best_target].fit();
    if (!delta && !target) return;
    const double as_delta = delta ? delta->explained : 0, as_target = target ? target->explained : 0;
    convention(as_delta, as_target);
    // The reading that explains the motion better is the one whose map is looked at.
    const bool by_target = as_target > as_delta;
    const auto& fit = by_target ? *target : *delta;
    if (fit.explained < 0.5) return;
    map(fit);
    delay(by_target ? target_maps : delta_maps, by_target ? best_target : best_delta);
  }

 private:
  static const Maps& better(const Maps& all, const Maps& early) {
    const auto a = all[best(all)].fit(), b = early[best(early)].fit();
    return b && (!a || b->explained > a->explained + 0.1) ? early : all;
  }

  /// The map that explains most; a longer delay must explain clearly more.
  static std::size_t best(const Maps& maps) {
    std::size_t out = 0;
    double most = -1;
    for (std::size_t lag = 0; lag <= max_lag; ++lag)
      if (const auto fit = maps[lag].fit(); fit && fit->explained > most + (most < 0 ? 0 : 0.1)) {
        most = fit->explained;
        out = lag;
      }
    return out;
  }

  void measure() {
    for (const auto& j : s_.episodes) {
      const auto& frames = j.episode.frames;
      for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
        const auto &a = frames[i].arms[j.stages.arm].tool, &b = frames[i + 1].arms[j.stages.arm].tool;
        if (a.size() < 3 || b.size() < 3) continue;
        const Point motion{b[0] - a[0], b[1] - a[1], b[2] - a[2]};
        for (std::size_t lag = 0; lag <= max_lag && lag <= i; ++lag) {
          const auto& sent = frames[i - lag].sent;
          Point x{}, from{};
          bool whole = true;
          for (std::size_t k = 0; k < 3; ++k) {
            whole = whole && action_.tool[k] < sent.size();
            if (!whole) break;
            x[k] = sent[action_.tool[k]];
            from[k] = x[k] - a[k];
          }
          if (!whole) continue;
          delta_[lag].add(x, motion);
          target_[lag].add(from, motion);
          if (i < early_frames) {
            delta_early_[lag].add(x, motion);
            target_early_[lag].add(from, motion);
          }
          if (lag == 0)
            for (std::size_t k = 0; k < 3; ++k) follows_[k].add(a[k], x[k]);
        }
      }
    }
  }

  void convention(double as_delta, double as_target) {
    const Value measured = Value::object({{"explained_as_delta", as_delta}, {"explained_as_target", as_target}, {"declared", action_.convention}});
    const auto& trained = action_.training.convention;
    if (!trained.empty() && !action_.convention.empty() && trained != action_.convention) {
      Finding f{"episode.action-effect",
                "delta-absolute",
                "closed-loop.action-convention",
                0.95,
                true,
                fmt::format("the policy was trained on {} actions, and the environment takes {} ones", words(trained), words(action_.convention)),
                measured};
      f.evidence.push_back({"header", 0, fmt::format("training.convention is \"{}\", action.convention is \"{}\"", trained, action_.convention)});
      s_.findings.push_back(std::move(f));
      return;
    }
    const bool moves_as_delta = as_delta > 0.7 && as_delta > as_target + 0.2, moves_as_target = as_target > 0.7 && as_target > as_delta + 0.2;
    if ((action_.convention == "absolute" && moves_as_delta) || (action_.convention == "delta" && moves_as_target)) {
      Finding f{"episode.action-effect",
                "delta-absolute",
                "closed-loop.action-convention",
                0.9,
                true,
                fmt::format("actions are said to be {}, but the tool {}", words(action_.convention),
                            moves_as_delta ? "moves by them at each step" : "goes to them as to a target"),
                measured};
      f.evidence.push_back(
          {"action.sent -> tool", 0,
           fmt::format("read as differences they explain {:.0f} % of the motion, read as targets {:.0f} %", 100 * as_delta, 100 * as_target)});
      s_.findings.push_back(std::move(f));
      return;
    }
    // Differences that are as large as positions, and follow them, are no differences.
    std::size_t follow = 0;
    for (const auto& l : follows_) follow += l.n >= 20 && l.r() > 0.95 && l.slope() > 0.7 && l.slope() < 1.4 ? 1 : 0;
    if (action_.convention == "delta" && follow >= 2) {
      Finding f{"episode.action-effect",
                "delta-absolute",
                "closed-loop.action-convention",
                0.85,
                true,
                "the environment adds the actions to the position, and they follow the position itself: they are absolute",
                measured};
      for (std::size_t k = 0; k < 3; ++k)
        f.evidence.push_back(
            {"tool, action.sent", 0, fmt::format("{}: correlation {:.2f}, factor {:.2f}", axes[k], follows_[k].r(), follows_[k].slope())});
      s_.findings.push_back(std::move(f));
    }
  }

  static std::string words(const std::string& convention) { return convention == "delta" ? "relative (delta)" : "absolute"; }

  void map(const LinearMap3::Fit& fit) {
    const auto& m = fit.matrix;
    Value rows = Value::list();
    double size = 0;
    for (const auto& row : m) {
      rows.push(Value::list({row[0], row[1], row[2]}));
      for (const double v : row) size = std::max(size, std::abs(v));
    }
    s_.effect = Value::object({{"matrix", rows}, {"explained", fit.explained}});
    if (!(size > 1e-12)) return;
    // Each action's main output, and whether it is the only one.
    std::array<std::size_t, 3> goes{};
    bool clear = true;
    for (std::size_t in = 0; in < 3; ++in) {
      for (std::size_t out = 1; out < 3; ++out)
        if (std::abs(m[out][in]) > std::abs(m[goes[in]][in])) goes[in] = out;
      for (std::size_t out = 0; out < 3; ++out)
        if (out != goes[in] && std::abs(m[out][in]) > 0.35 * std::abs(m[goes[in]][in])) clear = false;
      if (std::abs(m[goes[in]][in]) < 0.2 * size) clear = false;
    }
    const bool permutation = clear && goes[0] != goes[1] && goes[1] != goes[2] && goes[0] != goes[2];
    const auto row_text = [&](std::size_t in) {
      return fmt::format("{} moves the tool by ({:.3g}, {:.3g}, {:.3g}) for one unit", action_.name(action_.tool[in]), m[0][in], m[1][in], m[2][in]);
    };
    const auto add = [&](const char* source, double score, std::string summary) {
      Finding f{"episode.action-effect", source, "closed-loop.action-convention", score, true, std::move(summary), s_.effect};
      for (std::size_t in = 0; in < 3; ++in) f.evidence.push_back({"action.sent -> tool", 0, row_text(in)});
      s_.findings.push_back(std::move(f));
    };
    if (permutation) {
      std::vector<std::string> crossed, turned;
      for (std::size_t in = 0; in < 3; ++in) {
        if (goes[in] != in)
          crossed.push_back(fmt::format("{} moves the tool along {}", action_.name(action_.tool[in]), axes[goes[in]]));
        else if (m[in][in] < 0)
          turned.emplace_back(action_.name(action_.tool[in]));
      }
      if (!crossed.empty())
        add("axis-order", 0.93, "the environment takes the action's axes in another order: " + list(crossed));
      else if (!turned.empty())
        add("action-sign", 0.93, fmt::format("the tool moves against the action along {}", list(turned)));
      return;
    }
    frame(m, size, add);
  }

  /// A turned coordinate frame: the map is a rotation times a length.
  template <class Add>
  void frame(const std::array<std::array<double, 3>, 3>& m, double size, Add&& add) {
    std::array<double, 3> length{};
    double skew = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 3; ++k) length[i] += m[k][i] * m[k][i];
      length[i] = std::sqrt(length[i]);
    }
    if (std::ranges::min(length) < 0.5 * std::ranges::max(length)) return;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t j = (i + 1) % 3;
      double dot = 0;
      for (std::size_t k = 0; k < 3; ++k) dot += m[k][i] * m[k][j];
      skew = std::max(skew, std::abs(dot) / (length[i] * length[j]));
    }
    if (skew > 0.25 || size < 1e-12) return;
    const double trace = m[0][0] / length[0] + m[1][1] / length[1] + m[2][2] / length[2];
    const double angle = std::acos(std::clamp((trace - 1) / 2, -1.0, 1.0)) * 180 / 3.14159265358979;
    if (angle < 12) return;
    add("frame", 0.9, fmt::format("actions are in another frame than the environment's: it is turned by {:.0f} degrees", angle));
  }

  void delay(const Maps& maps, std::size_t lag) {
    s_.effect.set("delay_steps", static_cast<unsigned long>(lag));
    if (lag == 0) return;
    const auto at_once = maps[0].fit(), late = maps[lag].fit();
    if (!at_once || !late || late->explained < 0.7) return;
    Finding f{
        "episode.control-rate",
        "action-late",
        "closed-loop.control-rate",
        lag >= 2 ? 0.85 : 0.6,
        true,
        fmt::format("actions take effect {} steps late", lag),
        Value::object(
            {{"delay_steps", static_cast<unsigned long>(lag)}, {"explained_at_once", at_once->explained}, {"explained_late", late->explained}})};
    f.evidence.push_back({"action.sent -> tool", 0,
                          fmt::format("the action of the same step explains {:.0f} % of the motion, that of {} steps before {:.0f} %",
                                      100 * at_once->explained, lag, 100 * late->explained)});
    s_.findings.push_back(std::move(f));
  }

  Maps delta_, target_, delta_early_, target_early_;
  std::array<Line, 3> follows_;
};

}  // namespace

void judge_effect(Survey& survey) { Judge(survey).run(); }

}  // namespace ff::rollout
