// Does the driver answer when it is asked? A read that hangs says more than any value.
#include <fmt/format.h>

#include <cerrno>
#include <map>

#include "base/text.h"
#include "device/judge.h"
#include "device/rung.h"

namespace ff::device {
namespace {

/// "card1" of "/sys/class/drm/card1/device/pp_dpm_sclk", "0000:03:00.0" of a PCI path, "/dev/kfd"; empty: not the GPU driver's.
std::string subject_of(const Machine& machine, std::string_view path) {
  if (path == "/dev/kfd" || path.starts_with("/dev/dri/")) return std::string(path);
  if (path.starts_with("/sys/class/kfd/")) return "the compute driver's topology";
  for (const std::string_view root : {"/sys/class/drm/", "/sys/bus/pci/devices/"}) {
    if (!path.starts_with(root)) continue;
    const auto name = path.substr(root.size(), path.find('/', root.size()) - root.size());
    for (const Gpu& gpu : machine.gpus)
      if ((gpu.pci && *gpu.pci == name) || (gpu.drm_card && fmt::format("card{}", *gpu.drm_card) == name)) return name_of(gpu);
    if (root.ends_with("drm/")) return std::string(name);
  }
  return {};
}

}  // namespace

CheckResult driver_answers(const CheckContext& context) {
  const auto& m = context.machine;
  Findings findings;
  std::map<std::string, std::vector<std::string>> silent;
  for (const auto& [path, error] : context.capture.errors()) {
    if (error != ETIMEDOUT) continue;
    if (auto subject = subject_of(m, path); !subject.empty()) silent[std::move(subject)].push_back(path);
  }
  for (const auto& [subject, paths] : silent) {
    std::vector<Evidence> because;
    for (const auto& path : paths)
      if (because.size() < 4) because.push_back({path, 0, "the read did not answer and was left behind"});
    findings.measured("silent", Value::object({{"what", subject}, {"paths", Value::list_of(paths)}}));
    const std::string what = paths.size() == 1 ? paths.front() : fmt::format("{} of its files", paths.size());
    findings.fail("driver.not-answering",
                  subject.starts_with("/dev/") ? fmt::format("opening {} did not come back: the driver behind it hangs", subject)
                                               : fmt::format("the driver did not answer for {} ({}): its state is unknown", subject, what),
                  std::move(because));
  }
  for (const Gpu& gpu : m.gpus) {
    const auto config = device_file(context, gpu, "config");
    // A device that left the bus answers every read with ones (PCI Express Base Specification: Unsupported Request).
    if (config && config->content.size() >= 64 && config->content.find_first_not_of('\xff') == std::string_view::npos)
      findings.fail("hardware.fell-off-bus", fmt::format("{} is no longer on the bus: its PCI configuration reads as ones only", name_of(gpu)),
                    {{config->path, 0, "0xff in every byte"}});
  }
  std::vector<Evidence> dumps;
  for (const auto& name : context.capture.list("/sys/class/devcoredump"))
    if (name.starts_with("devcd")) dumps.push_back({"/sys/class/devcoredump/" + name, 0, "device core dump"});
  if (!dumps.empty()) {
    findings.measured("dumps", dumps.size());
    const std::string count = count_of(dumps.size(), "device core dump");
    findings.warn("kernel-fault.hang", fmt::format("the driver keeps {} of a job that hung or faulted within the last minutes", count),
                  std::move(dumps), {"sudo cp /sys/class/devcoredump/devcd*/data gpu-core   (the kernel deletes it after five minutes)"});
  }
  bool asked = !m.gpus.empty() && complete(context);
  for (const std::string_view name : {"rocminfo", "rocm-smi-json", "amd-smi-list-json", "amd-smi-static-json", "amd-smi-metric-json"}) {
    const auto* command = context.capture.command(name);
    if (command == nullptr || command->start_errno != 0) continue;
    const std::string source = "cmd/" + std::string(name);
    asked = true;
    if (command->timed_out) {
      findings.fail("driver.not-answering", fmt::format("{} did not answer in its time: it waits for the driver", name), {{source, 0, "timed out"}});
    } else if (name == "rocminfo" && command->exit_status.value_or(0) != 0) {
      const std::string& said = command->err.empty() ? command->out : command->err;
      findings.warn(
          "driver.user-kernel-mismatch",
          fmt::format("rocminfo ends with exit status {}: the runtime does not come up (firstfault explain reads its text)", *command->exit_status),
          {{source, 0, std::string(trim(std::string_view(said).substr(0, 300)))}});
    } else {
      findings.good();
    }
  }
  if (asked && findings.judged() == 0 && findings.clean()) findings.good();
  return findings.result("every read of the driver's files came back", "this was not tried on the machine");
}

}  // namespace ff::device
