// Loss and gradient: finite, alive, plausible.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "training/judge.h"
#include "training/plot.h"
#include "training/statistics.h"

namespace ff::training {
namespace {

constexpr auto loss = Quantity::loss;
constexpr auto gradient = Quantity::gradient_norm;

bool bad_loss(const Record& r) {
  if (!r.holds(loss)) return false;
  if (!std::isfinite(r.of(loss))) return true;
  // HF Trainer prints 0 (or the mean so far) in place of a loss that was no number; the gradient shows it.
  return r.of(loss) == 0 && r.holds(gradient) && std::isnan(r.of(gradient));
}

std::vector<const Record*> holding(const Log& log, Quantity q) {
  std::vector<const Record*> out;
  for (const auto& r : log.records)
    if (r.holds(q)) out.push_back(&r);
  return out;
}

std::vector<double> values(const std::vector<const Record*>& records, Quantity q, std::size_t from, std::size_t to) {
  std::vector<double> out;
  for (std::size_t i = from; i < to && i < records.size(); ++i) out.push_back(records[i]->of(q));
  return out;
}

/// Printed with one or two digits that count: 0.0004, 0.012.
bool few_digits(double value) {
  if (value == 0 || !std::isfinite(value)) return false;
  const double scaled = std::abs(value) / std::pow(10.0, std::floor(std::log10(std::abs(value)))) * 10;
  return std::abs(value) < 0.1 && std::abs(scaled - std::round(scaled)) < 1e-6;
}

bool gradients_differ(const std::vector<const Record*>& records, std::size_t from, std::size_t to) {
  for (std::size_t i = from + 1; i < to && i < records.size(); ++i)
    if (records[i]->holds(gradient) && records[from]->holds(gradient) && records[i]->of(gradient) != records[from]->of(gradient)) return true;
  return false;
}

/// How much a stretch of values moves from its beginning to its end, relative to its level. Of many values the medians of the
/// first and last third are compared, less what the spread alone explains: batches differ also where nothing is learnt.
double course(const std::vector<double>& v) {
  if (v.size() < 2) return 0;
  const double level = std::max(1e-12, std::abs(v.front()));
  constexpr std::size_t many = 9;
  if (v.size() < many) return std::abs(v.back() - v.front()) / level;
  const auto third = static_cast<std::ptrdiff_t>(v.size() / 3);
  const double begin = median({v.begin(), v.begin() + third}), end = median({v.end() - third, v.end()}), middle = median(v);
  std::vector<double> away;
  for (const double x : v) away.push_back(std::abs(x - middle));
  // Standard error of a median of n values: 1.2533 s/sqrt(n); s from the median deviation; two medians, two of them.
  const double chance = 2 * std::sqrt(2.0) * 1.2533 * 1.4826 * median(away) / std::sqrt(static_cast<double>(third));
  return std::max(0.0, std::abs(end - begin) - chance) / std::max(1e-12, std::abs(middle));
}

}  // namespace

std::string describe(const Record& r) {
  std::string out = std::isfinite(r.step) ? fmt::format("step {:.0f}:", r.step) : std::string("record:");
  std::string_view comma = " ";
  for (std::size_t i = 0; i < quantity_count; ++i) {
    const auto q = static_cast<Quantity>(i);
    if (!r.holds(q)) continue;
    const bool bytes = q == Quantity::allocated || q == Quantity::reserved || q == Quantity::host_memory;
    out += fmt::format("{}{} {:.6g}{}", comma, quantity_name(q), bytes ? r.of(q) / (1024.0 * 1024) : r.of(q), bytes ? " MiB" : "");
    comma = ", ";
  }
  return out;
}

Evidence evidence_of(const Log& log, const Record& r) { return {log.sources[r.source], r.line, describe(r)}; }
Evidence evidence_of(const Log& log, const Event& e) { return {log.sources[e.source], e.line, e.text}; }

std::string place(const Log& log, const Record& r) {
  if (std::isfinite(r.step)) return fmt::format("step {:.0f}", r.step);
  return fmt::format("record {}", &r - log.records.data() + 1);
}

CheckResult judge_metrics(const Log& log) {
  Value measured =
      Value::object({{"records", log.records.size()}, {"formats", Value::list_of(log.formats)}, {"sources", Value::list_of(log.sources)}});
  if (!log.settings.members().empty()) measured.set("settings", log.settings);
  if (!log.notes.empty()) measured.set("notes", Value::list_of(log.notes));
  if (log.records.empty()) {
    // A run that died before its first record is judged by what it printed; a file without any of it is the wrong file.
    for (const auto& e : log.events)
      if (e.kind != EventKind::evaluation && e.kind != EventKind::checkpoint) {
        auto result = CheckResult::warn(has_ended(log) ? "" : "training.stall",
                                        has_ended(log) ? "the run ended before it printed metrics; what it did print is judged"
                                                       : "the run has printed no metrics; what it did print is judged",
                                        std::move(measured));
        return result.because(evidence_of(log, e));
      }
    return CheckResult::error(Error{
        "no line of metrics was found", log.sources.empty() ? "" : log.sources.front(),
        "known: lerobot-train, HF Trainer, openpi, LingBot-VLA, tqdm, step=… loss=… lines, JSON lines, TensorBoard, wandb; see docs/training.md", 3});
  }
  const Record &first = log.records.front(), &last = log.records.back();
  measured.set("first", describe(first)).set("last", describe(last));
  std::string summary = fmt::format("{} records ({}), {} to {}", log.records.size(), join(log.formats, ", "), place(log, first), place(log, last));
  double best = unknown;
  for (const auto& r : log.records)
    if (r.holds(loss) && std::isfinite(r.of(loss)) && !(r.of(loss) >= best)) best = r.of(loss);
  if (const auto with_loss = holding(log, loss); !with_loss.empty())
    summary += fmt::format(", loss {:.4g} to {:.4g}", with_loss.front()->of(loss), with_loss.back()->of(loss));
  if (std::isfinite(best)) measured.set("loss_min", best);
  if (Value plot = plot_value(log, loss); !plot.is_null()) measured.set("plot", std::move(plot));
  if (!log.without.empty() || !log.notes.empty()) {
    measured.set("without_metrics", Value::list_of(log.without));
    std::string what = log.without.empty() ? log.notes.front() : "no line of metrics was found in " + join(log.without, ", ");
    const std::size_t more = log.without.empty() ? log.notes.size() - 1 : log.notes.size();
    if (more > 0) what += fmt::format(" (and {} more note{})", more, more == 1 ? "" : "s");
    auto result = CheckResult::warn("", summary + "; " + what, std::move(measured));
    for (const auto& note : log.notes) result.because({log.sources.front(), 0, note});
    return result;
  }
  return CheckResult::pass(std::move(summary), std::move(measured));
}

CheckResult judge_loss_finite(const Log& log) {
  const auto all = holding(log, loss);
  if (all.empty()) return CheckResult::skip("the log has no loss");
  const auto bad = std::ranges::find_if(all, [](const Record* r) { return bad_loss(*r); });
  if (bad == all.end()) return CheckResult::pass(fmt::format("the loss is finite in all {} records", all.size()));
  const auto count = std::ranges::count_if(all, [](const Record* r) { return bad_loss(*r); });
  const Record* good = nullptr;
  for (auto it = all.begin(); it != bad; ++it) good = *it;
  Value measured = Value::object({{"bad_records", count}, {"records", all.size()}, {"first_bad", describe(**bad)}});
  if (std::isfinite((*bad)->step)) measured.set("first_bad_step", (*bad)->step);
  if (good != nullptr && std::isfinite(good->step)) measured.set("last_good_step", good->step);
  if (Value plot = plot_value(log, loss, {(*bad)->step}); !plot.is_null()) measured.set("plot", std::move(plot));
  std::string summary = fmt::format("the loss is no number from {} on ({} of {} records)", place(log, **bad), count, all.size());
  if (good != nullptr)
    summary += fmt::format("; the last healthy record is {} (loss {:.4g})", place(log, *good), good->of(loss));
  else
    summary += "; it never was one: look at data, statistics and precision of the first batch";
  auto result = CheckResult::fail("training.loss-nonfinite", std::move(summary), std::move(measured));
  result.because(evidence_of(log, **bad));
  if (good != nullptr) result.because(evidence_of(log, *good));
  for (const auto& e : log.events)
    if (e.kind == EventKind::skipped_step) {
      result.because(evidence_of(log, e));
      result.causes.emplace_back("precision.half-overflow");
      break;
    }
  return result;
}

CheckResult judge_gradient(const Log& log) {
  const auto all = holding(log, gradient);
  if (all.empty()) return CheckResult::skip("the log has no gradient norm");
  // Not finite: single ones are steps that loss scaling left out.
  std::size_t nonfinite = 0, run = 0, longest = 0, run_end = 0, zero = 0, longest_zero = 0, zero_end = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double g = all[i]->of(gradient);
    const bool bad = !std::isfinite(g) && !bad_loss(*all[i]);
    nonfinite += bad ? 1 : 0;
    run = bad ? run + 1 : 0;
    if (run > longest) {
      longest = run;
      run_end = i;
    }
    const bool learns = !all[i]->holds(Quantity::learning_rate) || all[i]->of(Quantity::learning_rate) > 0;
    zero = g == 0 && learns ? zero + 1 : 0;
    if (zero > longest_zero) {
      longest_zero = zero;
      zero_end = i;
    }
  }
  Value measured =
      Value::object({{"records", all.size()}, {"nonfinite", nonfinite}, {"longest_nonfinite_run", longest}, {"longest_zero_run", longest_zero}});
  const auto with_plot = [&](double mark) {
    if (Value plot = plot_value(log, gradient, {mark}); !plot.is_null()) measured.set("plot", std::move(plot));
  };
  constexpr std::size_t in_a_row = 3;
  // A loss scale begins at 65536 and is halved until nothing overflows: sixteen times at most.
  constexpr std::size_t scale_search = 16;
  const bool finds_scale = longest > 0 && longest <= scale_search && run_end + 1 - longest < in_a_row && all.size() - run_end > scale_search;
  if ((longest >= in_a_row && !finds_scale) || (all.size() >= 40 && nonfinite * 20 > all.size())) {
    const Record& from = *all[run_end + 1 - std::max<std::size_t>(longest, 1)];
    with_plot(from.step);
    return CheckResult::fail(
               "precision.half-overflow",
               fmt::format("the gradient is not finite in {} of {} records ({} in a row from {}) while the loss is: those steps change nothing",
                           nonfinite, all.size(), longest, place(log, from)),
               measured)
        .because(evidence_of(log, from));
  }
  if (longest_zero >= in_a_row) {
    const Record &from = *all[zero_end + 1 - longest_zero], &to = *all[zero_end];
    // Three decimals print as 0.000 what is below 0.0005: then the loss still moves.
    const double change = course(values(all, loss, zero_end + 1 - longest_zero, zero_end + 1));
    if (std::abs(to.of(loss)) < 1e-6)
      return CheckResult::pass("the gradient is zero because the loss is (step.loss-plausible judges that)", std::move(measured));
    if (!(change > 0.05)) {
      with_plot(from.step);
      return CheckResult::fail(
                 "training.gradient-zero",
                 fmt::format(
                     "the gradient norm is zero in {} records in a row from {} on and the loss stays at {:.4g}: no gradient reaches the parameters",
                     longest_zero, place(log, from), to.of(loss)),
                 measured)
          .because(evidence_of(log, from))
          .because(evidence_of(log, to));
    }
  }
  // Explosion: the loss stays far above its minimum, or gradient or loss jump and stay.
  const auto losses = holding(log, loss);
  double least = unknown;
  std::size_t above = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double v = losses[i]->of(loss);
    if (!std::isfinite(v)) continue;
    if (!(v >= least)) least = v;
    above = least > 0 && v > 3 * least && v > 1e-3 ? above + 1 : 0;
    const bool leap = least > 0 && v > 1000 * least && v > 10;
    // Small losses wander by a factor of three; an explosion also leaves the level at which the run began.
    if (leap || (above >= 10 && v > 1.5 * median(values(losses, loss, 0, std::min<std::size_t>(5, losses.size()))))) {
      const Record& at = *losses[i + 1 - std::min<std::size_t>(above == 0 ? 1 : above, i + 1)];
      if (Value plot = plot_value(log, loss, {at.step}); !plot.is_null()) measured.set("plot", std::move(plot));
      return CheckResult::fail(
                 "training.gradient-explosion",
                 fmt::format("the loss was {:.4g} and is {:.4g} at {}: it exploded at {}", least, v, place(log, *losses[i]), place(log, at)),
                 measured)
          .because(evidence_of(log, at))
          .because(evidence_of(log, *losses[i]));
    }
  }
  constexpr std::size_t window = 20;
  const Record* spike = nullptr;
  double times = 0;
  std::size_t spikes = 0;
  for (std::size_t i = window; i < all.size(); ++i) {
    const double usual = median(values(all, gradient, i - window, i)), g = all[i]->of(gradient);
    if (!(usual > 0) || !std::isfinite(g) || g < 20 * usual) continue;
    ++spikes;
    if (g / usual > times) {
      times = g / usual;
      spike = all[i];
    }
  }
  measured.set("spikes", spikes);
  if (spike != nullptr) {
    with_plot(spike->step);
    auto result =
        times > 100 ? CheckResult::fail("training.gradient-explosion", "", measured) : CheckResult::warn("training.gradient-explosion", "", measured);
    result.summary = fmt::format("the gradient norm is {:.3g} at {}, {:.0f} times what is usual before ({} such records)", spike->of(gradient),
                                 place(log, *spike), times, spikes);
    return result.because(evidence_of(log, *spike));
  }
  std::string summary =
      fmt::format("the gradient norm is {:.3g} in the middle of {} records", median(values(all, gradient, 0, all.size())), all.size());
  if (nonfinite > 0) summary += fmt::format("; {} not finite on their own: steps that loss scaling left out", nonfinite);
  return CheckResult::pass(std::move(summary), measured);
}

CheckResult judge_loss_plausible(const Log& log) {
  const auto all = holding(log, loss);
  if (all.size() < 5) return CheckResult::skip(fmt::format("{} records with a loss are too few to judge its course", all.size()));
  Value measured = Value::object({{"records", all.size()}});
  const auto plot = [&](double mark) {
    if (Value p = plot_value(log, loss, {mark}); !p.is_null()) measured.set("plot", std::move(p));
  };
  std::size_t same = 1, longest = 1, end = 0, tiny = 0, longest_tiny = 0, tiny_end = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double v = all[i]->of(loss);
    same = i > 0 && v == all[i - 1]->of(loss) ? same + 1 : 1;
    if (same > longest) {
      longest = same;
      end = i;
    }
    tiny = std::abs(v) < 1e-6 && !bad_loss(*all[i]) ? tiny + 1 : 0;
    if (tiny > longest_tiny) {
      longest_tiny = tiny;
      tiny_end = i;
    }
  }
  measured.set("longest_equal_run", longest);
  if (longest_tiny >= 3) {
    const Record& from = *all[tiny_end + 1 - longest_tiny];
    plot(from.step);
    return CheckResult::fail("training.configuration",
                             fmt::format("the loss is zero in {} records from {} on: too good to be true. The loss covers nothing (a mask that hides "
                                         "everything, an empty target) "
                                         "or the target is among the inputs",
                                         longest_tiny, place(log, from)),
                             measured)
        .because(evidence_of(log, from));
  }
  // lerobot prints three decimals: a small loss repeats by rounding, so that equality counts only with the gradient or to more digits.
  const double level = all[end]->of(loss);
  const bool by_rounding = (std::abs(level) < 0.1 && std::abs(level * 1000 - std::round(level * 1000)) < 1e-9) || few_digits(level);
  // Another gradient at each record is another loss, which the printed digits do not show.
  const bool moves = by_rounding && longest > 0 && gradients_differ(all, end + 1 - longest, end + 1);
  if (longest >= 5 && !moves && (!by_rounding || longest >= 30)) {
    const Record& from = *all[end + 1 - longest];
    plot(from.step);
    const bool zero_rate = from.holds(Quantity::learning_rate) && from.of(Quantity::learning_rate) == 0;
    const bool zero_gradient = from.holds(gradient) && from.of(gradient) == 0;
    return CheckResult::fail(zero_rate       ? "training.learning-rate"
                             : zero_gradient ? "training.gradient-zero"
                                             : "training.configuration",
                             fmt::format("the loss is {:.6g} to the last digit in {} records in a row from {} on: nothing is learnt{}", level,
                                         longest, place(log, from),
                                         zero_rate       ? " (the learning rate is 0)"
                                         : zero_gradient ? " (the gradient is 0)"
                                                         : " (the same batch, a frozen model, or a logged constant)"),
                             measured)
        .because(evidence_of(log, from));
  }
  // Far too good, far too early: the first records are already at a ten-thousandth of what a normalised target gives.
  if (all.size() >= 10) {
    const double begin = median(values(all, loss, 0, 3)), later = median(values(all, loss, all.size() / 20 + 1, all.size() / 20 + 4));
    if (later >= 0 && later < 1e-4 && begin > 0 && later < begin * 1e-3) {
      plot(all[all.size() / 20 + 1]->step);
      return CheckResult::warn("training.configuration",
                               fmt::format("the loss falls from {:.3g} to {:.3g} within a twentieth of the run: too good to be true unless the data "
                                           "are trivial; look for the target "
                                           "among the inputs and for a mask that hides most of it",
                                           begin, later),
                               measured)
          .because(evidence_of(log, *all[all.size() / 20 + 1]));
    }
  }
  if (all.size() >= 20) {
    const std::size_t tenth = std::max<std::size_t>(3, all.size() / 10);
    const double begin = median(values(all, loss, 0, tenth)), last = median(values(all, loss, all.size() - tenth, all.size()));
    measured.set("loss_begin", begin).set("loss_end", last);
    if (std::isfinite(begin) && std::isfinite(last) && begin > 0 && last > 0.98 * begin) {
      plot(all.back()->step);
      auto result = CheckResult::warn("training.learning-rate",
                                      fmt::format("the loss did not fall: {:.4g} in the first tenth, {:.4g} in the last", begin, last), measured);
      result.causes.emplace_back("training.configuration");
      return result.because(evidence_of(log, *all.front())).because(evidence_of(log, *all.back()));
    }
    return CheckResult::pass(
        fmt::format(
            "the loss falls from {:.4g} to {:.4g} and keeps moving. That is no proof that the policy works: only episodes are (rungs 7 and 8)", begin,
            last),
        measured);
  }
  return CheckResult::pass("the loss moves", measured);
}

}  // namespace ff::training
