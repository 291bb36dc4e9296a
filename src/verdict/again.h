#pragma once

#include <string>
#include <string_view>

#include "ladder/ladder.h"

namespace ff::verdict {

/// What a second climb says about the fault of the first.
enum class Outcome { fixed, not_fixed, another_fault, undecided };
[[nodiscard]] std::string_view outcome_name(Outcome outcome);  ///< "fixed", "not fixed", "another fault", "undecided"

/// `check_id` is the fault of the earlier run, `climb` a later climb up to that check.
/// fixed: the check holds now; another fault: an earlier check fails; undecided: the check could not be answered
/// (skipped for lack of evidence, or an error).
Outcome judge_again(std::string_view check_id, const ladder::Climb& climb);

/// How a verify command may be run.
enum class VerifyKind {
  reads,     ///< only looks: may be run at once
  changes,   ///< may change something, or cannot be told: ask first
  template_  ///< holds a placeholder such as <your command>: a person must complete it
};
/// Conservative: a command only `reads` when every word that is executed in it is known to only look.
VerifyKind classify_verify(std::string_view command);

}  // namespace ff::verdict
