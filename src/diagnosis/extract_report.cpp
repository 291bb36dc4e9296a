// Numbers that people put side by side: counts, colours, signs, sizes, rates, learning curves; results of one-line commands.
//
//   report.counts_differ       "frames", "episodes", "files" or "video": one line gives two counts of the same that differ
//   report.channels_exchanged  true: mean colours of two pictures fit when red and blue are exchanged
//   report.sign_flips          axes on which what was observed is the negative of what was commanded
//   report.gripper_complement  lines on which the gripper command is one minus the recorded value
//   report.action_ratio        size of the dataset's actions over that of the predicted ones
//   report.stats_moved         distance of two printed means, in the spread of the second
//   report.limit_high          upper end of a declared range of joints
//   report.load_share          time for batches over the time for batches and computing
//   report.nonfinite_{data,weights}   counts of values that are not finite, in answers of a session
//   rate.loop_{low,high}       rate of a loop whose period is printed, less and more a tenth
//   eval.rises_with_steps      true: success rises with the steps of the checkpoint; eval.replay_succeeds: recorded actions do the task
//   dataset.{info.total_episodes,info.total_frames,episodes.count,rows.total,rows.frame_jumps,rows.index_unique}   of one-line commands

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

constexpr std::size_t max_line = 4096;
constexpr std::size_t max_report = 1u << 20;

void counts(std::string_view text, FactSink& sink) {
  static const RE2 length_rows(
      R"((?i)\b(?:length|frames|declared|expected)\b(?: in (?:meta|info|the table))?\W{1,4}(\d{1,9}),? .{0,20}?\b(?:rows|frames|found|actual)\W{1,4}(\d{1,9})\b)");
  static const RE2 picture(R"(\bwidth=(\d{2,5})\b.{0,20}\bheight=(\d{2,5})\b)");
  static const RE2 video_rows(R"((?i)\b(?:\S*\.mp4|video)\b.{0,12}?\b(\d{2,8}) frames\b.{0,24}\brows\W{1,4}(\d{2,8})\b)");
  static const RE2 per_camera(R"((?i)videos?/\S*?([\w.]+)\W{1,3}(\d{1,7}) (?:files|videos))");
  std::map<std::string, double> cameras;
  std::string said;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    double a = 0, b = 0;
    std::string camera;
    if (RE2::PartialMatch(piece(line), video_rows, &a, &b) && a != b) sink.add("report.counts_differ", "video", number, line);
    if (RE2::PartialMatch(piece(line), length_rows, &a, &b) && a != b) sink.add("report.counts_differ", "frames", number, line);
    if (RE2::PartialMatch(piece(line), picture, &a, &b)) {
      sink.number("video.width", a, number, line);
      sink.number("video.height", b, number, line);
    }
    if (RE2::PartialMatch(piece(line), per_camera, &camera, &a)) {
      cameras[camera] = a;
      at = number;
      said = std::string(line);
    }
  });
  for (const auto& [name, files] : cameras)
    if (files != cameras.begin()->second) {
      sink.add("report.counts_differ", "files", at, said);
      break;
    }
}

/// "R 142 G 120 B 88", "rgb(142, 120, 88)", "mean RGB [142 120 88]".
void colours(std::string_view text, FactSink& sink) {
  static const RE2 named(R"((?i)\br\W{0,3}(\d{1,3}(?:\.\d+)?)\W{1,4}g\W{0,3}(\d{1,3}(?:\.\d+)?)\W{1,4}b\W{0,3}(\d{1,3}(?:\.\d+)?))");
  static const RE2 listed(R"((?i)\brgb\W{0,6}(\d{1,3}(?:\.\d+)?)[, ]+(\d{1,3}(?:\.\d+)?)[, ]+(\d{1,3}(?:\.\d+)?))");
  std::vector<std::array<double, 3>> seen;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line || seen.size() >= 64) return;
    std::array<double, 3> c{};
    if (!RE2::PartialMatch(piece(line), named, &c[0], &c[1], &c[2]) && !RE2::PartialMatch(piece(line), listed, &c[0], &c[1], &c[2])) return;
    for (const auto& other : seen) {
      const double straight = std::abs(other[0] - c[0]) + std::abs(other[2] - c[2]);
      const double exchanged = std::abs(other[0] - c[2]) + std::abs(other[2] - c[0]);
      if (straight > 20 && exchanged * 4 < straight) sink.add("report.channels_exchanged", true, number, line);
    }
    seen.push_back(c);
  });
}

/// How many lines fit, with the last of them as evidence; said from `least` lines on.
void count_lines(std::string_view text, std::string_view fact, double least, const std::function<bool(std::string_view)>& fits, FactSink& sink) {
  double lines = 0;
  std::uint64_t at = 0;
  std::string said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line || !fits(line)) return;
    ++lines;
    at = number;
    said = std::string(line);
  });
  if (lines >= least) sink.number(std::string(fact), lines, at, said);
}

/// "commanded dx +0.021  observed dx -0.020"
void signs(std::string_view text, FactSink& sink) {
  static const RE2 pair(
      R"((?i)\b(?:command\w*|sent|target|desired|action)[ :=]{1,3}([a-z]\w*)[ :=]{1,3}([+-]?\d+\.\d+)\W.{0,30}?\b(?:observed|measured|actual|moved|achieved|executed)[ :=]{1,3}([a-z]\w*)[ :=]{1,3}([+-]?\d+\.\d+))");
  const auto flipped = [](std::string_view line) {
    std::string a, b;
    double x = 0, y = 0;
    if (!RE2::PartialMatch(piece(line), pair, &a, &x, &b, &y) || a != b) return false;
    return x != 0 && y != 0 && x * y <= 0 && std::abs(std::abs(y / x) - 1) <= 0.3;
  };
  count_lines(text, "report.sign_flips", 1, flipped, sink);
}

/// "dataset gripper 0.04 (closed), command sent 0.96"
void complement(std::string_view text, FactSink& sink) {
  static const RE2 pair(
      R"((?i)\bgripper\W{1,4}([01]?\.\d+|[01])\b.{0,40}?\b(?:command\w*|sent|predicted|policy|output|robot)\b\W{0,3}(?:sent|gripper|command)?\W{0,4}([01]?\.\d+|[01])\b)");
  const auto complements = [](std::string_view line) {
    double a = 0, b = 0;
    return RE2::PartialMatch(piece(line), pair, &a, &b) && std::abs(a + b - 1) <= 0.06 && std::abs(a - b) >= 0.5;
  };
  count_lines(text, "report.gripper_complement", 2, complements, sink);
}

double largest(const std::vector<double>& values) {
  double out = 0;
  for (double x : values)
    if (std::isfinite(x)) out = std::max(out, std::abs(x));
  return out;
}

void action_sizes(std::string_view text, FactSink& sink) {
  double predicted = 0, recorded = 0;
  std::uint64_t at = 0;
  std::string said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 16'384 || !mentions(line, "action")) return;
    const auto numbers = bracketed_numbers(line);
    if (numbers.size() < 2) return;
    if (mentions_any(line, {"predicted", "policy", "output", "sent", "model"}) &&
        !mentions_any(line, {"dataset", "recorded", "demonstr", "normali"})) {
      predicted = std::max(predicted, largest(numbers));
    } else if (mentions_any(line, {"dataset", "recorded", "demonstr", "ground truth", "expert", "label"})) {
      recorded = std::max(recorded, largest(numbers));
      at = number;
      said = std::string(line);
    }
  });
  if (predicted > 0 && recorded > 0) sink.number("report.action_ratio", recorded / predicted, at, said);
}

/// "stats.json action mean [..] std [..]" and the same recomputed.
void moved_statistics(std::string_view text, FactSink& sink) {
  std::map<std::string, std::vector<double>> means;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 16'384) return;
    const auto mean = line.find("mean"), spread = line.find("std");
    if (mean == std::string_view::npos || spread == std::string_view::npos || spread < mean) return;
    const auto m = bracketed_numbers(line.substr(mean, spread - mean)), s = bracketed_numbers(line.substr(spread));
    if (m.empty() || m.size() != s.size()) return;
    const std::string of = mentions(line, "state") ? "state" : mentions(line, "action") ? "action" : "";
    const auto before = means.find(of);
    if (before != means.end() && before->second.size() == m.size() &&
        mentions_any(line, {"recomput", "actual", "measured", "data", "rows", "true"})) {
      double distance = 0;
      for (std::size_t i = 0; i < m.size(); ++i)
        if (s[i] > 0) distance = std::max(distance, std::abs(m[i] - before->second[i]) / s[i]);
      sink.number("report.stats_moved", distance, number, line);
    }
    means[of] = m;
  });
}

void limits(std::string_view text, FactSink& sink) {
  static const RE2 range(
      R"((?i)\b(?:declared|joint|position|allowed|physical)\b.{0,30}\b(?:range|limits?|bounds)\b.{0,20}?[\[(]\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*[\])])");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double low = 0, high = 0;
    if (line.size() <= max_line && RE2::PartialMatch(piece(line), range, &low, &high) && low < high)
      sink.number("report.limit_high", std::max(std::abs(low), std::abs(high)), number, line);
  });
}

/// Named times of a profile: what waits for data, and what computes.
void profile(std::string_view text, FactSink& sink) {
  static const RE2 timed(R"((?i)^\W*((?:[a-z_]+[ /-]?){1,5}?)\W{1,20}(\d+(?:\.\d+)?)\s*(ms|s|us)\b)");
  double load = 0, compute = 0;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::string name, unit;
    double value = 0;
    if (line.size() > 400 || !RE2::PartialMatch(piece(line), timed, &name, &value, &unit)) return;
    value *= unit == "s" ? 1000 : unit == "us" ? 0.001 : 1;
    if (mentions_any(name,
                     {"batch wait", "data wait", "dataload", "data load", "loader", "fetch", "get_batch", "next batch", "data time", "decode"})) {
      load += value;
      at = number;
    } else if (mentions_any(name, {"forward", "backward", "optimizer", "compute", "model", "update"})) {
      compute += value;
    }
  });
  if (load > 0 && compute > 0) sink.number("report.load_share", load / (load + compute), at);
}

void loops(std::string_view text, FactSink& sink) {
  static const RE2 period(
      R"((?i)\b(?:loop|control|cycle|step)\b.{0,24}\b(?:dt|period|time|interval)\b\W{0,3}(?:mean|avg|average|median)?\W{0,3}(\d+(?:\.\d+)?) ?ms\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double ms = 0;
    if (line.size() > 2000 || !RE2::PartialMatch(piece(line), period, &ms) || ms <= 0) return;
    sink.number("rate.loop_low", 900 / ms, number, line);
    sink.number("rate.loop_high", 1100 / ms, number, line);
  });
}

void learning_curve(std::string_view text, FactSink& sink) {
  static const RE2 point(
      R"((?i)\b(?:checkpoint|step|ckpt|steps)\W{0,4}(\d{2,9})(k?)\b.{0,40}?\bsuccess\w*(?:[_ ]rate)?\W{1,4}(?:(\d{1,6})\s*/\s*(\d{1,6})|(\d{1,3}(?:\.\d+)?)\s*%|([01]\.\d+)))");
  static const RE2 replay(R"((?i)\breplay\w*\b.{0,60}?\b(\d{1,6})\s*/\s*(\d{1,6})\b)");
  std::vector<std::pair<double, double>> points;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    double step = 0, a = 0, b = 0;
    if (RE2::PartialMatch(piece(line), replay, &a, &b) && b >= 3 && a >= 0.8 * b && a <= b) sink.add("eval.replay_succeeds", true, number, line);
    std::string thousand, good, of, percent, rate;
    if (!RE2::PartialMatch(piece(line), point, &step, &thousand, &good, &of, &percent, &rate)) return;
    double value = 0;
    if (!good.empty() && to_real(of).value_or(0) > 0)
      value = *to_real(good) / *to_real(of);
    else
      value = !percent.empty() ? to_real(percent).value_or(0) / 100 : to_real(rate).value_or(0);
    if (!thousand.empty()) step *= 1000;
    points.emplace_back(step, value);
    at = number;
  });
  if (points.size() < 3) return;
  bool rises = true;
  for (std::size_t i = 1; i < points.size(); ++i) rises = rises && points[i].first > points[i - 1].first && points[i].second >= points[i - 1].second;
  if (rises && points.back().second > points.front().second + 0.1 && points.back().second < 0.9) sink.add("eval.rises_with_steps", true, at);
}

/// Prompts and their answers: `>>> expression` and `$ command`, with the lines of numbers below.
void answers(std::string_view text, FactSink& sink) {
  std::string asked;
  std::vector<std::string> wanted;  // of jq: the totals in the order in which they are printed
  std::uint64_t at = 0;
  double bad = 0;
  const auto close = [&] {
    if (bad > 0) {
      const bool weights = mentions_any(asked, {"sd.", "state_dict", "weight", "param", "tensors", "ckpt"});
      sink.number(weights ? "report.nonfinite_weights" : "report.nonfinite_data", bad, at, asked);
    }
    bad = 0;
    wanted.clear();
  };
  static const RE2 total(R"(\.?(total_episodes|total_frames))");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 65'536) return;
    const std::string_view body = trim(line);
    if (body.starts_with(">>>") || body.starts_with("In [") || body.starts_with("$ ")) {
      close();
      asked = std::string(body.substr(0, 400));
      re2::StringPiece rest = piece(asked);
      std::string name;
      if (asked.find("jq ") != std::string::npos)
        while (RE2::FindAndConsume(&rest, total, &name)) wanted.push_back(name);
      return;
    }
    if (asked.empty()) return;
    at = number;
    const auto single = to_real(body);
    if (single && !wanted.empty()) {
      sink.number("dataset.info." + wanted.front(), *single, number, line);
      wanted.erase(wanted.begin());
      return;
    }
    if (single && asked.find("wc -l") != std::string::npos && asked.find("episodes.jsonl") != std::string::npos)
      sink.number("dataset.episodes.count", *single, number, line);
    if (single && asked.find("len(") != std::string::npos && asked.find("read_parquet") != std::string::npos &&
        asked.find("sum(") != std::string::npos)
      sink.number("dataset.rows.total", *single, number, line);
    if (asked.find("is_unique") != std::string::npos && asked.find("index") != std::string::npos && (body == "False" || body == "True"))
      sink.add("dataset.rows.index_unique", body == "True", number, line);
    if (asked.find("isnan") != std::string::npos || asked.find("isfinite") != std::string::npos || asked.find("isinf") != std::string::npos ||
        asked.find("isna") != std::string::npos) {
      const bool counts = asked.find("sum(") != std::string::npos;
      static const RE2 number_pattern(R"((?:^|[\s\[:(,])(\d{1,12})(?:[,\])}\s]|$))");
      re2::StringPiece rest = piece(body);
      double value = 0;
      while (counts && RE2::FindAndConsume(&rest, number_pattern, &value)) bad += value;
      if (!counts && body == "True" && asked.find("isfinite") == std::string::npos) bad += 1;
    }
    if (asked.find("frame_index") != std::string::npos) {
      const auto list = bracketed_numbers(body);
      double jumps = 0, back = 0;
      for (std::size_t i = 1; i < list.size(); ++i) {
        if (list[i] != list[i - 1] + 1 && list[i] != 0) ++jumps;
        if (list[i] < list[i - 1] && list[i] != 0) ++back;
      }
      if (list.size() >= 4) {
        sink.number("dataset.rows.frame_jumps", jumps, number, line);
        sink.number("dataset.rows.frame_descents", back, number, line);
      }
    }
  });
  close();
}

}  // namespace

void extract_report(std::string_view text, std::string_view source, Facts& out) {
  if (text.size() > max_report) return;  // a log of a run, no report
  FactSink sink(source, out);
  if (text.find(">>>") != std::string_view::npos || text.find("$ ") != std::string_view::npos || text.find("In [") != std::string_view::npos)
    answers(text, sink);
  if (mentions_any(text, {"rows", "frames", "files", "width="})) counts(text, sink);
  if (mentions_any(text, {"rgb", "mean colour", "mean color", " r "})) colours(text, sink);
  if (mentions_any(text, {"observed", "measured", "moved", "achieved", "executed"})) signs(text, sink);
  if (mentions(text, "gripper")) complement(text, sink);
  if (mentions(text, "action")) action_sizes(text, sink);
  if (text.find("std") != std::string_view::npos && text.find("mean") != std::string_view::npos) moved_statistics(text, sink);
  if (mentions_any(text, {"range", "limit", "bounds"})) limits(text, sink);
  if (mentions_any(text, {"forward", "backward", "compute", "optimizer"})) profile(text, sink);
  if (text.find("ms") != std::string_view::npos && mentions_any(text, {"loop", "control", "cycle"})) loops(text, sink);
  if (mentions(text, "success") || mentions(text, "replay")) learning_curve(text, sink);
}

}  // namespace ff::diagnosis
