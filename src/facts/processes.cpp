#include <algorithm>
#include <cerrno>

#include "facts/subjects.h"

namespace ff::facts {
namespace {

constexpr std::string_view kfd_processes = "/sys/class/kfd/kfd/proc";

/// Sum of a process's vram_<gpu_id> files.
Known<std::uint64_t> kfd_vram(const Evidence& evidence, const std::string& directory) {
  Known<std::uint64_t> out;
  for (const std::string& name : evidence.capture().list(directory)) {
    if (!name.starts_with("vram_")) continue;
    const auto bytes = evidence.known_integer<std::uint64_t>(directory + "/" + name);
    if (!bytes) continue;
    out = {out.value_or(0) + *bytes, bytes.origin};
  }
  return out;
}

}  // namespace

void read_processes(Machine& machine, const Evidence& evidence) {
  for (const Value& entry : evidence.capture().probe("gpu_processes")["processes"].items()) {
    GpuProcess process;
    process.pid = static_cast<int>(entry["pid"].as_int());
    process.command = entry["command"].as_text();
    for (const Value& device : entry["devices"].items()) process.devices.emplace_back(device.as_text());
    process.vram_bytes = known_number<std::uint64_t>(evidence, "gpu_processes", entry["vram_bytes"], "vram_bytes");
    machine.gpu_processes.push_back(std::move(process));
  }
  for (const std::string& name : evidence.capture().list(kfd_processes)) {
    const auto pid = number_after(name, "");
    if (!pid) continue;
    const auto vram = kfd_vram(evidence, std::string(kfd_processes) + "/" + name);
    const auto known = std::ranges::find_if(machine.gpu_processes, [&](const auto& p) { return p.pid == *pid; });
    if (known != machine.gpu_processes.end()) {
      fill(known->vram_bytes, vram);
      continue;
    }
    GpuProcess process;
    process.pid = *pid;
    process.devices = {"/dev/kfd"};
    process.vram_bytes = vram;
    machine.gpu_processes.push_back(std::move(process));
  }
}

void read_unreadable(Machine& machine, const Evidence& evidence) {
  for (const auto& [path, error] : evidence.capture().errors())
    if (error != ENOENT) machine.unreadable.push_back(evidence.origin(path, 0, errno_text(error)));
}

}  // namespace ff::facts
