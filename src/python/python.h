#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/value.h"

namespace ff::python {

/// One file of probes/: Python of ours that the user's interpreter runs.
struct Probe {
  std::string_view name;  ///< "ff_probe.py"
  std::string_view source;
};

/// Every probe, as compiled into the program (cmake/Probes.cmake).
std::span<const Probe> probes();

/// The interpreter that `--python` means: an environment's directory stands for its bin/python.
[[nodiscard]] std::string interpreter_of(const std::string& given);

struct Call {
  std::string interpreter;               ///< the user's python: a path or a name for PATH
  std::string probe;                     ///< the file of probes/ to run, "model_load.py"
  std::vector<std::string> arguments;    ///< sys.argv[1:]
  std::vector<std::string> environment;  ///< "NAME=value": set or replaced in our environment before it starts
  std::vector<std::string> unset;        ///< names taken out of it
  std::string directory;                 ///< working directory; empty: ours
  std::chrono::milliseconds time_limit{60'000};
  std::size_t output_limit_bytes = 4u << 20;
};

struct Answer {
  ChildResult child;           ///< how it ended, what it printed
  std::vector<Value> records;  ///< what the probe recorded with ff_probe.record(), in order; complete lines only
};

/// Runs one probe in a child. All probes lie beside it in a private directory that is removed afterwards, so that they may
/// import each other; a crash or a time-out of the interpreter is an Answer, with the records made until then.
/// Errors: no such probe; the directory could not be written; a record that is no JSON.
Result<Answer> run(const Call& call);

}  // namespace ff::python
