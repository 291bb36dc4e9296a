#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "compute/operator.h"

namespace ff::compute {

/// One operator of the catalogue (probes/ops_catalogue.py).
struct TorchOperator {
  std::string name, family;
  std::string probe;                ///< the probe that runs its group
  std::vector<std::string> covers;  ///< what users call: "torch.exp", "torch.Tensor.exp"
};

/// One operator in one type: what a verdict is about. The run's name of it is "exp.f32".
struct TorchCase {
  std::string name, family, dtype;  ///< dtype in PyTorch's words: "float32"
  /// Through what it goes instead of its own device and type: "cpu/", "/float64", "cpu/float32"; empty: as it is. The run's name of
  /// it then ends with "@cpu/float32".
  std::string route{};
  friend bool operator==(const TorchCase&, const TorchCase&) = default;
};

struct TorchOptions {
  std::string python;                    ///< the user's interpreter
  std::string device = "cpu";            ///< "cpu" or "cuda" (which is ROCm's name in PyTorch too)
  std::vector<std::string> families;     ///< empty: all, the compile group among them
  std::vector<std::string> dtypes;       ///< empty: float32, float16, bfloat16
  std::vector<std::string> names;        ///< operators by prefix; empty: all
  std::vector<TorchCase> cases;          ///< exactly these, whatever the three above say; empty: see above
  std::vector<std::string> environment;  ///< "NAME=value" for the children, set before they start
  int repeat = 5;
  double time_limit_s = 30;  ///< for one operator in one type
  std::string evidence;      ///< directory for stderr and kernel log of what crashed or hung; empty: none is kept
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< no child runs longer; what was not tried then has no result
  std::vector<TorchOperator> catalogue;                           ///< as torch_catalogue() gave it; empty: the interpreter is asked
};

/// The six families and the compile group, in the order in which they run.
[[nodiscard]] std::span<const std::string_view> torch_families();
/// "float32" for "f32" and "float32"; nothing for what the suite does not run.
[[nodiscard]] std::optional<std::string> torch_dtype(std::string_view name);
/// "f32" for "float32".
[[nodiscard]] std::string short_dtype(std::string_view torch_name);

/// The catalogue, as the user's interpreter reads it. Errors: it cannot be run.
Result<std::vector<TorchOperator>> torch_catalogue(const std::string& python);

/// What the records of one child say. Pure; unknown or malformed records are ignored.
struct TorchRecords {
  Value hello;              ///< versions and device; null when it did not come that far
  std::string unavailable;  ///< why there is no such device
  std::vector<OperatorResult> results;
  std::vector<TorchCase> finished;      ///< the cases of `results`
  std::optional<TorchCase> unfinished;  ///< started, and neither judged nor the end reached
  std::string unfinished_variant;       ///< "odd"
  std::string dead;                     ///< the error after which the device's context was gone
  bool ended = false;
};
[[nodiscard]] TorchRecords read_torch_records(std::span<const Value> records);

/// Tries the operators in the user's PyTorch, one child a group; one that crashes or hangs costs itself only: the rest of its
/// group goes on in a new child. Errors: no such interpreter, torch does not import, no such device.
Result<OperatorRun> run_torch(const TorchOptions& options, const std::function<void(std::string_view)>& progress);

/// Per family: passed of tried, errors, faults by kind, time. Fixed columns, one line a family.
[[nodiscard]] std::string families_text(const OperatorRun& run);
[[nodiscard]] Value families_value(const OperatorRun& run);

}  // namespace ff::compute
