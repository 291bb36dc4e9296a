#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "training/series.h"

namespace ff::training {

/// A command whose output goes on to ours while it is read along.
struct WatchOptions {
  std::vector<std::string> argv;
  bool output_to_stderr = false;  ///< its standard output too: ours is kept for a document
  double quiet_s = 300;           ///< this long without a line (and 10 times the usual gap) is a standstill
  /// Called at most once a second while it runs, when there is something new.
  std::function<void(const Log& so_far)> look = [](const Log&) {};
  /// It prints nothing for so long, and has not ended.
  std::function<void(double seconds, int pid)> stands_still = [](double, int) {};
  double patience_s = 5;  ///< this long after a signal was passed on the command may take to save and end
  /// It has not ended in that time; from here on another signal kills it. Called once.
  std::function<void(int signal)> goes_on = [](int) {};
};

struct Watched {
  std::optional<int> exit_status, signal;
  int interrupted_by = 0;  ///< the first signal that asked us to end (SIGINT, SIGTERM, SIGHUP, SIGQUIT) and was passed on; 0: none
  Log log;
};

/// Runs it to its end. Every signal that we are sent is passed on to it and all that it started, and it decides; one that comes
/// after `goes_on` was called kills them. What the
/// keyboard sends reaches it by itself, because it shares our terminal (without one it has a process group of its own). What
/// is still printed by others five seconds after it has ended is not waited for. Errors: it cannot be started.
Result<Watched> watch(const WatchOptions& options);

}  // namespace ff::training
