#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "binary/core.h"
#include "binary/flight_recorder.h"

namespace ff::binary {

/// One thread as /proc/PID/task/TID shows it, twice, some time apart.
struct HangThread {
  int id = 0;
  std::string name;
  char state = '?';                          ///< R running, S sleeping, D uninterruptible, T stopped, Z zombie
  std::string wait_channel;                  ///< kernel function that it sleeps in; empty: not readable or running
  long system_call = -1;                     ///< number; -1: running or not readable
  int descriptor = -1;                       ///< first argument of read, write, ioctl, poll and the like
  std::string descriptor_target;             ///< "pipe:[123]", "/dev/kfd"
  std::array<std::uint64_t, 6> arguments{};  ///< of the system call
  double cpu_share = 0;                      ///< of one CPU, between the two looks
  double wants_cpu = 0;                      ///< the same with the time that it stood in line for a CPU: near 1 for a loop on a loaded machine
  std::uint64_t stack = 0, instruction = 0;  ///< stack pointer and program counter, while it is in a system call
  std::vector<std::string> kernel_stack;     ///< innermost first; readable by root only
  std::vector<CoreFrame> frames;             ///< of the program, innermost first
};

struct HangQueue {
  std::uint64_t id = 0, gpu_id = 0, size_bytes = 0;
  int type = -1;  ///< 0 compute, 1 SDMA
};

/// A GPU of AMD, looked at several times while the process was.
struct HangGpu {
  std::string card, pci;  ///< "card1", "0000:03:00.0"
  bool asleep = false;    ///< runtime-suspended: nothing was read, which would wake it
  std::vector<double> busy_percent, power_watts, clock_mhz;
};

/// A descriptor that the main thread's system call waits for.
struct Watched {
  int descriptor = -1;
  std::string kind;  ///< "listening", "connected", "pipe", "terminal", "event", "timer", "signal", "file", "other"
  std::string what;  ///< "127.0.0.1:29500 (from 127.0.0.1:40112)", "/dev/pts/0", "pipe:[123]"
};

struct HangView {
  int pid = 0;
  std::string program;
  double started_seconds = 0;  ///< after boot
  std::uint64_t written = 0;   ///< bytes that it wrote between the looks; 0 too when that may not be read
  int owner = -1;              ///< user id
  std::vector<HangThread> threads;
  bool holds_kfd = false, holds_render_node = false;
  std::vector<HangQueue> queues;
  std::vector<HangGpu> gpus;
  struct LogLine {
    std::string cause, title, text;
  };
  std::vector<LogLine> kernel_log;      ///< what the kernel log since its start is known to say
  std::vector<LogLine> output;          ///< what the end of its output is known to say, where that goes to a file
  std::vector<Watched> watched;         ///< what the main thread waits for
  bool watched_known = false;           ///< false: it waits for no descriptors, or they could not be seen
  double time_limit_seconds = -1;       ///< of the main thread's wait; -1: none
  std::optional<FlightAnswer> ranks;    ///< when flight-recorder dumps were given or found
  std::string python;                   ///< what py-spy told
  std::vector<std::string> unreadable;  ///< "wchan: Operation not permitted"
  bool calls_readable = true;           ///< false: system calls of the threads cannot be seen
  std::string refused_because;          ///< then: the rule by which the kernel refuses, as far as it can be told
  std::string refused_remedy;
};

/// Why /proc/PID/syscall may not be read: texts of /proc/PID/status and /proc/self/status, and of kernel.yama.ptrace_scope.
/// Source: ptrace(2), "Ptrace access mode checking". First the reason, then what to do.
std::pair<std::string, std::string> why_refused(std::string_view theirs, std::string_view ours, std::string_view ptrace_scope);

struct HangVerdict {
  /// "driver-dead", "uninterruptible", "stopped", "ended", "waits-for-rank", "kernel-runs", "completion-lost", "device", "busy-loop", "lock",
  /// "pipe", "socket", "child", "sleep", "waits-for-work", "waits-for-input", "moving", "not-readable", "unknown"
  std::string id;
  std::string what;  ///< one sentence
  std::vector<std::string> next;
};

struct HangRequest {
  int pid = 0;
  double seconds = 0;              ///< between the looks; 0: 1, and 3 when the process uses a GPU
  bool native = true;              ///< unwind the program's stacks of threads that wait in the kernel
  bool log = true;                 ///< read the kernel log
  std::string python;              ///< path of py-spy; empty: not asked
  std::vector<std::string> dumps;  ///< flight-recorder dumps, directories or prefixes
  std::string root;                ///< of /sys, for tests
};

/// Looks at a process twice through /proc. It is not attached to, stopped or signalled; what reads its memory or its
/// address space, which a stuck process may hold locked, and what asks the GPU driver, does so in a child with a time limit.
/// Errors: no such process.
Result<HangView> look_at(const HangRequest& request);
/// Several processes at once: the time between the looks passes once.
std::vector<Result<HangView>> look_at_all(const std::vector<HangRequest>& requests);
HangVerdict judge(const HangView& view);
/// The "firstfault/hang/1" document.
Value hang_to_json(const HangView& view, const HangVerdict& verdict);
/// "futex", "read on pipe:[123]"; empty when it runs or cannot be seen.
std::string call_text(const HangThread& thread);

/// Adds the program's stacks of threads in a system call: their stack pointer stands in /proc, their memory is read, and they
/// are not stopped; a thread that moved meanwhile gets none. Returns why nothing could be read, empty when something was.
std::string add_native_stacks(HangView& view, int seconds);
/// Queues of the process and all GPUs' busy, power and clock, added to what is there. `root` stands before /sys.
void sample_gpus(HangView& view, const std::string& root);
/// What the kernel log says since a time after boot, by the knowledge base.
std::vector<HangView::LogLine> kernel_log_since(std::string_view log, double seconds);
/// Adds the descriptors that the main thread waits for in poll, select, epoll_wait, accept, read and the like, and whom its sockets
/// are connected with. The process's memory is read in a child with a time limit.
void add_watched(HangView& view);
/// Lines of /proc/net/tcp, tcp6, udp, udp6 or unix by inode: kind and text of a Watched. Exposed for tests.
void parse_socket_table(std::string_view table, std::string_view protocol, std::vector<std::pair<std::uint64_t, Watched>>& out);
/// What the end of the files that standard output and error go to is known to say.
void add_output(HangView& view);
/// What "/proc/PID/task/TID/stack" lists: "futex_wait_queue", without offsets.
std::vector<std::string> parse_kernel_stack(std::string_view text);

}  // namespace ff::binary
