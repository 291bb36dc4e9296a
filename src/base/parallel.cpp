#include "base/parallel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/process_tree.h"

namespace ff {
namespace {

constexpr int start_failed_status = 127;
constexpr int exception_status = 125;
constexpr int body_descriptor = 3;

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

/// A pipe whose reading end does not block; both ends -1 when none can be made.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  bool open() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return ::fcntl(read_end, F_SETFL, O_NONBLOCK) == 0;
  }
};

enum class State { waiting, running, killed, done };

struct Child {
  const ChildOptions* options = nullptr;
  ChildResult result;
  State state = State::waiting;
  int out = -1, err = -1, start = -1, pid_descriptor = -1;
  Monotonic started, deadline;
};

/// The child's side of the fork: never returns.
[[noreturn]] void become(const ChildOptions& options, int out, int err, int start, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(start_failed_status);  // the parent died before it could ask for that
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  const auto give_up = [&](int error) {
    write_all(start, std::string_view(reinterpret_cast<const char*>(&error), sizeof error));
    ::_exit(start_failed_status);
  };
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) give_up(errno);
  // The pipes may sit on 0..3 themselves, so they move out of the way first.
  const int safe_out = ::fcntl(out, F_DUPFD_CLOEXEC, 10);
  const int safe_err = ::fcntl(err, F_DUPFD_CLOEXEC, 10);
  const int safe_start = ::fcntl(start, F_DUPFD_CLOEXEC, 10);
  const int safe_nothing = ::fcntl(nothing, F_DUPFD_CLOEXEC, 10);
  if (safe_out < 0 || safe_err < 0 || safe_start < 0 || safe_nothing < 0) give_up(errno);
  start = safe_start;
  const bool body = static_cast<bool>(options.body);
  ::dup2(safe_nothing, 0);
  ::dup2(body ? safe_nothing : safe_out, 1);
  ::dup2(safe_err, 2);
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) give_up(errno);

  if (body) {
    ::dup2(safe_out, body_descriptor);
    ::syscall(SYS_close_range, body_descriptor + 1, ~0u, 0);  // an old kernel keeps them open: harmless
    int status = 0;
    try {
      options.body(body_descriptor);
    } catch (const std::exception& e) {
      write_all(2, e.what());
      status = exception_status;
    } catch (...) {
      status = exception_status;
    }
    ::_exit(status);
  }

  std::vector<char*> arguments;
  for (const std::string& argument : options.argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  if (options.environment) {
    std::vector<char*> variables;
    for (const std::string& variable : *options.environment) variables.push_back(const_cast<char*>(variable.c_str()));
    variables.push_back(nullptr);
    ::execvpe(arguments[0], arguments.data(), variables.data());
  } else {
    ::execvp(arguments[0], arguments.data());
  }
  give_up(errno);
  ::_exit(start_failed_status);
}

void finish(Child& child) {
  child.state = State::done;
  if (child.result.pid > 0) child_has_ended(child.result.pid);
  child.result.duration = std::chrono::milliseconds(milliseconds_since(child.started));
  close_if_open(child.out);
  close_if_open(child.err);
  close_if_open(child.start);
  close_if_open(child.pid_descriptor);
}

void start(Child& child) {
  const ChildOptions& options = *child.options;
  child.started = monotonic_now();
  child.deadline = child.started + options.time_limit;
  if (!options.body && options.argv.empty()) child.result.start_errno = EINVAL;
  if (children_are_ended()) child.result.start_errno = EINTR;
  if (child.result.start_errno != 0) return finish(child);
  Pipe out, err, start_pipe;
  const pid_t self = ::getpid();
  pid_t pid = -1;
  if (out.open() && err.open() && start_pipe.open()) pid = ::fork();
  if (pid == 0) become(options, out.write_end, err.write_end, start_pipe.write_end, self);
  const int error = errno;
  close_if_open(out.write_end);
  close_if_open(err.write_end);
  close_if_open(start_pipe.write_end);
  child.out = out.read_end;
  child.err = err.read_end;
  child.start = start_pipe.read_end;
  if (pid < 0) {
    child.result.start_errno = error;
    return finish(child);
  }
  ::setpgid(pid, pid);  // on both sides, so that whoever comes first has done it
  child.result.pid = pid;
  interrupts_end_child(pid);
  child.pid_descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  child.state = State::running;
}

/// Takes what is there. False at the end of the stream.
bool drain(int descriptor, std::string& into, std::size_t limit_bytes, bool& truncated) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t size = ::read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    const std::size_t room = limit_bytes - std::min(limit_bytes, into.size());
    if (static_cast<std::size_t>(size) > room) truncated = true;
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(size)));
  }
}

void drain_all(Child& child) {
  const std::size_t limit = child.options->output_limit_bytes;
  if (child.out >= 0 && !drain(child.out, child.result.out, limit, child.result.truncated)) close_if_open(child.out);
  if (child.err >= 0 && !drain(child.err, child.result.err, limit, child.result.truncated)) close_if_open(child.err);
}

/// Asks without waiting whether the child has ended; if so takes the rest of its output.
bool reap(Child& child) {
  int status = 0;
  const pid_t ended = ::waitpid(child.result.pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
  (void)children_are_ended();          // where an interrupt killed it because the program ends, nobody judges how it ended
  ::kill(-child.result.pid, SIGKILL);  // what it may have left behind in its group
  drain_all(child);
  int error = 0;
  if (::read(child.start, &error, sizeof error) == static_cast<ssize_t>(sizeof error)) {
    child.result.start_errno = error;
  } else if (ended > 0) {  // ECHILD: the program around us ignores SIGCHLD; how it ended is lost
    if (WIFEXITED(status)) child.result.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) child.result.signal = WTERMSIG(status);
  }
  finish(child);
  return true;
}

void check_deadline(Child& child, Monotonic now) {
  if (now < child.deadline) return;
  if (child.state == State::running) {
    child.result.timed_out = true;
    signal_tree(child.result.pid, child.options->kill_signal);
    child.state = State::killed;
    child.deadline = now + time_to_die;
  } else if (child.state == State::killed) {
    drain_all(child);
    child.result.abandoned = true;
    finish(child);
  }
}

int poll_timeout_ms(const std::vector<Child>& children, Monotonic now) {
  // Without pidfd (before Linux 5.3) the end of a child is found by asking.
  std::int64_t timeout = 60'000;
  for (const Child& child : children) {
    if (child.state != State::running && child.state != State::killed) continue;
    if (child.pid_descriptor < 0) timeout = std::min<std::int64_t>(timeout, 10);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(child.deadline - now).count() + 1;
    timeout = std::min<std::int64_t>(timeout, std::max<std::int64_t>(left, 0));
  }
  return static_cast<int>(timeout);
}

}  // namespace

std::vector<ChildResult> run_children(const std::vector<ChildOptions>& tasks, std::chrono::milliseconds all_limit, std::size_t at_once) {
  std::vector<Child> children(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) children[i].options = &tasks[i];
  const Monotonic end = monotonic_now() + all_limit;
  std::size_t next = 0;
  while (true) {
    std::size_t active = 0;
    for (const Child& child : children) active += child.state == State::running || child.state == State::killed ? 1 : 0;
    while (next < children.size() && active < std::max<std::size_t>(at_once, 1)) {
      Child& child = children[next++];
      if (monotonic_now() >= end) {
        child.result.timed_out = true;
        child.state = State::done;
        continue;
      }
      start(child);
      child.deadline = std::min(child.deadline, end);
      active += child.state == State::running ? 1 : 0;
    }
    if (active == 0 && next >= children.size()) break;

    std::vector<pollfd> watched;
    for (const Child& child : children)
      for (const int descriptor : {child.out, child.err, child.pid_descriptor})
        if (child.state != State::done && descriptor >= 0) watched.push_back({descriptor, POLLIN, 0});
    ::poll(watched.data(), watched.size(), poll_timeout_ms(children, monotonic_now()));

    const Monotonic now = monotonic_now();
    for (Child& child : children) {
      if (child.state != State::running && child.state != State::killed) continue;
      drain_all(child);
      if (!reap(child)) check_deadline(child, now);
    }
  }
  std::vector<ChildResult> results;
  results.reserve(children.size());
  for (Child& child : children) results.push_back(std::move(child.result));
  return results;
}

}  // namespace ff
