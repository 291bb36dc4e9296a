#include "binary/hang.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/text.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t thread_limit = 4096;
constexpr double busy_share = 0.5;  ///< of one CPU: below it a thread is not spinning

/// Empty, with errno set, where the file refuses. Not a stream: procfs may open a file and refuse its first byte (EPERM),
/// and libstdc++'s buffer iterators then throw.
std::string read(const std::string& path) {
  const auto content = read_file(path);
  return content ? *content : std::string{};
}

struct Sample {
  char state = '?';
  std::uint64_t ticks = 0;
  std::string name;
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
  if (fields.size() > 12) out.ticks = to_integer<std::uint64_t>(fields[11]).value_or(0) + to_integer<std::uint64_t>(fields[12]).value_or(0);
  return out;
}

bool takes_descriptor(long call) {
  return call == SYS_read || call == SYS_write || call == SYS_readv || call == SYS_writev || call == SYS_ioctl || call == SYS_recvfrom ||
         call == SYS_recvmsg || call == SYS_sendto || call == SYS_sendmsg || call == SYS_accept || call == SYS_accept4 || call == SYS_connect ||
         call == SYS_fsync || call == SYS_epoll_wait || call == SYS_epoll_pwait;
}

std::string_view call_name(long call) {
  static const std::map<long, std::string_view> names{{SYS_read, "read"},
                                                      {SYS_write, "write"},
                                                      {SYS_futex, "futex"},
                                                      {SYS_ioctl, "ioctl"},
                                                      {SYS_poll, "poll"},
                                                      {SYS_ppoll, "ppoll"},
                                                      {SYS_select, "select"},
                                                      {SYS_pselect6, "pselect6"},
                                                      {SYS_epoll_wait, "epoll_wait"},
                                                      {SYS_epoll_pwait, "epoll_pwait"},
                                                      {SYS_recvfrom, "recvfrom"},
                                                      {SYS_recvmsg, "recvmsg"},
                                                      {SYS_sendto, "sendto"},
                                                      {SYS_sendmsg, "sendmsg"},
                                                      {SYS_accept, "accept"},
                                                      {SYS_accept4, "accept4"},
                                                      {SYS_connect, "connect"},
                                                      {SYS_wait4, "wait4"},
                                                      {SYS_waitid, "waitid"},
                                                      {SYS_nanosleep, "nanosleep"},
                                                      {SYS_clock_nanosleep, "clock_nanosleep"},
                                                      {SYS_pause, "pause"},
                                                      {SYS_fsync, "fsync"},
                                                      {SYS_readv, "readv"},
                                                      {SYS_writev, "writev"},
                                                      {SYS_rt_sigtimedwait, "rt_sigtimedwait"}};
  const auto found = names.find(call);
  return found == names.end() ? std::string_view{} : found->second;
}

std::string call_text(const HangThread& thread) {
  if (thread.system_call < 0) return {};
  const auto name = call_name(thread.system_call);
  std::string out = name.empty() ? fmt::format("system call {}", thread.system_call) : std::string(name);
  if (!thread.descriptor_target.empty()) out += " on " + thread.descriptor_target;
  return out;
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
  if (call.empty() && errno != 0) add_unreadable(view, "syscall", errno);
  const auto fields = words(call);
  if (fields.size() > 1 && fields[0] != "running") {
    thread.system_call = to_integer<long>(fields[0]).value_or(-1);
    thread.first_argument = to_integer<std::uint64_t>(fields[1], 16).value_or(0);
    if (takes_descriptor(thread.system_call)) {
      thread.descriptor = static_cast<int>(thread.first_argument);
      std::error_code error;
      thread.descriptor_target = fs::read_symlink(fmt::format("{}/fd/{}", process, thread.descriptor), error).string();
    }
  }
  return thread;
}

}  // namespace

Result<HangView> look_at(int pid, double seconds) {
  const std::string process = fmt::format("/proc/{}", pid);
  std::error_code error;
  if (pid <= 0 || !fs::is_directory(process, error)) return fail("no such process", std::to_string(pid));
  HangView view;
  view.pid = pid;
  // Not cmdline: reading it takes the address space's lock, which a process stuck in a page fault may hold for ever.
  view.program = std::string(trim(read(process + "/comm")));
  std::map<int, Sample> before;
  const auto ids = [&] {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(process + "/task", error))
      if (out.size() < thread_limit) out.push_back(entry.path().filename().string());
    std::ranges::sort(out, {}, [](const std::string& id) { return to_integer<int>(id).value_or(0); });
    return out;
  };
  for (const auto& id : ids()) before[to_integer<int>(id).value_or(0)] = sample(read(process + "/task/" + id + "/stat"));
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const auto& id : ids()) {
    HangThread thread = look_at_thread(process, id, view);
    const Sample now = sample(read(process + "/task/" + id + "/stat"));
    thread.name = now.name;
    thread.state = now.state;
    if (const auto first = before.find(thread.id); first != before.end() && now.ticks >= first->second.ticks && seconds > 0)
      thread.cpu_share = static_cast<double>(now.ticks - first->second.ticks) / ticks_per_second / seconds;
    view.threads.push_back(std::move(thread));
  }
  for (const auto& entry : fs::directory_iterator(process + "/fd", error)) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    view.holds_kfd = view.holds_kfd || target == "/dev/kfd";
    view.holds_render_node = view.holds_render_node || target.starts_with("/dev/dri/");
  }
  if (error) add_unreadable(view, "fd", error.value());
  if (view.threads.empty()) return fail("the process ended while it was looked at", std::to_string(pid));
  return view;
}

HangVerdict judge(const HangView& view) {
  const auto any = [&](auto fits) { return std::ranges::find_if(view.threads, fits); };
  const auto none = view.threads.end();
  const HangThread& main = view.threads.front();
  const auto driver = [](const HangThread& thread) {
    return contains(thread.wait_channel, "amdgpu") || contains(thread.wait_channel, "kfd") || contains(thread.wait_channel, "dma_fence") ||
           contains(thread.wait_channel, "drm_");
  };
  if (main.state == 'Z' && view.threads.size() == 1)
    return {"ended", "the process has ended; its parent has not collected it", {"Look at the parent process."}};
  if (const auto thread = any([](const HangThread& t) { return t.state == 'D'; }); thread != none) {
    HangVerdict out{"uninterruptible",
                    fmt::format("thread {} sleeps uninterruptibly in the kernel{}", thread->id,
                                thread->wait_channel.empty() ? "" : " in " + thread->wait_channel),
                    {}};
    if (driver(*thread))
      out.next.emplace_back(
          "The GPU driver does not return: look at the kernel log for ring timeouts and resets (firstfault explain --here). SIGKILL will not end the "
          "process before the driver returns.");
    else if (contains(thread->wait_channel, "nfs") || contains(thread->wait_channel, "fuse") || contains(thread->wait_channel, "cifs"))
      out.next.emplace_back("A network file system does not answer: check its server.");
    else
      out.next.emplace_back("A disk, a network file system or a driver does not answer: look at the kernel log (\"blocked for more than\").");
    return out;
  }
  if (main.state == 'T' || main.state == 't')
    return {"stopped",
            "the process is stopped (SIGSTOP, Ctrl-Z, or a debugger)",
            {fmt::format("kill -CONT {} lets it go on, unless a debugger holds it.", view.pid)}};
  if (const auto thread = any([](const HangThread& t) { return t.cpu_share >= busy_share; }); thread != none) {
    HangVerdict out{"busy-loop",
                    fmt::format("thread {} ({}) uses {:.0f} % of a CPU: it computes or spins, it does not wait", thread->id, thread->name,
                                thread->cpu_share * 100),
                    {}};
    if (view.holds_kfd)
      out.next.emplace_back(
          "ROCm waits for the GPU by spinning (HSA signals): is the GPU busy (amd-smi)? If it is idle the completion was lost; if it is busy a "
          "kernel does not end.");
    out.next.emplace_back(
        fmt::format("py-spy dump --pid {} (Python) or gdb -p {} -batch -ex 'thread apply all bt' shows where.", view.pid, view.pid));
    return out;
  }
  if (const auto thread = any(driver); thread != none)
    return {"device",
            fmt::format("thread {} waits for the GPU driver in {}", thread->id, thread->wait_channel),
            {"Is the GPU busy (amd-smi)? Idle: the completion was lost. Busy: a kernel does not end."}};
  const auto waits = [&](std::initializer_list<long> calls) { return std::ranges::find(calls, main.system_call) != calls.end(); };
  if (waits({SYS_read, SYS_write, SYS_readv, SYS_writev}) && main.descriptor_target.starts_with("pipe:")) {
    const bool writes = main.system_call == SYS_write || main.system_call == SYS_writev;
    return {"pipe",
            writes ? fmt::format("it waits to write into {}: the pipe is full and nobody reads", main.descriptor_target)
                   : fmt::format("it waits to read from {}: nobody writes", main.descriptor_target),
            {"Who holds the other end: ls -l /proc/*/fd 2>/dev/null | grep '" + main.descriptor_target +
             "'. A parent that waits for the child before it reads its output causes this."}};
  }
  if (main.descriptor_target.starts_with("socket:"))
    return {"socket",
            fmt::format("it waits for the other side of {} ({})", main.descriptor_target, call_text(main)),
            {fmt::format("ss -tpn | grep pid={} shows the peer. In a distributed job: is every rank alive and in the same collective?", view.pid)}};
  if (waits({SYS_wait4, SYS_waitid}))
    return {"child", "it waits for a child process to end", {fmt::format("pgrep -P {} lists its children: look at those.", view.pid)}};
  if (waits({SYS_futex}) || contains(main.wait_channel, "futex")) {
    const auto same =
        std::ranges::count_if(view.threads, [](const HangThread& t) { return t.system_call == SYS_futex || contains(t.wait_channel, "futex"); });
    return {"lock",
            fmt::format("its main thread waits for a lock or a condition ({} of {} threads do)", same, view.threads.size()),
            {fmt::format("py-spy dump --pid {} (Python) or gdb -p {} -batch -ex 'thread apply all bt' shows who holds it. A DataLoader worker "
                         "started by fork with a held lock, and a missing rank, look like this.",
                         view.pid, view.pid)}};
  }
  if (waits({SYS_nanosleep, SYS_clock_nanosleep, SYS_pause})) return {"sleep", "it sleeps of its own will (" + call_text(main) + ")", {}};
  if (const auto thread = any([](const HangThread& t) { return t.state == 'R' || t.cpu_share > 0.02; }); thread != none)
    return {"moving", fmt::format("thread {} used {:.0f} % of a CPU: the process is moving", thread->id, thread->cpu_share * 100), {}};
  const std::string call = call_text(main);
  return {"unknown",
          "it waits" + (call.empty() ? std::string() : " in " + call) + (main.wait_channel.empty() ? std::string() : " (" + main.wait_channel + ")"),
          {fmt::format("gdb -p {} -batch -ex 'thread apply all bt' shows for what.", view.pid)}};
}

Value hang_to_json(const HangView& view, const HangVerdict& verdict) {
  Value threads = Value::list();
  for (const auto& thread : view.threads)
    threads.push(Value::object({{"id", thread.id},
                                {"name", thread.name},
                                {"state", std::string(1, thread.state)},
                                {"wait_channel", thread.wait_channel},
                                {"waits_in", call_text(thread)},
                                {"cpu_share", thread.cpu_share}}));
  return Value::object({{"schema", "firstfault/hang/1"},
                        {"pid", view.pid},
                        {"program", view.program},
                        {"verdict", Value::object({{"id", verdict.id}, {"what", verdict.what}, {"next", Value::list_of(verdict.next)}})},
                        {"holds_kfd", view.holds_kfd},
                        {"holds_render_node", view.holds_render_node},
                        {"threads", std::move(threads)},
                        {"unreadable", Value::list_of(view.unreadable)}});
}

}  // namespace ff::binary
