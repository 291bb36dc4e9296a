#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "capture/capture.h"

namespace ff::capture {

struct CollectOptions {
  std::string root = "/";            ///< another root directory: a container's file system, or a test's
  std::vector<std::string> pythons;  ///< interpreters or environment directories; empty: the active one
  std::string work_root;             ///< also look at its commit, lock files and disk; empty: only the current directory's disk
  bool wake = false;                 ///< read sleeping GPUs as well, which wakes them
  bool run_commands = true;          ///< forced off when root is not "/"
  /// The environment to look at (PATH, HOME, HF_HOME, …).
  std::map<std::string, std::string, std::less<>> environment;
  std::chrono::milliseconds step_limit{3000};  ///< for one worker to answer; commands have their own
  std::chrono::milliseconds hard_limit{14000};
};

/// The environment of this process.
[[nodiscard]] std::map<std::string, std::string, std::less<>> current_environment();

/// Takes a picture of the machine. Everything that could hang happens in child processes, at the same time; what does not
/// answer is left behind and recorded as ETIMEDOUT. Writes nothing. docs/capture.md lists what is taken.
Result<Capture> collect(const CollectOptions& options);

}  // namespace ff::capture
