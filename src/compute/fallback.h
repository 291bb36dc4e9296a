#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compute/torch_run.h"

namespace ff::compute {

/// One operator in one type that failed, and through what it is right.
struct Reroute {
  std::string name, dtype;          ///< "exp", "float32"
  std::string status;               ///< what was wrong: "fail", "nan", ...
  std::vector<std::string> covers;  ///< what users call
  std::string to_device, to_dtype;  ///< empty: the same
  std::optional<double> plain_ms, routed_ms;
};

struct FallbackPlan {
  std::string device;  ///< "cpu" or "cuda": where the operators failed
  std::string torch;   ///< version of the run
  std::vector<Reroute> routes;
  std::vector<std::string> left_out;  ///< "lstm.f32: no other way passed"
};

/// Tries for every failed operator of the run other ways with the same judgement, and takes the fastest that passes: another
/// precision on the same device; where none passed, the CPU. `seconds` bounds all trials together; what they did not reach is left out.
Result<FallbackPlan> plan_fallback(const OperatorRun& run, const std::string& python, const std::string& device, double seconds,
                                   const std::function<void(std::string_view)>& progress);
/// The module: plain Python that needs torch only.
[[nodiscard]] std::string fallback_module(const FallbackPlan& plan);
[[nodiscard]] Value fallback_value(const FallbackPlan& plan);

}  // namespace ff::compute
