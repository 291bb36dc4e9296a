#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "dataset/rows.h"

namespace ff::dataset {
namespace {

constexpr std::size_t most_per_kind = 5;
/// A still stretch shorter than this is a robot that waits.
constexpr double least_frozen_s = 1.0;
/// Share of values at one extreme from which a signal is called clipped.
constexpr double clipped_share = 0.5;
/// Share of the widest dimension's range below which a dimension is taken to stand still.
constexpr double least_range = 0.05;

class Judge {
 public:
  Judge(const Dataset& d, const RowSurvey& s) : d_(d), s_(s) {}

  std::vector<Finding> run() {
    for (const auto& f : s_.features) {
      if (f.name == "action") action_ = &f;
      if (f.name == "observation.state") state_ = &f;
    }
    for (const auto* f : {action_, state_})
      if (f != nullptr) {
        jumps(*f);
        clipped(*f);
      }
    frozen();
    twice();
    return std::move(out_);
  }

 private:
  void add(std::string cause, std::string summary, std::int64_t row, Value measured) {
    out_.push_back({"dataset.motion", false, std::move(cause), std::move(summary), std::move(measured), row >= 0 ? row_place(d_, row) : "", 0, ""});
  }

  [[nodiscard]] std::string place(std::int64_t row) const {
    const auto r = static_cast<std::size_t>(row);
    return s_.frame[r] >= 0 ? fmt::format("episode {} frame {}", s_.episode[r], s_.frame[r])
                            : fmt::format("row {} of episode {}", row, s_.episode[r]);
  }

  /// Switches may jump; what is named a gripper is one, whatever its values are.
  [[nodiscard]] bool gripper(const FeatureSurvey& f, std::size_t d) const {
    const Feature* meta = d_.feature(f.name);
    if (meta == nullptr || d >= meta->names.size()) return false;
    std::string name = meta->names[d];
    std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return name.find("grip") != std::string::npos || name.find("finger") != std::string::npos || name.find("hand") != std::string::npos;
  }

  void jumps(const FeatureSurvey& f) {
    // A dimension that hardly moves beside the others jumps by its own noise.
    double widest = 0;
    for (const auto& m : f.all) widest = std::max(widest, m.max - m.min);
    std::size_t told = 0, all = 0;
    for (const auto& j : f.jumps) {
      const auto& m = f.all[static_cast<std::size_t>(j.dimension)];
      if (m.max - m.min < least_range * widest || std::abs(j.to - j.from) < (m.max - m.min) / 4) continue;
      if (gripper(f, static_cast<std::size_t>(j.dimension)) && !j.spike) continue;
      if (all++ >= most_per_kind || told++ >= most_per_kind) continue;
      add("data.bounds",
          fmt::format("{} {} from {:.4g} to {:.4g} in one frame ({}){}", d_.dimension(f.name, static_cast<std::size_t>(j.dimension)),
                      j.spike ? "spikes" : "jumps", j.from, j.to, place(j.row),
                      j.spike ? " and back: a sensor reading or a row of another episode, which the policy learns as a motion"
                              : ": an encoder that wrapped around, or rows of two recordings put together"),
          j.row,
          Value::object({{"feature", f.name}, {"row", j.row}, {"dimension", j.dimension}, {"from", j.from}, {"to", j.to}, {"spike", j.spike}}));
    }
    if (all > most_per_kind)
      add("data.bounds", fmt::format("{} has {}{} such jumps in all", f.name, all, f.jumps.size() >= 1000 ? " or more" : ""), -1,
          Value::object({{"feature", f.name}, {"jumps", all}}));
  }

  void clipped(const FeatureSurvey& f) {
    for (std::size_t d = 0; d < f.all.size(); ++d) {
      const Moments& m = f.all[d];
      if (m.count < 20 || !(m.max > m.min) || gripper(f, d)) continue;
      const auto n = static_cast<double>(m.count);
      const double low = static_cast<double>(m.at_min) / n, high = static_cast<double>(m.at_max) / n;
      // A dimension with two values is a switch, not a clipped signal.
      if (low + high > 0.98 || std::max(low, high) < clipped_share) continue;
      add("data.bounds",
          fmt::format("{} is {:.4g}, its {}, in {:.0f} % of all rows: the signal is clipped or saturated there", d_.dimension(f.name, d),
                      high > low ? m.max : m.min, high > low ? "maximum" : "minimum", 100 * std::max(low, high)),
          -1, Value::object({{"feature", f.name}, {"dimension", d}, {"share", std::max(low, high)}}));
      return;  // one dimension of a feature speaks for the others
    }
  }

  /// The state stands exactly still inside an episode while the action moves: the recorder repeated an old reading.
  void frozen() {
    if (state_ == nullptr || action_ == nullptr || !(d_.fps > 0) || state_->stills.size() != s_.runs.size() ||
        action_->stills.size() != s_.runs.size())
      return;
    std::size_t told = 0;
    for (std::size_t i = 0; i < s_.runs.size(); ++i) {
      const Still& s = state_->stills[i];
      const Still& a = action_->stills[i];
      if (s.at_an_end || static_cast<double>(s.rows) < std::max(8.0, least_frozen_s * d_.fps)) continue;
      const std::int64_t both = std::min(s.first_row + s.rows, a.first_row + a.rows) - std::max(s.first_row, a.first_row);
      if (both > s.rows / 2 || told++ >= most_per_kind) continue;
      add("data.frame-gap",
          fmt::format(
              "observation.state is exactly the same in {} rows ({:.2g} s, from {}) while the action moves: the recorder repeated an old reading",
              s.rows, static_cast<double>(s.rows) / d_.fps, place(s.first_row)),
          s.first_row, Value::object({{"row", s.first_row}, {"rows", s.rows}}));
    }
  }

  /// Two episodes whose actions and states agree in every moment of every dimension hold the same rows.
  void twice() {
    std::map<std::vector<double>, std::size_t> seen;
    std::size_t told = 0;
    for (std::size_t i = 0; i < s_.runs.size(); ++i) {
      if (s_.runs[i].rows < 2) continue;
      std::vector<double> key{static_cast<double>(s_.runs[i].rows)};
      bool moving = false;
      for (const auto* f : {action_, state_})
        if (f != nullptr && i < f->episodes.size())
          for (const auto& m : f->episodes[i]) {
            key.insert(key.end(), {m.mean, m.m2, m.min, m.max});
            moving = moving || m.max > m.min;
          }
      if (!moving) continue;
      const auto [first, added] = seen.try_emplace(std::move(key), i);
      if (added || told++ >= most_per_kind) continue;
      add("data.frame-gap",
          fmt::format("episode {} holds the same actions and states as episode {}: it was copied or merged twice, and counts double in training",
                      s_.runs[i].episode, s_.runs[first->second].episode),
          s_.runs[i].first_row, Value::object({{"episode", s_.runs[i].episode}, {"same_as", s_.runs[first->second].episode}}));
    }
  }

  const Dataset& d_;
  const RowSurvey& s_;
  const FeatureSurvey* action_ = nullptr;
  const FeatureSurvey* state_ = nullptr;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> judge_motion(const Dataset& dataset, const RowSurvey& survey) { return Judge(dataset, survey).run(); }

std::string action_kind(const RowSurvey& survey) {
  const ActionRelation& r = survey.relation;
  if (r.rows < 20 || !(r.action > 0) || !(r.state > 0)) return {};
  const double absolute = std::min(r.to_state, r.to_next_state);
  // Differences scatter like the steps, positions like the states; the nearer model must explain most of the scatter.
  if (absolute < 0.25 * r.action && absolute < 0.5 * r.to_step) return "absolute positions";
  if (r.to_step < 0.5 * absolute && r.action < 0.25 * r.state) return "differences";
  return {};
}

}  // namespace ff::dataset
