#include "compute/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "compute/native_run.h"
#include "compute/torch_checks.h"

// Rung 2: the native operators in small sizes, from the runtime up, each check one layer. What frameworks add is tried by
// `firstfault ops run`.
namespace ff::compute {
namespace {

/// The operators that belong to each check. A name is a prefix of operator names.
struct Layer {
  std::string_view check;
  std::vector<std::string> operators;
};
const std::vector<Layer>& layers() {
  static const std::vector<Layer> all{
      {"compute.allocation", {"allocation."}},
      {"compute.copies", {"memory."}},
      {"compute.launches", {"launch."}},
      {"compute.kernels",
       {"elementwise.add.", "elementwise.mul.", "elementwise.div.", "elementwise.exp.", "special.", "convert.", "reduction.sum.", "scan.", "wave.",
        "lds.", "atomics.", "transpose."}},
      {"compute.gemm", {"gemm."}},
      {"compute.blas", {"blas."}},
      {"compute.neural", {"norm.layer.", "softmax.", "attention.", "convolution."}},
      {"compute.convolution", {"dnn.conv.f32.exact", "dnn.conv.f16.exact"}},
  };
  return all;
}

/// Folders of the interpreter's own wheels, where a PyTorch of ROCm keeps its runtime.
std::vector<std::string> wheel_folders(const std::string& python) {
  std::vector<std::string> out;
  if (python.empty()) return out;
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path home = python;
  if (!fs::is_directory(home, error)) home = home.parent_path().parent_path();
  for (fs::directory_iterator it(home / "lib", error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with("python3")) continue;
    const fs::path packages = it->path() / "site-packages";
    std::error_code inner;
    for (fs::directory_iterator p(packages, inner), last; !inner && p != last; p.increment(inner)) {
      const std::string name = p->path().filename().string();
      if (name.starts_with("_rocm_sdk")) out.push_back((p->path() / "lib").string());
      if (name == "torch") out.push_back((p->path() / "lib").string());
      if (name == "nvidia")
        for (fs::directory_iterator n(p->path(), inner), stop; !inner && n != stop; n.increment(inner)) out.push_back((n->path() / "lib").string());
    }
  }
  return out;
}

struct Shared {
  NativeRun run;
};

std::shared_ptr<const Shared> shared(const CheckContext& context) {
  const auto make = [&] {
    OperatorOptions options;
    options.device = context.inputs.device == "gpu" ? "" : context.inputs.device;
    options.time_limit_s = 10;
    options.library_folders = wheel_folders(context.inputs.python);
    for (const auto& layer : layers()) options.names.insert(options.names.end(), layer.operators.begin(), layer.operators.end());
    return std::make_shared<Shared>(Shared{run_native(options, true, [&](std::string_view name) { context.progress(name); })});
  };
  if (context.scratch == nullptr) return make();
  auto& slot = (*context.scratch)["compute"];
  if (slot == nullptr) slot = make();
  return std::static_pointer_cast<const Shared>(slot);
}

bool has(std::string_view text, std::string_view part) { return contains(text, part); }

/// Why a device cannot be opened, by the name of the vendor's error.
std::vector<std::string> opening_causes(const gpu::OpenFailure& failure) {
  const std::string text = failure.error.to_string();
  if (failure.stage == gpu::OpenStage::library) {
    if (has(text, "lacks ")) return {"runtime.library-shadowed", "runtime.library-missing"};
    if (has(text, "GLIBC") || has(text, "GLIBCXX")) return {"runtime.cxx-runtime-old"};
    if (has(text, "undefined symbol")) return {"runtime.undefined-symbol", "runtime.library-shadowed"};
    return {"runtime.library-missing"};
  }
  if (has(text, "did not end") || has(text, "process that opened")) return {"kernel-fault.hang", "driver.user-kernel-mismatch"};
  if (has(text, "OutOfMemory") || has(text, "OUT_OF_MEMORY")) return {"memory.held-by-others", "memory.vram-exhausted"};
  if (has(text, "InsufficientDriver") || has(text, "MISMATCH")) return {"driver.user-kernel-mismatch"};
  if (failure.stage == gpu::OpenStage::context) return {"runtime.out-of-resources", "driver.user-kernel-mismatch"};
  return {"runtime.visible-devices", "permission.not-in-render-group", "driver.kfd-unavailable"};
}

/// Why an operator failed, likeliest first; `layer`: what a wrong result means at this layer.
std::vector<std::string> operator_causes(const OperatorResult& r, std::string_view check) {
  if (r.status == OperatorStatus::hang)
    return {check == "compute.copies" ? "runtime.completion-lost" : "kernel-fault.hang", "kernel-fault.sdma-hang"};
  const std::string& text = r.detail;
  if (has(text, "does not compile")) return {"library-coverage.miopen-compile-failed"};
  if (has(text, "NoBinaryForGpu") || has(text, "NO_BINARY_FOR_GPU") || has(text, "InvalidImage"))
    return {"library-coverage.extension-lacks-target", "runtime.override-harmful"};
  if (has(text, "cannot open") || has(text, "hiprtc") || has(text, "nvrtc")) return {"runtime.library-missing"};
  if (has(text, "IllegalAddress") || has(text, "ILLEGAL_ADDRESS") || has(text, "bytes behind") || has(text, "bytes before"))
    return {"kernel-fault.out-of-bounds"};
  if (has(text, "OutOfMemory") || has(text, "OUT_OF_MEMORY")) return {"memory.held-by-others", "memory.vram-exhausted"};
  if (has(text, "was accepted") || has(text, "InvalidConfiguration")) return {"kernel-fault.invalid-launch"};
  if (r.status == OperatorStatus::crash && has(text, "miopen"))
    return {"library-coverage.miopen-compile-failed", "library-coverage.miopen-database-missing"};
  if (r.status == OperatorStatus::crash) return {"kernel-fault.illegal-instruction", "driver.user-kernel-mismatch"};
  if (r.status == OperatorStatus::nondeterministic) return {"precision.nondeterministic", "hardware.wrong-results"};
  if (check == "compute.blas" || check == "compute.convolution") return {"precision.library-numerics", "hardware.wrong-results"};
  return {"hardware.wrong-results", "hardware.uncorrectable-ecc"};
}

bool belongs(const OperatorResult& r, const Layer& layer) {
  return std::ranges::any_of(layer.operators, [&](const std::string& p) { return r.name.starts_with(p); });
}

CheckResult runtime_opens(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->run && all->run.error().stage < gpu::OpenStage::context) {
    const auto& failure = all->run.error();
    auto result = CheckResult::fail(opening_causes(failure).front(), failure.error.to_string());
    result.causes = opening_causes(failure);
    if (!failure.error.remedy.empty()) result.fix.push_back(failure.error.remedy);
    result.evidence.push_back({failure.error.where, 0, failure.error.what});
    return result;
  }
  if (!all->run) return CheckResult::pass("the runtime opens and shows a device");
  const Value& d = all->run->device;
  return CheckResult::pass(fmt::format("{}: {}, {}", d["runtime"].to_string(), d["name"].to_string(), d["target"].to_string()), d);
}

CheckResult context_opens(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->run) {
    const auto& failure = all->run.error();
    auto result = CheckResult::fail(opening_causes(failure).front(), failure.error.to_string());
    result.causes = opening_causes(failure);
    result.evidence.push_back({failure.error.where, 0, failure.error.what});
    return result;
  }
  return CheckResult::pass(
      fmt::format("a context on {} ({} compute units)", all->run->device["name"].to_string(), all->run->device["compute_units"].to_string()));
}

CheckResult judge_layer(const CheckContext& context, const Layer& layer) {
  const auto all = shared(context);
  if (!all->run) return CheckResult::skip("the device did not open");
  std::size_t passed = 0, unsupported = 0;
  const OperatorResult* first = nullptr;
  std::vector<const OperatorResult*> faults;
  double worst = 0, ms = 0;
  std::string unsupported_why;
  for (const auto& r : all->run->operators) {
    if (!belongs(r, layer)) continue;
    ms += r.time_ms.value_or(0);
    if (is_fault(r.status)) {
      faults.push_back(&r);
      if (first == nullptr) first = &r;
    } else if (r.status == OperatorStatus::unsupported) {
      ++unsupported;
      if (unsupported_why.empty()) unsupported_why = r.detail;
    } else {
      ++passed;
      if (r.bound.value_or(0) > 0) worst = std::max(worst, r.max_error.value_or(0) / *r.bound);
    }
  }
  if (first == nullptr && passed == 0) return CheckResult::skip(unsupported > 0 ? unsupported_why : "the operators before it took the device away");
  Value measured = Value::object({{"passed", static_cast<unsigned long>(passed)},
                                  {"failed", static_cast<unsigned long>(faults.size())},
                                  {"unsupported", static_cast<unsigned long>(unsupported)},
                                  {"largest_error_of_bound", worst},
                                  {"device_ms", ms}});
  if (first == nullptr)
    return CheckResult::pass(fmt::format("{} operators right{}", passed, worst > 0 ? fmt::format(", largest error {:.2g} of its bound", worst) : ""),
                             std::move(measured));
  std::vector<std::string> causes;
  for (const auto* r : faults)
    for (auto& cause : operator_causes(*r, layer.check))
      if (std::ranges::find(causes, cause) == causes.end()) causes.push_back(cause);
  auto result = CheckResult::fail(causes.front(),
                                  fmt::format("{}: {}, {}{}", first->name, status_name(first->status), first->detail,
                                              faults.size() > 1 ? fmt::format(" (and {} more)", faults.size() - 1) : ""),
                                  std::move(measured));
  result.causes = std::move(causes);
  for (const auto* r : faults)
    if (result.evidence.size() < 20) result.evidence.push_back({"operator " + r->name, 0, fmt::format("{}: {}", status_name(r->status), r->detail)});
  result.verify.push_back(fmt::format("firstfault ops run --native --name {}", first->name));
  return result;
}

Check layer_check(std::size_t i, std::string_view question, std::string_view how, std::vector<std::string_view> causes,
                  std::vector<std::string_view> needs) {
  return {layers()[i].check, Rung::compute, question, how, std::move(causes), std::move(needs), [i](const CheckContext& context) {
            return judge_layer(context, layers()[i]);
          }};
}

std::vector<Check> table() {
  const std::vector<std::string_view> wrong{
      "hardware.wrong-results", "hardware.uncorrectable-ecc", "precision.nondeterministic",       "kernel-fault.hang",
      "kernel-fault.sdma-hang", "kernel-fault.out-of-bounds", "kernel-fault.illegal-instruction", "driver.user-kernel-mismatch",
      "memory.held-by-others",  "memory.vram-exhausted"};
  const auto with = [&](std::vector<std::string_view> more) {
    more.insert(more.end(), wrong.begin(), wrong.end());
    return more;
  };
  return {
      {"compute.runtime-opens",
       Rung::compute,
       "Does the GPU's runtime open and show a device?",
       "HIP's (or CUDA's) runtime library is opened and asked for its devices, in a child process with a time limit. Libraries are looked for in the "
       "active Python "
       "environment's wheels, $ROCM_PATH, /opt/rocm and on the loader's path. With --device cpu the CPU is the device.",
       {"runtime.library-missing", "runtime.library-shadowed", "runtime.undefined-symbol", "runtime.cxx-runtime-old", "runtime.visible-devices",
        "permission.not-in-render-group", "driver.kfd-unavailable", "driver.user-kernel-mismatch", "kernel-fault.hang", "memory.held-by-others",
        "memory.vram-exhausted"},
       {"device.driver-loaded", "device.kfd-present", "device.nodes-openable"},
       &runtime_opens},
      {"compute.context",
       Rung::compute,
       "Can a context be made on the device?",
       "The first call that needs a context is made.",
       {"runtime.out-of-resources", "driver.user-kernel-mismatch", "memory.held-by-others", "memory.vram-exhausted", "kernel-fault.hang"},
       {"compute.runtime-opens"},
       &context_opens},
      layer_check(0, "Is device memory given, and given back?",
                  "Allocations of sizes from one byte on must not overlap and must hold what is written; freed memory must return; too large ones "
                  "must be refused.",
                  wrong, {"compute.context"}),
      layer_check(1, "Do copies and fills arrive whole?",
                  "Host to device and back with pinned and pageable memory at odd sizes and offsets, device to device, fills, asynchronous copies "
                  "ordered by events, "
                  "address-dependent patterns; compared byte by byte.",
                  with({"runtime.completion-lost"}), {"compute.allocation"}),
      layer_check(2, "Does every thread of a launch run, once, and end?",
                  "A kernel is compiled at run time and launched in block sizes around multiples of the wavefront, in three dimensions, on several "
                  "streams, as a graph; "
                  "launches over the limits must be refused.",
                  with({"library-coverage.miopen-compile-failed", "library-coverage.extension-lacks-target", "runtime.override-harmful",
                        "runtime.library-missing", "kernel-fault.invalid-launch"}),
                  {"compute.copies"}),
      layer_check(3, "Do our own kernels compute right?",
                  "Arithmetic, special values, conversions, reductions, prefix sums, wavefront operations, LDS, atomics and transposes in each type, "
                  "five times, against a "
                  "float64 reference with a bound from error analysis (docs/compute.md).",
                  with({"library-coverage.miopen-compile-failed", "runtime.library-missing"}), {"compute.launches"}),
      layer_check(4, "Is our own matrix product right?",
                  "Shapes that break kernels (odd, skinny, long sums, batched, strided, transposed, alpha and beta), exact and random data.",
                  with({"library-coverage.miopen-compile-failed"}), {"compute.kernels"}),
      layer_check(5, "Is the vendor's matrix product right?",
                  "The same shapes through rocBLAS or cuBLAS, also in FP16, BF16, INT8 and TF32. Skipped when the library is not installed. Fails "
                  "while our own product holds: "
                  "the library is at fault, not the device.",
                  with({"precision.library-numerics", "library-coverage.rocblas-lacks-target", "runtime.library-missing"}), {"compute.gemm"}),
      layer_check(6, "Are convolution, norms, softmax and attention right?", "Our own kernels against a float64 reference.",
                  with({"library-coverage.miopen-compile-failed"}), {"compute.gemm"}),
      layer_check(7, "Is the vendor's convolution right?",
                  "One shape in FP32 and FP16 through MIOpen's immediate mode or cuDNN, whole numbers whose sums are exact. Skipped when the library "
                  "is not installed. Fails while our own convolution holds: the library is at fault, not the device. All shapes, types and "
                  "algorithms: firstfault ops run --native --family dnn.",
                  with({"precision.library-numerics", "library-coverage.miopen-compile-failed", "library-coverage.miopen-database-missing",
                        "runtime.library-missing"}),
                  {"compute.neural"}),
  };
}

}  // namespace

std::span<const Check> checks() {
  static const std::vector<Check> all = [] {
    auto both = table();
    both.insert(both.end(), torch_checks().begin(), torch_checks().end());
    return both;
  }();
  return all;
}

}  // namespace ff::compute
