#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ff {

/// One child process: a program, or a function of ours run in a forked copy (`body`). It gets no standard input, a
/// process group of its own, and dies with us. What can hang or crash belongs in here.
struct ChildOptions {
  std::vector<std::string> argv;  ///< program (looked up in PATH) and arguments; unused with `body`
  /// Runs in the forked copy and writes what it has to say to the descriptor; arrives as ChildResult::out. It must not
  /// touch locks that another thread may hold. Ends with exit status 0, or 125 after an exception.
  std::function<void(int out)> body;
  std::optional<std::vector<std::string>> environment;  ///< "NAME=value" each; nothing: ours
  std::string directory;                                ///< working directory; empty: ours
  std::chrono::milliseconds time_limit{10'000};
  std::size_t output_limit_bytes = 16u << 20;  ///< of each stream; what comes after it is dropped and `truncated` set
  int kill_signal = SIGKILL;                   ///< sent to the group when the time is over
};

/// How a child ended. Exactly one of exit_status, signal, start_errno, abandoned tells it (timed_out says why a signal).
struct ChildResult {
  std::optional<int> exit_status;
  std::optional<int> signal;
  int start_errno = 0;     ///< why it could not be started (ENOENT: no such program)
  bool timed_out = false;  ///< killed because its time was over
  bool abandoned = false;  ///< did not die when killed (sleeps uninterruptibly in the kernel) and was left behind
  bool truncated = false;
  pid_t pid = -1;
  std::string out;
  std::string err;
  std::chrono::milliseconds duration{0};

  [[nodiscard]] bool ok() const { return exit_status == 0; }
  /// "exit status 3", "killed by SIGSEGV", "did not answer within 5.0 s", "not installed", ...
  [[nodiscard]] std::string describe() const;
};

/// Runs one child to its end, its time limit at most (and a fifth of a second to die). Never waits for a child that
/// cannot be killed.
ChildResult run_child(const ChildOptions& options);

}  // namespace ff
