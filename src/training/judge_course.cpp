// The run's course: learning rate, schedule, interruptions, saving, loaded weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnosis/explain.h"
#include "knowledge/knowledge.h"
#include "training/judge.h"
#include "training/plot.h"
#include "training/statistics.h"

namespace ff::training {
namespace {

constexpr auto rate = Quantity::learning_rate;

std::vector<const Record*> with_rate(const Log& log) {
  std::vector<const Record*> out;
  for (const auto& r : log.records)
    if (r.holds(rate) && std::isfinite(r.of(rate))) out.push_back(&r);
  return out;
}

double highest(const std::vector<const Record*>& records) {
  double out = 0;
  for (const auto* r : records) out = std::max(out, r->of(rate));
  return out;
}

/// lerobot's cosine_decay_with_warmup (optim/schedulers.py); the printed value is a mean over the window before `step`.
double cosine_with_warmup(double step, double peak, double floor, double warmup, double decay, double steps) {
  if (steps > 0 && steps < decay) {
    warmup = std::floor(warmup * steps / decay);
    decay = steps;
  }
  if (step < warmup) return peak * ((1 / (warmup + 1) - 1) * (1 - step / warmup) + 1);
  return floor + (peak - floor) * 0.5 * (1 + std::cos(3.14159265358979323846 * std::min(step, decay) / decay));
}

struct Ending {
  EventKind kind;
  const char* cause;
  const char* words;
};
constexpr const char* killed_words =
    "it was ended by a signal, and nothing here says who sent it (the kernel for memory, a scheduler at a limit, a person: dmesg and the cgroup's "
    "memory.events decide)";
constexpr Ending endings[] = {
    {EventKind::device_memory, "memory.vram-exhausted", "GPU memory ran out"},
    {EventKind::gpu_fault, "kernel-fault.out-of-bounds", "the GPU or its runtime reported a fault"},
    {EventKind::disk_full, "runtime.disk-full", "the disk or quota is full"},
    {EventKind::shared_memory, "container.shared-memory-small", "shared memory for the loader's workers ran out"},
    {EventKind::host_memory, "memory.host-exhausted", "the kernel killed it for host memory"},
    {EventKind::scheduler, "training.killed", "the batch system ended the job"},
    {EventKind::worker_died, "memory.host-exhausted", "a loader worker died"},
    {EventKind::rank_lost, "communication.rank-lost", "a rank was lost"},
    {EventKind::told_to_end, "training.killed", "it was told to end"},
    {EventKind::killed, "training.killed", killed_words},
    {EventKind::interrupted, "training.killed", "a person interrupted it"},
    {EventKind::exception, "", "it ended with an exception"},
    {EventKind::traceback, "", "it ended with a traceback"},
    {EventKind::cancelled, "training.killed", "the batch system ended the job's processes, and does not say why"},
};

/// The cause that `explain` names first for what the program said as it ended, be it one of several that are possible; where it
/// knows none, what the program was told is the nearest.
std::string cause_of_words(const Log& log, const Event& first) {
  std::string said;
  for (const auto& e : log.events)
    if (e.after_record == first.after_record) said += e.text + "\n";
  const auto explanation = diagnosis::explain_texts({{"train.log", said}}, knowledge::Knowledge::built_in());
  if (explanation)
    for (const auto& diagnosis : explanation->judgement.diagnoses)
      if (!diagnosis.benign) return diagnosis.cause;
  return contains(said, "MemoryError") ? "memory.host-exhausted" : "training.configuration";
}

/// Of a command that was watched to its end, and prints nothing that tells why it ended: its exit status.
CheckResult by_exit_status(int status, std::string where, bool early, Value measured) {
  measured.set("exit_status", status);
  std::string text = fmt::format("the command ended with status {} {}", status, where);
  if (status > 128 && status < 160) text += fmt::format(" (128 + signal {})", status - 128);
  if (early && status == 0) return CheckResult::warn("training.configuration", text + ", without a word of an end", std::move(measured));
  return CheckResult::warn(status > 128 ? "training.killed" : "", text + ", and nothing that it printed says why", std::move(measured));
}

}  // namespace

bool has_ended(const Log& log) {
  const auto ends = [](const Event& e) {
    return e.kind == EventKind::end || std::ranges::any_of(endings, [&](const Ending& ending) { return ending.kind == e.kind; });
  };
  return log.exit_status || std::ranges::any_of(log.events, ends);
}

CheckResult judge_learning_rate(const Log& log) {
  const auto all = with_rate(log);
  if (all.empty()) return CheckResult::skip("the log has no learning rate");
  const double most = highest(all);
  Value measured = Value::object({{"records", all.size()}, {"first", all.front()->of(rate)}, {"highest", most}, {"last", all.back()->of(rate)}});
  const auto plot = [&](double mark) {
    if (Value p = plot_value(log, rate, {mark}); !p.is_null()) measured.set("plot", std::move(p));
  };
  if (most == 0 && all.size() >= 3) {
    plot(all.front()->step);
    return CheckResult::fail("training.learning-rate", fmt::format("the learning rate is 0 in all {} records: nothing is learnt", all.size()),
                             std::move(measured))
        .because(evidence_of(log, *all.front()));
  }
  // It falls, and then rises again by more than twofold without a restart of the program.
  bool fell = false;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Record &a = *all[i - 1], &b = *all[i];
    if (a.part != b.part || a.source != b.source) {
      fell = false;
      continue;
    }
    if (b.of(rate) < 0.98 * a.of(rate)) fell = true;
    const bool leap_up = fell && b.of(rate) > 2 * a.of(rate) && a.of(rate) > 0,
               leap_down = b.of(rate) < 0.1 * a.of(rate) && b.of(rate) > 0.02 * most && i + 1 < all.size();
    if (!leap_up && !leap_down) continue;
    plot(b.step);
    return CheckResult::warn("training.learning-rate",
                             fmt::format("the learning rate jumps from {:.3g} to {:.3g} at {}, and no new start stands there", a.of(rate), b.of(rate),
                                         place(log, b)),
                             std::move(measured))
        .because(evidence_of(log, a))
        .because(evidence_of(log, b));
  }
  const double peak = log.settings["peak_lr"].as_real(0), decay = log.settings["decay_steps"].as_real(0),
               warmup = log.settings["warmup_steps"].as_real(-1);
  if (peak > 0 && decay > 0 && warmup > 0) {
    std::vector<double> ratio;
    const Record* worst = nullptr;
    double worst_off = 0;
    const double every = std::isfinite(log.log_every) ? log.log_every : 0, floor = log.settings["decay_lr"].as_real(all.back()->of(rate));
    for (const auto* r : all) {
      if (!std::isfinite(r->step) || r->step_unit > 1) continue;
      const double expected =
          cosine_with_warmup(std::max(0.0, r->step - every / 2), peak, std::min(floor, peak), warmup, decay, log.settings["steps"].as_real(0));
      if (expected <= 0 || r->of(rate) <= 0) continue;
      const double off = std::abs(std::log(r->of(rate) / expected));
      ratio.push_back(off);
      if (off > worst_off) {
        worst_off = off;
        worst = r;
      }
    }
    if (ratio.size() >= 10 && median(ratio) > std::log(1.25) && worst != nullptr) {
      plot(worst->step);
      return CheckResult::warn("training.learning-rate",
                               fmt::format("the learning rate is off the schedule that the run states (peak {:.3g}, {:.0f} warm-up and {:.0f} decay "
                                           "steps): typically by a factor of {:.2f}; "
                                           "a scheduler that steps once a process decays as many times too fast",
                                           peak, warmup, decay, std::exp(median(ratio))),
                               std::move(measured))
          .because(evidence_of(log, *worst));
    }
  }
  return CheckResult::pass(fmt::format("the learning rate goes from {:.3g} over {:.3g} to {:.3g}", all.front()->of(rate), most, all.back()->of(rate)),
                           std::move(measured));
}

CheckResult judge_schedule(const Log& log) {
  const auto all = with_rate(log);
  if (all.size() < 10) return CheckResult::skip("fewer than 10 records have a learning rate");
  const double most = highest(all), last = all.back()->of(rate);
  double least = most;
  for (const auto* r : all) least = std::min(least, r->of(rate));
  const double wanted = log.settings["steps"].as_real(0), reached = all.back()->step;
  Value measured = Value::object({{"highest", most}, {"last", last}});
  if (wanted > 0) measured.set("steps_wanted", wanted);
  // The run of the last value: how much of the steps goes by without the schedule moving.
  std::size_t flat = all.size();
  while (flat > 1 && std::abs(all[flat - 2]->of(rate) - last) <= 1e-3 * most) --flat;
  const double share = 1 - static_cast<double>(flat - 1) / static_cast<double>(all.size());
  measured.set("flat_share", share);
  if (last < 0.2 * most && share > 0.2 && flat > 2) {
    const Record& from = *all[flat - 1];
    if (Value p = plot_value(log, rate, {from.step}); !p.is_null()) measured.set("plot", std::move(p));
    std::string summary =
        fmt::format("the schedule ended at {}: for the last {:.0f} % of the run the learning rate stays at {:.3g} of a peak of {:.3g}",
                    place(log, from), 100 * share, last, most);
    auto result = last <= 0.001 * most
                      ? CheckResult::fail("training.learning-rate", summary + ", so that nothing more is learnt", std::move(measured))
                      : CheckResult::warn("training.learning-rate", summary + "; is its length meant for this number of steps?", std::move(measured));
    return result.because(evidence_of(log, from)).because(evidence_of(log, *all.back()));
  }
  // It went up, and the run was over before it came down.
  const double warmup = log.settings["warmup_steps"].as_real(0);
  if (warmup > 0 && wanted > 0 && wanted <= warmup && !(log.settings["decay_steps"].as_real(0) > wanted))
    return CheckResult::warn("training.learning-rate",
                             fmt::format("the run has {:.0f} steps and {:.0f} of warm-up: it never reaches the peak", wanted, warmup),
                             std::move(measured));
  if (log.has(EventKind::end) && wanted > 0 && std::isfinite(reached) && reached < 0.98 * wanted - (std::isfinite(log.log_every) ? log.log_every : 0))
    return CheckResult::warn("training.configuration",
                             fmt::format("the run ended regularly at step {:.0f} of {:.0f}: the schedule was meant for more", reached, wanted),
                             std::move(measured));
  return CheckResult::pass(most > 1.05 * least ? fmt::format("the schedule moves until the end ({:.3g})", last)
                                               : fmt::format("the learning rate is constant ({:.3g})", last),
                           std::move(measured));
}

CheckResult judge_interruption(const Log& log) {
  const Event *end = nullptr, *first = nullptr;
  const Ending* kind = nullptr;
  std::size_t count = 0;
  Value each = Value::list();
  for (const auto& ending : endings) {
    for (const auto& e : log.events) {
      if (e.kind != ending.kind) continue;
      // Within one failure the more exact line speaks: the list is in that order.
      const bool covered = first != nullptr && e.after_record == first->after_record;
      if (!covered) ++count;
      if (first == nullptr) {
        first = &e;
        kind = &ending;
      }
      if (each.items().size() < 20)
        each.push(Value::object(
            {{"line", e.line}, {"text", e.text}, {"after_step", e.after_record > 0 ? Value(log.records[e.after_record - 1].step) : Value()}}));
    }
  }
  for (const auto& e : log.events)
    if (e.kind == EventKind::end) end = &e;
  const Record* last = log.records.empty() ? nullptr : &log.records.back();
  Value measured = Value::object({{"interruptions", count}, {"ended", end != nullptr}, {"events", each}});
  if (first != nullptr) {
    const Record* before = first->after_record > 0 ? &log.records[std::min(first->after_record, log.records.size()) - 1] : nullptr;
    std::string summary = kind->kind == EventKind::told_to_end ? first->text : kind->words;
    if (before != nullptr) {
      summary += fmt::format(" after {}", place(log, *before));
      if (before->holds(Quantity::epoch)) summary += fmt::format(", epoch {:.2f}", before->of(Quantity::epoch));
    } else {
      summary += " before the first record";
    }
    const std::size_t gone_on = log.records.size() - std::min(first->after_record, log.records.size());
    if (count > 1) summary += fmt::format("; {} interruptions in all", count);
    if (kind->kind == EventKind::scheduler) summary += ": " + first->text.substr(0, 160);
    // An exception line often follows: it says what.
    for (const auto& e : log.events)
      if (e.kind == EventKind::exception && e.after_record == first->after_record && &e != first) summary += ": " + e.text.substr(0, 160);
    if (kind->kind == EventKind::exception) summary += ": " + first->text.substr(0, 160);
    if (gone_on > 0) summary += fmt::format("; {} records follow", gone_on);
    if (kind->kind == EventKind::told_to_end && end != nullptr && count == 1)
      return CheckResult::pass("the run ended regularly, although " + first->text, std::move(measured));
    // Who is told to end before the end has no fault.
    const bool asked = kind->kind == EventKind::told_to_end || kind->kind == EventKind::interrupted;
    std::string cause = kind->cause;
    if (cause.empty() || kind->kind == EventKind::gpu_fault) {
      const std::string told = cause_of_words(log, *first);
      if (cause.empty() || told != "training.configuration") cause = told;
    }
    auto result = (gone_on > 0 && end != nullptr) || asked ? CheckResult::warn(cause, std::move(summary), std::move(measured))
                                                           : CheckResult::fail(cause, std::move(summary), std::move(measured));
    result.because(evidence_of(log, *first));
    if (before != nullptr) result.because(evidence_of(log, *before));
    return result;
  }
  const double wanted = log.settings["steps"].as_real(0);
  const bool early = last != nullptr && wanted > 0 && std::isfinite(last->step) &&
                     last->step < wanted - (std::isfinite(log.log_every) ? log.log_every : 0) - 0.5 * last->step_unit;
  if (log.exit_status && (*log.exit_status != 0 || (early && end == nullptr))) {
    const std::string where = last == nullptr ? "before the first record" : "after " + place(log, *last);
    auto result = by_exit_status(*log.exit_status, early ? fmt::format("{} of {:.0f}", where, wanted) : where, early, std::move(measured));
    return last == nullptr ? result : result.because(evidence_of(log, *last));
  }
  if (end != nullptr || last == nullptr)
    return CheckResult::pass(end != nullptr ? "the run ended regularly" : "nothing says that the run was interrupted", std::move(measured));
  if (early) {
    measured.set("steps_wanted", wanted);
    auto result = CheckResult::warn("training.killed",
                                    fmt::format("the log stops at {} of {:.0f} without an end or an error: the process was killed (memory, time "
                                                "limit of a scheduler, power), or it still runs",
                                                place(log, *last), wanted),
                                    std::move(measured));
    return result.because(evidence_of(log, *last));
  }
  return CheckResult::pass("nothing says that the run was interrupted", std::move(measured));
}

CheckResult judge_checkpoints(const Log& log) {
  std::vector<const Event*> saves;
  for (const auto& e : log.events)
    if (e.kind == EventKind::checkpoint) saves.push_back(&e);
  const double every = log.settings["save_freq"].as_real(0);
  if (log.records.empty() || (saves.empty() && every <= 0)) return CheckResult::skip("the log says nothing about saving");
  Value measured = Value::object({{"saves", saves.size()}});
  if (every > 0) measured.set("save_freq", every);
  Value paths = Value::list();
  for (const auto* e : saves)
    if (paths.items().size() < 50) paths.push(e->text);
  measured.set("lines", std::move(paths));
  const Record& last = log.records.back();
  const double saved = saves.empty() ? 0 : saves.back()->step, slack = std::isfinite(log.log_every) ? log.log_every : 0;
  if (std::isfinite(saved)) measured.set("last_saved_step", saved);
  if (every > 0 && std::isfinite(last.step) && std::isfinite(saved) && last.step > saved + every + slack &&
      log.settings.find("global_step") == nullptr)
    return CheckResult::warn("training.checkpoint-write-failed",
                             saves.empty()
                                 ? fmt::format("{} is reached and nothing was saved, although every {:.0f} steps should be", place(log, last), every)
                                 : fmt::format("the last checkpoint is of step {:.0f} and {} is reached, although every {:.0f} steps should be saved",
                                               saved, place(log, last), every),
                             std::move(measured))
        .because(evidence_of(log, saves.empty() ? last : log.records[std::min(saves.back()->after_record, log.records.size() - 1)]));
  if (saves.empty()) return CheckResult::pass(fmt::format("nothing to save yet (every {:.0f} steps)", every), std::move(measured));
  return CheckResult::pass(fmt::format("{} checkpoint{} saved{}", saves.size(), saves.size() == 1 ? "" : "s",
                                       std::isfinite(saved) ? fmt::format(", the last at step {:.0f}", saved) : ""),
                           std::move(measured));
}

CheckResult judge_weights(const Log& log) {
  const auto* missing = log.first(EventKind::missing_keys);
  const double learnable = log.settings["learnable"].as_real(-1), total = log.settings["total"].as_real(-1);
  if (missing == nullptr && learnable < 0) return CheckResult::skip("the log says nothing about loaded weights or trainable parameters");
  Value measured = Value::object();
  if (learnable >= 0) measured.set("learnable_parameters", learnable);
  if (total >= 0) measured.set("total_parameters", total);
  if (learnable == 0) return CheckResult::fail("training.gradient-zero", "no parameter is trainable", std::move(measured));
  if (missing != nullptr)
    return CheckResult::warn("model.key-mismatch",
                             "the checkpoint does not have all weights of the model; those that it lacks start at random values", std::move(measured))
        .because(evidence_of(log, *missing));
  return CheckResult::pass(
      total > 0 ? fmt::format("{:.0f} of {:.0f} parameters are trained", learnable, total) : fmt::format("{:.0f} parameters are trained", learnable),
      std::move(measured));
}

}  // namespace ff::training
