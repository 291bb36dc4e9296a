#pragma once

#include <string>

#include "check/check.h"
#include "training/series.h"

namespace ff::training {

// Each answers one question about a log. They are pure: the same log gives the same answer.
// Rules and thresholds: docs/training.md.
CheckResult judge_metrics(const Log& log);  ///< is there anything to judge?
CheckResult judge_loss_finite(const Log& log);
CheckResult judge_gradient(const Log& log);
CheckResult judge_loss_plausible(const Log& log);
CheckResult judge_memory(const Log& log);
CheckResult judge_loading(const Log& log);
CheckResult judge_tail(const Log& log);
CheckResult judge_pace(const Log& log);
CheckResult judge_stall(const Log& log);
CheckResult judge_learning_rate(const Log& log);
CheckResult judge_schedule(const Log& log);
CheckResult judge_interruption(const Log& log);
CheckResult judge_checkpoints(const Log& log);
CheckResult judge_weights(const Log& log);
CheckResult judge_resume_start(const Log& log);
CheckResult judge_resume_step(const Log& log);
CheckResult judge_resume_rate(const Log& log);
CheckResult judge_resume_loss(const Log& log);

/// "step 400: loss nan, gradient norm 3.1, learning rate 1e-05".
[[nodiscard]] std::string describe(const Record& record);
[[nodiscard]] Evidence evidence_of(const Log& log, const Record& record);
[[nodiscard]] Evidence evidence_of(const Log& log, const Event& event);
/// Does the log say that the process is gone, or was it seen to end? What still runs can be looked at, what has ended cannot.
[[nodiscard]] bool has_ended(const Log& log);
/// "step 400", or "record 12" when the log has no steps.
[[nodiscard]] std::string place(const Log& log, const Record& record);

}  // namespace ff::training
