// What a look at a process means, in words.
#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.h"
#include "binary/hang.h"

namespace ff::binary {
namespace {

constexpr double busy_share = 0.5;  ///< of one CPU: below it a thread is not spinning
constexpr double gpu_busy = 90;     ///< percent: it computes all the time
constexpr double gpu_idle = 5;

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
                                                      {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
                                                      {SYS_rt_sigsuspend, "rt_sigsuspend"}};
  const auto found = names.find(call);
  return found == names.end() ? std::string_view{} : found->second;
}

/// Functions of the driver in which a thread waits for the GPU.
bool in_driver(const HangThread& thread) {
  const auto of_driver = [](std::string_view name) {
    return contains(name, "amdgpu") || contains(name, "kfd") || contains(name, "dma_fence") || contains(name, "drm_");
  };
  return of_driver(thread.wait_channel) || std::ranges::any_of(thread.kernel_stack, of_driver);
}

/// The frame that shows a wait for another rank: gloo, RCCL's proxy or torch's process groups.
std::string rank_wait(const HangView& view) {
  for (const auto& thread : view.threads)
    for (const auto& frame : thread.frames)
      for (const std::string_view part : {"gloo::transport", "gloo::barrier", "c10d::ProcessGroup", "c10d::TCPStore", "c10d::detail::TCPClient"})
        if (contains(frame.function, part) && (&thread == &view.threads.front() || contains(frame.function, "wait"))) {
          const auto open = frame.function.find('(');
          return frame.function.substr(0, open);
        }
  // Python's stack of the main thread: py-spy writes "    name (file:line)".
  for (const auto line : lines(view.python))
    if (contains(line, "torch/distributed/distributed_c10d.py")) return std::string(trim(line));
  return {};
}

/// Mean of all GPUs' busiest; nothing when no GPU said.
std::optional<double> mean_busy(const HangView& view) {
  std::optional<double> best;
  for (const auto& gpu : view.gpus) {
    if (gpu.busy_percent.empty()) continue;
    const double mean = std::accumulate(gpu.busy_percent.begin(), gpu.busy_percent.end(), 0.0) / static_cast<double>(gpu.busy_percent.size());
    best = std::max(best.value_or(0), mean);
  }
  return best;
}

const HangView::LogLine* driver_fault(const HangView& view) {
  for (const auto& line : view.kernel_log)
    if (line.cause.starts_with("driver.") || line.cause.starts_with("hardware.")) return &line;
  return nullptr;
}

/// The GPU has it: is it working, or was its answer lost?
std::optional<HangVerdict> judge_gpu(const HangView& view, const std::string& who) {
  const auto busy = mean_busy(view);
  if (!busy) return std::nullopt;
  if (*busy >= gpu_busy)
    return HangVerdict{"kernel-runs",
                       fmt::format("{} waits for the GPU, which is {:.0f} % busy: a kernel runs and does not end, or takes long", who, *busy),
                       {"Other processes on the same GPU make it busy too: firstfault check --rung device names them.",
                        "AMD_LOG_LEVEL=3 in a new run names the last kernel that was launched; rocgdb -p shows its waves (it stops the process)."}};
  if (*busy <= gpu_idle)
    return HangVerdict{
        "completion-lost",
        fmt::format("{} waits for the GPU, which is idle ({:.0f} % busy): its work ended or was never started, and the signal did not come", who,
                    *busy),
        {"Look at the kernel log for resets and interrupts that were lost (firstfault explain --here).",
         "A wait on an event or stream that nothing was launched on looks the same: see the stacks."}};
  return std::nullopt;
}

bool waits_for_any(const HangThread& thread) {
  constexpr long epoll_pwait2 = 441;
  for (const long call : {long{SYS_poll}, long{SYS_ppoll}, long{SYS_select}, long{SYS_pselect6}, long{SYS_epoll_wait}, long{SYS_epoll_pwait},
                          epoll_pwait2, long{SYS_accept}, long{SYS_accept4}})
    if (thread.system_call == call) return true;
  return false;
}

/// "3 connections (10.0.0.5:6379, …), 1 event counter"
std::string list_watched(const std::vector<Watched>& watched) {
  std::vector<std::string> parts;
  for (const auto& [kind, name] : {std::pair{"listening", "listening socket"},
                                   {"connected", "connection"},
                                   {"local", "local socket"},
                                   {"socket", "socket"},
                                   {"pipe", "pipe"},
                                   {"terminal", "terminal"},
                                   {"event", "event counter"},
                                   {"timer", "timer"},
                                   {"signal", "signal queue"},
                                   {"file", "file"},
                                   {"other", "other"}}) {
    std::vector<std::string> whats;
    for (const auto& row : watched)
      if (row.kind == kind) whats.push_back(row.what);
    if (whats.empty()) continue;
    const auto count = whats.size();
    constexpr std::size_t shown = 3;
    if (count > shown) whats.resize(shown);
    parts.push_back(fmt::format("{} {}{}", count, name, count == 1 ? "" : "s") +
                    (std::string_view(kind) == "event" ? "" : " (" + join(whats, ", ") + (count > shown ? ", …" : "") + ")"));
  }
  return join(parts, ", ");
}

/// A wait for one of several things: a server that waits for work is no fault, and a socket has another end.
std::optional<HangVerdict> judge_wait(const HangView& view) {
  const HangThread& main = view.threads.front();
  const std::string_view call = call_name(main.system_call);
  const auto of_kind = [&](std::string_view kind) { return std::ranges::find(view.watched, kind, &Watched::kind); };
  const auto none = view.watched.end();
  const bool any = waits_for_any(main);
  if (const auto row = of_kind("listening"); any && row != none)
    return HangVerdict{
        "waits-for-work",
        fmt::format("it waits for work in {}: it listens on {}", call, row->what),
        {"A server without requests looks so. If a client waits for its answer all the same, look at the threads and processes that serve it."}};
  if (const auto row = of_kind("terminal"); row != none && (any || main.system_call == SYS_read))
    return HangVerdict{"waits-for-input", fmt::format("it waits for input from {}", row->what), {}};
  const auto peers = std::ranges::count(view.watched, std::string_view("connected"), &Watched::kind);
  const bool alone = peers == 1 && std::ranges::all_of(view.watched, [](const Watched& row) {
                       return row.kind == "connected" || row.kind == "event" || row.kind == "timer" || row.kind == "signal";
                     });
  if (alone || main.descriptor_target.starts_with("socket:")) {
    const auto row = peers == 0 ? none : of_kind("connected");
    const std::string other = row == none ? main.descriptor_target : row->what;
    return HangVerdict{
        "socket",
        fmt::format("it waits for the other side of {} ({})", other.empty() ? "a socket" : other, call_text(main)),
        {fmt::format("ss -tpn | grep pid={} shows the peer. In a distributed job: is every rank alive and in the same collective?", view.pid)}};
  }
  if (!any) return std::nullopt;
  if (view.watched_known && view.watched.empty() && view.time_limit_seconds >= 0)
    return HangVerdict{"sleep", fmt::format("it sleeps of its own will ({} of {:.3g} s)", call, view.time_limit_seconds), {}};
  if (!view.watched_known) return std::nullopt;
  return HangVerdict{
      "unknown",
      fmt::format("it waits in {} for any of {}{}: whether one of them owes it something is not told by the kernel", call,
                  view.watched.empty() ? std::string("nothing, without end") : list_watched(view.watched),
                  view.time_limit_seconds >= 0 ? fmt::format(", {:.3g} s at most", view.time_limit_seconds) : ""),
      {fmt::format("py-spy dump --pid {} (Python) or gdb -p {} -batch -ex 'thread apply all bt' shows for what.", view.pid, view.pid)}};
}

const HangView::LogLine* communication_fault(const HangView& view) {
  for (const auto& line : view.output)
    if (line.cause.starts_with("communication.")) return &line;
  return nullptr;
}

}  // namespace

std::string call_text(const HangThread& thread) {
  if (thread.system_call < 0) return {};
  const auto name = call_name(thread.system_call);
  std::string out = name.empty() ? fmt::format("system call {}", thread.system_call) : std::string(name);
  if (!thread.descriptor_target.empty()) out += " on " + thread.descriptor_target;
  return out;
}

HangVerdict judge(const HangView& view) {
  const auto any = [&](auto fits) { return std::ranges::find_if(view.threads, fits); };
  const auto none = view.threads.end();
  const HangThread& main = view.threads.front();
  const auto driver = [](const HangThread& thread) { return in_driver(thread); };
  const bool uses_gpu = view.holds_kfd || view.holds_render_node;
  if (main.state == 'Z' && view.threads.size() == 1)
    return {"ended", "the process has ended; its parent has not collected it", {"Look at the parent process."}};
  if (const auto thread = any([](const HangThread& t) { return t.state == 'D'; }); thread != none) {
    HangVerdict out{"uninterruptible",
                    fmt::format("thread {} sleeps uninterruptibly in the kernel{}", thread->id,
                                thread->wait_channel.empty() ? "" : " in " + thread->wait_channel),
                    {}};
    if (const auto* fault = driver_fault(view); driver(*thread) && fault != nullptr) {
      out.id = "driver-dead";
      out.what += fmt::format("; since it started the kernel log says: {}", fault->title);
    }
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
  if (const auto* fault = driver_fault(view); uses_gpu && fault != nullptr)
    return {"driver-dead",
            fmt::format("it uses the GPU, and since it started the kernel log says: {}", fault->title),
            {"A GPU that was reset answers no process of before: end this one and start it again. firstfault explain --here names the cause."}};
  if (view.ranks && view.ranks->verdict != "nothing")
    return {view.ranks->verdict == "collective-does-not-end" ? "device" : "waits-for-rank",
            view.ranks->what,
            {view.ranks->verdict == "different-collectives"
                 ? "The ranks' programs took different ways: look for a condition that depends on the rank or on the data."
                 : "Look at the missing rank: firstfault hang PID there; did it end, and with what?"}};
  const auto spins = [](const HangThread& t) { return std::max(t.cpu_share, t.wants_cpu) >= busy_share; };
  if (const auto thread = any([&](const HangThread& t) { return spins(t) || (uses_gpu && driver(t)); }); uses_gpu && thread != none)
    if (auto verdict = judge_gpu(view, fmt::format("thread {} ({})", thread->id, thread->name))) return *verdict;
  if (const auto frame = rank_wait(view); !frame.empty())
    return {"waits-for-rank",
            "it waits for another rank in " + frame,
            {"Is every rank alive and in the same call? Run firstfault hang on each; with TORCH_NCCL_TRACE_BUFFER_SIZE set, --dumps names the rank.",
             fmt::format("ss -tpn | grep pid={} shows with whom it talks.", view.pid)}};
  if (const auto thread = any(spins); thread != none) {
    if (view.written > 0)
      return {"moving",
              fmt::format("thread {} ({}) computes, and the process wrote {} bytes meanwhile: it moves", thread->id, thread->name, view.written),
              {}};
    HangVerdict out{"busy-loop",
                    fmt::format("thread {} ({}) uses {:.0f} % of a CPU and wrote nothing meanwhile: it computes or spins, it does not wait",
                                thread->id, thread->name, std::max(thread->cpu_share, thread->wants_cpu) * 100),
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
            fmt::format("thread {} waits for the GPU driver in {}", thread->id,
                        thread->kernel_stack.empty() ? thread->wait_channel : thread->kernel_stack.front()),
            {"Is the GPU busy (amd-smi)? Idle: the completion was lost. Busy: a kernel does not end."}};
  const auto waits = [&](std::initializer_list<long> calls) { return std::ranges::find(calls, main.system_call) != calls.end(); };
  if (waits({SYS_read, SYS_write, SYS_readv, SYS_writev}) && main.descriptor_target.starts_with("pipe:")) {
    const bool writes = main.system_call == SYS_write || main.system_call == SYS_writev;
    return {"pipe",
            writes ? fmt::format("it waits to write into {}: the pipe is full, and whoever holds the other end does not read", main.descriptor_target)
                   : fmt::format("it waits to read from {}: whoever holds the other end writes nothing", main.descriptor_target),
            {"Who holds the other end: find /proc/[0-9]*/fd -lname '" + replace_all(replace_all(main.descriptor_target, "[", "\\["), "]", "\\]") +
             "' 2>/dev/null. A parent that waits for the child before it reads its output causes this."}};
  }
  // RCCL's watchdog and torch say it in the output before any stack does.
  const bool asleep = std::ranges::none_of(view.threads, [](const HangThread& t) { return t.state == 'R' || t.cpu_share > 0.02; });
  if (const auto* line = communication_fault(view); line != nullptr && asleep)
    return {"waits-for-rank",
            fmt::format("nothing of it moves, and its output says: {}", line->title),
            {"It says: " + line->text, "Look at the rank that is named or missing: firstfault hang PID there; did it end, and with what?"}};
  if (auto verdict = judge_wait(view)) return *verdict;
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
  if (waits({SYS_rt_sigtimedwait, SYS_rt_sigsuspend})) return {"sleep", "it waits for a signal, as a supervisor does (" + call_text(main) + ")", {}};
  if (const auto thread = any([](const HangThread& t) { return t.state == 'R' || t.cpu_share > 0.02; }); thread != none)
    return {"moving", fmt::format("thread {} used {:.0f} % of a CPU: the process is moving", thread->id, thread->cpu_share * 100), {}};
  if (!view.calls_readable)
    return {"not-readable", "it sleeps, and what it waits for may not be seen: " + view.refused_because, {view.refused_remedy}};
  const std::string call = call_text(main);
  return {"unknown",
          "it waits" + (call.empty() ? std::string() : " in " + call) + (main.wait_channel.empty() ? std::string() : " (" + main.wait_channel + ")"),
          {fmt::format("gdb -p {} -batch -ex 'thread apply all bt' shows for what.", view.pid)}};
}

Value hang_to_json(const HangView& view, const HangVerdict& verdict) {
  Value threads = Value::list();
  for (const auto& thread : view.threads) {
    Value frames = Value::list();
    for (const auto& frame : thread.frames) {
      Value row = Value::object({{"address", frame.address}, {"module", frame.module}, {"function", frame.function}});
      if (!frame.source.empty()) row.set("source", frame.source);
      frames.push(std::move(row));
    }
    threads.push(Value::object({{"id", thread.id},
                                {"name", thread.name},
                                {"state", std::string(1, thread.state)},
                                {"wait_channel", thread.wait_channel},
                                {"waits_in", call_text(thread)},
                                {"cpu_share", thread.cpu_share},
                                {"wants_cpu", thread.wants_cpu},
                                {"kernel_stack", Value::list_of(thread.kernel_stack)},
                                {"frames", std::move(frames)}}));
  }
  Value queues = Value::list(), gpus = Value::list(), log = Value::list();
  for (const auto& queue : view.queues)
    queues.push(Value::object({{"id", queue.id}, {"gpu_id", queue.gpu_id}, {"type", queue.type}, {"size_bytes", queue.size_bytes}}));
  for (const auto& gpu : view.gpus)
    gpus.push(Value::object({{"card", gpu.card},
                             {"pci", gpu.pci},
                             {"asleep", gpu.asleep},
                             {"busy_percent", Value::list_of(gpu.busy_percent)},
                             {"power_watts", Value::list_of(gpu.power_watts)},
                             {"clock_mhz", Value::list_of(gpu.clock_mhz)}}));
  for (const auto& line : view.kernel_log) log.push(Value::object({{"cause", line.cause}, {"title", line.title}, {"text", line.text}}));
  Value output = Value::list(), watched = Value::list();
  for (const auto& line : view.output) output.push(Value::object({{"cause", line.cause}, {"title", line.title}, {"text", line.text}}));
  for (const auto& row : view.watched) watched.push(Value::object({{"descriptor", row.descriptor}, {"kind", row.kind}, {"what", row.what}}));
  Value ranks;
  if (view.ranks)
    ranks = Value::object({{"verdict", view.ranks->verdict},
                           {"what", view.ranks->what},
                           {"group", view.ranks->group},
                           {"missing", Value::list_of(view.ranks->missing)},
                           {"waiting", Value::list_of(view.ranks->waiting)},
                           {"without_dump", Value::list_of(view.ranks->without_dump)}});
  return Value::object({{"schema", "firstfault/hang/1"},
                        {"pid", view.pid},
                        {"program", view.program},
                        {"verdict", Value::object({{"id", verdict.id}, {"what", verdict.what}, {"next", Value::list_of(verdict.next)}})},
                        {"holds_kfd", view.holds_kfd},
                        {"holds_render_node", view.holds_render_node},
                        {"owner", view.owner},
                        {"threads", std::move(threads)},
                        {"queues", std::move(queues)},
                        {"gpus", std::move(gpus)},
                        {"kernel_log", std::move(log)},
                        {"output", std::move(output)},
                        {"watched", std::move(watched)},
                        {"ranks", std::move(ranks)},
                        {"python", view.python},
                        {"unreadable", Value::list_of(view.unreadable)}});
}

}  // namespace ff::binary
