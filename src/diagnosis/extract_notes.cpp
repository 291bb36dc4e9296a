// Measurements and counts in people's own notes: what two numbers of one text say when they are held together.
//
//   gripper.{low,high}            "gripper width 0.0 m to 0.08 m", "the controller takes 0..255" near a line about the gripper
//   report.beyond_limits          joints of a table whose extremes lie beyond its columns of limits
//   series.tail_ratio             of a table of step times: the longest over the median
//   report.library_rate_ratio     one work on two libraries: the higher rate over the lower
//   report.transfer_gbs           highest named copy rate between host and device, GB/s
//   dataset.{info.total_episodes,info.total_frames,episodes.count}   counts in words ("episodes.jsonl: 48 lines")
//   report.counts_differ          "tasks": rows name tasks that the list of tasks does not have
//   report.error_contrast         one operation computed two ways: the larger error over the smaller
//   report.hot_and_slow          true: rows of a table in which the hotter part has a third less clock
//   report.scale_255             true: means of two sets of pictures that differ by about 255
//   rate.pause_share             latency of a policy's answer over how long one chunk of actions lasts
//   dataset.rows.frame_jumps     frames that a range names and its number of rows lacks
//   report.half_only_nonfinite    true: one place overflows in float16 and stays finite in a wider type
//   report.rate_contrast          final losses of two learning rates, the worse over the better
//   report.rate_worse             the learning rate of the worse
//   files.same_name_share         the smallest of the newer files over the older one of the same name, in a listing
//   eval.same_seeds_differ        true: one checkpoint on the same seeds, and the rates of two evaluations differ
//   dataset.rows.time_errors      of a printed list of time stamps beside its fps

#include <re2/re2.h>

#include <algorithm>
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
constexpr std::size_t max_text = 1u << 20;
constexpr std::size_t max_rows = 100'000;
constexpr std::size_t max_ranges = 500;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void grippers(std::string_view text, FactSink& sink) {
  static const RE2 with_units(
      R"((?i)\b(?:gripper|finger|jaw)\w*[^\n\d]{0,60}?(-?\d+(?:\.\d+)?) ?(?:mm|cm|m|rad|deg\w*|%)? ?(?:\.\.\.?|to|and|-) ?(-?\d+(?:\.\d+)?) ?(?:mm|cm|m|rad|deg\w*|%)?(?:[\s,;.)]|$))");
  static const RE2 takes(
      R"((?i)\b(?:controller|driver|robot|env\w*|hand|firmware|servo|command|simulator|api)\b[^\n\d]{0,20}\b(?:takes|expects|wants|accepts|reads|needs|range is)\b[^\n\d]{0,20}(-?\d+(?:\.\d+)?) ?(?:\.\.\.?|to|and) ?(-?\d+(?:\.\d+)?))");
  std::uint64_t spoken_of = 0;
  std::size_t ranges = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line || ranges >= max_ranges) return;
    if (mentions_any(line, {"gripper", "finger", "jaw"})) spoken_of = number;
    double low = 0, high = 0;
    const bool named = RE2::PartialMatch(piece(line), with_units, &low, &high);
    if (!named && (spoken_of == 0 || number - spoken_of > 2 || !RE2::PartialMatch(piece(line), takes, &low, &high))) return;
    if (low >= high || ++ranges > max_ranges || sink.has("gripper.low", number)) return;
    sink.number("gripper.low", low, number, line);
    sink.number("gripper.high", high, number, line);
  });
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> out;
  std::string cell;
  const bool commas = std::count(line.begin(), line.end(), ',') > 0;
  for (char c : line) {
    const bool ends = commas ? c == ',' : c == ' ' || c == '\t' || c == '|';
    if (!ends) {
      cell += c;
      continue;
    }
    if (commas || !cell.empty()) out.emplace_back(trim(cell));
    cell.clear();
  }
  if (!cell.empty()) out.emplace_back(trim(cell));
  return out;
}

/// Tables with a header of words: limits beside extremes, and step times.
void tables(std::string_view text, FactSink& sink) {
  struct Columns {
    std::size_t count = 0;
    std::optional<std::size_t> min, max, lower, upper, time, heat, clock;
  };
  std::optional<Columns> header;
  std::vector<double> times;
  std::vector<std::pair<double, double>> readings;  // temperature, clock
  double beyond = 0;
  std::uint64_t at = 0, header_line = 0;
  std::string said;
  const auto close = [&] {
    if (beyond > 0) sink.number("report.beyond_limits", beyond, at, said);
    // The first two pay for compilation and caches.
    if (times.size() >= 10 && median(times) > 0)
      sink.number("series.tail_ratio", *std::max_element(times.begin() + 2, times.end()) / median(times), header_line);
    if (readings.size() >= 3) {
      const auto [cold, hot] = std::ranges::minmax_element(readings);
      const double fastest = std::ranges::max_element(readings, {}, &std::pair<double, double>::second)->second;
      if (hot->first >= 95 && hot->first - cold->first >= 5 && hot->second < 0.67 * fastest) sink.add("report.hot_and_slow", true, header_line);
    }
    readings.clear();
    times.clear();
    beyond = 0;
    header.reset();
  };
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    const auto cells = cells_of(line);
    const auto numbers = static_cast<std::size_t>(std::ranges::count_if(cells, [](const std::string& c) { return to_real(c).has_value(); }));
    if (cells.size() >= 2 && numbers == 0) {
      close();
      Columns c;
      c.count = cells.size();
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string name = lower(cells[i]);
        const bool limit = mentions_any(name, {"limit", "lower", "upper", "bound", "urdf", "allowed", "_lo", "_hi"});
        if (limit && mentions_any(name, {"low", "min"})) c.lower = i;
        if (limit && mentions_any(name, {"upp", "max", "high", "_hi"})) c.upper = i;
        if (!limit && name.find("min") != std::string::npos) c.min = i;
        if (!limit && name.find("max") != std::string::npos) c.max = i;
        if (mentions_any(name, {"junction", "hotspot", "edge", "temp"}) && (!c.heat || mentions_any(name, {"junction", "hotspot"}))) c.heat = i;
        if (mentions_any(name, {"sclk", "gfxclk", "clock", "mhz"}) && !mentions_any(name, {"mem", "mclk"})) c.clock = i;
        if (name == "ms" || name == "s" || name == "seconds" || name == "latency" || name == "duration" || name.ends_with("_ms") ||
            name.ends_with("_s") || name == "time" || name == "dt" || name == "step_time")
          c.time = i;
      }
      if ((c.min && c.max && c.lower && c.upper) || c.time || (c.heat && c.clock)) {
        header = c;
        header_line = number;
      }
      return;
    }
    if (!header || cells.size() != header->count) {
      if (numbers == 0) close();
      return;
    }
    const auto value = [&](std::optional<std::size_t> column) { return column ? to_real(cells[*column]) : std::nullopt; };
    const auto low = value(header->min), high = value(header->max), lower_limit = value(header->lower), upper_limit = value(header->upper);
    if (low && high && lower_limit && upper_limit && *lower_limit < *upper_limit) {
      const double slack = 0.05 * (*upper_limit - *lower_limit);
      if (*low < *lower_limit - slack || *high > *upper_limit + slack) {
        ++beyond;
        at = number;
        said = std::string(line);
      }
    }
    const auto heat = value(header->heat), clock = value(header->clock);
    if (heat && clock && *clock > 0 && readings.size() < max_rows) readings.emplace_back(*heat, *clock);
    if (const auto t = value(header->time); t && *t > 0 && times.size() < max_rows) times.push_back(*t);
  });
  close();
}

void library_rates(std::string_view text, FactSink& sink) {
  static const RE2 rate(
      R"((?i)(\d+(?:\.\d+)?) ?(TFLOP/?s|TFLOPS|GFLOP/?s|GFLOPS|it/s|tok(?:en)?s?/s|img/s|samples/s|ms)\b[^\n\d]{0,12}\b(?:with|using|through|by|on|via|under)\b[^\n\d]{0,12}\b(hipblaslt|rocblas|miopen|composable kernel|ck|triton|aotriton|flash\w*|math|tunableop|winograd|direct|implicit gemm|cublas|eager|compile\w*)\b)");
  std::map<std::string, std::map<std::string, double>> by_unit;
  std::uint64_t at = 0;
  std::string said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    re2::StringPiece rest = piece(line);
    double value = 0;
    std::string unit, library;
    while (RE2::FindAndConsume(&rest, rate, &value, &unit, &library)) {
      if (value <= 0) continue;
      by_unit[lower(unit)].try_emplace(lower(library), value);
      at = number;
      said = std::string(line);
    }
  });
  for (const auto& [unit, libraries] : by_unit) {
    if (libraries.size() < 2) continue;
    const auto [low, high] =
        std::minmax_element(libraries.begin(), libraries.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    sink.number("report.library_rate_ratio", high->second / low->second, at, said);
  }
}

void transfers(std::string_view text, FactSink& sink) {
  static const RE2 rate(
      R"((?i)\b(?:h2d|d2h|host ?(?:to|->|=>|-) ?(?:device|gpu)|(?:device|gpu) ?(?:to|->|=>|-) ?host|hipMemcpy\w*|pinned|pageable)\b[^\n]{0,60}?(\d+(?:\.\d+)?) ?G(?:i?B)/s)");
  double best = 0;
  std::uint64_t at = 0;
  std::string said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double value = 0;
    if (line.size() > max_line || !RE2::PartialMatch(piece(line), rate, &value) || value <= best) return;
    best = value;
    at = number;
    said = std::string(line);
  });
  if (best > 0) sink.number("report.transfer_gbs", best, at, said);
}

void counts(std::string_view text, FactSink& sink) {
  static const RE2 total(R"(\b(total_episodes|total_frames)["']?\s*[:= ]\s*(\d{1,9})\s*(?:$|[,;.)]))");
  static const RE2 listed(R"((?i)\bepisodes(?:\.jsonl|\.parquet)?["']?[^\n\d{]{0,12}\b(\d{1,9}) (?:lines|entries|rows|records|episodes)\b)");
  static const RE2 task_values(R"((?:array\(|\[)\s*\[?((?:\d{1,6}[,\s]+)+\d{1,6})\s*\])");
  static const RE2 task_entry(R"re("task_index":\s*(\d{1,6}))re");
  std::optional<double> rows_task, list_task;
  bool asked_rows = false;
  std::uint64_t at = 0;
  std::string said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    double value = 0;
    std::string name;
    if (line.find('{') == std::string_view::npos && RE2::PartialMatch(piece(line), total, &name, &value))
      sink.number("dataset.info." + name, value, number, line);
    if (line.find("episodes.") != std::string_view::npos && RE2::PartialMatch(piece(line), listed, &value))
      sink.number("dataset.episodes.count", value, number, line);
    if (line.find("task_index") != std::string_view::npos && mentions_any(line, {"unique", "max()", "value_counts", "set("})) asked_rows = true;
    re2::StringPiece rest = piece(line);
    std::string listing;
    if (asked_rows && RE2::PartialMatch(rest, task_values, &listing)) {
      asked_rows = false;
      for (std::string_view word : words(listing))
        if (const auto one = to_real(word.ends_with(',') ? word.substr(0, word.size() - 1) : word)) rows_task = std::max(rows_task.value_or(0), *one);
      at = number;
      said = std::string(line);
    }
    if (line.find("\"task\"") != std::string_view::npos)
      while (RE2::FindAndConsume(&rest, task_entry, &value)) list_task = std::max(list_task.value_or(0), value);
  });
  if (rows_task && list_task && *rows_task > *list_task) sink.add("report.counts_differ", "tasks", at, said);
}

/// "max abs error  Winograd: 0.184    direct: 2.1e-05".
void errors(std::string_view text, FactSink& sink) {
  static const RE2 one(R"((?i)([A-Za-z][\w ()=./+-]{1,60}?)\s*[:=]\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:\s{2,}|\s*[,;|]\s*|\s*$))");
  static const RE2 way(
      R"((?i)miopen|rocblas|hipblaslt|winograd|direct|implicit|gemm|triton|flash|sdpa|math|tf32|fp32|float32|bf16|fp16|compile|eager|cpu|gpu|xnack|sdma|deterministic|=0\b|=1\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line || !mentions_any(line, {"error", "deviation", "difference", "diff"})) return;
    re2::StringPiece rest = piece(line);
    std::string label;
    double value = 0, least = 0, most = 0;
    int ways = 0;
    while (RE2::FindAndConsume(&rest, one, &label, &value)) {
      if (value <= 0 || !RE2::PartialMatch(label, way)) continue;
      ++ways;
      least = least == 0 ? value : std::min(least, value);
      most = std::max(most, value);
    }
    if (ways >= 2) sink.number("report.error_contrast", most / least, number, line);
  });
}

void half(std::string_view text, FactSink& sink) {
  static const RE2 half_type(R"((?i)\b(?:float16|fp16|torch\.half|half)\b)");
  static const RE2 wide_type(R"((?i)\b(?:bfloat16|bf16|float32|fp32)\b)");
  static const RE2 output(R"((?i)\b(?:out\w*|result|absmax|max|y|value)\b[^\n]{0,24}?(?:^|[\s=:])(-?inf|nan|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*$)");
  std::map<std::string, std::set<int>> seen;  // by what stands before the type: 1 overflow in half, 2 finite in a wider type
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::string value;
    if (line.size() > max_line || !RE2::PartialMatch(piece(line), output, &value)) return;
    const bool narrow = RE2::PartialMatch(piece(line), half_type), wide = RE2::PartialMatch(piece(line), wide_type);
    if (narrow == wide) return;
    const bool bad = lower(value).find_first_of("in") != std::string::npos && !to_real(value).has_value();
    const bool finite = to_real(value).has_value() && std::isfinite(*to_real(value));
    std::string place;
    for (std::string_view word : words(line)) {
      if (RE2::PartialMatch(piece(word), half_type) || RE2::PartialMatch(piece(word), wide_type)) break;
      place += std::string(word) + " ";
    }
    auto& here = seen[place];
    if (narrow && !finite) here.insert(1);
    if (wide && finite && !bad) here.insert(2);
    if (here.size() == 2) sink.add("report.half_only_nonfinite", true, number, line);
  });
}

/// Final losses beside learning rates, of several runs: in one run the rate changes as the steps go on.
void learning_rates(std::string_view text, FactSink& sink) {
  static const RE2 pair(
      R"((?i)\b(?:with|at|using|^)?\W{0,3}(?:lr|learning[_ ]rate)\W{1,3}(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b(.{0,80}?)\bloss\W{1,3}(\d+(?:\.\d+)?))");
  static const RE2 turned(R"((?i)\bloss\W{1,3}(\d+(?:\.\d+)?)\b[^;\n]{0,40}?\b(?:lr|learning[_ ]rate)\W{1,3}(\d+(?:\.\d+)?(?:e[+-]?\d+)?))");
  static const RE2 step_of(R"((?i)\bsteps?\W{1,3}(\d{1,9})\b)");
  static const RE2 other_run(R"((?i)\b(?:with|using|at) (?:lr|learning[_ ]rate)\b|\bsame\b|\binstead\b|^\W*(?:lr|learning[_ ]rate)\b)");
  std::map<double, double> last;
  double furthest = -1;
  bool comparison = false;
  std::uint64_t at = 0;
  std::string said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    double rate = 0, loss = 0, step = 0;
    std::string between;
    re2::StringPiece rest = piece(line);
    bool any = false;
    while (RE2::FindAndConsume(&rest, turned, &loss, &rate)) {
      any = true;
      if (rate > 0) last[rate] = loss;
    }
    if (!any && RE2::PartialMatch(piece(line), pair, &rate, &between, &loss) && rate > 0) {
      comparison |= !last.contains(rate) && !last.empty() && RE2::PartialMatch(piece(line), other_run);
      last[rate] = loss;
      any = true;
    }
    if (!any) return;
    at = number;
    said = std::string(line);
    re2::StringPiece steps = piece(line);
    double here = -1;
    while (RE2::FindAndConsume(&steps, step_of, &step)) here = step;
    if (here >= 0 && here > furthest && furthest >= 0) comparison = false;
    furthest = std::max(furthest, here);
  });
  if (!comparison || last.size() < 2 || last.size() > 4 || last.rbegin()->first < 4 * last.begin()->first) return;
  const auto [better, worse] = std::minmax_element(last.begin(), last.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (better->second <= 0) return;
  sink.number("report.rate_contrast", worse->second / better->second, at, said);
  sink.number("report.rate_worse", worse->first, at, said);
}

/// `ls -l` of several directories: a newer file of the same name that is smaller.
void listings(std::string_view text, FactSink& sink) {
  static const RE2 entry(R"(^-[rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+(\d+)\s+(?:.*\s)?(\S+\.(?:safetensors|bin|pt|pth|ckpt))$)");
  static const RE2 directory(R"(^(\S*?)(\d{3,9})(?:/\S*)?:$)");
  std::map<std::string, std::map<double, double>> sizes;  // name -> step -> bytes
  std::optional<double> step;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    std::string prefix, name;
    double value = 0;
    if (RE2::FullMatch(piece(trim(line)), directory, &prefix, &value)) step = value;
    if (!step || !RE2::PartialMatch(piece(line), entry, &value, &name)) return;
    sizes[name][*step] = value;
    at = number;
  });
  for (const auto& [name, by_step] : sizes)
    if (by_step.size() >= 2 && by_step.begin()->second > 0)
      sink.number("files.same_name_share", by_step.rbegin()->second / by_step.begin()->second, at, name);
}

void same_seeds(std::string_view text, FactSink& sink) {
  static const RE2 same(R"((?i)\bsame (?:\d+ |evaluation |set of )?seeds?\b)");
  static const RE2 rate(R"((?:^|[\s:(=])(\d{1,6})\s*/\s*(\d{1,6})\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line || !RE2::PartialMatch(piece(line), same)) return;
    if (mentions_any(line, {"two policies", "both policies", "two checkpoints", "two machines", "policy a", "policy b"})) return;
    re2::StringPiece rest = piece(line);
    double good = 0, of = 0;
    std::set<std::pair<double, double>> rates;
    while (RE2::FindAndConsume(&rest, rate, &good, &of))
      if (of >= 3 && good <= of) rates.emplace(good, of);
    if (rates.size() >= 2 && rates.begin()->second == rates.rbegin()->second) sink.add("eval.same_seeds_differ", true, number, line);
  });
}

/// "training images: mean 0.43 after /255", "live images: mean 109.6".
void picture_scales(std::string_view text, FactSink& sink) {
  static const RE2 mean(R"((?i)\bmean\W{1,3}(\d{1,3}(?:\.\d+)?)\b)");
  double low = 0, high = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double value = 0;
    if (line.size() > max_line || !mentions_any(line, {"image", "frame", "camera", "pixel", "picture"})) return;
    if (mentions_any(line, {"difference", "error", "diff"}) || !RE2::PartialMatch(piece(line), mean, &value) || value <= 0) return;
    (value <= 1 ? low : high) = value;
    if (low > 0 && high > 0 && high / low > 120 && high / low < 500) sink.add("report.scale_255", true, number, line);
  });
}

/// "policy server round trip: 412 ms" beside "chunk 16 actions at 30 Hz".
void pauses(std::string_view text, FactSink& sink) {
  static const RE2 latency(
      R"((?i)\b(?:round[- ]?trip|latency|inference(?: time)?|policy(?: server)? (?:takes|time|answers?(?: in)?)|select_action|forward)\b[^\n\d]{0,24}(\d+(?:\.\d+)?) ?(ms|s)\b)");
  static const RE2 chunk(
      R"((?i)(?:\bchunks?\b[^\n\d]{0,16}(\d{1,4})|(\d{1,4}) ?-?(?:actions?|steps?)(?: a| per|-)? ?chunk)\b[^\n]{0,40}?(\d+(?:\.\d+)?) ?(?:Hz|fps)\b)");
  double seconds = 0, lasts = 0;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    double value = 0, hz = 0;
    std::string unit, a, b;
    if (RE2::PartialMatch(piece(line), latency, &value, &unit)) seconds = unit == "s" ? value : value / 1000;
    if (RE2::PartialMatch(piece(line), chunk, &a, &b, &hz) && hz > 0) {
      lasts = to_real(a.empty() ? b : a).value_or(0) / hz;
      at = number;
    }
  });
  if (seconds > 0 && lasts > 0) sink.number("rate.pause_share", seconds / lasts, at);
}

/// "frame_index 0..417, 415 rows".
void frame_ranges(std::string_view text, FactSink& sink) {
  static const RE2 range(
      R"((?i)\bframes?(?:_index)?\b[^\n\d]{0,12}(\d{1,8}) ?(?:\.\.\.?|to|-) ?(\d{1,8})\b[^\n\d]{0,20}\b(\d{1,8}) (?:rows|frames|entries)\b)");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double low = 0, high = 0, rows = 0;
    if (line.size() > max_line || !RE2::PartialMatch(piece(line), range, &low, &high, &rows) || low >= high) return;
    sink.number("dataset.rows.frame_jumps", std::abs(high - low + 1 - rows), number, line);
  });
}

/// A printed list of time stamps, and the rate that the same text names.
void stamps(std::string_view text, FactSink& sink) {
  static const RE2 rate(R"((?i)\bfps\b["']?\s*(?:=>|[:=])?\s*(\d+(?:\.\d+)?)\s*(?:$|[,}]))");
  std::optional<double> fps;
  std::vector<double> times;
  std::uint64_t at = 0;
  bool asked_times = false, asked_fps = false;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line) return;
    const bool prompt = trim(line).starts_with(">>>") || trim(line).starts_with("In [");
    double value = 0;
    if (RE2::PartialMatch(piece(line), rate, &value)) fps = value;
    if (prompt) {
      asked_times = line.find("timestamp") != std::string_view::npos;
      asked_fps = line.find("fps") != std::string_view::npos;
    }
    if (!prompt && asked_fps)
      if (const auto one = to_real(trim(line))) fps = one;
    if (times.empty() && (asked_times || line.find("timestamp") != std::string_view::npos)) {
      const auto numbers = bracketed_numbers(prompt ? std::string_view{} : line);
      if (numbers.size() >= 3) {
        times = numbers;
        at = number;
      }
    }
  });
  if (!fps || *fps <= 0 || times.size() < 3) return;
  // Printed stamps are rounded: to how many digits, the stamps themselves tell.
  double grain = 1;
  const auto is_rounded = [&] { return std::ranges::all_of(times, [&](double t) { return std::abs(t / grain - std::round(t / grain)) < 1e-3; }); };
  while (grain > 1e-7 && !is_rounded()) grain /= 10;
  const double slack = 0.6 * grain * *fps + 0.003;
  double errors = 0;
  for (std::size_t i = 1; i < times.size(); ++i) errors += std::abs((times[i] - times[0]) * *fps - static_cast<double>(i)) > slack ? 1 : 0;
  sink.number("dataset.rows.time_errors", errors, at);
}

}  // namespace

void extract_notes(std::string_view text, std::string_view source, Facts& out) {
  if (text.size() > max_text) return;  // a log of a run, no note
  FactSink sink(source, out);
  if (mentions_any(text, {"gripper", "finger", "jaw"})) grippers(text, sink);
  tables(text, sink);
  if (mentions_any(text, {"FLOP", "it/s", "/s", "ms"})) library_rates(text, sink);
  if (text.find("B/s") != std::string_view::npos) transfers(text, sink);
  if (mentions_any(text, {"total_episodes", "total_frames", "episodes.jsonl", "task_index"})) counts(text, sink);
  if (mentions_any(text, {"error", "deviation", "difference"})) errors(text, sink);
  if (mentions_any(text, {"float16", "fp16", "half"})) half(text, sink);
  if (mentions(text, "loss")) learning_rates(text, sink);
  if (text.find("-rw") != std::string_view::npos) listings(text, sink);
  if (mentions(text, "same")) same_seeds(text, sink);
  if (mentions(text, "mean")) picture_scales(text, sink);
  if (mentions(text, "chunk")) pauses(text, sink);
  if (mentions(text, "frame")) frame_ranges(text, sink);
  if (text.find("timestamp") != std::string_view::npos) stamps(text, sink);
}

}  // namespace ff::diagnosis
