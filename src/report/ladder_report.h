#pragma once

#include <string>

#include "base/value.h"
#include "ladder/ladder.h"
#include "report/style.h"

namespace ff::report {

/// One check as every JSON document prints it: {"id","status","causes","summary","measured","evidence","fix","verify",…}.
Value check_value(const CheckResult& result);

/// The document firstfault/ladder/1. `diagnoses` is a list in the shape of firstfault/diagnosis/1.
Value ladder_value(const ladder::Climb& climb, const Value& diagnoses, const std::string& run_path);

/// What else the screen says; every member may be empty.
struct LadderContext {
  std::string subject;  ///< "this machine (hostname)" or "capture examples/…"
  std::string machine;  ///< "2 x RX 7900 XTX (gfx1100), ROCm 7.0.2, kernel 6.8"
  std::string run_path;
  Value diagnoses;                 ///< list as above
  std::vector<std::string> notes;  ///< changed variables, warnings of the comparison, what could not be read
  bool show_all = false;           ///< passing and skipped checks too
  std::string interrupted;         ///< "SIGTERM while model.finite was being answered": the climb did not end
};

/// One screen that a tired person can act on: the ladder, the first fault, why, what to do, how to prove it.
std::string ladder_text(const ladder::Climb& climb, const LadderContext& context, const Style& style, std::size_t width);
/// The checks of one rung alone (data check, model check): notable ones, or all, then the first fault as above.
std::string checks_text(const ladder::Climb& climb, Rung rung, const std::string& subject, bool show_all, const Style& style, std::size_t width);
/// A drawing that belongs to the report, and the check whose finding it shows.
struct Drawing {
  std::string check, name, svg;  ///< name: "plots/step.loss-finite.svg", relative to the report
};
/// The course of what failed or warns, and of the loss, where the log gave enough of it.
std::vector<Drawing> drawings(const ladder::Climb& climb);
/// The same with everything, for report.md; it shows the drawings, which must stand beside it.
std::string ladder_markdown(const ladder::Climb& climb, const LadderContext& context);

/// The same three from a stored document (firstfault show), without the checks' code.
Result<ladder::Climb> climb_from_value(const Value& document);

}  // namespace ff::report
