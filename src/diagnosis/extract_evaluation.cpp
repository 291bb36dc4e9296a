// Success rates in any layout: "37/100", "success_rate=0.00 (0/5)", "pc_success 12.0", tables with a column "success".
//
//   eval.{results,best,worst,contrast}   rates 0..1; contrast = best - worst of lines that can be compared
//   eval.contrast_clear                  true: the two Wilson 95 % intervals do not overlap
//   eval.same_weights                    true: one of the lines says that checkpoint, policy or data are the same
//   eval.other_weights                   true: the better line names another (published, reference) checkpoint
//   eval.better_label                    words that the better line has and the worse lacks, behind those that both have
//   eval.better_with                     a setting that the better line names: "extra_delta_transform=False"
//   eval.init_states.{episodes,distinct,repeats} per-episode lines with an initial-state number; repeats: episodes for each
//                                        state in one series whose episode numbers rise
//   eval.seed_repeats_differ             true: one seed stands beside different results
//   eval.all_zero                        true: several results and every one is 0
//   eval.first_only                      true: the first episode succeeds and none of at least three later ones does
//   eval.no_criterion                    true: a result names its criterion of success, and it is null

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

struct Result {
  double rate = 0;
  double episodes = 0;  ///< 0: not said
  std::uint64_t line = 0;
  std::string text;
};

struct Interval {
  double low, high;
};

/// Wilson score interval, 95 %.
Interval wilson(double rate, double n) {
  constexpr double z = 1.959963984540054;
  const double centre = (rate + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z * std::sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  return {centre - half, centre + half};
}

std::optional<Result> result_of(std::string_view line, bool in_success_table) {
  static const RE2 fraction(R"((?:^|[\s:=(])(\d{1,7})\s*/\s*(\d{1,7})(?:$|[\s),;%=]))");
  static const RE2 counts(R"((?i)(\d{1,7}) (?:episodes|trials|rollouts),? (\d{1,7}) success)");
  static const RE2 percent(R"((?i)(?:pc_success|success(?:[_ ]rate)?)['\"]?\s*[:= ]\s*(\d{1,3}(?:\.\d+)?)\s*%)");
  static const RE2 pc(R"((?i)pc_success['\"]?\s*[:= ]\s*(\d{1,3}(?:\.\d+)?))");
  static const RE2 plain(R"((?i)success(?:[_ ]?rate)?['\"]?\s*[:= ]\s*([01](?:\.\d+)?)(?:$|[\s,;)}]))");
  static const RE2 last_column(R"((?:^|\s)(\d{1,7})\s+([01](?:\.\d+)?)\s*$)");
  Result result;
  result.text = std::string(line.substr(0, 300));
  double a = 0, b = 0;
  if (RE2::PartialMatch(piece(line), counts, &a, &b) && a > 0 && b <= a) {
    result.rate = b / a;
    result.episodes = a;
    return result;
  }
  const bool talks = mentions(line, "success") || in_success_table;
  if (RE2::PartialMatch(piece(line), fraction, &a, &b) && b >= 3 && a <= b &&
      (talks || mentions_any(line, {"checkpoint", "evaluation", "libero", "policy", "rollout", "episodes"}))) {
    result.rate = a / b;
    result.episodes = b;
    return result;
  }
  if (!talks) return std::nullopt;
  if (RE2::PartialMatch(piece(line), percent, &a) && a <= 100) {
    result.rate = a / 100;
    return result;
  }
  if (RE2::PartialMatch(piece(line), pc, &a) && a <= 100) {
    result.rate = a / 100;
    return result;
  }
  if (RE2::PartialMatch(piece(line), plain, &a) && a <= 1) {
    result.rate = a;
    return result;
  }
  if (in_success_table && RE2::PartialMatch(piece(line), last_column, &a, &b) && b <= 1) {
    result.rate = b;
    result.episodes = a;
    return result;
  }
  return std::nullopt;
}

/// "1/1", "1/2", … "1/12" of a running count, or single outcomes in order: whether only the first episode succeeded.
void first_only(std::string_view text, FactSink& sink) {
  static const RE2 running(R"((?i)success[ _]?rate\W+(\d{1,6})\s*/\s*(\d{1,6}))");
  static const RE2 outcome(R"((?i)\b(?:episode|rollout|trial)\W{0,3}(\d{1,6})\b.{0,60}\bsuccess\w*\W{1,4}(true|false|yes|no|0|1)\b)");
  bool begun = false, only = false, other = false;
  std::int64_t last_total = 0, singles = 0;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    std::int64_t successes = 0, total = 0;
    std::string result;
    if (RE2::PartialMatch(piece(line), running, &successes, &total)) {
      if (total == 1) {
        begun = true;
        only = successes == 1;
        at = number;
      }
      if (begun && successes > 1) other = true;
      last_total = total;
    } else if (RE2::PartialMatch(piece(line), outcome, &total, &result)) {
      const std::string low = lower(result);
      const bool good = low == "true" || low == "yes" || low == "1";
      if (singles == 0) {
        begun = true;
        only = good;
        at = number;
      } else if (good) {
        other = true;
      }
      last_total = ++singles;
    }
  });
  if (begun && only && !other && last_total >= 4) sink.add("eval.first_only", true, at);
}

void criterion(std::string_view text, FactSink& sink) {
  static const RE2 none(
      R"re("(?:success_fn|success_criterion|success_criteria|success_condition|success_check)"\s*:\s*(?:null|"")|(?i)\bno success criterion\b)re");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() <= 4096 && RE2::PartialMatch(piece(line), none)) sink.add("eval.no_criterion", true, number, line);
  });
}

void contrast_facts(const std::vector<Result>& results, FactSink& sink) {
  const auto [worst, best] = std::minmax_element(results.begin(), results.end(), [](const Result& a, const Result& b) { return a.rate < b.rate; });
  sink.number("eval.results", static_cast<double>(results.size()));
  sink.number("eval.best", best->rate, best->line, best->text);
  sink.number("eval.worst", worst->rate, worst->line, worst->text);
  sink.number("eval.contrast", best->rate - worst->rate, best->line, best->text);
  if (results.size() >= 2 && best->rate == 0) sink.add("eval.all_zero", true, best->line, best->text);
  bool clear = best->rate - worst->rate >= 0.3;
  if (best->episodes > 0 && worst->episodes > 0) clear = wilson(best->rate, best->episodes).low > wilson(worst->rate, worst->episodes).high;
  sink.add("eval.contrast_clear", clear, best->line, best->text);
  if (!clear) return;
  const std::string both = worst->text + "\n" + best->text;
  if (mentions_any(both,
                   {"same checkpoint", "same weights", "same policy", "same model", "same data", "in-process", "in process", "locally", "same step"}))
    sink.add("eval.same_weights", true, best->line, best->text);
  if (mentions_any(best->text,
                   {"published", "official", "released", "their checkpoint", "other checkpoint", "reference checkpoint", "upstream checkpoint"}) ||
      mentions_any(worst->text, {"own checkpoint", "our checkpoint", "my checkpoint"}))
    sink.add("eval.other_weights", true, best->line, best->text);
  // Words in which the two lines differ, behind those that they share: "instruction natural language / bare task name".
  const auto words_of = [](const std::string& line) {
    std::vector<std::string> out;
    for (std::string_view word : words(line))
      if (word.find_first_of("0123456789") == std::string_view::npos && word.size() > 2) out.emplace_back(lower(word));
    return out;
  };
  const auto ours = words_of(best->text), theirs = words_of(worst->text);
  std::string shared, other;
  for (const std::string& word : ours) {
    const bool shares = std::find(theirs.begin(), theirs.end(), word) != theirs.end();
    if (word.find("success") == std::string::npos) (shares ? shared : other) += word + " ";
  }
  if (!other.empty()) sink.add("eval.better_label", shared + "/ " + other, best->line, best->text);
  static const RE2 setting(R"(([A-Za-z][\w.]*\s*[=:]\s*(?:True|False|true|false|\d+(?:\.\d+)?|[a-z_]+))(?:$|[\s,;)]))");
  re2::StringPiece rest = piece(best->text);
  std::string word;
  while (RE2::FindAndConsume(&rest, setting, &word)) {
    if (mentions(word, "success") || mentions(word, "episodes") || mentions(word, "seed")) continue;
    if (worst->text.find(word) == std::string::npos) sink.add("eval.better_with", word, best->line, best->text);
  }
}

}  // namespace

void extract_evaluation(std::string_view text, std::string_view source, Facts& out) {
  if (!mentions(text, "success")) {
    if (!mentions_any(text, {"checkpoint", "libero", "rollout"})) return;
  }
  FactSink sink(source, out);
  std::vector<Result> results;
  std::set<std::int64_t> states;
  std::int64_t episodes = 0;
  // One series of episodes: their numbers rise. The next task begins again.
  std::set<std::int64_t> series;
  std::int64_t series_episodes = 0, last_episode = -1;
  double repeats = 0;
  std::map<std::int64_t, std::set<std::string>> by_seed;
  static const RE2 episode_number(R"((?i)\bepisode\s*[:#=]?\s*(\d{1,6}))");
  static const RE2 seed_number(R"((?i)\bseed\s*[:=]?\s*(\d{1,9}))");
  bool table = false;
  static const RE2 init_state(R"((?i)\binit(?:ial)?_?state(?:_?(?:id|idx|index))?\s*[:= ]\s*(\d{1,6}))");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 4096 || results.size() >= 10'000) return;
    std::int64_t state = 0;
    if (RE2::PartialMatch(piece(line), init_state, &state)) {
      ++episodes;
      states.insert(state);
      std::int64_t episode = 0;
      if (RE2::PartialMatch(piece(line), episode_number, &episode)) {
        if (episode <= last_episode) {
          series.clear();
          series_episodes = 0;
        }
        last_episode = episode;
        series.insert(state);
        repeats = std::max(repeats, static_cast<double>(++series_episodes) / static_cast<double>(series.size()));
      }
      return;  // an episode, no rate
    }
    const auto parts = words(line);
    if (parts.empty()) {
      table = false;
      return;
    }
    // A header names the column; the numbers stand below it.
    if (mentions(line, "success") && line.find_first_of("0123456789") == std::string_view::npos) {
      table = parts.size() >= 2;
      return;
    }
    if (auto result = result_of(line, table)) {
      result->line = number;
      std::int64_t seed = 0;
      if (RE2::PartialMatch(piece(line), seed_number, &seed) && !mentions(line, "current seed")) by_seed[seed].insert(std::to_string(result->rate));
      results.push_back(std::move(*result));
    }
  });
  if (episodes >= 2) {
    sink.number("eval.init_states.episodes", static_cast<double>(episodes));
    sink.number("eval.init_states.distinct", static_cast<double>(states.size()));
    if (repeats > 0) sink.number("eval.init_states.repeats", repeats);
  }
  if (std::any_of(by_seed.begin(), by_seed.end(), [](const auto& entry) { return entry.second.size() >= 2; }))
    sink.add("eval.seed_repeats_differ", true);
  if (!results.empty()) contrast_facts(results, sink);
  if (mentions(text, "success")) {
    first_only(text, sink);
    criterion(text, sink);
  }
}

}  // namespace ff::diagnosis
