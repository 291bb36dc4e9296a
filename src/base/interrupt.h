#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

// How the program ends when it is told to: by SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 or SIGUSR2. One thread waits for these
// signals, so that whatever the program does can be interrupted. It ends the running children with all that they started,
// lets the last words be written (a run says that it was interrupted), removes temporary files and directories, and ends the
// program with exit status 128 + signal (130, 143).

namespace ff {

/// From here on that is so. Called once, before any thread is started; signals are a property of the process, so what it
/// keeps is one for the program, too. SIGHUP stays ignored where it was (nohup).
void end_on_signals();

/// "SIGTERM".
[[nodiscard]] std::string signal_name(int signal);
/// The exit status of a program that was told to end: 128 + signal, as a shell shows it.
[[nodiscard]] constexpr int interrupted_exit_code(int signal) { return 128 + signal; }

/// Held while results are recorded: an interrupt waits until it is released (two seconds at most), and what was begun when
/// it has come is not recorded any more, because the caller never gets it. May be held several times by one thread.
[[nodiscard]] std::unique_lock<std::recursive_timed_mutex> hold_interrupts();

/// What is still written when an interrupt ends the program. Both functions run on another thread, while everything that
/// takes hold_interrupts() stands still.
class LastWords {
 public:
  /// `record` writes files; `print`, which may be empty, writes to standard output after children and temporary directories
  /// are gone. Of several that print only the youngest does.
  explicit LastWords(std::function<void(int signal)> record, std::function<void(int signal)> print = {});
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  ~LastWords();
};

/// While it lives, an interrupt does not end the program but is told here, and the command ends its work in order. A second
/// one, at least a second after the first, ends the program after all, unless `told` passes them on.
class InterruptRequest {
 public:
  enum class Children {
    end,   ///< running children are killed, new ones are not started: run_child returns with `interrupted` set
    leave  ///< they are the caller's to end
  };
  /// `told` is called on another thread with every signal (one that comes again within a second is the same), and whether a
  /// terminal's key sent it, which sends it to the whole foreground group, rather than a process.
  explicit InterruptRequest(Children children, std::function<void(int signal, bool from_terminal)> told = {});
  InterruptRequest(const InterruptRequest&) = delete;
  InterruptRequest& operator=(const InterruptRequest&) = delete;
  ~InterruptRequest();
  /// The signal that came; 0: none.
  [[nodiscard]] int signal() const;
};

/// The signal that an InterruptRequest was told of; 0: none. What works in steps asks it after each.
[[nodiscard]] int asked_to_end();

/// Removed, with all that it holds, when an interrupt ends the program before it is said to be kept.
void remove_on_interrupt(const std::filesystem::path& path);
void keep_on_interrupt(const std::filesystem::path& path);
/// The same for as long as this lives.
class RemovedOnInterrupt {
 public:
  explicit RemovedOnInterrupt(std::filesystem::path path) : path_(std::move(path)) { remove_on_interrupt(path_); }
  RemovedOnInterrupt(const RemovedOnInterrupt&) = delete;
  RemovedOnInterrupt& operator=(const RemovedOnInterrupt&) = delete;
  ~RemovedOnInterrupt() { keep_on_interrupt(path_); }

 private:
  std::filesystem::path path_;
};

/// For run_children: the process groups that an interrupt ends.
void interrupts_end_child(pid_t leader);
void child_has_ended(pid_t leader);
/// No more children may be started (Children::end). Where the program itself is ending, this does not return.
[[nodiscard]] bool children_are_ended();

}  // namespace ff
