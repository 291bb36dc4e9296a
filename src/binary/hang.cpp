#include "binary/hang.h"

#include <fmt/format.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <tuple>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t thread_limit = 4096;
constexpr long epoll_pwait2 = 441;

/// Empty, with errno set, where the file refuses. Not a stream: procfs may open a file and refuse its first byte (EPERM),
/// and libstdc++'s buffer iterators then throw.
std::string read(const std::string& path) {
  const auto content = read_file(path);
  return content ? *content : std::string{};
}

struct Sample {
  char state = '?';
  std::uint64_t ticks = 0, run_ns = 0, line_ns = 0;
  std::string name;
  std::uint64_t start_ticks = 0;
};

/// "123 (a name) S 1 2 …": the name may hold blanks and brackets, so fields count from the last bracket.
Sample sample(const std::string& stat) {
  Sample out;
  const auto open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return out;
  out.name = stat.substr(open + 1, close - open - 1);
  const auto fields = words(std::string_view(stat).substr(close + 1));
  if (fields.empty()) return out;
  out.state = fields[0].front();
  if (fields.size() > 19) out.start_ticks = to_integer<std::uint64_t>(fields[19]).value_or(0);
  if (fields.size() > 12) out.ticks = to_integer<std::uint64_t>(fields[11]).value_or(0) + to_integer<std::uint64_t>(fields[12]).value_or(0);
  return out;
}

/// One look: /proc/…/stat, and schedstat ("run ns, ns in line for a CPU, slices").
Sample sample_of(const std::string& directory) {
  Sample out = sample(read(directory + "/stat"));
  const std::string schedule = read(directory + "/schedstat");
  const auto fields = words(schedule);
  if (fields.size() > 1) {
    out.run_ns = to_integer<std::uint64_t>(fields[0]).value_or(0);
    out.line_ns = to_integer<std::uint64_t>(fields[1]).value_or(0);
  }
  return out;
}

bool takes_descriptor(long call) {
  return call == SYS_read || call == SYS_write || call == SYS_readv || call == SYS_writev || call == SYS_ioctl || call == SYS_recvfrom ||
         call == SYS_recvmsg || call == SYS_sendto || call == SYS_sendmsg || call == SYS_accept || call == SYS_accept4 || call == SYS_connect ||
         call == SYS_fsync || call == SYS_epoll_wait || call == SYS_epoll_pwait || call == epoll_pwait2;
}

void add_unreadable(HangView& view, const char* what, int error) {
  std::string text = fmt::format("{}: {}", what, errno_text(error));
  if (std::ranges::find(view.unreadable, text) == view.unreadable.end()) view.unreadable.push_back(std::move(text));
}

HangThread look_at_thread(const std::string& process, const std::string& id, HangView& view) {
  const std::string base = process + "/task/" + id;
  HangThread thread;
  thread.id = to_integer<int>(id).value_or(0);
  const std::string channel = read(base + "/wchan");
  if (channel != "0") thread.wait_channel = std::string(trim(channel));
  errno = 0;
  const std::string call = read(base + "/syscall");
  if (call.empty() && errno != 0) {
    add_unreadable(view, "syscall", errno);
    view.calls_readable = false;
  }
  const auto fields = words(call);
  if (fields.size() > 1 && fields[0] != "running") {
    thread.system_call = to_integer<long>(fields[0]).value_or(-1);
    for (std::size_t i = 0; i < thread.arguments.size() && i + 1 < fields.size(); ++i)
      thread.arguments[i] = to_integer<std::uint64_t>(fields[i + 1], 16).value_or(0);
    if (fields.size() == 9) {
      thread.stack = to_integer<std::uint64_t>(fields[7], 16).value_or(0);
      thread.instruction = to_integer<std::uint64_t>(fields[8], 16).value_or(0);
    }
    if (takes_descriptor(thread.system_call)) {
      thread.descriptor = static_cast<int>(thread.arguments[0]);
      std::error_code error;
      thread.descriptor_target = fs::read_symlink(fmt::format("{}/fd/{}", process, thread.descriptor), error).string();
    }
  }
  thread.kernel_stack = parse_kernel_stack(read(base + "/stack"));
  return thread;
}

std::string read_kernel_log() {
  constexpr int read_all = 3, size_of_buffer = 10;
  const int size = ::klogctl(size_of_buffer, nullptr, 0);
  if (size <= 0) return {};
  std::string text(static_cast<std::size_t>(size), '\0');
  const int taken = ::klogctl(read_all, text.data(), size);
  text.resize(taken > 0 ? static_cast<std::size_t>(taken) : 0);
  return text;
}

/// Flight-recorder dumps that are newer than the process; damaged ones are said.
std::optional<FlightAnswer> compare_dumps(const std::vector<std::string>& places, HangView& view) {
  constexpr std::size_t dump_limit = 4096;
  std::vector<FlightDump> dumps;
  for (const auto& place : places)
    for (const auto& file : find_flight_dumps(place)) {
      if (dumps.size() == dump_limit) break;
      const auto bytes = read_file(file);
      auto dump = bytes ? read_flight_dump(*bytes, file) : std::unexpected(bytes.error());
      if (dump)
        dumps.push_back(std::move(*dump));
      else
        view.unreadable.push_back(dump.error().to_string());
    }
  if (dumps.empty()) return std::nullopt;
  return compare_ranks(dumps);
}

}  // namespace

std::vector<std::string> parse_kernel_stack(std::string_view text) {
  std::vector<std::string> out;
  for (const auto line : lines(text)) {  // "[<0>] futex_wait_queue+0x60/0x90"
    const auto close = line.find("] ");
    if (close == std::string_view::npos) continue;
    std::string_view name = trim(line.substr(close + 2));
    name = name.substr(0, name.find('+'));
    if (!name.empty()) out.emplace_back(name);
  }
  return out;
}

namespace {

/// A look that has begun: what the second look is compared with.
struct Look {
  HangRequest request;
  std::string process;
  HangView view;
  std::map<int, Sample> before;
  std::optional<std::uint64_t> written_before;
  std::chrono::steady_clock::time_point started;
  double seconds = 1;
  bool uses_gpu = false;
};

std::vector<std::string> thread_ids(const std::string& process) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(process + "/task", error))
    if (out.size() < thread_limit) out.push_back(entry.path().filename().string());
  std::ranges::sort(out, {}, [](const std::string& id) { return to_integer<int>(id).value_or(0); });
  return out;
}

/// Bytes that a process wrote so far, into whatever ("wchar" of /proc/PID/io); nothing when that may not be read.
std::optional<std::uint64_t> written_by(const std::string& process) {
  const std::string text = read(process + "/io");
  const std::size_t at = text.find("wchar: ");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + std::string_view("wchar: ").size();
  return to_integer<std::uint64_t>(text.substr(begin, text.find('\n', begin) - begin));
}

Result<Look> begin(const HangRequest& request) {
  Look look{.request = request, .process = fmt::format("/proc/{}", request.pid), .view = {}, .before = {}, .written_before = {}, .started = {}};
  std::error_code error;
  if (request.pid <= 0 || !fs::is_directory(look.process, error)) {
    Error absent{"no such process", std::to_string(request.pid), "ps -ef lists processes", 2};
    return std::unexpected(std::move(absent));
  }
  HangView& view = look.view;
  view.pid = request.pid;
  struct stat status{};
  if (::stat(look.process.c_str(), &status) == 0) view.owner = static_cast<int>(status.st_uid);
  // Not cmdline: reading it takes the address space's lock, which a process stuck in a page fault may hold for ever.
  view.program = std::string(trim(read(look.process + "/comm")));
  view.started_seconds = static_cast<double>(sample(read(look.process + "/stat")).start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const auto& entry : fs::directory_iterator(look.process + "/fd", error)) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    view.holds_kfd = view.holds_kfd || target == "/dev/kfd";
    view.holds_render_node = view.holds_render_node || target.starts_with("/dev/dri/");
  }
  if (error) add_unreadable(view, "fd", error.value());
  look.uses_gpu = view.holds_kfd || view.holds_render_node;
  constexpr double gpu_seconds = 3;
  look.seconds = request.seconds > 0 ? request.seconds : look.uses_gpu ? gpu_seconds : 1;
  look.started = std::chrono::steady_clock::now();
  look.written_before = written_by(look.process);
  for (const auto& id : thread_ids(look.process)) look.before[to_integer<int>(id).value_or(0)] = sample_of(look.process + "/task/" + id);
  if (look.uses_gpu) sample_gpus(view, request.root);
  return look;
}

void compare_threads(Look& look) {
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const auto& id : thread_ids(look.process)) {
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - look.started).count();
    HangThread thread = look_at_thread(look.process, id, look.view);
    const Sample now = sample_of(look.process + "/task/" + id);
    thread.name = now.name;
    thread.state = now.state;
    if (const auto first = look.before.find(thread.id); first != look.before.end() && now.ticks >= first->second.ticks) {
      thread.cpu_share = static_cast<double>(now.ticks - first->second.ticks) / ticks_per_second / passed;
      const auto& then = first->second;
      if (now.run_ns >= then.run_ns && now.line_ns >= then.line_ns)
        thread.wants_cpu = static_cast<double>(now.run_ns - then.run_ns + now.line_ns - then.line_ns) / 1e9 / passed;
    }
    look.view.threads.push_back(std::move(thread));
  }
}

void ask_py_spy(const HangRequest& request, HangView& view) {
  ChildOptions child;
  // --nonblocking: py-spy would stop the process otherwise.
  child.argv = {request.python, "dump", "--nonblocking", "--pid", std::to_string(request.pid)};
  const auto result = run_child(child);
  if (result.ok())
    view.python = result.out;
  else
    view.unreadable.push_back("Python stacks: py-spy " + result.describe() + (trim(result.err).empty() ? "" : ": " + std::string(trim(result.err))));
}

Result<HangView> end(Look look) {
  compare_threads(look);
  HangView& view = look.view;
  if (const auto now = written_by(look.process); now && look.written_before && *now > *look.written_before)
    view.written = *now - *look.written_before;
  const HangRequest& request = look.request;
  if (!view.calls_readable)
    std::tie(view.refused_because, view.refused_remedy) =
        why_refused(read(look.process + "/status"), read("/proc/self/status"), read("/proc/sys/kernel/yama/ptrace_scope"));
  if (view.threads.empty()) return fail("the process ended while it was looked at", std::to_string(request.pid));
  if (look.uses_gpu) sample_gpus(view, request.root);
  add_watched(view);
  constexpr int unwind_seconds = 20;
  if (request.native)
    if (const auto why = add_native_stacks(view, unwind_seconds); !why.empty()) view.unreadable.push_back("native stacks: " + why);
  if (request.log) {
    const std::string log = read_kernel_log();
    if (log.empty())
      view.unreadable.emplace_back("kernel log: not permitted or empty (kernel.dmesg_restrict)");
    else
      view.kernel_log = kernel_log_since(log, view.started_seconds);
    add_output(view);
  }
  if (!request.python.empty()) ask_py_spy(request, view);
  view.ranks = compare_dumps(request.dumps, view);
  return std::move(view);
}

}  // namespace

std::vector<Result<HangView>> look_at_all(const std::vector<HangRequest>& requests) {
  std::vector<Result<Look>> looks;
  double seconds = 0;
  for (const auto& request : requests) {
    looks.push_back(begin(request));
    if (looks.back()) seconds = std::max(seconds, looks.back()->seconds);
  }
  const auto half = std::chrono::duration<double>(seconds / 2);
  std::this_thread::sleep_for(half);
  for (auto& look : looks)
    if (look && look->uses_gpu) sample_gpus(look->view, look->request.root);
  std::this_thread::sleep_for(half);
  std::vector<Result<HangView>> out;
  for (auto& look : looks) out.push_back(look ? end(std::move(*look)) : std::unexpected(look.error()));
  return out;
}

Result<HangView> look_at(const HangRequest& request) { return std::move(look_at_all({request}).front()); }

}  // namespace ff::binary
