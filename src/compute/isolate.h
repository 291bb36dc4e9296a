#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "compute/late_environment.h"

namespace ff::compute {

/// One thing to change in a process's environment, and what it proves when the outcome changes with it.
struct Switch {
  std::string_view id;                    ///< "serialise"
  std::vector<std::string_view> set;      ///< "NAME=value"
  std::string_view what;                  ///< what it changes, in one clause
  std::string_view proves_cured;          ///< when the command stops failing with it
  std::vector<std::string_view> for_api;  ///< "hip", "cuda"; empty: everywhere
  bool python = false;                    ///< a setting that probes/torch_settings.py makes when the command's Python imports torch
};

/// The known switches in the order in which they are tried: what says most first. Names and meanings: facts about ROCr, HIP,
/// MIOpen, rocBLAS, hipBLASLt, RCCL and PyTorch variables; none of the names that circulate and do nothing.
[[nodiscard]] std::span<const Switch> switches();

/// What counts as a failure of the command.
enum class Expect { exit, signal, text, nan, slow };
[[nodiscard]] std::optional<Expect> expect_from_name(std::string_view name);

struct IsolateOptions {
  std::vector<std::string> command;
  Expect expect = Expect::exit;
  std::string text;   ///< Expect::text: what the output of a failing run holds
  double slow_s = 0;  ///< Expect::slow: a run longer than this fails
  int repeat = 5;
  double time_limit_s = 600;
  std::string api;                ///< "hip", "cuda", "" (not known: every switch is tried)
  std::vector<std::string> only;  ///< ids of switches; empty: all that apply
  std::vector<std::string> environment;
};

/// How often something failed, with Wilson's 95 % interval for the rate (Wilson 1927; right for small counts too).
struct Rate {
  std::size_t failed = 0, runs = 0;
  [[nodiscard]] double rate() const { return runs == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(runs); }
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;
};
/// Probability, were both rates equal, of counts at least as unlike as these (Fisher's exact test, two-sided).
[[nodiscard]] double fisher(const Rate& a, const Rate& b);

struct IsolateRun {
  bool failed = false;
  std::string how;  ///< "exit status 1", "killed by SIGSEGV", "did not answer within 600.0 s", ...
  double seconds = 0;
  Value sensors;  ///< list of {"gpu","temperature_c","clock_mhz","power_w"} right after it; empty list without sensors
};

struct SwitchOutcome {
  std::string id;  ///< "unchanged" for the first
  std::vector<std::string> set;
  std::vector<IsolateRun> runs;
  Rate rate;
  double median_s = 0;
  double p = 1;  ///< against unchanged
  enum class Effect { none, cured, caused, unclear } effect = Effect::none;
  std::string meaning;  ///< what that proves; empty for no effect
};

struct Isolation {
  std::vector<SwitchOutcome> outcomes;  ///< the first is the unchanged command
  std::vector<LateVariable> late;       ///< of the first Python script in the command
  std::string script;
  std::string debug_agent;  ///< what the ROCr debug agent said of the faulting wave; empty: not installed or nothing said
  std::string conclusion;   ///< one or two sentences
  std::string interrupted;  ///< "SIGTERM": it was told to end; only what had been repeated to the end stands in outcomes
};

/// Whether one ended run counts as failed.
[[nodiscard]] bool counts_as_failure(const IsolateOptions& options, int exit_status, bool by_signal, double seconds, std::string_view output);
/// "nan" or "inf" as a word of its own.
[[nodiscard]] bool speaks_of_nan(std::string_view output);

/// Runs the command as it is and then under one switch at a time. Errors: the command cannot be started.
Result<Isolation> isolate(const IsolateOptions& options, const std::function<void(std::string_view)>& progress);
[[nodiscard]] Value isolation_value(const Isolation& isolation);
/// What a set of outcomes says together. Pure.
void conclude(Isolation& isolation, int repeat);

}  // namespace ff::compute
