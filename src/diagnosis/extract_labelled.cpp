// Lines of the form "label: value" that people put side by side: what was trained on against what is live.
//
//   gripper.{low,high}         of each range of a gripper that a label names, with words between its ends
//   gripper.range_ratio        the training data's range over that of what is sent
//   gripper.ends_reversed      true: the same end is "open" in one line and "closed" in another
//   report.action_ratio        size of a data set's action over that of what is sent
//   actions.sent_raw           true: what is sent is the policy's raw output
//   actions.saturated_share    share of actions that a text says to lie on a bound
//   actions.declared_max_abs   largest number of a range that the policy's actions are said to have
//   rate.{data_hz,loop_low,loop_high}   rates and periods behind their labels
//   rate.sides_ratio           of two named sides ("policy_hz", "env_hz") of one document, the higher rate over the lower
//   eval.seed_repeats_differ   true: one seed stands beside success and beside failure, in numbered runs of the same
//   eval.replay_succeeds       true: recorded actions do the task, in words
//   report.offline_error_share mean error of the policy on recorded frames over the spread of the actions
//   names.cameras_absent       first camera that a policy asks for and that the robot's list does not have
//   compare.backends_by_role   true: training and evaluation name different renderers

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

constexpr std::size_t max_line = 2000;
constexpr std::size_t max_label = 80;
constexpr std::size_t max_ranges = 500;
constexpr std::size_t max_text = 1u << 20;

enum class Side { unknown, data, live };

Side side_of(std::string_view label) {
  if (mentions_any(label, {"dataset", "train", "record", "demo", "expert", "ground truth", "teleop", "collected"})) return Side::data;
  if (mentions_any(label, {"sent", "live", "robot", "env", "policy", "output", "predict", "eval", "rollout", "execut", "command", "simulat",
                           "hardware", "deploy", "inference", "model", "applied", "control"}))
    return Side::live;
  return Side::unknown;
}

struct Labelled {
  std::string_view label, value, line;
  std::uint64_t number = 0;
};

/// "label: value", "label = value", "label   value".
std::optional<Labelled> labelled(std::string_view line, std::uint64_t number) {
  if (line.size() > max_line) return std::nullopt;
  static const RE2 form(R"(^[\s>*#-]*([A-Za-z][^:=\n]{1,78}?)(?:\s*[:=]\s*|\s{2,}|\t+)(\S.*)$)");
  re2::StringPiece label, value;
  if (!RE2::FullMatch(piece(line), form, &label, &value) || label.size() > max_label) return std::nullopt;
  return Labelled{{label.data(), label.size()}, {value.data(), value.size()}, line, number};
}

struct Range {
  double low = 0, high = 0;
  std::string low_word, high_word;  ///< in parentheses behind the ends
};

std::optional<Range> range_of(std::string_view value) {
  static const RE2 ends(
      R"(^[\[(]?\s*([+-]?\d+(?:\.\d+)?)\s*(?:\(([^)\n]{1,30})\))?\s*(?:\.\.\.?|\x{2026}|\bto\b|\x{2013}|,)\s*([+-]?\d+(?:\.\d+)?)\s*(?:\(([^)\n]{1,30})\))?\s*(?:[\])]|$|[;,.\s](?:[^\d\s]|$)))");
  std::string a, b;
  Range out;
  if (!RE2::PartialMatch(piece(value), ends, &a, &out.low_word, &b, &out.high_word)) return std::nullopt;
  out.low = to_real(a.starts_with('+') ? a.substr(1) : a).value_or(0);
  out.high = to_real(b.starts_with('+') ? b.substr(1) : b).value_or(0);
  if (out.low == out.high) return std::nullopt;
  if (out.low > out.high) {
    std::swap(out.low, out.high);
    std::swap(out.low_word, out.high_word);
  }
  return out;
}

bool is_gripper(std::string_view label) { return mentions_any(label, {"gripper", "finger", "jaw"}); }

void grippers(const std::vector<Labelled>& lines, FactSink& sink) {
  std::optional<Range> of_data, of_live;
  std::string low_is;
  std::size_t ranges = 0;
  for (const Labelled& l : lines) {
    if (!is_gripper(l.label)) continue;
    const auto range = range_of(l.value);
    if (!range) continue;
    if (++ranges > max_ranges) return;
    if (!sink.has("gripper.low", l.number)) {
      sink.number("gripper.low", range->low, l.number, l.line);
      sink.number("gripper.high", range->high, l.number, l.line);
    }
    const std::string word = mentions(range->low_word, "open") || mentions(range->high_word, "clos")   ? "open"
                             : mentions(range->low_word, "clos") || mentions(range->high_word, "open") ? "closed"
                                                                                                       : "";
    if (!word.empty() && !low_is.empty() && word != low_is) sink.add("gripper.ends_reversed", true, l.number, l.line);
    if (low_is.empty()) low_is = word;
    const Side side = side_of(l.label);
    if (side == Side::data) of_data = range;
    if (side == Side::live) of_live = range;
    if (of_data && of_live) sink.number("gripper.range_ratio", (of_data->high - of_data->low) / (of_live->high - of_live->low), l.number, l.line);
  }
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (double x : values)
    if (std::isfinite(x)) out = std::max(out, std::abs(x));
  return out;
}

void actions(const std::vector<Labelled>& lines, FactSink& sink) {
  std::vector<double> of_data, raw;
  for (const Labelled& l : lines) {
    if (mentions_any(l.label, {"state", "position", "qpos", "image", "mean", "std", "observation", "shape", "loss", "error", "time"})) continue;
    if (!mentions_any(l.label, {"action", "policy", "sent", "command", "output", "predict"})) continue;
    const auto numbers = bracketed_numbers(l.value);
    if (numbers.size() < 3) continue;
    const Side side = side_of(l.label);
    if (side == Side::data && mentions(l.label, "action")) {
      of_data = numbers;
      continue;
    }
    if (side != Side::live) continue;
    const bool sent = mentions_any(l.label, {"sent", "robot", "execut", "env", "applied", "command"});
    if (!sent) {
      raw = numbers;
      continue;
    }
    if (!of_data.empty() && of_data.size() == numbers.size() && largest(numbers) > 0)
      sink.number("report.action_ratio", largest(of_data) / largest(numbers), l.number, l.line);
    if (!raw.empty() && raw == numbers) sink.add("actions.sent_raw", true, l.number, l.line);
  }
}

void saturation(std::string_view text, FactSink& sink) {
  static const RE2 share(
      R"((?i)(\d{1,3}(?:\.\d+)?) ?%(?: of)?(?: the| all)? (?:\w+ ){0,3}?(?:actions?|values?|steps|commands?|frames)\b.{0,40}?\b(?:exactly|equal|saturat\w*|clip\w*|clamp\w*|at (?:the |its |their )?(?:bound|limit|extreme)s?|on (?:the |its |their )?(?:bound|limit)s?|hits?|(?:is|are|at|=|==) ?[+-]?1(?:\.0+)?)\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double percent = 0;
    if (line.size() <= max_line && RE2::PartialMatch(piece(line), share, &percent) && percent <= 100)
      sink.number("actions.saturated_share", percent / 100, number, line);
  });
}

void rates(const std::vector<Labelled>& lines, FactSink& sink) {
  static const RE2 hz(R"((?i)^(?:\w+ )?(\d+(?:\.\d+)?)\s*(?:Hz|fps)?\s*[,;}]?\s*$)");
  static const RE2 period(R"((?i)^(?:mean|avg\.?|average|median)?[ =:]*(\d+(?:\.\d+)?) ?(ms|s|sec|seconds)\b)");
  double fastest = 0, slowest = 0;
  std::set<std::string> sides;
  std::uint64_t at = 0;
  std::string_view said;
  for (const Labelled& l : lines) {
    std::string_view label = l.label;
    double value = 0;
    std::string unit;
    if (mentions_any(label, {"loop", "cycle", "control", "tick"}) && mentions_any(label, {"time", "period", "dt", "interval", "duration"}) &&
        RE2::PartialMatch(piece(l.value), period, &value, &unit) && value > 0) {
      const double seconds = unit == "ms" ? value / 1000 : value;
      sink.number("rate.loop_low", 0.9 / seconds, l.number, l.line);
      sink.number("rate.loop_high", 1.1 / seconds, l.number, l.line);
      continue;
    }
    if (!mentions_any(label, {"fps", "hz", "rate", "frequency"}) ||
        mentions_any(label, {"learning", "success", "sample", "error", "refresh", "video", "bit"}))
      continue;
    if (!RE2::FullMatch(piece(l.value), hz, &value) || value <= 0 || value > 2000) continue;
    const Side side = side_of(label);
    if (side == Side::data) sink.number("rate.data_hz", value, l.number, l.line);
    if (side == Side::unknown) continue;
    const std::string who = side == Side::data ? "data" : mentions_any(label, {"env", "simulat", "robot", "hardware"}) ? "environment" : "policy";
    if (!sides.insert(who).second) continue;
    fastest = std::max(fastest, value);
    slowest = slowest == 0 ? value : std::min(slowest, value);
    at = l.number;
    said = l.line;
  }
  if (sides.size() >= 2 && slowest > 0 && fastest > slowest) sink.number("rate.sides_ratio", fastest / slowest, at, said);
}

/// "control_hz": 50 and env: {"hz": 25}: rates of a document's parts.
void document_rates(std::string_view text, FactSink& sink) {
  std::map<std::string, double> sides;
  for (const Document& document : json_documents(text)) {
    const std::function<void(const Value&, const std::string&, int)> walk = [&](const Value& value, const std::string& path, int depth) {
      if (depth > 6 || !value.is_object()) return;
      for (const auto& [key, child] : value.members()) {
        const std::string here = path + "." + key;
        if (child.is_object()) walk(child, here, depth + 1);
        const auto number = scalar(child);
        if (!number || *number <= 0 || *number > 2000) continue;
        if (!mentions_any(key, {"fps", "hz", "frequency"}) || mentions_any(here, {"video", "camera", "render", "display", "physics"})) continue;
        const Side side = side_of(here);
        const std::string who = side == Side::data                                              ? "data"
                                : mentions_any(here, {"env", "simulat", "robot", "hardware"})   ? "environment"
                                : side == Side::live || mentions_any(here, {"policy", "chunk"}) ? "policy"
                                                                                                : "";
        if (!who.empty()) sides.try_emplace(who, *number);
      }
    };
    walk(document.value, "", 0);
  }
  if (sides.size() < 2) return;
  const auto [low, high] = std::minmax_element(sides.begin(), sides.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (high->second > low->second) sink.number("rate.sides_ratio", high->second / low->second);
}

void seeds(std::string_view text, FactSink& sink) {
  static const RE2 outcome(
      R"((?i)\bseed\W{0,3}(\d{1,9})\b(.{0,60}?)\b(?:success\w*\W{1,4}(true|false|yes|no|0|1)\b|(success|succeeded|failure|failed|fail|timeout)\b))");
  static const RE2 numbered(R"((?i)\b(?:run|repeat|attempt|time|try|pass|rep)\b|\b(?:first|second|again)\b)");
  std::map<std::string, std::set<bool>> seen;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::string seed, between, flag, word;
    if (line.size() > max_line || !RE2::PartialMatch(piece(line), outcome, &seed, &between, &flag, &word)) return;
    if (!RE2::PartialMatch(piece(line), numbered) || mentions_any(line, {"policy", "checkpoint", "model", "version", "machine"})) return;
    const std::string said = lower(flag.empty() ? word : flag);
    auto& results = seen[seed];
    results.insert(said == "true" || said == "yes" || said == "1" || said.starts_with("succ"));
    if (results.size() == 2) sink.add("eval.seed_repeats_differ", true, number, line);
  });
}

void offline(std::string_view text, FactSink& sink) {
  static const RE2 replay(
      R"((?i)\breplay\w*\b[^\n]{0,80}?(?:\b(?:action|episode|demonstration|trajector)\w*[^\n]{0,60}?)?(?:[:=]\s*|\b(?:is a |gives? |ends? in |reaches? )?)(?:success(?:es|ful|fully)?\b(?:\W{1,3}(?:true|yes|1\b))?|succeeds?\b|works\b|does the task|completes? the task))");
  static const RE2 spread(
      R"((?i)\b(?:mean abs(?:olute)? error|mae|l1(?: error)?|error)\W{1,3}(\d+(?:\.\d+)?)[^\n]{0,40}?\b(?:std|spread|standard deviation)\b[^\n\d]{0,30}(\d+(?:\.\d+)?))");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    if (RE2::PartialMatch(piece(line), replay) && !mentions_any(line, {"fail", "success: false", "success: 0", "not ", "0/"}))
      sink.add("eval.replay_succeeds", true, number, line);
    double error = 0, of = 0;
    if (mentions_any(line, {"dataset", "train", "recorded", "demo", "held-out", "validation"}) &&
        mentions_any(line, {"policy", "predict", "model", "action"}) && RE2::PartialMatch(piece(line), spread, &error, &of) && of > 0)
      sink.number("report.offline_error_share", error / of, number, line);
  });
}

std::vector<std::string> quoted_list(std::string_view value) {
  static const RE2 word(R"(['"]([\w./-]{1,120})['"])");
  std::vector<std::string> out;
  const std::size_t open = value.find_first_of("[({");
  if (open == std::string_view::npos) return out;
  re2::StringPiece rest = piece(value.substr(open));
  std::string one;
  while (out.size() < 256 && RE2::FindAndConsume(&rest, word, &one)) out.push_back(one);
  return out;
}

std::string last_part(const std::string& key) { return key.substr(key.find_last_of("./") + 1); }

void cameras(std::string_view text, FactSink& sink) {
  std::vector<std::string> asked, there;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    const std::size_t bracket = line.find_first_of("[({");
    const auto list = quoted_list(line.substr(std::min(bracket == std::string_view::npos ? line.size() : line.find('[', 0), line.size())));
    if (list.empty()) return;
    const std::string_view label = line.substr(0, bracket);
    const bool pictures = std::ranges::any_of(list, [](const std::string& k) { return mentions_any(k, {"image", "camera", "cam_"}); });
    if (mentions_any(label, {"policy", "config", "expected", "checkpoint", "input_features", "image_features"}) && pictures) {
      asked = list;
    } else if (mentions_any(label, {"robot", "env", "obs", "batch", "live", "received", "available"}) && !mentions_any(label, {"policy", "config"})) {
      there = list;
      at = number;
    }
  });
  if (asked.empty() || there.empty()) return;
  std::set<std::string> names;
  for (const std::string& key : there) names.insert(last_part(key));
  for (const std::string& key : asked)
    if (mentions_any(key, {"image", "camera", "cam_"}) && !names.contains(last_part(key))) {
      sink.add("names.cameras_absent", last_part(key), at);
      return;
    }
}

/// "train renders: egl (…)", "eval renders: osmesa".
void renderers(const std::vector<Labelled>& lines, FactSink& sink) {
  const auto backend = [](std::string_view value) -> std::string {
    for (std::string_view name : {"osmesa", "egl", "glfw", "glx", "swrast", "lavapipe", "radv"})
      if (mentions(value, name)) return std::string(name);
    return mentions(value, "llvmpipe") ? "llvmpipe" : "";
  };
  std::string of_data, of_live;
  for (const Labelled& l : lines) {
    if (!mentions_any(l.line, {"render", "mujoco_gl", "backend", "gl "})) continue;
    const std::string name = backend(l.value);
    if (name.empty()) continue;
    const Side side = side_of(l.label);
    if (side == Side::data) of_data = name;
    if (side == Side::live) of_live = name;
    if (!of_data.empty() && !of_live.empty() && of_data != of_live) sink.add("compare.backends_by_role", true, l.number, l.line);
  }
}

void declared(const std::vector<Labelled>& lines, FactSink& sink) {
  for (const Labelled& l : lines) {
    if (!mentions(l.label, "action") || !mentions_any(l.label, {"range", "seen", "policy", "train", "dataset"})) continue;
    if (mentions_any(l.label, {"env", "space", "clip", "bound", "limit"})) continue;
    if (const auto range = range_of(l.value))
      sink.number("actions.declared_max_abs", std::max(std::abs(range->low), std::abs(range->high)), l.number, l.line);
  }
}

}  // namespace

void extract_labelled(std::string_view text, std::string_view source, Facts& out) {
  if (text.size() > max_text) return;  // a log of a run, no report
  FactSink sink(source, out);
  std::vector<Labelled> lines;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (lines.size() < 20'000)
      if (const auto one = labelled(line, number)) lines.push_back(*one);
  });
  grippers(lines, sink);
  actions(lines, sink);
  rates(lines, sink);
  renderers(lines, sink);
  declared(lines, sink);
  if (text.find('%') != std::string_view::npos) saturation(text, sink);
  if (mentions(text, "seed")) seeds(text, sink);
  if (mentions_any(text, {"replay", "error", "mae", "l1"})) offline(text, sink);
  if (text.find('[') != std::string_view::npos && mentions_any(text, {"image", "camera", "cam_"})) cameras(text, sink);
  if (text.find('{') != std::string_view::npos && mentions_any(text, {"hz", "fps", "frequency"})) document_rates(text, sink);
}

}  // namespace ff::diagnosis
