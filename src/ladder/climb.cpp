#include <algorithm>
#include <exception>
#include <map>
#include <set>

#include "knowledge/knowledge.h"
#include "ladder/fill_in.h"
#include "ladder/ladder.h"

namespace ff::ladder {
namespace {

/// Adds the text of the first cause, which is written once, in knowledge/. A check that gives a proof of its own knows the
/// case: its proof stands alone, and with a remedy of its own beside it that stands alone, too.
void complete_from_knowledge(CheckResult& result, const CheckContext& context) {
  if ((result.status != Status::fail && result.status != Status::warn) || result.causes.empty()) return;
  const auto* cause = context.knowledge.cause(result.causes.front());
  if (cause == nullptr) return;
  const auto add = [&](std::vector<std::string>& to, std::string line) {
    if (std::ranges::find(to, line) == to.end()) to.push_back(std::move(line));
  };
  const bool own_proof = !result.verify.empty();
  if (!own_proof || result.fix.empty())
    for (const auto& line : cause->fix) add(result.fix, filled_in(line, cause->id, context.inputs));
  if (!own_proof)
    for (const auto& line : cause->verify) add(result.verify, filled_in_proof(line, *cause, context.inputs));
}

/// The asked-for checks and, transitively, those they need.
std::set<std::string_view> closure(const std::vector<std::string>& wanted, std::span<const RungEntry> ladder) {
  std::map<std::string_view, const Check*> by_id;
  for (const auto& entry : ladder)
    for (const auto& check : entry.checks()) by_id.emplace(check.id, &check);
  std::set<std::string_view> out;
  std::vector<std::string_view> open(wanted.begin(), wanted.end());
  while (!open.empty()) {
    const auto id = open.back();
    open.pop_back();
    const auto found = by_id.find(id);
    if (found == by_id.end() || !out.insert(found->first).second) continue;
    open.insert(open.end(), found->second->needs.begin(), found->second->needs.end());
  }
  return out;
}

/// What an earlier result means for a check that needs it: the id of the failure at the root, or nothing.
std::string root_failure(const Check& check, const std::map<std::string, const CheckResult*, std::less<>>& results) {
  for (const auto need : check.needs) {
    const auto found = results.find(need);
    if (found == results.end()) continue;
    const CheckResult& earlier = *found->second;
    if (earlier.status == Status::fail || earlier.status == Status::error) return earlier.id;
    if (earlier.status == Status::skip && !earlier.blocked_by.empty()) return earlier.blocked_by;
  }
  return {};
}

CheckResult run_check(const Check& check, const CheckContext& context, const std::string& blocked_by) {
  const auto start = std::chrono::steady_clock::now();
  CheckResult result;
  if (!blocked_by.empty()) {
    result = CheckResult::skip("not tried: " + blocked_by + " does not hold");
    result.blocked_by = blocked_by;
  } else {
    try {
      result = check.run(context);
    } catch (const std::exception& e) {
      // A layer that lets an exception out is a bug of ours; it must not take the run with it.
      result = CheckResult::error(Error{std::string("the check ended with an unexpected error: ") + e.what(), std::string(check.id),
                                        "please report this with the run directory", 3});
    }
  }
  result.id = check.id;
  if (result.status == Status::fail && result.causes.empty())
    result = CheckResult::error(Error{"failed without naming a cause: " + result.summary, std::string(check.id), "please report this", 3});
  result.id = check.id;
  complete_from_knowledge(result, context);
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  return result;
}

RungStatus judge(const std::vector<CheckResult>& checks) {
  RungStatus status = RungStatus::skip;
  const auto rank = [](RungStatus s) {
    switch (s) {
      case RungStatus::skip:
        return 0;
      case RungStatus::pass:
        return 1;
      case RungStatus::warn:
        return 2;
      case RungStatus::error:
        return 3;
      case RungStatus::fail:
        return 4;
      case RungStatus::not_reached:
        return -1;
    }
    return -1;
  };
  for (const auto& check : checks) {
    const RungStatus own = check.status == Status::pass   ? RungStatus::pass
                           : check.status == Status::warn ? RungStatus::warn
                           : check.status == Status::fail ? RungStatus::fail
                           : check.status == Status::skip ? RungStatus::skip
                                                          : RungStatus::error;
    if (rank(own) > rank(status)) status = own;
  }
  return status;
}

/// A rung that nothing speaks against holds only when something speaks for it. Else: what it lacks.
std::string why_not_judged(const RungEntry& entry, const std::vector<CheckResult>& checks, const CheckContext& context) {
  if (entry.unseen != nullptr)
    if (std::string unseen = entry.unseen(context); !unseen.empty()) return unseen;
  if (std::ranges::any_of(checks, [](const CheckResult& check) { return check.status == Status::pass; })) return {};
  const auto skipped = std::ranges::find(checks, Status::skip, &CheckResult::status);
  return skipped == checks.end() ? "" : "no check passed; the first that was skipped is " + skipped->id + ": " + skipped->summary;
}

}  // namespace

std::string_view status_name(RungStatus status) {
  switch (status) {
    case RungStatus::pass:
      return "pass";
    case RungStatus::warn:
      return "warn";
    case RungStatus::fail:
      return "fail";
    case RungStatus::skip:
      return "skip";
    case RungStatus::error:
      return "error";
    case RungStatus::not_reached:
      return "not-reached";
  }
  return "error";
}

const CheckResult* Climb::find(std::string_view check_id) const {
  for (const auto& rung : rungs)
    for (const auto& check : rung.checks)
      if (check.id == check_id) return &check;
  return nullptr;
}

int Climb::exit_code() const {
  bool errored = false;
  for (const auto& rung : rungs) {
    if (rung.status == RungStatus::fail) return 1;
    errored = errored || rung.status == RungStatus::error;
  }
  return errored ? 3 : 0;
}

bool Climb::judged_nothing() const {
  bool tried = false;
  for (const auto& rung : rungs) {
    if (rung.status != RungStatus::skip && rung.status != RungStatus::not_reached) return false;
    tried = tried || !rung.checks.empty();
  }
  return tried;
}

std::vector<std::string> unknown_checks(const std::vector<std::string>& ids, std::span<const RungEntry> ladder) {
  std::set<std::string_view> known;
  for (const auto& entry : ladder)
    for (const auto& check : entry.checks()) known.insert(check.id);
  std::vector<std::string> out;
  for (const auto& id : ids)
    if (!known.contains(id)) out.push_back(id);
  return out;
}

Climb climb(const CheckContext& context, const Options& options, const Observer& observer, std::span<const RungEntry> ladder) {
  Climb climb;
  climb.rungs.reserve(ladder.size());
  const auto wanted = closure(options.only_checks, ladder);
  std::map<std::string, const CheckResult*, std::less<>> results;
  std::string stopped_by;
  bool done = false;
  for (const auto& entry : ladder) {
    RungResult rung;
    rung.rung = entry.rung;
    const auto checks = entry.checks();
    const auto applies = [&](const Check& check) { return wanted.empty() || wanted.contains(check.id); };
    if (options.only_rung && *options.only_rung != entry.rung) {
      rung.reason = "not asked for (--rung " + std::string(rung_name(*options.only_rung)) + ")";
    } else if (done) {
      rung.reason = "not asked for";
    } else if (!stopped_by.empty()) {
      rung.reason = "the climb stopped at " + stopped_by;
    } else if (!options.only_checks.empty() && std::ranges::none_of(checks, applies)) {
      rung.reason = "not asked for (--only)";
    } else if (const std::string missing = entry.missing_input(context.inputs); !missing.empty()) {
      rung.status = RungStatus::skip;
      rung.reason = missing;
    } else if (checks.empty()) {
      rung.status = RungStatus::skip;
      rung.reason = "this version has no checks for this rung";
    } else {
      observer.rung_begins(entry.rung);
      const auto start = std::chrono::steady_clock::now();
      rung.checks.reserve(checks.size());  // results hold pointers into it
      for (const auto& check : checks) {
        if (!applies(check)) continue;
        observer.check_begins(check);
        rung.checks.push_back(run_check(check, context, root_failure(check, results)));
        const CheckResult& result = rung.checks.back();
        results[result.id] = &result;
        observer.check_ended(result);
        const bool broken = result.status == Status::fail || result.status == Status::error;
        if (broken && climb.first_fault.empty()) climb.first_fault = result.id;
        if (options.up_to_check == result.id) {
          done = true;
          break;
        }
      }
      rung.status = judge(rung.checks);
      // Who asks for single checks asks for their answers and not for the rung's.
      if (options.only_checks.empty() && options.up_to_check.empty() && rung.status != RungStatus::fail && rung.status != RungStatus::error)
        if (const std::string why = why_not_judged(entry, rung.checks, context); !why.empty()) {
          rung.status = RungStatus::skip;
          rung.reason = "not judged: " + why;
        }
      rung.duration = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
      const bool holds = rung.status != RungStatus::fail && rung.status != RungStatus::error;
      if (!holds && !options.keep_going) stopped_by = climb.first_fault;
      observer.rung_ended(rung);
    }
    // Moving the rung keeps its checks' storage, so the pointers in `results` stay valid.
    climb.rungs.push_back(std::move(rung));
  }
  return climb;
}

}  // namespace ff::ladder
