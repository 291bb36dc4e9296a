// Measured comparisons: frames, actions, gripper ranges.
//
//   compare.turned_ratio     difference of the frame as it is, over the difference after turning or flipping it
//   compare.swapped_ratio    the same for exchanged colour channels
//   compare.backends_difference   mean difference of two renderings (0..255)
//   compare.actions_distance largest difference between two printed actions for one observation
//   compare.frame_offset_ratio    the first frame differs this many times more from the same picture than the second one
//   compare.adapter_without_effect true: actions with and without an adapter are equal
//   actions.sent_normalised  true: the action that is sent is the normalised one
//   normalizer.passthrough   true: the values after a normaliser are those before it
//   gripper.{low,high}       each range of a gripper command that is named
//   actions.{printed_max_abs,all_zero,constant,nonfinite,saturated_share}   saturated_share: of values that are exactly 1 or -1
//   rate.measured_{low,high}   frames over the seconds that a text gives for them, less and more a tenth
//   rate.{data_hz,loop_hz}   rates of recording and of the loop that a text names
//   rate.share_of_target     the lowest rate that a text gives beside its target, over that target

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

struct Difference {
  double value;
  std::uint64_t line;
  std::string text;
};

/// The number that a line gives as a difference of pictures.
std::optional<double> difference_of(std::string_view line) {
  static const RE2 pattern(R"((?i)(?:difference|diff|error|mae|rmse|l1|distance)[^\d\n-]{0,20}(\d+(?:\.\d+)?))");
  double value = 0;
  if (!RE2::PartialMatch(piece(line), pattern, &value)) return std::nullopt;
  return value;
}

bool turned(std::string_view line) { return mentions_any(line, {"rotat", "turned", "flipped", "flip ", "upside", "mirrored", "180"}); }
bool swapped(std::string_view line) {
  return mentions_any(line, {"bgr", "channels swapped", "channels reversed", "red and blue", "swapped channels", "rgb swapped"});
}
bool backends(std::string_view line) {
  int named = 0;
  for (std::string_view name :
       {"egl", "osmesa", "glfw", "llvmpipe", "lavapipe", "radv", "ray trac", "raster", "cpu render", "gpu render", "software", "hardware"})
    named += mentions(line, name) ? 1 : 0;
  return named >= 2;
}

void frames(std::string_view text, FactSink& sink) {
  std::vector<Difference> plain;
  std::optional<Difference> best_turned, best_swapped;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    const auto value = difference_of(line);
    if (!value) return;
    const Difference d{*value, number, std::string(line)};
    if (backends(line)) {
      sink.number("compare.backends_difference", *value, number, line);
    } else if (swapped(line)) {
      if (!best_swapped || *value < best_swapped->value) best_swapped = d;
    } else if (turned(line)) {
      if (!best_turned || *value < best_turned->value) best_turned = d;
    } else if (mentions_any(line, {"frame", "image", "camera", "picture", "as is", "as-is", "unchanged", "pixel", "raw"})) {
      plain.push_back(d);
    }
  });
  if (plain.empty()) return;
  const auto as_is = std::max_element(plain.begin(), plain.end(), [](const Difference& a, const Difference& b) { return a.value < b.value; });
  if (best_turned && best_turned->value >= 0)
    sink.number("compare.turned_ratio", as_is->value / std::max(best_turned->value, 0.01), best_turned->line, best_turned->text);
  if (best_swapped) sink.number("compare.swapped_ratio", as_is->value / std::max(best_swapped->value, 0.01), best_swapped->line, best_swapped->text);
}

/// "frame 0: difference 41.7", "frame 1: … 0.9" of the same description: the series begins one frame too early.
void frame_offset(std::string_view text, FactSink& sink) {
  static const RE2 frame(R"((?i)\bframe\s*[:#]?\s*(\d{1,6})\b)");
  struct Seen {
    std::int64_t frame;
    double value;
  };
  std::optional<Seen> previous;
  double ratio = 0;
  std::uint64_t at = 0;
  std::string shown;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::int64_t index = 0;
    if (line.size() > 2000 || !RE2::PartialMatch(piece(line), frame, &index)) return;
    const auto value = difference_of(line);
    if (!value) return;
    if (previous && previous->frame == 0 && index == 1 && *value >= 0) {
      const double now = previous->value / std::max(*value, 0.01);
      if (now > ratio) {
        ratio = now;
        at = number;
        shown = std::string(line);
      }
    }
    previous = Seen{index, *value};
  });
  if (ratio > 1) sink.number("compare.frame_offset_ratio", ratio, at, shown);
}

bool nearly_equal(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 1e-6 * std::max(1.0, std::abs(a[i])))) return false;
  return true;
}

/// Whether the vector that goes to the robot is one that is called normalised.
void sent_actions(std::string_view text, FactSink& sink) {
  std::vector<std::vector<double>> normalised, with, without;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 16'384 || !mentions(line, "action")) return;
    const std::size_t bracket = line.find_last_of("=:");
    auto numbers = bracketed_numbers(bracket == std::string_view::npos ? line : line.substr(bracket));
    if (numbers.size() < 3) numbers = bracketed_numbers(line);
    if (numbers.size() < 3) return;
    if (mentions_any(line, {"adapter", "lora"})) {
      (mentions_any(line, {"off", "without", "disabled", "base"}) ? without : with).push_back(numbers);
      if (!with.empty() && !without.empty() && nearly_equal(with.back(), without.back()))
        sink.add("compare.adapter_without_effect", true, number, line);
    }
    if (mentions_any(line, {"unnormali", "denormali", "un-normali"})) return;
    if (mentions(line, "normali")) {
      if (normalised.size() < 1000) normalised.push_back(numbers);
    } else if (mentions_any(line, {"env.step", "sent", "send_action", "executed", "to robot", "applied"})) {
      if (std::any_of(normalised.begin(), normalised.end(), [&](const auto& v) { return nearly_equal(v, numbers); }))
        sink.add("actions.sent_normalised", true, number, line);
    }
  });
}

void vectors(std::string_view text, FactSink& sink) {
  std::optional<std::vector<double>> before;
  std::vector<std::pair<std::vector<double>, std::uint64_t>> actions;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 16'384) return;
    const bool normaliser = mentions(line, "normaliz") || mentions(line, "normalis");
    const bool action = mentions(line, "action");
    if (!normaliser && !action) return;
    const auto numbers = bracketed_numbers(line);
    if (numbers.size() < 2) return;
    if (normaliser) {
      if (mentions_any(line, {"before", "input", "raw"})) {
        before = numbers;
      } else if (before && mentions_any(line, {"after", "output", "normalized:", "normalised:"})) {
        if (before->size() == numbers.size()) sink.add("normalizer.passthrough", nearly_equal(*before, numbers), number, line);
        before.reset();
      }
      return;
    }
    // Shapes, ranges and masks stand in brackets as well.
    if (mentions_any(line, {"shape", "range", "bounds", "min", "max", "mean", "std", "size", "index", "mask", "limits"})) return;
    if (actions.size() < 1000) actions.emplace_back(numbers, number);
  });
  if (actions.empty()) return;
  double largest = 0, saturated = 0, counted = 0;
  bool zero = true, constant = actions.size() >= 3, nonfinite = false;
  double distance = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const auto& [numbers, line] = actions[i];
    for (double x : numbers) {
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
      if (x != 0) zero = false;
      nonfinite = nonfinite || !std::isfinite(x);
    }
    // The last value is the gripper, which belongs on its bound.
    for (std::size_t k = 0; k + 1 < numbers.size(); ++k) {
      ++counted;
      saturated += std::abs(numbers[k]) == 1 ? 1 : 0;
    }
    if (!nearly_equal(numbers, actions[0].first)) constant = false;
    if (i > 0 && numbers.size() == actions[0].first.size())
      for (std::size_t k = 0; k < numbers.size(); ++k)
        if (std::isfinite(numbers[k] - actions[0].first[k])) distance = std::max(distance, std::abs(numbers[k] - actions[0].first[k]));
  }
  sink.number("actions.printed_max_abs", largest, actions[0].second);
  sink.add("actions.all_zero", zero, actions[0].second);
  sink.add("actions.nonfinite", nonfinite, actions[0].second);
  if (actions.size() >= 5 && counted > 0) sink.number("actions.saturated_share", saturated / counted, actions[0].second);
  sink.add("actions.constant", constant, actions[0].second);
  if (actions.size() >= 2) sink.number("compare.actions_distance", distance, actions[1].second);
}

void gripper(std::string_view text, FactSink& sink) {
  static const RE2 bracket(R"((?i)gripper[^\n\[(]{0,60}[\[(]\s*(-?\d+(?:\.\d+)?)\s*(?:,|\.\.|;|to)\s*(-?\d+(?:\.\d+)?)\s*[\])])");
  static const RE2 spoken(
      R"((?i)gripper[^\n]{0,60}?(?:\bin\b|\bfrom\b|\brange\b|\bbetween\b|\bwidth\b|\bcommand\b|\bopening\b|\bposition\b|:|=)\s*(-?\d+(?:\.\d+)?)\s*(?:\.\.\.?|to|and)\s*(-?\d+(?:\.\d+)?))");
  static const RE2 extremes(R"((?i)gripper[^\n]{0,60}?min[ =:]+(-?\d+(?:\.\d+)?)[ ,;]+max[ =:]+(-?\d+(?:\.\d+)?))");
  static const RE2 ends(
      R"((?i)gripper[^\n]{0,40}?([+-]?\d+(?:\.\d+)?)\s*[=:]?\s*(?:open|clos)\w*[^\n]{0,12}?([+-]?\d+(?:\.\d+)?)\s*[=:]?\s*(?:open|clos))");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    double low = 0, high = 0;
    std::string first, second;
    if (RE2::PartialMatch(piece(line), ends, &first, &second)) {
      const double a = to_real(first[0] == '+' ? first.substr(1) : first).value_or(0),
                   b = to_real(second[0] == '+' ? second.substr(1) : second).value_or(0);
      if (a != b) {
        sink.number("gripper.low", std::min(a, b), number, line);
        sink.number("gripper.high", std::max(a, b), number, line);
        return;
      }
    }
    if (!RE2::PartialMatch(piece(line), extremes, &low, &high) && !RE2::PartialMatch(piece(line), bracket, &low, &high) &&
        !RE2::PartialMatch(piece(line), spoken, &low, &high))
      return;
    if (low >= high) return;
    sink.number("gripper.low", low, number, line);
    sink.number("gripper.high", high, number, line);
  });
}

/// "1804 frames, wall clock 30.1 s"
void measured_rate(std::string_view text, FactSink& sink) {
  static const RE2 pattern(
      R"((?i)\b(\d{2,7}) frames\b.{0,40}?\b(?:wall[- ]?clock|duration|took|elapsed|real time|in|over|recorded in)\W{0,4}(?:time\W{0,3})?(\d+(?:\.\d+)?) ?s(?:ec\w*)?\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double frames = 0, seconds = 0;
    if (line.size() > 2000 || !RE2::PartialMatch(piece(line), pattern, &frames, &seconds) || seconds <= 0) return;
    sink.number("rate.measured_low", 0.9 * frames / seconds, number, line);
    sink.number("rate.measured_high", 1.1 * frames / seconds, number, line);
  });
}

/// "recorded at 50 Hz", "the loop runs at 10 Hz": who names which rate.
void rates(std::string_view text, FactSink& sink) {
  static const RE2 rate(R"((?i)(\d+(?:\.\d+)?)\s*(?:Hz|fps)\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double hz = 0;
    if (line.size() > 400 || !RE2::PartialMatch(piece(line), rate, &hz) || hz <= 0) return;
    // A line that names two rates, or the physics of a simulator, says nothing about the one loop.
    re2::StringPiece rest = piece(line);
    int named = 0;
    while (RE2::FindAndConsume(&rest, rate)) ++named;
    if (named != 1 || mentions_any(line, {"physics", "simulation step", "game", "monitor", "display", "refresh", "MHz", "GHz"})) return;
    if (mentions_any(line, {"recorded", "record at", "recording", "dataset", "demonstration", "teleop", "collected", "training data"}))
      sink.number("rate.data_hz", hz, number, line);
    else if (mentions_any(line, {"control loop", "loop", "deploy", "inference", "executed", "execution", "evaluation", "policy runs", "robot runs",
                                 "env runs", "environment runs", "rollout"}))
      sink.number("rate.loop_hz", hz, number, line);
  });
}

/// "control loop: 11.8 Hz (target 30 Hz)": the lowest share of its own target that a rate reaches.
void share_of_target(std::string_view text, FactSink& sink) {
  static const RE2 pair(
      R"((?i)(\d+(?:\.\d+)?)\s*(?:Hz|fps)\b[^\n\d]{0,30}\b(?:target|wanted|desired|requested|goal|expected|nominal|instead of|should be)\b[^\n\d]{0,12}(\d+(?:\.\d+)?))");
  std::optional<double> least;
  std::uint64_t where = 0;
  std::string_view which;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double hz = 0, target = 0;
    if (line.size() > 400 || !RE2::PartialMatch(piece(line), pair, &hz, &target) || hz <= 0 || target <= 0) return;
    if (mentions_any(line, {"monitor", "display", "refresh", "MHz", "GHz", "game"}) || hz / target >= least.value_or(1e9)) return;
    least = hz / target;
    where = number;
    which = line;
  });
  if (least) sink.number("rate.share_of_target", *least, where, which);
}

}  // namespace

void extract_comparison(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (mentions_any(text, {"difference", "diff", "mae", "rmse", "distance"}) &&
      mentions_any(text, {"frame", "image", "camera", "picture", "pixel", "egl", "osmesa", "raster"}))
    frames(text, sink);
  if (mentions(text, "frame") && mentions_any(text, {"difference", "diff", "mae", "rmse", "distance"})) frame_offset(text, sink);
  if (mentions(text, "action") && mentions_any(text, {"normali", "adapter", "lora"})) sent_actions(text, sink);
  if (mentions(text, "action") || mentions(text, "normaliz") || mentions(text, "normalis")) vectors(text, sink);
  if (mentions(text, "gripper")) gripper(text, sink);
  if (text.find(" frames") != std::string_view::npos) measured_rate(text, sink);
  if (text.find("Hz") != std::string_view::npos || text.find("fps") != std::string_view::npos) share_of_target(text, sink);
  if (text.find("Hz") != std::string_view::npos || text.find("fps") != std::string_view::npos) rates(text, sink);
}

}  // namespace ff::diagnosis
