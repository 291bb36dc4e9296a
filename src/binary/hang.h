#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::binary {

/// One thread as /proc/PID/task/TID shows it, twice, some time apart.
struct HangThread {
  int id = 0;
  std::string name;
  char state = '?';               ///< R running, S sleeping, D uninterruptible, T stopped, Z zombie
  std::string wait_channel;       ///< kernel function that it sleeps in; empty: not readable or running
  long system_call = -1;          ///< number; -1: running or not readable
  int descriptor = -1;            ///< first argument of read, write, ioctl, poll and the like
  std::string descriptor_target;  ///< "pipe:[123]", "/dev/kfd"
  std::uint64_t first_argument = 0;
  double cpu_share = 0;  ///< of one CPU, between the two looks
};

struct HangView {
  int pid = 0;
  std::string program;
  std::vector<HangThread> threads;
  bool holds_kfd = false, holds_render_node = false;
  std::vector<std::string> unreadable;  ///< "wchan: Operation not permitted"
};

struct HangVerdict {
  std::string id;  ///< "busy-loop", "lock", "pipe", "socket", "device", "uninterruptible", "stopped", "ended", "child", "sleep", "moving", "unknown"
  std::string what;  ///< one sentence
  std::vector<std::string> next;
};

/// Looks at a process twice, `seconds` apart, through /proc only: it is not attached to, stopped or signalled, and no file
/// is read that waits for the process's locks (so a process in uninterruptible sleep does not stop us).
/// Errors: no such process.
Result<HangView> look_at(int pid, double seconds);
HangVerdict judge(const HangView& view);
/// The "firstfault/hang/1" document.
Value hang_to_json(const HangView& view, const HangVerdict& verdict);

}  // namespace ff::binary
