// Short series of measurements that users and tools print.
//
//   series.first_ratio    first time of a numbered series ("image 1: 212 s, image 2: 4.1 s, …") over the median of the others
//   series.tail_ratio     largest named percentile (p99, p99.9, max) over the median of one line
//   series.memory_growth  last over first of at least four memory readings that only grow
//   series.runs_differ    true: a loop that prints a checksum printed different ones
//   series.same_seed_differs  true: a command with a seed, typed again, gave another result

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "capture/transcript.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

inline constexpr std::size_t max_series_line = 2000;
inline constexpr std::size_t max_points = 10'000;

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

struct Point {
  double value = 0;
  std::uint64_t line = 0;
};

/// "image 1: 212.4 s", "run 3 took 4.1s", "iteration 2 - 812 ms".
void first_of_series(std::string_view text, FactSink& sink) {
  static const RE2 timed(
      R"((?i)\b(image|run|iter(?:ation)?|step|call|batch|request|prompt|epoch|trial|inference)\s*#?(\d{1,6})\b\W{0,6}(?:took|takes|time|in)?\W{0,4}(\d{1,6}(?:\.\d+)?)\s*(ms|s|sec|seconds)\b)");
  std::map<std::string, std::vector<Point>> series;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_series_line) return;
    std::string word, unit;
    std::int64_t index = 0;
    double value = 0;
    if (!RE2::PartialMatch(piece(line), timed, &word, &index, &value, &unit)) return;
    auto& points = series[lower(word)];
    if (points.size() < max_points) points.push_back({lower(unit) == "ms" ? value / 1000 : value, number});
  });
  for (auto& [word, points] : series) {
    if (points.size() < 3) continue;
    std::vector<double> rest;
    for (std::size_t i = 1; i < points.size(); ++i) rest.push_back(points[i].value);
    std::nth_element(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2), rest.end());
    const double median = rest[rest.size() / 2];
    if (median > 0 && points.front().value >= 1) sink.number("series.first_ratio", points.front().value / median, points.front().line);
  }
}

void tail(std::string_view text, FactSink& sink) {
  static const RE2 middle(R"((?i)\b(?:p50|median)\W{1,4}(\d+(?:\.\d+)?))");
  static const RE2 high(R"((?i)\b(?:p99(?:\.\d+)?|max(?:imum)?)\W{1,4}(\d+(?:\.\d+)?))");
  // On one line, or a column of them: the percentiles of one block stand within a few lines.
  constexpr std::uint64_t block = 8;
  static const RE2 unit(R"(\d\s*(ms|us|µs|s)\b)");
  double of_block = 0;
  std::uint64_t block_line = 0;
  std::string block_unit;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_series_line) return;
    double median = 0, value = 0, largest = 0;
    std::string its_unit;
    RE2::PartialMatch(piece(line), unit, &its_unit);
    const bool has_median = RE2::PartialMatch(piece(line), middle, &median) && median > 0;
    re2::StringPiece rest = piece(line);
    while (RE2::FindAndConsume(&rest, high, &value)) largest = std::max(largest, value);
    if (has_median && largest > 0) {
      sink.number("series.tail_ratio", largest / median, number, line);
    } else if (has_median) {
      of_block = median;
      block_line = number;
      block_unit = its_unit;
    } else if (largest > 0 && of_block > 0 && number - block_line <= block && its_unit == block_unit) {
      sink.number("series.tail_ratio", largest / of_block, number, line);
    }
  });
}

void memory_growth(std::string_view text, FactSink& sink) {
  // The unit stands behind the number ("mem: 12.1 GiB") or in the name ("rss_gb=41.2").
  static const RE2 reading(
      R"re((?i)\b[a-z_]*(?:mem(?:ory)?|vram|allocated|rss)[a-z_]*?(?:_([gm])i?b)?["']?[^\w.+-]{1,6}(\d+(?:\.\d+)?)\s*(?:([gm])(?:i?b)?\b)?)re");
  // torch.cuda.memory_allocated() and its kin count bytes: a large whole number without a unit.
  static const RE2 bytes(R"((?i)memory_(?:allocated|reserved)(?:\(\w*\))?["']?[^\w.+-]{1,4}(\d{8,15})\b)");
  static const RE2 counted(R"((?i)\b(?:step|iter(?:ation)?|epoch|batch)\W{0,4}\d)");
  std::vector<Point> points;
  bool grows = true;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double value = 0;
    std::string named, unit;
    if (line.size() > max_series_line || points.size() >= max_points || !RE2::PartialMatch(piece(line), counted)) return;
    if (RE2::PartialMatch(piece(line), bytes, &value)) {
      value /= 1024.0 * 1024.0 * 1024.0;
    } else {
      if (!RE2::PartialMatch(piece(line), reading, &named, &value, &unit) || (named.empty() && unit.empty())) return;
      if (lower(unit.empty() ? named : unit) == "m") value /= 1024;
    }
    if (!points.empty() && value <= points.back().value) grows = false;
    points.push_back({value, number});
  });
  if (points.size() >= 4 && grows && points.front().value > 0 && points.back().value - points.front().value >= 0.5)
    sink.number("series.memory_growth", points.back().value / points.front().value, points.back().line);
}

/// A loop whose output is one checksum a turn.
void runs(std::string_view text, FactSink& sink) {
  static const RE2 loop(R"(\b(?:for|while|seq)\b.*\b(?:md5sum|sha\d+sum|cksum|b2sum|xxhsum)\b)");
  static const RE2 sum(R"(^\s*([0-9a-f]{8,128}\b|[0-9a-f]{4,128}(?:\.{2,3}|\x{2026})))");
  for (const capture::TranscriptPiece& p : capture::split_transcript(text)) {
    if (!RE2::PartialMatch(p.command, loop)) continue;
    std::vector<std::string> seen;
    for (std::string_view line : lines(p.output)) {
      std::string one;
      if (seen.size() < max_points && RE2::PartialMatch(piece(line), sum, &one)) seen.push_back(one);
    }
    if (seen.size() >= 2)
      sink.add("series.runs_differ", std::any_of(seen.begin(), seen.end(), [&](const std::string& s) { return s != seen.front(); }), p.command_line,
               p.command);
  }
}

/// The same command with a seed, more than once in a transcript: did it answer the same? Times may differ, results may not.
void same_command(std::string_view text, FactSink& sink) {
  static const RE2 seeded(R"((?i)\bseeds?\b)");
  static const RE2 judged(R"((?i)\b(?:success\w*|reward\w*|score|return|pc_success|result\w*|accuracy|loss)\b)");
  std::map<std::string, std::vector<std::string>> answers;
  for (const capture::TranscriptPiece& p : capture::split_transcript(text)) {
    if (p.command.size() > max_series_line || !RE2::PartialMatch(p.command, seeded) || answers.size() >= max_points) continue;
    std::string results;
    for (std::string_view line : lines(p.output))
      if (line.size() <= max_series_line && results.size() < 4 * max_series_line && RE2::PartialMatch(piece(line), judged))
        results += std::string(trim(line)) + "\n";
    if (results.empty()) continue;
    auto& seen = answers[std::string(trim(p.command))];
    seen.push_back(results);
    if (seen.size() == 2) sink.add("series.same_seed_differs", seen[0] != seen[1], p.command_line, p.command);
  }
}

}  // namespace

void extract_series(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  first_of_series(text, sink);
  if (text.find("p99") != std::string_view::npos || text.find("P99") != std::string_view::npos) tail(text, sink);
  if (mentions_any(text, {"mem", "vram", "alloc", "rss"})) memory_growth(text, sink);
  if (text.find("sum") != std::string_view::npos && mentions_any(text, {"md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "b2sum", "xxhsum"}))
    runs(text, sink);
  if (mentions_any(text, {"seed"})) same_command(text, sink);
}

}  // namespace ff::diagnosis
