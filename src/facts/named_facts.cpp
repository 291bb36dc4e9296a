#include <fmt/format.h>

#include "facts/machine.h"

namespace ff::facts {
namespace {

class Names {
 public:
  template <class T>
  void add(const std::string& name, const Known<T>& known) {
    if (known) out_.push_back({name, Value(*known), known.origin});
  }
  void add(const std::string& name, Value value, Origin origin) { out_.push_back({name, std::move(value), std::move(origin)}); }
  template <class T>
  void add_map(const std::string& prefix, const std::map<std::string, Known<T>>& map) {
    for (const auto& [key, known] : map) add(prefix + "." + key, known);
  }
  void add_list(const std::string& name, const std::vector<std::string>& items, Origin origin) {
    if (!items.empty()) out_.push_back({name, Value::list_of(items), std::move(origin)});
  }
  std::vector<NamedFact> take() { return std::move(out_); }

 private:
  std::vector<NamedFact> out_;
};

void add_gpu(Names& n, const std::string& p, const Gpu& g) {
  n.add(p + "pci", g.pci);
  n.add(p + "kfd_node", g.kfd_node);
  n.add(p + "kfd_gpu_id", g.kfd_gpu_id);
  n.add(p + "drm_card", g.drm_card);
  n.add(p + "render_minor", g.render_minor);
  n.add(p + "hip_index", g.hip_index);
  n.add(p + "smi_id", g.smi_id);
  n.add(p + "slot", g.slot);
  n.add(p + "unique_id", g.unique_id);
  n.add(p + "package", g.package);
  n.add(p + "product", g.product);
  n.add(p + "vendor_id", g.vendor_id);
  n.add(p + "device_id", g.device_id);
  n.add(p + "revision", g.revision);
  n.add(p + "integrated", g.integrated);
  n.add(p + "partition", g.partition);
  n.add(p + "virtual_function", g.virtual_function);
  n.add(p + "gfx", g.gfx);
  n.add(p + "features", g.features);
  n.add(p + "compute_units", g.compute_units);
  n.add(p + "wavefront", g.wavefront);
  n.add(p + "lds_kib", g.lds_kib);
  n.add(p + "xcc", g.xcc);
  n.add(p + "compute_partition", g.compute_partition);
  n.add(p + "memory_partition", g.memory_partition);
  n.add(p + "vram_total_bytes", g.vram_total_bytes);
  n.add(p + "vram_used_bytes", g.vram_used_bytes);
  n.add(p + "visible_vram_bytes", g.visible_vram_bytes);
  n.add(p + "gtt_total_bytes", g.gtt_total_bytes);
  n.add(p + "gtt_used_bytes", g.gtt_used_bytes);
  n.add(p + "numa_node", g.numa_node);
  n.add(p + "driver", g.driver);
  n.add(p + "runtime_status", g.runtime_status);
  n.add(p + "asleep", g.asleep);
  n.add(p + "vbios", g.vbios);
  n.add_map(p + "firmware", g.firmware);
  n.add(p + "reset_method", g.reset_method);
  n.add(p + "iommu_group", g.iommu_group);
  n.add(p + "iommu_domain", g.iommu_domain);
  n.add(p + "acs_redirect", g.acs_redirect);
  n.add(p + "pcie_atomics", g.pcie_atomics);
  n.add(p + "link.speed_gts", g.link.speed_gts);
  n.add(p + "link.width", g.link.width);
  n.add(p + "link.max_speed_gts", g.link.max_speed_gts);
  n.add(p + "link.max_width", g.link.max_width);
  n.add(p + "link.slot_max_speed_gts", g.link.slot_max_speed_gts);
  n.add(p + "link.slot_max_width", g.link.slot_max_width);
  if (!g.link.judged_at.empty() && (g.link.speed_gts || g.link.width)) {
    const Origin& from = g.link.speed_gts ? g.link.speed_gts.origin : g.link.width.origin;
    n.add(p + "link.judged_at", Value(g.link.judged_at), from);
    n.add(p + "link.parents_known", Value(g.link.parents_known), from);
  }
  for (const auto& bar : g.bars) {
    const std::string b = fmt::format("{}bars[{}].", p, bar.index);
    n.add(b + "size_bytes", Value(bar.size_bytes), g.pci.origin);
    n.add(b + "assigned", Value(bar.assigned), g.pci.origin);
  }
  n.add(p + "hive", g.hive);
  for (const auto& link : g.xgmi) {
    const std::string x = fmt::format("{}xgmi[{}].", p, link.to_node);
    n.add(x + "weight", Value(link.weight), g.kfd_node.origin);
    n.add(x + "max_bandwidth_mbs", Value(link.max_bandwidth_mbs), g.kfd_node.origin);
  }
  for (const auto& block : g.ras) {
    const std::string r = fmt::format("{}ras[{}].", p, block.block);
    n.add(r + "correctable", Value(block.correctable), block.origin);
    n.add(r + "uncorrectable", Value(block.uncorrectable), block.origin);
    n.add(r + "deferred", Value(block.deferred), block.origin);
  }
  n.add(p + "bad_pages", g.bad_pages);
  n.add(p + "bad_pages_pending", g.bad_pages_pending);
  n.add_map(p + "aer", g.aer);
  n.add_map(p + "temperature_c", g.temperature_c);
  n.add_map(p + "temperature_limit_c", g.temperature_limit_c);
  n.add_map(p + "temperature_emergency_c", g.temperature_emergency_c);
  n.add(p + "power_w", g.power_w);
  n.add(p + "power_cap_w", g.power_cap_w);
  n.add(p + "power_cap_default_w", g.power_cap_default_w);
  n.add(p + "sclk_mhz", g.sclk_mhz);
  n.add(p + "mclk_mhz", g.mclk_mhz);
  n.add(p + "busy_percent", g.busy_percent);
  n.add(p + "fan_rpm", g.fan_rpm);
  n.add(p + "pcie_replays", g.pcie_replays);
  n.add(p + "performance_level", g.performance_level);
  n.add(p + "throttle_bits", g.throttle_bits);
  n.add_list(p + "throttle_reasons", g.throttle_reasons, g.throttle_bits.origin);
  n.add(p + "metrics_version", g.metrics_version);
  for (const auto& [name, value] : g.metrics.members())
    if (!value.is_object()) n.add(p + "metrics." + name, value, g.metrics_version.origin);
}

void add_host(Names& n, const Host& h) {
  n.add("host.hostname", h.hostname);
  n.add("host.kernel_release", h.kernel_release);
  n.add("host.kernel_cmdline", h.kernel_cmdline);
  n.add("host.os_id", h.os_id);
  n.add("host.os_version", h.os_version);
  n.add("host.os_name", h.os_name);
  n.add("host.cpu_model", h.cpu_model);
  n.add("host.logical_cpus", h.logical_cpus);
  n.add("host.sockets", h.sockets);
  n.add("host.numa_nodes", h.numa_nodes);
  n.add("host.numa_balancing", h.numa_balancing);
  n.add("host.governor", h.governor);
  n.add("host.memory_total_bytes", h.memory_total_bytes);
  n.add("host.memory_available_bytes", h.memory_available_bytes);
  n.add("host.swap_total_bytes", h.swap_total_bytes);
  n.add("host.virtualisation", h.virtualisation);
  n.add("host.wsl", h.wsl);
  n.add("host.secure_boot", h.secure_boot);
  n.add("host.iommu_mode", h.iommu_mode);
  n.add("host.kernel_headers", h.kernel_headers);
}

void add_driver(Names& n, const Driver& d) {
  n.add("driver.amdgpu_loaded", d.amdgpu_loaded);
  n.add("driver.amdgpu_builtin", d.amdgpu_builtin);
  n.add("driver.amdgpu_blacklisted", d.amdgpu_blacklisted);
  n.add("driver.amdgpu_installed", d.amdgpu_installed);
  n.add("driver.blacklist_reason", d.blacklist_reason);
  n.add("driver.amdgpu_version", d.amdgpu_version);
  n.add("driver.amdgpu_version_on_disk", d.amdgpu_version_on_disk);
  n.add("driver.dkms_status", d.dkms_status);
  n.add("driver.kfd_device", d.kfd_device);
  n.add("driver.kfd_interface", d.kfd_interface);
  n.add("driver.kfd_nodes", d.kfd_nodes);
  n.add_map("driver.parameters", d.parameters);
  n.add_map("driver.configured_parameters", d.configured_parameters);
  n.add("driver.newest_kernel_installed", d.newest_kernel_installed);
  n.add("driver.module_kernel", d.module_kernel);
  n.add("driver.firmware_installed", d.firmware_installed);
  n.add("driver.reboot_required", d.reboot_required);
  n.add("driver.reboot_packages", d.reboot_packages);
  n.add_list("driver.other_gpu_modules", d.other_gpu_modules, Origin{"/proc/modules", 0, {}});
}

void add_access(Names& n, const Access& a) {
  n.add("access.user", a.user);
  n.add("access.uid", a.uid);
  n.add("access.gid", a.gid);
  if (a.groups_known) {
    Value::List names;
    for (const auto& [gid, name] : a.groups) names.emplace_back(name.empty() ? std::to_string(gid) : name);
    n.add("access.groups", Value(std::move(names)), a.groups_known.origin);
  }
  n.add_list("access.database_groups", a.database_groups, Origin{"/etc/group", 0, {}});
  n.add("access.user_namespace", a.user_namespace);
  for (const auto& node : a.nodes) {
    const std::string p = fmt::format("access.nodes[{}].", node.path);
    const Origin from{node.path, 0, node.exists ? "exists" : "No such file or directory"};
    n.add(p + "exists", Value(node.exists), from);
    if (node.mode) n.add(p + "mode", Value(fmt::format("{:04o}", *node.mode)), node.mode.origin);
    n.add(p + "uid", node.uid);
    n.add(p + "gid", node.gid);
    n.add(p + "group", node.group);
    n.add(p + "open_errno", node.open_errno);
    if (!node.acl.empty()) n.add(p + "acl", Value(node.acl), from);
  }
}

void add_software(Names& n, const Machine& m) {
  for (std::size_t i = 0; i < m.rocm.size(); ++i) {
    const auto& r = m.rocm[i];
    const std::string p = fmt::format("rocm[{}].", i);
    const Origin from = r.version ? r.version.origin : Origin{r.root, 0, r.kind};
    if (!r.root.empty()) n.add(p + "root", Value(r.root), from);
    if (!r.link_to.empty()) n.add(p + "link_to", Value(r.link_to), Origin{r.root, 0, r.link_to});
    n.add(p + "kind", Value(r.kind), from);
    n.add(p + "version", r.version);
    n.add_map(p + "libraries", r.libraries);
    for (const auto& [library, targets] : r.kernel_targets) n.add_list(p + "kernel_targets." + library, targets, Origin{r.root, 0, library});
  }
  for (std::size_t i = 0; i < m.pythons.size(); ++i) {
    const auto& e = m.pythons[i];
    const std::string p = fmt::format("pythons[{}].", i);
    if (!e.prefix.empty()) n.add(p + "prefix", Value(e.prefix), Origin{"probe/pythons", 0, e.prefix});
    if (!e.asked_by.empty()) n.add(p + "asked_by", Value(e.asked_by), Origin{"probe/pythons", 0, e.asked_by});
    n.add(p + "executable", e.executable);
    n.add(p + "version", e.version);
    n.add(p + "conda", e.conda);
    n.add(p + "virtual_env", e.virtual_env);
    for (const auto& package : e.packages) n.add(p + "packages." + package.name, Value(package.version), package.origin);
    n.add(p + "torch_version", e.torch_version);
    n.add(p + "torch_hip", e.torch_hip);
    n.add(p + "torch_cuda", e.torch_cuda);
    n.add_list(p + "torch_arch_list", e.torch_arch_list, e.torch_arch_origin);
    n.add_list(p + "bundled_libraries", e.bundled_libraries, Origin{"probe/pythons", 0, e.prefix});
    for (const auto& [library, targets] : e.kernel_targets) n.add_list(p + "kernel_targets." + library, targets, Origin{"probe/pythons", 0, library});
    if (!e.prefix.empty()) n.add(p + "user_site", Value(e.user_site), Origin{"probe/pythons", 0, e.prefix});
  }
  n.add_map("env", m.env);
  n.add("env_known", m.env_known);
  n.add_map("packages", m.packages);
}

}  // namespace

std::vector<NamedFact> named_facts(const Machine& m) {
  Names n;
  n.add("evidence_kind", Value(m.evidence_kind), Origin{"manifest", 0, m.evidence_kind});
  if (m.pci_listed || m.kfd_listed || !m.gpus.empty()) {
    const Origin from = m.pci_listed ? m.pci_listed.origin : m.kfd_listed ? m.kfd_listed.origin : m.gpus.front().pci.origin;
    n.add("gpu_count", Value(static_cast<std::int64_t>(m.gpus.size())), from);
  }
  for (std::size_t i = 0; i < m.gpus.size(); ++i) add_gpu(n, fmt::format("gpus[{}].", i), m.gpus[i]);
  n.add("pci_listed", m.pci_listed);
  n.add("kfd_listed", m.kfd_listed);
  for (const auto& device : m.pci_devices) {
    const std::string p = fmt::format("pci_devices[{}].", device.address);
    n.add(p + "vendor_id", device.vendor_id);
    n.add(p + "device_id", device.device_id);
    n.add(p + "device_class", device.device_class);
    n.add(p + "driver", device.driver);
    n.add(p + "name", device.name);
    n.add(p + "is_amd_gpu", Value(device.is_amd_gpu), device.vendor_id.origin);
  }
  add_host(n, m.host);
  add_driver(n, m.driver);
  add_access(n, m.access);
  // "none" for a machine that is known to be no container: an empty text would fit "not in none".
  auto kind = m.container.kind;
  if (kind && kind->empty()) kind.value = "none";
  n.add("container.kind", kind);
  n.add("container.shm_bytes", m.container.shm_bytes);
  n.add("container.shm_used_bytes", m.container.shm_used_bytes);
  n.add("container.cgroup_memory_max", m.container.cgroup_memory_max);
  n.add("container.seccomp", m.container.seccomp);
  n.add("limits.memlock", m.limits.memlock);
  n.add("limits.nofile", m.limits.nofile);
  add_software(n, m);
  for (const auto& disk : m.disks) {
    const std::string p = fmt::format("disks[{}].", disk.purpose == "mount" ? disk.path : disk.purpose);
    n.add(p + "path", Value(disk.path), disk.total_bytes.origin);
    n.add(p + "free_bytes", disk.free_bytes);
    n.add(p + "total_bytes", disk.total_bytes);
    n.add(p + "free_inodes", disk.free_inodes);
    n.add(p + "writable", disk.writable);
    n.add(p + "options", disk.options);
  }
  for (std::size_t i = 0; i < m.gpu_processes.size(); ++i) {
    const auto& process = m.gpu_processes[i];
    const std::string p = fmt::format("gpu_processes[{}].", i);
    const Origin from{"probe/gpu_processes", 0, process.command};
    n.add(p + "pid", Value(process.pid), from);
    if (!process.command.empty()) n.add(p + "command", Value(process.command), from);
    n.add_list(p + "devices", process.devices, from);
    n.add(p + "vram_bytes", process.vram_bytes);
  }
  return n.take();
}

}  // namespace ff::facts
