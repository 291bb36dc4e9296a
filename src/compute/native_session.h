#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compute/native_types.h"
#include "compute/operator.h"
#include "gpu/blas.h"
#include "gpu/blas_lt.h"
#include "gpu/device.h"
#include "gpu/dnn.h"

namespace ff::compute {

/// What one native operator found out.
struct Outcome {
  OperatorStatus status = OperatorStatus::pass;
  std::optional<double> max_error, mean_error, p99_error, bound, time_ms;
  std::string detail;

  static Outcome pass(std::string detail = {}) { return {.detail = std::move(detail)}; }
  static Outcome fail(std::string detail) { return {.status = OperatorStatus::fail, .detail = std::move(detail)}; }
  static Outcome unsupported(std::string detail) { return {.status = OperatorStatus::unsupported, .detail = std::move(detail)}; }
};

/// One result buffer and what makes it. Filled with garbage (or `initial`) before every repeat; guarded on both sides.
struct Trial {
  Type type = Type::f32;
  std::size_t elements = 0;
  std::function<Result<void>(gpu::Address out, gpu::Stream stream)> run;
  const Bytes* initial = nullptr;
  std::string detail;       ///< shape and library
  bool may_differ = false;  ///< bitwise differences between repeats are allowed (a vendor's atomics say so)
};

/// What the results should be. |result - value| <= bound * scale + floor, element by element.
struct Reference {
  std::vector<double> value;
  std::vector<double> scale;  ///< empty: |value|
  double bound = 0;
  double floor = 0;
};

/// One opened device with what operators share: compiled kernels, a stream, the repeats, the fault to plant.
class Session {
 public:
  Session(gpu::Device& device, const OperatorOptions& options, bool quick) : device_(device), options_(options), quick_(quick) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] gpu::Device& device() { return device_; }
  [[nodiscard]] const gpu::Properties& properties() const { return device_.properties(); }
  [[nodiscard]] bool on_cpu() const { return properties().api == gpu::Api::cpu; }
  /// Sizes are those of the CPU: it is the CPU, or it is asked for (--small).
  [[nodiscard]] bool small() const { return on_cpu() || options_.small; }
  [[nodiscard]] bool quick() const { return quick_; }
  [[nodiscard]] int repeat() const { return options_.repeat; }
  [[nodiscard]] const std::vector<std::string>& library_folders() const { return options_.library_folders; }
  /// How many elements a test over `gpu_size` elements takes here: fewer on the CPU and in rung 2.
  [[nodiscard]] std::size_t size(std::size_t gpu_size, std::size_t cpu_size) const;
  [[nodiscard]] bool plants(std::string_view fault) const { return options_.plant == fault; }

  /// A kernel by its source and name; compiled when first asked for.
  Result<gpu::Function> kernel(std::string_view source, const std::string& name);
  Result<gpu::Stream> stream();
  /// The vendor's BLAS; opened when first asked for.
  Result<gpu::Blas*> blas();
  /// The vendor's library for eight-bit products; opened when first asked for.
  Result<gpu::BlasLt*> blas_lt();
  /// The vendor's library of convolutions; opened when first asked for.
  Result<gpu::Dnn*> dnn();
  Result<gpu::Buffer> upload(const Bytes& bytes);
  Result<gpu::Buffer> upload(Type type, std::span<const double> values) { return upload(encode(type, values)); }
  Result<Bytes> download(gpu::Address from, std::size_t size_bytes);
  /// `threads` threads in blocks of `block`, at most `most` blocks.
  template <class... A>
  Result<void> launch(gpu::Function f, std::uint64_t threads, unsigned block, gpu::Stream stream, A... arguments) {
    const std::uint64_t blocks = std::min<std::uint64_t>((threads + block - 1) / block, max_blocks());
    return device_.launch(f, {static_cast<unsigned>(std::max<std::uint64_t>(blocks, 1)), 1, 1}, {block, 1, 1}, 0, gpu::Arguments<A...>(arguments...),
                          stream);
  }
  [[nodiscard]] unsigned max_blocks() const { return on_cpu() ? 8 : properties().compute_units * 16; }

  /// Runs the trial as often as asked, compares the repeats bit by bit, the first with the reference, the guards with what they were.
  Result<Outcome> judge(const Trial& trial, const Reference& reference);
  /// The same for results that must be exact.
  Result<Outcome> judge_bytes(const Trial& trial, const Bytes& expected);

 private:
  struct Runs {
    Bytes first;
    std::optional<std::string> differs, overrun;
    double best_ms = 0;
  };
  Result<Runs> run_all(const Trial& trial);
  /// What the repeats say beside the values: bytes written outside the result, other bits than the first time.
  static void judge_repeats(const Runs& runs, const Trial& trial, Outcome& out);
  gpu::Device& device_;
  const OperatorOptions& options_;
  bool quick_;
  std::map<std::string, std::unique_ptr<gpu::Module>, std::less<>> modules_;
  gpu::Stream stream_ = nullptr;
  std::unique_ptr<gpu::Blas> blas_;
  std::unique_ptr<gpu::BlasLt> blas_lt_;
  std::unique_ptr<gpu::Dnn> dnn_;
};

/// One entry of the native suite.
struct NativeOperator {
  std::string name, family, dtype;
  std::function<Result<Outcome>(Session&)> run;
  double patience = 1;  ///< how many times the limit of an operator it may take
};

// The suite, in the order in which it runs: what later families need comes first. One file a group of families.
void add_memory_operators(std::vector<NativeOperator>& to);
void add_launch_operators(std::vector<NativeOperator>& to);
void add_elementwise_operators(std::vector<NativeOperator>& to);
void add_reduction_operators(std::vector<NativeOperator>& to);
void add_parallel_operators(std::vector<NativeOperator>& to);
void add_gemm_operators(std::vector<NativeOperator>& to);
void add_blas_operators(std::vector<NativeOperator>& to);
void add_float8_operators(std::vector<NativeOperator>& to);
void add_convolution_operators(std::vector<NativeOperator>& to);
void add_neural_operators(std::vector<NativeOperator>& to);
void add_dnn_operators(std::vector<NativeOperator>& to);
void add_collective_operators(std::vector<NativeOperator>& to);
void add_finite_operators(std::vector<NativeOperator>& to);
[[nodiscard]] std::vector<NativeOperator> native_operators();

/// What a vendor's library that cannot be opened is: not there is no fault of the device, there and not loadable is one of the installation.
[[nodiscard]] Outcome without_library(const Error& error);

/// A fault that `--plant` knows, the operators (by prefix) that must find it, and the kind of stress (empty: none plants it).
struct PlantedFault {
  std::string_view name, what, found_by, stress;
};
[[nodiscard]] std::span<const PlantedFault> planted_faults();
/// The list for `--plant help`; with `stress` only what its kinds plant.
[[nodiscard]] std::string planted_faults_text(bool stress);
/// Wrong usage when no fault has this name; the remedy lists them.
Result<void> known_planted_fault(std::string_view name, bool stress);

}  // namespace ff::compute
