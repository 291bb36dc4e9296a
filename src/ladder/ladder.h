#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"
#include "check/check.h"

namespace ff::ladder {

/// One step of the ladder: which checks it holds and what it needs before it can be tried.
struct RungEntry {
  Rung rung;
  std::span<const Check> (*checks)();
  /// Why the rung cannot be tried with these inputs; empty: it can.
  std::string (*missing_input)(const CheckInputs&);
  /// Why checks that passed do not yet say that the rung holds: what it is about was not among the evidence. Empty, or none: they do.
  std::string (*unseen)(const CheckContext&) = nullptr;
};

/// The whole ladder, in climbing order. The one place where it is assembled.
std::span<const RungEntry> rungs();

enum class RungStatus { pass, warn, fail, skip, error, not_reached };
[[nodiscard]] std::string_view status_name(RungStatus status);

struct RungResult {
  Rung rung{};
  RungStatus status = RungStatus::not_reached;
  std::string reason;  ///< why it was skipped, not reached, or not judged although it was tried
  std::vector<CheckResult> checks;
  std::chrono::microseconds duration{0};
};

struct Climb {
  std::vector<RungResult> rungs;  ///< always all of them
  std::string first_fault;        ///< id of the first check that failed or errored; empty: none
  [[nodiscard]] const CheckResult* find(std::string_view check_id) const;
  /// 0 nothing wrong, 1 a check failed, 3 a check could not run (and none failed before it).
  [[nodiscard]] int exit_code() const;
  /// Rungs were tried, and not one of them could be judged: neither "holds" nor "broken" can be said of anything.
  [[nodiscard]] bool judged_nothing() const;
};

struct Options {
  std::optional<Rung> only_rung;         ///< --rung
  std::vector<std::string> only_checks;  ///< --only; what they need is run too
  bool keep_going = false;               ///< climbs on after a fault
  std::string up_to_check;               ///< --again: stops after this check
};

/// Told of everything that happens, in order; a run directory and a progress line listen.
struct Observer {
  std::function<void(Rung)> rung_begins = [](Rung) {};
  std::function<void(const Check&)> check_begins = [](const Check&) {};
  std::function<void(const CheckResult&)> check_ended = [](const CheckResult&) {};
  std::function<void(const RungResult&)> rung_ended = [](const RungResult&) {};
};

/// Climbs. A rung holds when no check failed, none errored and one passed; the first that is broken stops the climb. A rung in which
/// nothing passed, or whose subject nothing shows (RungEntry::unseen), is not judged: a skip with a reason that says what would judge it.
/// A check whose `needs` failed or were skipped because of a failure becomes a skip that names the failure.
/// `fix` and `verify` of a failing check are completed from the knowledge base's text of its first cause.
Climb climb(const CheckContext& context, const Options& options, const Observer& observer, std::span<const RungEntry> ladder = rungs());

/// Check ids that --only does not know; empty when all are known.
std::vector<std::string> unknown_checks(const std::vector<std::string>& ids, std::span<const RungEntry> ladder = rungs());

}  // namespace ff::ladder
