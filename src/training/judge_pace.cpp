// Time and memory: growth, loading, long tails, slowing down, standing still.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "training/judge.h"
#include "training/plot.h"
#include "training/statistics.h"

namespace ff::training {
namespace {

constexpr double mib = 1024.0 * 1024;

struct Points {
  std::vector<double> x, y;
  std::vector<const Record*> records;
};

/// Values of one quantity over the steps; the first `skip` share is warm-up.
Points points(const Log& log, Quantity q, double skip) {
  Points out;
  for (const auto& r : log.records)
    if (r.holds(q) && std::isfinite(r.of(q)) && std::isfinite(r.step)) {
      out.x.push_back(r.step);
      out.y.push_back(r.of(q));
      out.records.push_back(&r);
    }
  const auto cut = static_cast<std::ptrdiff_t>(skip * static_cast<double>(out.x.size()));
  out.x.erase(out.x.begin(), out.x.begin() + cut);
  out.y.erase(out.y.begin(), out.y.begin() + cut);
  out.records.erase(out.records.begin(), out.records.begin() + cut);
  return out;
}

/// How much of another quantity goes by in one step: seconds or epochs; NaN when the log does not say.
double per_step(const Points& p, auto&& of) {
  if (p.records.size() < 2) return unknown;
  const double steps = p.records.back()->step - p.records.front()->step, amount = of(*p.records.back()) - of(*p.records.front());
  return steps > 0 && amount > 0 ? amount / steps : unknown;
}

struct Growth {
  Slope slope;
  double level = 0, total = 0;
  bool grows = false;
};

/// Whether the least readings rise as well: what is taken and given back again and again (a saw) has a floor that stays.
bool floor_rises(const Points& p, double slope) {
  const std::size_t third = p.y.size() / 3;
  const double first = *std::min_element(p.y.begin(), p.y.begin() + static_cast<std::ptrdiff_t>(third));
  const double last = *std::min_element(p.y.end() - static_cast<std::ptrdiff_t>(third), p.y.end());
  const double expected = slope * (p.x[p.x.size() - third] - p.x.front());
  return last - first > 0.3 * expected;
}

Growth growth(const Points& p) {
  Growth g;
  if (p.x.size() < 8) return g;
  g.slope = robust_slope(p.x, p.y);
  g.level = median(p.y);
  g.total = p.y.back() - p.y.front();
  std::size_t falls = 0;
  for (std::size_t i = 1; i < p.y.size(); ++i) falls += p.y[i] < p.y[i - 1] ? 1 : 0;
  // The second half alone must grow too: a level that is reached once is no leak.
  const std::size_t half = p.x.size() / 2;
  const auto late = robust_slope(std::span(p.x).subspan(half), std::span(p.y).subspan(half));
  const double span = p.x.back() - p.x.front();
  // What fills up and comes to rest grows there by far less than the whole.
  g.grows = g.slope.low > 0 && late.low > 0 && late.value > 0.2 * g.slope.value && g.slope.value * span > 0.02 * g.level && falls * 5 <= p.y.size() &&
            g.total > 0 && floor_rises(p, g.slope.value);
  return g;
}

/// What is held from epoch to epoch grows in steps, which a slope over all readings does not see: the median of each epoch is
/// above the one before by more than readings scatter within an epoch, and it does not come to rest. MiB an epoch; nothing: it does not.
std::optional<double> growth_by_epoch(const Points& p) {
  std::map<double, std::vector<double>> epochs;
  for (std::size_t i = 0; i < p.y.size(); ++i)
    if (const double e = p.records[i]->of(Quantity::epoch); std::isfinite(e)) epochs[std::floor(e)].push_back(p.y[i]);
  std::vector<double> level, scatter;
  for (auto& [epoch, readings] : epochs) {
    if (readings.size() < 2) continue;
    level.push_back(median(readings));
    for (const double y : readings) scatter.push_back(std::abs(y - level.back()));
  }
  if (level.size() < 4) return std::nullopt;
  const double mean = (level.back() - level.front()) / static_cast<double>(level.size() - 1), noise = 3 * median(scatter);
  for (std::size_t i = 1; i < level.size(); ++i)
    if (!(level[i] - level[i - 1] > noise)) return std::nullopt;
  if (level.back() - level.front() < 0.02 * level.front() || level.back() - level[level.size() - 2] < 0.25 * mean) return std::nullopt;
  return mean;
}

std::vector<double> all_of(const Log& log, Quantity q) {
  std::vector<double> out;
  for (const auto& r : log.records)
    if (r.holds(q) && std::isfinite(r.of(q))) out.push_back(r.of(q));
  return out;
}

}  // namespace

CheckResult judge_memory(const Log& log) {
  Value measured = Value::object();
  std::string summary, plain;
  const Record *from = nullptr, *to = nullptr;
  bool any = false, fragmented = false, host = false;
  for (const auto q : {Quantity::allocated, Quantity::reserved, Quantity::host_memory}) {
    const Points p = points(log, q, 0.1);
    if (p.x.size() < 8) continue;
    any = true;
    const Growth g = growth(p);
    const std::string name = q == Quantity::allocated ? "allocated" : q == Quantity::reserved ? "reserved" : "host";
    Value entry = Value::object({{"median_mib", g.level / mib},
                                 {"slope_mib_per_1000_steps", g.slope.value * 1000 / mib},
                                 {"slope_low_mib_per_1000_steps", g.slope.low * 1000 / mib},
                                 {"slope_high_mib_per_1000_steps", g.slope.high * 1000 / mib},
                                 {"grows", g.grows}});
    const double hours = per_step(p, [](const Record& r) { return r.time / 3600; });
    double epochs = per_step(p, [](const Record& r) { return r.of(Quantity::epoch); });
    if (std::isfinite(hours)) entry.set("slope_mib_per_hour", g.slope.value / hours / mib);
    if (std::isfinite(epochs)) entry.set("slope_mib_per_epoch", g.slope.value / epochs / mib);
    const auto stairs = g.grows ? std::nullopt : growth_by_epoch(p);
    if (stairs) entry.set("rise_mib_per_epoch", *stairs / mib);
    measured.set(name, entry);
    plain += fmt::format("{}{} {:.0f} MiB", plain.empty() ? "" : ", ", quantity_name(q), g.level / mib);
    if ((!g.grows && !stairs) || !summary.empty()) continue;
    from = p.records.front();
    to = p.records.back();
    fragmented = q == Quantity::reserved;
    host = q == Quantity::host_memory;
    summary = fmt::format("{} grows by {:.3g} MiB a step (95 % sure of {:.3g} to {:.3g})", quantity_name(q), g.slope.value / mib, g.slope.low / mib,
                          g.slope.high / mib);
    if (std::isfinite(epochs)) summary += fmt::format(", {:.3g} MiB an epoch", g.slope.value / epochs / mib);
    if (std::isfinite(hours)) summary += fmt::format(", {:.0f} MiB an hour", g.slope.value / hours / mib);
    if (stairs) summary = fmt::format("{} rises with every epoch, by {:.3g} MiB", quantity_name(q), *stairs / mib);
    summary += fmt::format(": {:.0f} MiB more over {:.0f} steps. ", g.total / mib, to->step - from->step);
    summary += fragmented ? "What is allocated does not grow, so shapes that change from step to step break it into pieces"
               : host     ? "On the host: a loader, a cache of decoded frames, or a list of logged objects holds it"
                          : "On the device: something keeps tensors from step to step (a loss that is summed up with its graph, outputs that are "
                            "collected, a cache)";
    if (Value plot = plot_value(log, q); !plot.is_null()) measured.set("plot", std::move(plot));
  }
  if (!any) return CheckResult::skip("the log has fewer than 8 readings of memory");
  if (summary.empty()) return CheckResult::pass("memory does not grow: " + plain, std::move(measured));
  auto result = CheckResult::fail(fragmented ? "memory.fragmentation" : "memory.leak", std::move(summary), std::move(measured));
  return result.because(evidence_of(log, *from)).because(evidence_of(log, *to));
}

CheckResult judge_loading(const Log& log) {
  std::vector<double> share, data, update;
  const Record* worst = nullptr;
  for (const auto& r : log.records) {
    if (!r.holds(Quantity::data_s)) continue;
    const double d = r.of(Quantity::data_s);
    const double u = r.holds(Quantity::update_s) ? r.of(Quantity::update_s) : r.holds(Quantity::step_s) ? r.of(Quantity::step_s) - d : unknown;
    if (!std::isfinite(d) || !std::isfinite(u) || u < 0 || d + u <= 0) continue;
    share.push_back(d / (d + u));
    data.push_back(d);
    update.push_back(u);
    if (worst == nullptr || d > worst->of(Quantity::data_s)) worst = &r;
  }
  if (share.size() < 3) return CheckResult::skip("the log does not tell loading time from computing time");
  const double waits = median(share), d = median(data), u = median(update);
  const double gain = (d + u) / std::max(d, u);
  Value measured = Value::object({{"waiting_share", waits}, {"data_s", d}, {"update_s", u}, {"expected_speed_up", gain}, {"records", share.size()}});
  if (log.settings["num_workers"].is_number()) measured.set("num_workers", log.settings["num_workers"]);
  if (waits <= 0.3)
    return CheckResult::pass(fmt::format("{:.0f} % of a step is spent waiting for data ({:.3g} s of {:.3g} s)", waits * 100, d, d + u),
                             std::move(measured));
  if (Value plot = plot_value(log, Quantity::data_s); !plot.is_null()) measured.set("plot", std::move(plot));
  std::string summary = fmt::format(
      "{:.0f} % of each step is spent waiting for data ({:.3g} s of {:.3g} s); with loading beside computing a step would take {:.3g} s, {:.2f} "
      "times as fast",
      waits * 100, d, d + u, std::max(d, u), gain);
  if (d > u) summary += fmt::format("; with a loader that keeps up {:.2f} times", (d + u) / std::max(u, 1e-9));
  auto result = waits > 0.5 ? CheckResult::fail("training.data-bound", std::move(summary), std::move(measured))
                            : CheckResult::warn("training.data-bound", std::move(summary), std::move(measured));
  return result.because(evidence_of(log, *worst));
}

CheckResult judge_tail(const Log& log) {
  const Points p = points(log, Quantity::step_s, 0.05);
  if (p.y.size() < 20) return CheckResult::skip(fmt::format("{} step times are too few to judge their tail", p.y.size()));
  const double middle = median(p.y), p95 = quantile(p.y, 0.95), p99 = quantile(p.y, 0.99), longest = *std::ranges::max_element(p.y);
  double in_tail = 0, total = 0;
  std::size_t slow = 0;
  const Record* worst = nullptr;
  std::vector<double> marks;
  for (std::size_t i = 0; i < p.y.size(); ++i) {
    total += p.y[i];
    if (!(p.y[i] > 3 * middle)) continue;
    ++slow;
    in_tail += p.y[i] - middle;
    marks.push_back(p.x[i]);
    if (worst == nullptr || p.y[i] > worst->of(Quantity::step_s)) worst = p.records[i];
  }
  Value measured = Value::object({{"median_s", middle},
                                  {"p95_s", p95},
                                  {"p99_s", p99},
                                  {"max_s", longest},
                                  {"slow_records", slow},
                                  {"time_lost_share", total > 0 ? in_tail / total : 0}});
  // One hiccup happens to everybody; a tail comes back.
  if (slow < 2 || in_tail < 0.02 * total)
    return CheckResult::pass(fmt::format("step time {:.3g} s (median), {:.3g} s (95 %), {:.3g} s (longest)", middle, p95, longest),
                             std::move(measured));
  std::vector<double> gaps;
  for (std::size_t i = 1; i < marks.size(); ++i) gaps.push_back(marks[i] - marks[i - 1]);
  std::string rhythm;
  if (gaps.size() >= 3) {
    const double usual = median(gaps);
    const auto close = std::ranges::count_if(gaps, [&](double g) { return std::abs(g - usual) <= 0.15 * usual; });
    if (static_cast<double>(close) >= 0.7 * static_cast<double>(gaps.size())) {
      rhythm = fmt::format(
          ", every {:.0f} steps: look for what happens at that rhythm (saving, evaluation, workers that start again, garbage collection)", usual);
      measured.set("period_steps", usual);
    }
  }
  if (Value plot = plot_value(log, Quantity::step_s, marks); !plot.is_null()) measured.set("plot", std::move(plot));
  return CheckResult::warn(
             "performance.tail-latency",
             fmt::format("{} of {} records took more than three times the median step ({:.3g} s; longest {:.3g} s): {:.0f} % of the time{}", slow,
                         p.y.size(), middle, longest, total > 0 ? 100 * in_tail / total : 0, rhythm),
             std::move(measured))
      .because(evidence_of(log, *worst));
}

CheckResult judge_pace(const Log& log) {
  const auto q = all_of(log, Quantity::update_s).size() >= 20 ? Quantity::update_s : Quantity::step_s;
  const Points p = points(log, q, 0.05);
  if (p.y.size() < 20) return CheckResult::skip(fmt::format("{} step times are too few to judge their course", p.y.size()));
  const std::size_t fifth = p.y.size() / 5;
  const double begin = median({p.y.begin(), p.y.begin() + static_cast<std::ptrdiff_t>(fifth)}),
               end = median({p.y.end() - static_cast<std::ptrdiff_t>(fifth), p.y.end()});
  Value measured = Value::object({{"first_fifth_s", begin}, {"last_fifth_s", end}, {"ratio", begin > 0 ? end / begin : 0}});
  if (!(end > 1.3 * begin) || end - begin < 0.002)
    return CheckResult::pass(fmt::format("steps keep their pace: {:.3g} s at the beginning, {:.3g} s at the end", begin, end), std::move(measured));
  if (Value plot = plot_value(log, q); !plot.is_null()) measured.set("plot", std::move(plot));
  auto result = CheckResult::warn(
      "performance.low-clocks",
      fmt::format("steps get slower: {:.3g} s in the first fifth, {:.3g} s in the last, {:.2f} times as long", begin, end, end / begin),
      std::move(measured));
  result.causes.emplace_back("hardware.thermal");
  result.causes.emplace_back("memory.leak");
  return result.because(evidence_of(log, *p.records.front())).because(evidence_of(log, *p.records.back()));
}

CheckResult judge_stall(const Log& log) {
  struct Gap {
    double seconds;
    const Record *before, *after;
  };
  std::vector<Gap> gaps;
  std::vector<double> lengths;
  for (std::size_t i = 1; i < log.records.size(); ++i) {
    const Record &a = log.records[i - 1], &b = log.records[i];
    if (a.source != b.source || a.part != b.part || !std::isfinite(a.time) || !std::isfinite(b.time)) continue;
    double seconds = b.time - a.time;
    if (seconds < 0 && seconds > -86400 && a.time < 86400 && b.time < 86400) seconds += 86400;  // a clock without a date went past midnight
    if (seconds < 0) continue;
    gaps.push_back({seconds, &a, &b});
    lengths.push_back(seconds);
  }
  if (gaps.size() < 5) return CheckResult::skip("fewer than 6 records carry a time");
  const double usual = median(lengths);
  const Gap* worst = nullptr;
  std::size_t count = 0;
  double lost = 0;
  for (const auto& g : gaps) {
    if (g.seconds <= std::max(10 * usual, 300.0)) continue;
    const auto index = static_cast<std::size_t>(g.after - log.records.data());
    const bool explained = std::ranges::any_of(log.events, [&](const Event& e) {
      return e.after_record == index &&
             (e.kind == EventKind::checkpoint || e.kind == EventKind::evaluation || e.kind == EventKind::start || e.kind == EventKind::resumed);
    });
    if (explained) continue;
    ++count;
    lost += g.seconds - usual;
    if (worst == nullptr || g.seconds > worst->seconds) worst = &g;
  }
  Value measured = Value::object({{"median_gap_s", usual}, {"stalls", count}, {"lost_s", lost}});
  if (worst == nullptr) return CheckResult::pass(fmt::format("records come every {:.3g} s, without a standstill", usual), std::move(measured));
  measured.set("longest_s", worst->seconds);
  return CheckResult::warn(
             "training.stall",
             fmt::format("nothing was logged for {:.0f} s between {} and {} (usual: {:.3g} s), and no saving or evaluation stands there; {} such "
                         "gap{}, {:.0f} s in all",
                         worst->seconds, place(log, *worst->before), place(log, *worst->after), usual, count, count == 1 ? "" : "s", lost),
             std::move(measured))
      .because(evidence_of(log, *worst->before))
      .because(evidence_of(log, *worst->after));
}

}  // namespace ff::training
