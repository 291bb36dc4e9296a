#include <fmt/format.h>

#include <algorithm>

#include "facts/subjects.h"

namespace ff::facts {
namespace {

/// A value of an os-release file, without its quotes.
Known<std::string> os_release(const Evidence& evidence, std::string_view key) {
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    std::uint64_t number = 0;
    for (const std::string_view line : lines(evidence.text(path).value_or(""))) {
      ++number;
      if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != '=') continue;
      std::string_view value = trim(line.substr(key.size() + 1));
      if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
        value = value.substr(1, value.size() - 2);
      return {std::string(value), evidence.origin(path, number, line)};
    }
  }
  return {};
}

/// "MemTotal:       65536 kB" in bytes.
Known<std::uint64_t> meminfo(const Evidence& evidence, std::string_view key) {
  constexpr std::string_view path = "/proc/meminfo";
  std::uint64_t number = 0;
  for (const std::string_view line : lines(evidence.text(path).value_or(""))) {
    ++number;
    const auto parts = words(line);
    if (parts.size() < 2 || parts[0] != key) continue;
    const auto value = to_integer<std::uint64_t>(parts[1]);
    if (!value || *value > (std::uint64_t{1} << 50)) return {};
    return {*value * 1024, evidence.origin(path, number, line)};
  }
  return {};
}

Known<std::string> kernel_release(const Evidence& evidence) {
  if (auto known = evidence.known_text("/proc/sys/kernel/osrelease")) return known;
  if (const auto version = evidence.value("/proc/version")) {
    const auto parts = words(*version);
    if (parts.size() > 2 && parts[0] == "Linux" && parts[1] == "version")
      return {std::string(parts[2]), evidence.origin("/proc/version", 1, *version)};
  }
  if (auto known = known_member(evidence, "kernels", "running")) return known;
  for (const auto& [source, text] : evidence.outputs("uname-a")) {
    // "Linux host 6.8.0-63-generic #66-Ubuntu ..."; "uname -r" alone is one word.
    const auto parts = words(trim(text));
    if (parts.size() >= 3 && parts[0] == "Linux") return {std::string(parts[2]), evidence.origin(source, 1, trim(text))};
    if (parts.size() == 1) return {std::string(parts[0]), evidence.origin(source, 1, parts[0])};
  }
  return {};
}

Known<std::string> cpu_model(const Evidence& evidence) {
  if (auto known = known_member(evidence, "host", "cpu_model")) return known;
  std::uint64_t number = 0;
  for (const std::string_view line : lines(evidence.text("/proc/cpuinfo").value_or(""))) {
    ++number;
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == "model name")
      return {std::string(trim(line.substr(colon + 1))), evidence.origin("/proc/cpuinfo", number, line)};
  }
  return {};
}

/// The common name behind the twelve letters that CPUID leaf 0x40000000 gives; those letters when they are not known here.
std::string hypervisor_name(const std::string& cpuid) {
  struct Name {
    std::string_view text, name;
  };
  constexpr Name names[] = {{"KVMKVMKVM", "kvm"},        {"Linux KVM Hv", "kvm"},     {"Microsoft Hv", "hyperv"},     {"VMwareVMware", "vmware"},
                            {"XenVMMXenVMM", "xen"},     {"TCGTCGTCGTCG", "qemu"},    {"VBoxVBoxVBox", "virtualbox"}, {"bhyve bhyve", "bhyve"},
                            {"prl hyperv", "parallels"}, {"lrpepyh vr", "parallels"}, {"ACRNACRNACRN", "acrn"},       {"QNXQVMBSQG", "qnx"}};
  for (const auto& known : names)
    if (contains(cpuid, known.text)) return std::string(known.name);
  return cpuid;
}

void read_virtualisation(Host& host, const Evidence& evidence) {
  const auto& capture = evidence.capture();
  if (host.kernel_release) {
    const bool microsoft = contains(lower(*host.kernel_release), "microsoft");
    host.wsl = {microsoft, host.kernel_release.origin};
  }
  if (capture.stat("/dev/dxg") != nullptr && capture.stat("/dev/dxg")->type == 'c')
    host.wsl = {true, evidence.origin("/dev/dxg", 0, "the device of WSL's paravirtual GPU exists")};
  if (host.wsl.value_or(false)) {
    host.virtualisation = {"wsl", host.wsl.origin};
    return;
  }
  if (auto known = known_member(evidence, "host", "hypervisor")) {
    known.value = hypervisor_name(*known);
    host.virtualisation = known;
    return;
  }
  if (auto known = evidence.known_text("/sys/hypervisor/type")) {
    host.virtualisation = known;
    return;
  }
  struct Vendor {
    std::string_view text, name;
  };
  constexpr Vendor vendors[] = {{"QEMU", "kvm"},   {"VMware", "vmware"},      {"Microsoft Corporation", "hyperv"},
                                {"Xen", "xen"},    {"innotek", "virtualbox"}, {"Amazon EC2", "kvm"},
                                {"Google", "kvm"}, {"OpenStack", "kvm"},      {"Parallels", "parallels"}};
  const auto vendor = evidence.known_text("/sys/class/dmi/id/sys_vendor");
  const auto product = evidence.value("/sys/class/dmi/id/product_name").value_or("");
  if (vendor) {
    for (const auto& known : vendors) {
      // Microsoft and Google also build machines of metal.
      if (!contains(*vendor, known.text)) continue;
      if (known.name == "hyperv" && !contains(product, "Virtual Machine")) continue;
      if (known.text == "Google" && !contains(product, "Compute Engine")) continue;
      if (known.text == "Amazon EC2" && contains(product, "metal")) continue;
      host.virtualisation = {std::string(known.name), vendor.origin};
      return;
    }
  }
  // CPUID's hypervisor bit was looked at and is not set.
  if (capture.kind() != "loose" && capture.probe("host").is_object())
    host.virtualisation = {std::string(), evidence.origin("probe/host", 0, "no hypervisor")};
}

void read_secure_boot(Host& host, const Evidence& evidence) {
  constexpr std::string_view directory = "/sys/firmware/efi/efivars";
  for (const std::string& name : evidence.capture().list(directory)) {
    if (!name.starts_with("SecureBoot-")) continue;
    const std::string path = std::string(directory) + "/" + name;
    const auto bytes = evidence.capture().file(path);
    if (bytes && bytes->size() >= 5) host.secure_boot = {(*bytes)[4] == 1, evidence.origin(path, 0, (*bytes)[4] == 1 ? "1" : "0")};
  }
  if (!host.secure_boot && evidence.capture().known_absent("/sys/firmware/efi"))
    host.secure_boot = {false, evidence.origin("/sys/firmware/efi", 0, "no EFI")};
}

}  // namespace

Known<std::string> known_member(const Evidence& evidence, std::string_view probe, std::string_view member) {
  const Value& v = evidence.capture().probe(probe)[member];
  if (!v.is_text() || v.as_text().empty()) return {};
  return {std::string(v.as_text()), evidence.origin("probe/" + std::string(probe), 0, v.as_text())};
}

void read_host(Machine& machine, const Evidence& evidence) {
  Host& host = machine.host;
  const Value& probe = evidence.capture().probe("host");
  host.hostname = known_member(evidence, "host", "hostname");
  fill(host.hostname, evidence.known_text("/proc/sys/kernel/hostname"));
  host.kernel_release = kernel_release(evidence);
  host.kernel_cmdline = evidence.known_text("/proc/cmdline");
  host.os_id = os_release(evidence, "ID");
  host.os_version = os_release(evidence, "VERSION_ID");
  host.os_name = os_release(evidence, "PRETTY_NAME");
  host.cpu_model = cpu_model(evidence);
  host.logical_cpus = known_number<int>(evidence, "host", probe["logical_cpus"], "logical_cpus");
  host.sockets = known_number<int>(evidence, "host", probe["sockets"], "sockets");
  host.numa_nodes = known_number<int>(evidence, "host", probe["numa_nodes"], "numa_nodes");
  if (!host.numa_nodes) {
    int nodes = 0;
    for (const std::string& name : evidence.capture().list("/sys/devices/system/node"))
      if (number_after(name, "node")) ++nodes;
    if (nodes > 0) host.numa_nodes = {nodes, evidence.origin("/sys/devices/system/node", 0, fmt::format("{} nodes", nodes))};
  }
  host.numa_balancing = evidence.known_integer<int>("/proc/sys/kernel/numa_balancing");
  const auto& governors = probe["governors"].items();
  if (!governors.empty()) {
    std::vector<std::string> names;
    for (const Value& g : governors) names.emplace_back(g.as_text());
    host.governor = {join(names, ","), evidence.origin("probe/host", 0, "governors: " + join(names, ","))};
  }
  fill(host.governor, evidence.known_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  host.memory_total_bytes = meminfo(evidence, "MemTotal:");
  host.memory_available_bytes = meminfo(evidence, "MemAvailable:");
  host.swap_total_bytes = meminfo(evidence, "SwapTotal:");
  const Value& kernels = evidence.capture().probe("kernels");
  if (kernels["headers"].kind() == Value::Kind::boolean)
    host.kernel_headers = {kernels["headers"].as_bool(), evidence.origin("probe/kernels", 0, "headers")};
  read_virtualisation(host, evidence);
  read_secure_boot(host, evidence);
}

void read_iommu_mode(Machine& machine, const Evidence& evidence) {
  Known<std::string>& mode = machine.host.iommu_mode;
  for (const auto& gpu : machine.gpus) {
    if (mode || !gpu.iommu_domain) continue;
    if (*gpu.iommu_domain == "identity")
      mode = {"pt", gpu.iommu_domain.origin};
    else if (gpu.iommu_domain->starts_with("DMA"))
      mode = {"translated", gpu.iommu_domain.origin};
  }
  for (auto record = machine.kernel_log.rbegin(); !mode && record != machine.kernel_log.rend(); ++record) {
    if (!contains(record->text, "iommu: Default domain type:")) continue;
    const Origin from{record->source, record->line, record->text};
    if (contains(record->text, "Passthrough")) mode = {"pt", from};
    if (contains(record->text, "Translated")) mode = {"translated", from};
  }
  if (!mode && machine.host.kernel_cmdline) {
    for (const std::string_view option : words(*machine.host.kernel_cmdline)) {
      Origin from = machine.host.kernel_cmdline.origin;
      from.text = option;
      if (option == "iommu=pt" || option == "iommu.passthrough=1") mode = {"pt", from};
      if (option == "iommu=off" || option == "amd_iommu=off" || option == "intel_iommu=off") mode = {"off", from};
    }
  }
  const auto& capture = evidence.capture();
  if (!mode && capture.kind() != "loose" && capture.list("/sys/class/iommu").empty() && capture.list("/sys/kernel/iommu_groups").empty() &&
      machine.pci_listed.value_or(false))
    mode = {"off", evidence.origin("/sys/class/iommu", 0, "no IOMMU is in use")};
}

}  // namespace ff::facts
