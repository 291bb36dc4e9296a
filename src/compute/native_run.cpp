#include "compute/native_run.h"

#include <fmt/format.h>
#include <sys/time.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "base/seconds.h"
#include "base/text.h"
#include "compute/native_session.h"

namespace ff::compute {
namespace {

/// Ends this (child) process with SIGALRM when `seconds` pass before the next call: a hang that nothing else can end.
void watchdog(double seconds) {
  ::itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  timer.it_value.tv_usec = static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

constexpr double open_limit_s = 60;

void say(int out, const Value& line) { (void)write_all(out, to_json(line) + "\n"); }

Value error_value(const Error& e) { return Value::object({{"what", e.what}, {"where", e.where}, {"remedy", e.remedy}}); }
Error error_from(const Value& v) {
  return {std::string(v["what"].as_text()), std::string(v["where"].as_text()), std::string(v["remedy"].as_text()), 3};
}

/// The child: opens the device, runs the operators from `first` on, tells each before and after.
void work(int out, const OperatorOptions& options, bool quick, const std::vector<NativeOperator>& suite, std::size_t first) {
  watchdog(open_limit_s);
  auto device = open_device(options);
  if (!device) {
    say(out, Value::object({{"open_failed", error_value(device.error().error)}, {"stage", static_cast<int>(device.error().stage)}}));
    return;
  }
  say(out, Value::object({{"device", device_value((*device)->properties())}}));
  Session session(**device, options, quick);
  for (std::size_t i = first; i < suite.size(); ++i) {
    say(out, Value::object({{"begin", static_cast<unsigned long>(i)}}));
    watchdog(options.time_limit_s * suite[i].patience);
    OperatorResult r;
    r.name = suite[i].name;
    r.family = suite[i].family;
    r.dtype = suite[i].dtype;
    r.layer = "native";
    bool broken = false;
    auto outcome = suite[i].run(session);
    if (outcome) {
      r.status = outcome->status;
      r.max_error = outcome->max_error;
      r.mean_error = outcome->mean_error;
      r.p99_error = outcome->p99_error;
      r.bound = outcome->bound;
      r.time_ms = outcome->time_ms;
      r.detail = outcome->detail;
    } else if (outcome.error().what.starts_with("unsupported")) {
      r.status = OperatorStatus::unsupported;
      r.detail = outcome.error().to_string();
    } else {
      // After an error of the runtime the context may be lost: the rest goes on in a new process.
      r.status = OperatorStatus::crash;
      r.detail = outcome.error().to_string();
      broken = true;
    }
    watchdog(0);
    say(out, Value::object({{"done", static_cast<unsigned long>(i)}, {"result", operator_value(r)}}));
    if (broken) return;
  }
  watchdog(options.time_limit_s);
}

}  // namespace

gpu::Opened open_device(const OperatorOptions& options) {
  gpu::OpenOptions how;
  how.library_folders = options.library_folders;
  if (options.wavefront == 64) how.cpu_wavefront = 64;
  if (options.device == "cpu") return gpu::open(gpu::Api::cpu, how);
  if (options.device == "cuda") return gpu::open(gpu::Api::cuda, how);
  if (options.device == "hip") return gpu::open(gpu::Api::hip, how);
  auto hip = gpu::open(gpu::Api::hip, how);
  if (hip) return hip;
  auto cuda = gpu::open(gpu::Api::cuda, how);
  if (cuda) return cuda;
  // The one that got farther says more; when neither runtime is there, both are named.
  auto& failure = cuda.error().stage > hip.error().stage ? cuda.error() : hip.error();
  if (failure.stage == gpu::OpenStage::library)
    failure.error = {"no GPU runtime can be opened: " + hip.error().error.what + "; " + cuda.error().error.what, "",
                     "install ROCm's HIP runtime (libamdhip64) or the NVIDIA driver; --device cpu runs the same on the CPU", 3};
  return std::unexpected(failure);
}

Value device_value(const gpu::Properties& p) {
  return Value::object({{"api", gpu::api_name(p.api)},
                        {"index", p.index},
                        {"name", p.name},
                        {"target", p.target},
                        {"wavefront", p.wavefront},
                        {"runtime", p.runtime},
                        {"compute_units", p.compute_units},
                        {"devices", p.devices},
                        {"memory_bytes", p.memory_bytes},
                        {"pci", p.pci}});
}

std::vector<NativeOperator> native_operators() {
  std::vector<NativeOperator> all;
  add_memory_operators(all);
  add_launch_operators(all);
  add_elementwise_operators(all);
  add_reduction_operators(all);
  add_parallel_operators(all);
  add_gemm_operators(all);
  add_blas_operators(all);
  add_float8_operators(all);
  add_convolution_operators(all);
  add_neural_operators(all);
  add_dnn_operators(all);
  add_collective_operators(all);
  add_finite_operators(all);
  return all;
}

NativeRun run_native(const OperatorOptions& options, bool quick, const std::function<void(std::string_view)>& progress) {
  std::vector<NativeOperator> suite;
  for (auto& op : native_operators())
    if (options.wants({.name = op.name, .family = op.family, .dtype = op.dtype})) suite.push_back(std::move(op));
  OperatorRun run;
  run.layer = "native";
  run.repeat = options.repeat;
  std::size_t next = 0;
  while (next < suite.size()) {
    progress(suite[next].name);
    ChildOptions child;
    child.body = [&](int out) { work(out, options, quick, suite, next); };
    double most_s = open_limit_s;
    for (std::size_t i = next; i < suite.size(); ++i) most_s += options.time_limit_s * suite[i].patience;
    child.time_limit = milliseconds_of(most_s);
    const auto ended = run_child(child);
    const bool had_device = !run.device.is_null();
    const std::size_t before = next;
    std::optional<std::size_t> running;
    for (const auto line : lines(ended.out)) {
      const auto value = parse_json(line);
      if (!value) continue;  // torn by the child's death
      if (const Value* failure = value->find("open_failed"); failure != nullptr) {
        if (!had_device) return std::unexpected(gpu::OpenFailure{static_cast<gpu::OpenStage>((*value)["stage"].as_int()), error_from(*failure)});
        // The device was there before; an operator has taken it away.
        OperatorResult lost{.name = suite[next].name, .family = suite[next].family, .dtype = suite[next].dtype, .layer = "native"};
        lost.status = OperatorStatus::crash;
        lost.detail = "the device could not be opened again: " + error_from(*failure).to_string();
        run.operators.push_back(std::move(lost));
        return run;
      }
      if (const Value* device = value->find("device"); device != nullptr) run.device = *device;
      if (const Value* begin = value->find("begin"); begin != nullptr) running = static_cast<std::size_t>(begin->as_int());
      if (const Value* done = value->find("done"); done != nullptr) {
        if (auto one = operator_from((*value)["result"]); one) run.operators.push_back(std::move(*one));
        next = static_cast<std::size_t>(done->as_int()) + 1;
        running.reset();
      }
    }
    if (const int signal = asked_to_end(); signal != 0) {  // the operator that ran was ended from outside: nothing is said about it
      run.interrupted = signal_name(signal);
      return run;
    }
    const bool hang = ended.timed_out || ended.signal == SIGALRM;
    if (running) {
      OperatorResult dead{.name = suite[*running].name, .family = suite[*running].family, .dtype = suite[*running].dtype, .layer = "native"};
      dead.status = hang ? OperatorStatus::hang : OperatorStatus::crash;
      dead.detail =
          hang ? fmt::format("did not end within {} s{}", options.time_limit_s * suite[*running].patience,
                             ended.abandoned ? " and could not be killed" : "")
               : "the process that ran it ended: " + ended.describe() + (ended.err.empty() ? "" : "; " + std::string(trim(ended.err.substr(0, 400))));
      run.operators.push_back(std::move(dead));
      next = *running + 1;
      if (ended.abandoned) return run;  // a new process would hang as well
    } else if (next == before) {
      return std::unexpected(gpu::OpenFailure{
          gpu::OpenStage::runtime, Error{hang ? fmt::format("opening the device did not end within {} s", open_limit_s)
                                              : "the process that opened the device ended: " + ended.describe(),
                                         trim(ended.err.substr(0, 400)).empty() ? std::string() : std::string(trim(ended.err.substr(0, 400))),
                                         "look at the kernel log: firstfault explain /var/log/kern.log", 3}});
    }
  }
  return run;
}

}  // namespace ff::compute
