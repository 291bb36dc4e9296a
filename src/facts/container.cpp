#include "facts/subjects.h"

namespace ff::facts {
namespace {

/// "docker", "podman", ... from the text of a cgroup path or of systemd's container file.
std::string kind_of(std::string_view text) {
  struct Sign {
    std::string_view part, kind;
  };
  constexpr Sign signs[] = {{"kubepods", "kubernetes"},
                            {"docker", "docker"},
                            {"libpod", "podman"},
                            {"podman", "podman"},
                            {"lxc", "lxc"},
                            {"garden", "garden"},
                            {"systemd-nspawn", "nspawn"},
                            {"containerd", "containerd"},
                            {"apptainer", "singularity"},
                            {"singularity", "singularity"}};
  for (const auto& sign : signs)
    if (contains(text, sign.part)) return std::string(sign.kind);
  return {};
}

Known<std::string> container_kind(const Machine& machine, const Evidence& evidence) {
  const auto& capture = evidence.capture();
  struct Sign {
    const char* path;
    const char* kind;
  };
  // More telling signs first: Kubernetes and toolbox containers also carry those of their engine.
  constexpr Sign signs[] = {{"/var/run/secrets/kubernetes.io", "kubernetes"},
                            {"/run/.toolboxenv", "toolbox"},
                            {"/.singularity.d/labels.json", "singularity"},
                            {"/.singularity.d", "singularity"},
                            {"/run/.containerenv", "podman"},
                            {"/.dockerenv", "docker"}};
  for (const auto& sign : signs)
    if (capture.exists(sign.path)) return {std::string(sign.kind), evidence.origin(sign.path, 0, "exists")};
  if (const auto text = evidence.value("/run/systemd/container")) {
    const std::string kind = kind_of(*text);
    return {kind.empty() ? std::string(*text) : kind, evidence.origin("/run/systemd/container", 1, *text)};
  }
  struct Variable {
    const char* name;
    const char* kind;
  };
  constexpr Variable variables[] = {
      {"KUBERNETES_SERVICE_HOST", "kubernetes"}, {"APPTAINER_CONTAINER", "singularity"}, {"SINGULARITY_CONTAINER", "singularity"}};
  for (const auto& variable : variables)
    if (const auto it = machine.env.find(variable.name); it != machine.env.end() && it->second) return {variable.kind, it->second.origin};
  if (const auto it = machine.env.find("container"); it != machine.env.end() && it->second && !it->second->empty())
    return {*it->second, it->second.origin};
  for (const char* path : {"/proc/1/cgroup", "/proc/self/cgroup"}) {
    std::uint64_t number = 0;
    for (const std::string_view line : lines(evidence.text(path).value_or(""))) {
      ++number;
      // "/user.slice/.../docker.service" is the engine on the host, no container.
      if (contains(line, ".service") && !contains(line, ".scope")) continue;
      if (std::string kind = kind_of(line); !kind.empty()) return {std::move(kind), evidence.origin(path, number, line)};
    }
  }
  if (capture.known_absent("/.dockerenv") && capture.known_absent("/run/.containerenv"))
    return {std::string(), evidence.origin("/.dockerenv", 0, "none of the signs of a container is there")};
  return {};
}

Known<std::string> limit_text(const Evidence& evidence, std::string_view name, std::string_view proc_name) {
  const Value& soft = evidence.capture().probe("limits")[name]["soft"];
  if (!soft.is_null()) return {soft.to_string(), evidence.origin("probe/limits", 0, std::string(name) + ": " + soft.to_string())};
  std::uint64_t number = 0;
  for (const std::string_view line : lines(evidence.text("/proc/self/limits").value_or(""))) {
    ++number;
    if (!line.starts_with(proc_name)) continue;
    const auto parts = words(line.substr(proc_name.size()));
    if (!parts.empty()) return {std::string(parts[0]), evidence.origin("/proc/self/limits", number, line)};
  }
  return {};
}

}  // namespace

void read_container(Machine& machine, const Evidence& evidence) {
  Container& container = machine.container;
  container.kind = container_kind(machine, evidence);
  const Value& shm = evidence.capture().probe("shm");
  container.shm_bytes = known_number<std::uint64_t>(evidence, "shm", shm["total_bytes"], "total_bytes");
  container.shm_used_bytes = known_number<std::uint64_t>(evidence, "shm", shm["used_bytes"], "used_bytes");
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    fill(container.cgroup_memory_max, evidence.known_text(path));
  std::uint64_t number = 0;
  for (const std::string_view line : lines(evidence.text("/proc/self/status").value_or(""))) {
    ++number;
    if (!line.starts_with("Seccomp:")) continue;
    const auto mode = to_integer<int>(line.substr(8));
    if (mode) container.seccomp = {*mode == 2, evidence.origin("/proc/self/status", number, line)};
  }
}

void read_limits(Machine& machine, const Evidence& evidence) {
  machine.limits.memlock = limit_text(evidence, "memlock", "Max locked memory");
  if (const auto files = limit_text(evidence, "nofile", "Max open files"))
    if (const auto count = to_integer<std::uint64_t>(*files)) machine.limits.nofile = {*count, files.origin};
}

}  // namespace ff::facts
