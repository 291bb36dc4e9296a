#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::compute {

/// How one operator did. unsupported: the device, library or framework does not have it, which is no fault.
enum class OperatorStatus { pass, fail, nan, crash, hang, unsupported, nondeterministic };
[[nodiscard]] std::string_view status_name(OperatorStatus status);
[[nodiscard]] std::optional<OperatorStatus> operator_status_from_name(std::string_view name);
/// Everything but pass and unsupported.
[[nodiscard]] bool is_fault(OperatorStatus status);

/// One operator with one type and shape, tried against a reference. Errors are relative: |result - reference| divided by
/// the scale that the operator's error analysis names (the sum of the magnitudes that were added, the result's magnitude,
/// ...), so that they compare with `bound` whatever the values were.
struct OperatorResult {
  std::string name;    ///< "gemm.f32.odd", unique within a run
  std::string family;  ///< "gemm"
  std::string dtype;   ///< "f64", "f32", "tf32", "f16", "bf16", "fp8", "i8", "i32", "u8", ...
  std::string layer;   ///< "native" (our kernels or the vendor's library, no framework) or "torch"
  OperatorStatus status = OperatorStatus::pass;
  std::optional<double> max_error, mean_error, p99_error;  ///< absent: there was no result to compare
  std::optional<double> bound;                             ///< absent: none is promised
  std::optional<double> time_ms;                           ///< of one repeat, the fastest
  std::string detail;                                      ///< shape, library, and what was wrong, in one line
};

/// What `ops run` is asked for.
struct OperatorOptions {
  std::vector<std::string> families, dtypes, names;  ///< empty: all; names match by prefix
  int repeat = 5;
  std::string device;                        ///< "cpu", "cuda", "hip"; empty: the first GPU that opens
  std::string plant;                         ///< a fault to plant, to see it found; empty: none
  double time_limit_s = 20.0;                ///< for one operator
  std::vector<std::string> library_folders;  ///< searched for the vendor's libraries before the usual places
  bool small = false;                        ///< sizes as on the CPU, for emulators
  unsigned wavefront = 0;                    ///< which wavefront the CPU plays: 32 or 64; GPUs have their own
  [[nodiscard]] bool wants(const OperatorResult& of) const;
};

/// One run over operators, as it travels: `document` writes firstfault/ops/1, `operator_run_from` reads it.
struct OperatorRun {
  std::string layer;  ///< "native" or "torch"
  Value device;       ///< object: api, name, target, wavefront, runtime, ...
  int repeat = 0;
  std::vector<OperatorResult> operators;
  std::string interrupted;  ///< "SIGTERM": it was told to end, and the rest was not tried
};

[[nodiscard]] Value operator_value(const OperatorResult& result);
[[nodiscard]] Result<OperatorResult> operator_from(const Value& value);
[[nodiscard]] Value operators_document(const OperatorRun& run);
/// Fails when the value is no firstfault/ops/1 document; `where` names it in the error.
[[nodiscard]] Result<OperatorRun> operator_run_from(const Value& document, std::string_view where);
/// The table for people: faults first, then a count per family. `all` shows passing operators one by one too.
[[nodiscard]] std::string operators_text(const OperatorRun& run, bool all);
/// 1 when one operator is a fault, else 0.
[[nodiscard]] int exit_code(const OperatorRun& run);

/// What changed from one run to another: verdicts, errors that grew, speed. Pairs operators by name.
struct OperatorChange {
  std::string name, kind;  ///< "broken", "fixed", "verdict", "error", "slower", "faster", "only-in-a", "only-in-b"
  std::string detail;
  bool worse = false;  ///< counts for the exit code
};
struct OperatorComparison {
  std::vector<OperatorChange> changes;
  std::size_t same = 0;
};
/// An error counts as changed when it is over 2 times the other and over a tenth of the bound; a time when it is over 1.5 times
/// the other and differs by more than 0.05 ms.
[[nodiscard]] OperatorComparison compare_operators(const OperatorRun& a, const OperatorRun& b);

}  // namespace ff::compute
