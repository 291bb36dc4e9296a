#include "training/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/process_tree.h"
#include "base/text.h"

namespace ff::training {
namespace {

/// Resident memory of a process in bytes; 0: it is gone.
double resident_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/statm", pid), 4096);
  if (!text) return 0;
  const auto parts = words(*text);
  const auto pages = parts.size() > 1 ? to_integer<std::int64_t>(parts[1]) : std::nullopt;
  return pages ? static_cast<double>(*pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
}

/// How often the kernel has killed for memory: on the whole machine (/proc/vmstat), and in our own cgroup (a container's limit).
std::int64_t memory_kills() {
  std::int64_t count = 0;
  const auto add = [&](const std::string& path) {
    const auto text = read_file(path, 1U << 20U);
    if (!text) return;
    for (const auto line : lines(*text))
      if (line.starts_with("oom_kill ")) count += to_integer<std::int64_t>(trim(line.substr(9))).value_or(0);
  };
  add("/proc/vmstat");
  if (const auto group = read_file("/proc/self/cgroup", 65536))
    for (const auto line : lines(*group))
      if (line.starts_with("0::")) add(fmt::format("/sys/fs/cgroup{}/memory.events", line.substr(3)));
  return count;
}

struct Stream {
  int from = -1, to = -1;
  std::string text;  ///< all of it that is kept
  bool open = true;
};

/// Passes signals on to the command; called on the thread that waits for them.
class Forward {
 public:
  explicit Forward(bool own_group) : own_group_(own_group) {}
  void started(pid_t pid) {
    pid_ = pid;
    if (const int early = early_; early != 0) send(early);
  }
  void tell(int signal, bool from_terminal) {
    const bool asks_for_end = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    if (asks_for_end && impatient_) {
      if (pid_ > 0) killed_ = true;
      return send(SIGKILL);
    }
    if (asks_for_end && first_ == 0) first_ = signal;
    if (from_terminal && !own_group_) return;  // the terminal has sent it to the command, too
    if (pid_ == 0)
      early_ = signal;
    else
      send(signal);
  }
  void ended() { pid_ = 0; }
  /// From here on another signal kills.
  void become_impatient() { impatient_ = true; }
  [[nodiscard]] int first() const { return first_; }
  [[nodiscard]] bool killed() const { return killed_; }

 private:
  void send(int signal) const {
    const pid_t pid = pid_;
    if (pid <= 0) return;
    if (own_group_) return signal_tree(pid, signal);
    const auto started = descendants_of(pid);
    (void)::kill(pid, signal);
    for (const pid_t one : started) (void)::kill(one, signal);
  }
  bool own_group_;
  std::atomic<pid_t> pid_{0};
  std::atomic<int> early_{0}, first_{0};
  std::atomic<bool> impatient_{false}, killed_{false};
};

}  // namespace

Result<Watched> watch(const WatchOptions& options) {
  if (options.argv.empty()) return usage_error("no command was given", "train watch", "firstfault train watch -- CMD …");
  std::array<int, 2> out{}, err{}, failure{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0 || ::pipe2(failure.data(), O_CLOEXEC) != 0)
    return fail("no pipe: " + errno_text(errno), "train watch");
  std::vector<char*> argv;
  for (const auto& word : options.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto kills_before = memory_kills();
  const bool own_group = ::isatty(STDIN_FILENO) != 1;
  Forward forward(own_group);
  const InterruptRequest interrupt(InterruptRequest::Children::leave, [&](int signal, bool from_terminal) { forward.tell(signal, from_terminal); });
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail("cannot start a process: " + errno_text(errno), "train watch");
  if (pid == 0) {
    if (own_group) (void)::setpgid(0, 0);
    (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);  // where we are killed, nobody reads what it prints
    if (::getppid() != self) ::_exit(127);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    (void)::dup2(out[1], 1);
    (void)::dup2(err[1], 2);
    ::execvp(argv[0], argv.data());
    const int error = errno;
    (void)!::write(failure[1], &error, sizeof error);
    ::_exit(127);
  }
  if (own_group) (void)::setpgid(pid, pid);
  forward.started(pid);
  for (const int end : {out[1], err[1], failure[1]}) (void)::close(end);
  int start_error = 0;
  const bool started = ::read(failure[0], &start_error, sizeof start_error) <= 0;
  (void)::close(failure[0]);
  std::array<Stream, 2> streams{Stream{out[0], options.output_to_stderr ? 2 : 1, {}, true}, Stream{err[0], 2, {}, true}};
  const auto start = monotonic_now();
  auto last_line = start, last_look = start;
  bool fresh = false, told = false;
  std::vector<double> gaps;
  std::vector<std::pair<std::size_t, double>> memory;  // record that was the newest then, bytes
  constexpr std::size_t most_text = 512U << 20U;
  const auto read_so_far = [&] {
    Log log;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      log.sources.emplace_back(i == 0 ? "standard output" : "standard error");
      const auto whole = streams[i].open ? streams[i].text.rfind('\n') : streams[i].text.size();
      if (whole == std::string::npos) continue;
      const std::size_t records = log.records.size(), events = log.events.size();
      read_text(std::string_view(streams[i].text).substr(0, whole), static_cast<std::uint32_t>(i), log);
      // Of two streams with records the first is the log; events of the other happened at its end, as far as is known.
      if (i == 1 && records > 0) {
        log.records.resize(records);
        for (std::size_t e = events; e < log.events.size(); ++e) log.events[e].after_record = records;
      }
    }
    finish(log);
    return log;
  };
  int status = 0;
  bool ended = false, asked = false, said_goes_on = false;
  Monotonic asked_at;
  const auto look_at_patience = [&] {
    if (forward.first() == 0 || said_goes_on) return;
    if (!std::exchange(asked, true)) asked_at = monotonic_now();
    if (std::chrono::duration<double>(monotonic_now() - asked_at).count() < options.patience_s) return;
    said_goes_on = true;
    forward.become_impatient();
    options.goes_on(forward.first());
  };
  const auto look_for_end = [&] {
    if (ended || ::waitpid(pid, &status, WNOHANG) != pid) return;
    ended = true;
    forward.ended();
    last_line = monotonic_now();
  };
  constexpr auto longest_silence_after_end = std::chrono::seconds(5);
  while (streams[0].open || streams[1].open) {
    look_for_end();
    if (ended && monotonic_now() - last_line > longest_silence_after_end) break;  // something that it left behind holds the pipe
    std::array<pollfd, 2> wait{pollfd{streams[0].open ? streams[0].from : -1, POLLIN, 0}, pollfd{streams[1].open ? streams[1].from : -1, POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), 250) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if ((wait[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || !streams[i].open) continue;
      std::array<char, 65536> buffer{};
      const auto got = ::read(streams[i].from, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        streams[i].open = false;
        (void)::close(streams[i].from);
        continue;
      }
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      (void)write_all(streams[i].to, bytes);
      if (streams[i].text.size() < most_text) streams[i].text += bytes;
      const auto now = monotonic_now();
      gaps.push_back(std::chrono::duration<double>(now - last_line).count());
      last_line = now;
      fresh = true;
      told = false;
    }
    if (!ended) look_at_patience();
    const auto now = monotonic_now();
    const double quiet = std::chrono::duration<double>(now - last_line).count();
    // Reading again from the beginning costs as the log grows: the next look waits ten times as long as the last one took.
    static constexpr auto soonest = std::chrono::seconds(1);
    if (fresh && now - last_look > soonest) {
      const auto before = monotonic_now();
      const Log log = read_so_far();
      if (const double bytes = resident_of(pid); bytes > 0 && !log.records.empty()) memory.emplace_back(log.records.size() - 1, bytes);
      if (!log.records.empty()) options.look(log);
      fresh = false;
      last_look = monotonic_now() + 10 * (monotonic_now() - before);
    }
    if (!ended && !told && quiet > options.quiet_s) {
      std::vector<double> usual = gaps;
      std::ranges::sort(usual);
      if (usual.empty() || quiet > 10 * usual[usual.size() / 2]) {
        look_for_end();  // who has ended does not stand still
        told = true;
        if (!ended) options.stands_still(quiet, pid);
      }
    }
  }
  // It may close its output and go on.
  while (!ended) {
    const pid_t got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid || (got < 0 && errno != EINTR)) break;
    look_at_patience();
    (void)::poll(nullptr, 0, 20);
  }
  forward.ended();
  for (auto& stream : streams)
    if (stream.open) (void)::close(stream.from);
  if (!started) return fail("cannot be started: " + errno_text(start_error), options.argv.front(), "is it installed and in PATH?");
  Watched result;
  result.interrupted_by = forward.first();
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.log = read_so_far();
  result.log.exit_status = result.exit_status ? *result.exit_status : 128 + result.signal.value_or(0);
  const auto event = [&](EventKind kind, std::string text) {
    result.log.events.push_back({kind, 0, 0, 0, result.log.records.size(), unknown, unknown, std::move(text)});
  };
  if (forward.first() != 0)
    event(EventKind::told_to_end, fmt::format("it was told to end by {}, which firstfault was sent and passed on{}", signal_name(forward.first()),
                                              forward.killed() ? "; it went on, and a second signal killed it" : ""));
  if (result.signal) {
    const bool for_memory = *result.signal == SIGKILL && memory_kills() > kills_before;
    const char* name = ::sigabbrev_np(*result.signal);
    if (!forward.killed() && *result.signal != forward.first())
      event(for_memory ? EventKind::host_memory : EventKind::killed,
            fmt::format("the command was killed by SIG{}; the kernel's count of processes killed for memory (oom_kill) {}",
                        name != nullptr ? name : "?", for_memory ? "rose meanwhile" : "did not change"));
  }
  // The host memory that was seen from outside, where the log has none of its own.
  const bool own = std::ranges::any_of(result.log.records, [](const Record& r) { return r.holds(Quantity::host_memory); });
  if (!own)
    for (const auto& [record, bytes] : memory)
      if (record < result.log.records.size()) result.log.records[record].set(Quantity::host_memory, bytes);
  return result;
}

}  // namespace ff::training
