#include "capture/collect.h"

#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/text.h"
#include "capture/emitter.h"
#include "capture/hardware.h"
#include "capture/items.h"
#include "capture/probes.h"
#include "capture/reader.h"
#include "capture/redact.h"

extern char** environ;  // NOLINT: POSIX

namespace ff::capture {
namespace {

/// How often a worker that hung is replaced by one that goes on behind the step it hung in.
constexpr int most_successors = 3;

/// One worker: what it does, and what it and its predecessors have done.
struct Worker {
  std::string name;
  std::function<void(ProbeContext&)> work;
  std::set<std::string, std::less<>> done;
  bool finished = false;
  std::string place;  ///< directory whose files it reads, where it has one
};

using Workers = std::vector<Worker>;

void add_file_workers(Workers& workers, const FoundHardware& hardware, const CollectOptions& options) {
  for (const ItemGroup& group : host_groups())
    workers.push_back({std::string(group.name), [&group](ProbeContext& c) { c.reader.read_all(group.items); }, {}});
  workers.push_back({"pci",
                     [](ProbeContext& c) {
                       if (c.hardware.pci_error != 0) c.emitter.error("/sys/bus/pci/devices", c.hardware.pci_error);
                       for (const std::string& address : c.hardware.pci_devices) {
                         c.reader.read({address, ItemKind::link}, "/sys/bus/pci/devices");
                         const bool asleep = c.hardware.is_asleep(address) && !c.options.wake;
                         c.reader.read_all(pci_device_items(), "/sys/bus/pci/devices/" + address, asleep);
                       }
                       for (const std::string& link : c.hardware.render_links) {
                         c.reader.read({link, ItemKind::link});
                         c.reader.read({"device", ItemKind::link}, link);
                       }
                     },
                     {}});
  for (const FoundGpu& gpu : hardware.gpus) {
    const bool asleep = gpu.asleep() && !options.wake;
    workers.push_back({"gpu " + (gpu.card.empty() ? gpu.pci : gpu.card),
                       [&gpu, asleep](ProbeContext& c) {
                         if (!gpu.card.empty()) {
                           c.reader.read({gpu.card, ItemKind::link}, "/sys/class/drm");
                           c.reader.read_all(drm_card_items(), "/sys/class/drm/" + gpu.card, asleep);
                         }
                         if (!gpu.pci.empty()) c.reader.read_all(pci_path_items(), "/sys/bus/pci/devices/" + gpu.pci, asleep);
                         for (const std::string& bridge : gpu.bridges)
                           c.reader.read_all(pci_path_items(), "/sys/bus/pci/devices/" + bridge,
                                             (asleep || c.hardware.is_asleep(bridge)) && !c.options.wake);
                       },
                       {},
                       false,
                       gpu.card.empty() ? "/sys/bus/pci/devices/" + gpu.pci : "/sys/class/drm/" + gpu.card + "/device"});
  }
}

void add_probe_workers(Workers& workers, const CollectOptions& options) {
  for (const Probe& probe : probes()) workers.push_back({std::string(probe.name), [&probe](ProbeContext& c) { probe.run(c); }, {}});
  for (const auto& [path, asked_by] : python_environments(options))
    workers.push_back({"python " + path, [path, asked_by](ProbeContext& c) { probe_python(c, path, asked_by); }, {}});
}

ChildOptions child_of(const Worker& worker, const FoundHardware& hardware, const CollectOptions& options, std::chrono::milliseconds limit) {
  ChildOptions child;
  child.time_limit = limit;
  child.output_limit_bytes = 256u << 20;
  child.body = [&worker, &hardware, &options](int out) {
    Emitter emitter(out, worker.done);
    Reader reader(options.root, emitter);
    ProbeContext context{options, hardware, reader, emitter};
    worker.work(context);
  };
  return child;
}

/// Takes over what a worker said. A worker that hung is recorded with the step in which it did.
void take_over(Worker& worker, const ChildResult& result, Capture& capture, Value::List& hung) {
  worker.finished = !result.timed_out;
  const Received received = receive(result.out, result.ok(), capture);
  for (const std::string& step : received.begun)
    if (!step.ends_with('/')) worker.done.insert(step);
  if (result.ok()) return;
  Value::Object note{{"worker", worker.name}, {"how", result.describe()}};
  if (received.last_begun) {
    std::string step = *received.last_begun;
    worker.done.insert(step);
    note.emplace_back("step", step);
    if (step.size() > 1 && step.ends_with('/')) step.pop_back();
    if (step.starts_with('/')) capture.add_error(step, result.timed_out ? ETIMEDOUT : EIO);
  }
  if (!result.err.empty()) note.emplace_back("said", redact_text(std::string_view(result.err).substr(0, 1000)));
  hung.emplace_back(std::move(note));
}

std::vector<std::string> child_environment(const CollectOptions& options) {
  std::vector<std::string> out;
  for (const auto& [name, value] : options.environment)
    if (name != "PATH" && !name.starts_with("LC_") && name != "LANG" && name != "LANGUAGE") out.push_back(name + "=" + value);
  out.push_back("PATH=" + search_path(options));
  out.emplace_back("LC_ALL=C");
  return out;
}

CommandOutput output_of(const CommandItem& item, ChildResult result) {
  CommandOutput output;
  output.argv = item.argv;
  output.exit_status = result.exit_status;
  output.signal = result.signal;
  output.timed_out = result.timed_out;
  output.start_errno = result.start_errno;
  output.out = redact_text(result.out);
  output.err = redact_text(result.err);
  return output;
}

}  // namespace

std::map<std::string, std::string, std::less<>> current_environment() {
  std::map<std::string, std::string, std::less<>> out;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

Result<Capture> collect(const CollectOptions& given) {
  CollectOptions options = given;
  if (options.root.empty()) options.root = "/";
  if (options.root != "/" && ::access(options.root.c_str(), R_OK | X_OK) != 0)
    return fail("cannot be read: " + errno_text(errno), options.root, "give a directory that holds the machine's files");
  options.run_commands = options.run_commands && options.root == "/";

  const Monotonic start = monotonic_now();
  Capture capture;
  capture.set_kind("live");
  const FoundHardware hardware = find_hardware(options.root);
  bool any_asleep = false;
  Value::List asleep;
  for (const FoundGpu& gpu : hardware.gpus) {
    if (!gpu.asleep() || options.wake) continue;
    any_asleep = true;
    asleep.push_back(Value::object({{"pci", gpu.pci}, {"card", gpu.card}, {"runtime_status", gpu.runtime_status}}));
  }
  capture.add_probe("asleep", Value(std::move(asleep)));

  Workers workers;
  add_file_workers(workers, hardware, options);
  add_probe_workers(workers, options);

  std::vector<ChildOptions> children;
  for (const Worker& worker : workers) children.push_back(child_of(worker, hardware, options, options.step_limit));
  std::vector<const CommandItem*> running;
  for (const CommandItem& item : commands_to_run()) {
    if (!options.run_commands) break;
    CommandOutput not_run;
    not_run.argv = item.argv;
    const std::string program = find_program(options, item.argv[0]);
    if (program.empty())
      not_run.start_errno = ENOENT;
    else if (item.wakes_gpu && any_asleep)
      not_run.start_errno = EBUSY;
    if (not_run.start_errno != 0) {
      capture.add_command(item.name, std::move(not_run));
      continue;
    }
    ChildOptions child{.argv = item.argv,
                       .environment = child_environment(options),
                       .directory = "/",
                       .time_limit = item.time_limit,
                       .output_limit_bytes = item.output_limit_bytes};
    child.argv[0] = program;
    children.push_back(std::move(child));
    running.push_back(&item);
  }

  Value::List hung;
  std::vector<ChildResult> results = run_children(children, options.hard_limit / 2);
  for (std::size_t i = 0; i < workers.size(); ++i) take_over(workers[i], results[i], capture, hung);
  for (std::size_t i = 0; i < running.size(); ++i) {
    ChildResult& result = results[workers.size() + i];
    if (result.truncated) {
      Value all = capture.probe("truncated");
      all.set("cmd/" + std::string(running[i]->name), 0);
      capture.add_probe("truncated", std::move(all));
    }
    capture.add_command(running[i]->name, output_of(*running[i], std::move(result)));
  }

  // Those that hung get successors that go on behind the step they hung in, as long as there is time.
  for (int round = 0; round < most_successors; ++round) {
    std::vector<Worker*> open;
    for (Worker& worker : workers)
      if (!worker.finished) open.push_back(&worker);
    const auto left = options.hard_limit - std::chrono::milliseconds(milliseconds_since(start));
    if (open.empty() || left < options.step_limit / 3) break;
    children.clear();
    for (const Worker* worker : open) children.push_back(child_of(*worker, hardware, options, std::min(options.step_limit / 2, left)));
    results = run_children(children, left);
    for (std::size_t i = 0; i < open.size(); ++i) take_over(*open[i], results[i], capture, hung);
  }

  // What was still to be read there stands for itself no more: the directory has the errno.
  for (const Worker& worker : workers)
    if (!worker.finished && !worker.place.empty()) capture.add_error(worker.place, ETIMEDOUT);

  if (!capture.probe("gpu_process_commands").is_null()) {
    Value all = capture.probe("gpu_processes");
    for (auto& [name, list] : all.members_mut()) {
      if (name != "processes") continue;
      for (Value& process : list.items_mut())
        if (const Value* command = capture.probe("gpu_process_commands").find(process["pid"].to_string())) process.set("command", *command);
    }
    capture.add_probe("gpu_processes", std::move(all));
    capture.remove_probe("gpu_process_commands");
  }

  Value& about = capture.about_mut();
  about.set("tool", "firstfault 0.1.0");
  about.set("taken_at", utc_now_text());
  about.set("hostname", capture.value("/proc/sys/kernel/hostname").value_or(""));
  about.set("root", options.root);
  about.set("duration_ms", milliseconds_since(start));
  if (!hung.empty()) about.set("not_answering", Value(std::move(hung)));
  return capture;
}

}  // namespace ff::capture
