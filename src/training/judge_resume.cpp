// After an interruption: does the log go on where it stopped?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "training/judge.h"
#include "training/plot.h"
#include "training/statistics.h"

namespace ff::training {
namespace {

/// A place where one part of a run ends and the next begins.
struct Seam {
  std::size_t after = 0;   ///< index of the first record after it
  double last = unknown;   ///< highest step before it
  double saved = unknown;  ///< of the last checkpoint that the log tells of
  bool announced = false;  ///< the log says "resumed"
  bool banner = false;     ///< a start or resumption is printed there
};

/// Steps that are counted anew in each epoch: the epoch goes up where they fall.
bool counts_by_epoch(const Record& before, const Record& r) {
  return before.holds(Quantity::epoch) && r.holds(Quantity::epoch) && std::floor(r.of(Quantity::epoch)) > std::floor(before.of(Quantity::epoch));
}

std::vector<Seam> seams(const Log& log) {
  std::vector<Seam> out;
  double last = unknown;
  for (std::size_t i = 0; i < log.records.size(); ++i) {
    const Record& r = log.records[i];
    if (i > 0) {
      const Record& before = log.records[i - 1];
      const bool falls = std::isfinite(r.step) && std::isfinite(before.step) &&
                         r.step < before.step - 0.6 * std::max(r.step_unit, before.step_unit) + 0.5 && r.part == before.part &&
                         r.source == before.source && !counts_by_epoch(before, r);
      // Another file is another run, unless it says that it goes on.
      const bool other_file = r.source != before.source;
      if (r.part != before.part || falls) {
        Seam seam{i, last, unknown, false, r.part != before.part};
        for (const auto& e : log.events) {
          if (e.kind == EventKind::checkpoint && e.after_record <= i && std::isfinite(e.step)) seam.saved = e.step;
          if (e.kind == EventKind::resumed && e.part == r.part && e.source == r.source) seam.announced = true;
        }
        if (!other_file || seam.announced) out.push_back(seam);
        if (other_file && !seam.announced) last = unknown;
      }
    }
    if (std::isfinite(r.step) && !(r.step <= last)) last = r.step;
  }
  return out;
}

double every(const Log& log) { return std::isfinite(log.log_every) ? log.log_every : 1; }

/// Records of one side of a seam with a quantity.
std::vector<double> side(const Log& log, std::size_t from, std::size_t to, Quantity q) {
  std::vector<double> out;
  for (std::size_t i = from; i < to && i < log.records.size(); ++i)
    if (log.records[i].holds(q) && std::isfinite(log.records[i].of(q))) out.push_back(log.records[i].of(q));
  return out;
}

bool goes_on(const Log& log, const Seam& s) {
  const Record& r = log.records[s.after];
  return std::isfinite(r.step) && std::isfinite(s.last) && !(r.step <= every(log) && s.last > 2 * every(log));
}

/// The losses behind the seam are those before it, far below those with which the run began.
bool keeps_weights(const Log& log, const Seam& s) {
  const auto begin = side(log, 0, 3, Quantity::loss), before = side(log, s.after > 5 ? s.after - 5 : 0, s.after, Quantity::loss),
             after = side(log, s.after, s.after + 3, Quantity::loss);
  if (begin.size() < 3 || before.size() < 3 || after.size() < 3) return false;
  return median(before) < 0.5 * median(begin) && median(after) < 1.5 * median(before);
}

}  // namespace

CheckResult judge_resume_start(const Log& log) {
  const Event* bad = log.first(EventKind::from_scratch);
  const bool scratch = bad != nullptr;
  if (bad == nullptr) bad = log.first(EventKind::older_checkpoint);
  if (bad != nullptr)
    return CheckResult::fail("training.resume-reset", scratch ? "the program found no checkpoint that it could take and started from the beginning"
                                                              : "a damaged checkpoint was passed over for an older one")
        .because(evidence_of(log, *bad));
  if (const auto* changed = log.first(EventKind::settings_changed))
    return CheckResult::warn("training.configuration", "the run goes on with other settings than the checkpoint's")
        .because(evidence_of(log, *changed));
  if (const auto* resumed = log.first(EventKind::resumed))
    return CheckResult::pass("the run was continued from a checkpoint").because(evidence_of(log, *resumed));
  return CheckResult::skip("the log tells of no resumption");
}

CheckResult judge_resume_step(const Log& log) {
  const auto all = seams(log);
  if (all.empty()) return CheckResult::skip("the log has one part: nothing was resumed");
  Value found = Value::list();
  for (const auto& s : all) {
    const Record& r = log.records[s.after];
    found.push(
        Value::object({{"last_step", s.last}, {"first_step", r.step}, {"saved_step", s.saved}, {"announced", s.announced}, {"banner", s.banner}}));
  }
  Value measured = Value::object({{"seams", found}});
  for (const auto& s : all) {
    const Record& r = log.records[s.after];
    if (!std::isfinite(r.step) || !std::isfinite(s.last)) continue;
    const bool restarts = r.step <= every(log) + 0.5 * r.step_unit && s.last > 2 * every(log);
    // A second run in the same file, nothing was saved before: unless its loss shows that it has the first one's weights.
    if (s.banner && restarts && !s.announced && !std::isfinite(s.saved) && !keeps_weights(log, s)) continue;
    const bool below_save = std::isfinite(s.saved) && r.step < s.saved + 0.5 - 0.5 * r.step_unit;
    if (!restarts && s.banner && !below_save) continue;
    if (Value plot = plot_points(
            "step over the records", "record",
            [&] {
              std::vector<double> x;
              for (std::size_t i = 0; i < log.records.size(); ++i) x.push_back(static_cast<double>(i + 1));
              return x;
            }(),
            [&] {
              std::vector<double> y;
              for (const auto& record : log.records) y.push_back(record.step);
              return y;
            }(),
            {static_cast<double>(s.after + 1)});
        !plot.is_null())
      measured.set("plot", std::move(plot));
    std::string summary = fmt::format("the step falls from {:.0f} to {:.0f}", s.last, r.step);
    if (std::isfinite(s.saved)) summary += fmt::format(" although step {:.0f} had been saved", s.saved);
    summary += restarts   ? ": training began again instead of going on"
               : s.banner ? ": an older checkpoint was taken"
                          : ", and no new start stands there";
    return CheckResult::fail("training.resume-reset", std::move(summary), std::move(measured))
        .because(evidence_of(log, log.records[s.after - 1]))
        .because(evidence_of(log, r));
  }
  const Seam& last = all.back();
  const double repeated = last.last - log.records[last.after].step + every(log);
  return CheckResult::pass(fmt::format("{} resumption{}, each goes on with the step{}", all.size(), all.size() == 1 ? "" : "s",
                                       repeated > 0 ? fmt::format("; {:.0f} steps after the last save were done twice", repeated) : ""),
                           std::move(measured));
}

CheckResult judge_resume_rate(const Log& log) {
  const auto all = seams(log);
  bool any = false;
  for (const auto& s : all) {
    if (!goes_on(log, s)) continue;
    const Record &a = log.records[s.after - 1], &b = log.records[s.after];
    if (!a.holds(Quantity::learning_rate) || !b.holds(Quantity::learning_rate)) continue;
    // What the schedule had at this step before, where steps are repeated; else the last value.
    double before = a.of(Quantity::learning_rate);
    for (std::size_t i = 0; i < s.after; ++i)
      if (log.records[i].step == b.step && log.records[i].holds(Quantity::learning_rate)) before = log.records[i].of(Quantity::learning_rate);
    const double after = b.of(Quantity::learning_rate);
    any = true;
    if (before <= 0 || (after < 1.5 * before && after > before / 1.5)) continue;
    Value measured = Value::object({{"before", before}, {"after", after}, {"step", b.step}});
    if (Value plot = plot_value(log, Quantity::learning_rate, {b.step}); !plot.is_null()) measured.set("plot", std::move(plot));
    return CheckResult::fail("training.resume-state-missing",
                             fmt::format("the learning rate jumps from {:.3g} to {:.3g} at the resumption ({}): the schedule was not restored",
                                         before, after, place(log, b)),
                             std::move(measured))
        .because(evidence_of(log, a))
        .because(evidence_of(log, b));
  }
  return any ? CheckResult::pass("the learning rate goes on where it was") : CheckResult::skip("no resumption with a learning rate on both sides");
}

CheckResult judge_resume_loss(const Log& log) {
  const auto all = seams(log);
  bool any = false;
  for (const auto& s : all) {
    if (!goes_on(log, s)) continue;
    const auto before = side(log, s.after > 5 ? s.after - 5 : 0, s.after, Quantity::loss), after = side(log, s.after, s.after + 3, Quantity::loss);
    if (before.size() < 2 || after.empty()) continue;
    any = true;
    const double level = median(before), now = median(after), highest = *std::ranges::max_element(before);
    if (!(now > 1.5 * level) || !(now > 1.2 * highest)) continue;
    const Record& b = log.records[s.after];
    Value measured = Value::object({{"before", level}, {"after", now}, {"step", b.step}});
    if (Value plot = plot_value(log, Quantity::loss, {b.step}); !plot.is_null()) measured.set("plot", std::move(plot));
    return CheckResult::fail("training.resume-state-missing",
                             fmt::format("the loss jumps from {:.4g} to {:.4g} at the resumption ({}): weights or the optimiser's state were not "
                                         "restored, or the data differ",
                                         level, now, place(log, b)),
                             std::move(measured))
        .because(evidence_of(log, log.records[s.after - 1]))
        .because(evidence_of(log, b));
  }
  return any ? CheckResult::pass("the loss goes on where it was") : CheckResult::skip("no resumption with losses on both sides");
}

}  // namespace ff::training
