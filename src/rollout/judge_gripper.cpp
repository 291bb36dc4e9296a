// Does the gripper do what the policy means? Direction and range of its command, by what was declared, by what the fingers did and
// by where on the way it closes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/judge.h"
#include "rollout/linear.h"

namespace ff::rollout {
namespace {

class Judge : ActionJudge {
 public:
  explicit Judge(Survey& s) : ActionJudge(s) {}

  void run() {
    // Actions that say nothing say nothing about the gripper.
    for (const auto& f : s_.findings)
      if (f.check == "episode.actions-alive") return;
    measure();
    if (command_.n < few) return;
    s_.gripper = Value::object({{"command_low", command_.min}, {"command_high", command_.max}});
    if (!changed() && !range()) direction();
  }

 private:
  void measure() {
    for (const auto& j : s_.episodes) {
      const Header& h = j.episode.header;
      open_ = h.gripper_open;
      closed_ = h.gripper_closed;
      const auto& frames = j.episode.frames;
      bool touched = false;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto& arm = frames[i].arms[j.stages.arm];
        double command = arm.command;
        if (!std::isfinite(command) && action_.gripper && *action_.gripper < frames[i].sent.size()) command = frames[i].sent[*action_.gripper];
        command_.add(command);
        if (action_.gripper && *action_.gripper < frames[i].raw.size() && *action_.gripper < frames[i].sent.size()) {
          const double raw = frames[i].raw[*action_.gripper], sent = frames[i].sent[*action_.gripper];
          raw_to_sent_.add(raw, sent);
          // A cut at the environment's bounds is none.
          const double low = std::min(open_, closed_), high = std::max(open_, closed_);
          const double cut = std::isfinite(low) && std::isfinite(high) ? std::clamp(raw, low, high) : raw;
          other_ += std::abs(raw - sent) > 0.05 && std::abs(cut - sent) > 0.05 * std::max(1e-9, high - low) ? 1 : 0;
        }
        if (i + 1 < frames.size()) moves_.add(command, frames[i + 1].arms[j.stages.arm].opening - arm.opening);
        settled_.add(command, arm.opening);
        if (arm.tool.size() < 3 || frames[i].object.size() < 3) continue;
        // On the way to the object a gripper is open, and closes there. After a lift it says nothing any more.
        const double d = distance3(arm.tool, frames[i].object);
        touched = touched || j.stages[Stage::lift].reached == Reached::yes;
        if (touched) continue;
        if (d > 0.1) far_.add(command);
        if (d < 0.05) near_.add(command);
      }
    }
  }

  void add(const char* source, double score, std::string summary, std::vector<std::string> shown) {
    Finding f{"episode.gripper", source, "closed-loop.gripper-scale", score, true, std::move(summary), s_.gripper};
    for (auto& line : shown) f.evidence.push_back({"gripper", 0, std::move(line)});
    s_.findings.push_back(std::move(f));
  }

  /// Both sides have the same range, and the command is another one when it arrives.
  bool changed() {
    const auto& t = action_.training.action;
    if (raw_to_sent_.n < few || !action_.gripper || *action_.gripper >= t.min.size() || *action_.gripper >= t.max.size() || !std::isfinite(open_) ||
        !std::isfinite(closed_))
      return false;
    const double low = std::min(open_, closed_), high = std::max(open_, closed_), width = high - low;
    const double trained_low = t.min[*action_.gripper], trained_high = t.max[*action_.gripper];
    if (!(width > 0) || std::abs(trained_low - low) > 0.2 * width || std::abs(trained_high - high) > 0.2 * width) return false;
    if (other_ < 0.25 * raw_to_sent_.n) return false;
    std::vector<std::string> shown{
        fmt::format("raw -> sent: another value in {:.0f} of {:.0f} steps; factor {:.3g}, offset {:.3g}", other_, raw_to_sent_.n,
                    raw_to_sent_.slope(), raw_to_sent_.intercept()),
        fmt::format("training data {:.3g}..{:.3g}; the environment: open {:.3g}, closed {:.3g}", trained_low, trained_high, open_, closed_)};
    if (raw_to_sent_.r() < -0.8)
      add("gripper-direction", 0.95, "the gripper's command is turned round on its way, although both sides mean the same", std::move(shown));
    else
      add("gripper-range", 0.93, "the gripper's command is converted on its way, although both sides have the same range", std::move(shown));
    return true;
  }

  bool range() {
    if (!std::isfinite(open_) || !std::isfinite(closed_) || open_ == closed_) return false;
    const double low = std::min(open_, closed_), high = std::max(open_, closed_), middle = (low + high) / 2, width = high - low;
    s_.gripper.set("open", open_).set("closed", closed_);
    const auto& t = action_.training.action;
    const bool trained = action_.gripper && *action_.gripper < t.min.size() && *action_.gripper < t.max.size();
    const double trained_low = trained ? t.min[*action_.gripper] : missing, trained_high = trained ? t.max[*action_.gripper] : missing;
    const double trained_width = trained_high - trained_low;
    // The training data crosses a middle of its own; what is sent is in the training's range, and not in the environment's.
    const bool other_range =
        trained && trained_width > 0 && (std::abs(trained_low - low) > 0.25 * width || std::abs(trained_high - high) > 0.25 * width);
    const bool sent_as_trained = trained && command_.min > trained_low - 0.1 * trained_width && command_.max < trained_high + 0.1 * trained_width;
    const bool crosses = command_.min < middle - 0.02 * width && command_.max > middle + 0.02 * width;
    const bool beyond = command_.max > high + 0.5 * width || command_.min < low - 0.5 * width;
    std::vector<std::string> shown{
        fmt::format("commands {:.3g}..{:.3g}; the environment: open {:.3g}, closed {:.3g}", command_.min, command_.max, open_, closed_)};
    if (trained) shown.push_back(fmt::format("training data {:.3g}..{:.3g}", trained_low, trained_high));
    if (other_range && sent_as_trained && (!crosses || beyond || trained_width < 0.6 * width)) {
      add("gripper-range", 0.93,
          fmt::format("the gripper's command keeps the range of the training data ({:.3g}..{:.3g}); the environment takes {:.3g}..{:.3g}",
                      trained_low, trained_high, low, high),
          std::move(shown));
      return true;
    }
    // Who never came to the object had no reason to close.
    if (!crosses && command_.std() > 0.02 * width && near_.n >= 20) {
      add("gripper-range", 0.6,
          fmt::format("the gripper's command never crosses the middle ({:.3g}) between open and closed: it stays in {:.3g}..{:.3g}", middle,
                      command_.min, command_.max),
          std::move(shown));
      return true;
    }
    if (beyond) {
      add("gripper-range", 0.8,
          fmt::format("the gripper's command ({:.3g}..{:.3g}) is far outside of what the environment takes ({:.3g}..{:.3g})", command_.min,
                      command_.max, low, high),
          std::move(shown));
      return true;
    }
    return false;
  }

  void direction() {
    const bool declared = std::isfinite(open_) && std::isfinite(closed_) && open_ != closed_;
    const double toward_open = declared ? (open_ > closed_ ? 1 : -1) : 0;
    // What the fingers do when they are told.
    const double response = settled_.n >= few && std::abs(settled_.r()) > std::abs(moves_.r()) ? settled_.r() : moves_.r();
    if (declared && moves_.n >= few && response * toward_open < -0.4) {
      add("gripper-direction", 0.92, "the gripper opens when it is told to close",
          {fmt::format("command and motion of the fingers: correlation {:.2f}; open is {:.3g}, closed {:.3g}", response, open_, closed_)});
      return;
    }
    // Closed on the way and open at the object is the wrong way round.
    if (!declared || far_.n < few || near_.n < 5) return;
    const double width = std::abs(open_ - closed_);
    const double far_open = (far_.mean() - closed_) / (open_ - closed_), near_open = (near_.mean() - closed_) / (open_ - closed_);
    s_.gripper.set("openness_far", far_open).set("openness_near", near_open);
    if (far_open < 0.35 && near_open > far_open + 0.3 && width > 0) {
      std::vector<std::string> shown{
          fmt::format("commanded openness: {:.2f} farther than 0.1 m from the object, {:.2f} within 0.05 m", far_open, near_open)};
      if (raw_to_sent_.n >= few && raw_to_sent_.r() < -0.9)
        shown.push_back(fmt::format("raw -> sent: factor {:.3g}, offset {:.3g}", raw_to_sent_.slope(), raw_to_sent_.intercept()));
      add("gripper-direction", 0.92, "the gripper is closed on the way and opens at the object: its command is the wrong way round",
          std::move(shown));
    }
  }

  Moments command_, far_, near_;
  Line moves_, settled_, raw_to_sent_;
  double open_ = missing, closed_ = missing, other_ = 0;
};

}  // namespace

void judge_gripper(Survey& survey) { Judge(survey).run(); }

}  // namespace ff::rollout
