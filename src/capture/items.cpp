#include "capture/items.h"

#include <array>

namespace ff::capture {
namespace {

using enum ItemKind;
constexpr std::size_t small = 64 << 10;
constexpr std::size_t large = 1 << 20;

constexpr std::array process_items{
    Item{"/proc/version"}, Item{"/proc/cmdline"}, Item{"/proc/modules", file, large}, Item{"/proc/meminfo"}, Item{"/proc/swaps"},
    Item{"/proc/uptime"}, Item{"/proc/loadavg"}, Item{"/proc/cpuinfo", file, 16 << 10},
    Item{"/proc/driver/nvidia/version"},
    Item{"/proc/sys/kernel/osrelease"}, Item{"/proc/sys/kernel/hostname"}, Item{"/proc/sys/kernel/numa_balancing"},
    Item{"/proc/sys/kernel/dmesg_restrict"}, Item{"/proc/sys/kernel/tainted"}, Item{"/proc/sys/kernel/randomize_va_space"},
    Item{"/proc/sys/kernel/yama/ptrace_scope"}, Item{"/proc/sys/vm/overcommit_memory"}, Item{"/proc/sys/vm/max_map_count"},
    Item{"/proc/sys/vm/nr_hugepages"}, Item{"/proc/sys/vm/swappiness"},
    Item{"/proc/self/status"}, Item{"/proc/self/limits"}, Item{"/proc/self/cgroup"}, Item{"/proc/self/mountinfo", file, large},
    Item{"/proc/self/uid_map"}, Item{"/proc/self/gid_map"}, Item{"/proc/1/cgroup"}, Item{"/proc/1/comm"},
};

constexpr std::array configuration_items{
    Item{"/etc/os-release"}, Item{"/usr/lib/os-release"}, Item{"/etc/group", file, large}, Item{"/etc/wsl.conf"},
    Item{"/etc/ld.so.conf"}, Item{"/etc/ld.so.conf.d/*"}, Item{"/etc/modules-load.d/*"}, Item{"/etc/default/grub"},
    Item{"/etc/security/limits.conf"}, Item{"/etc/security/limits.d/*"},
    Item{"/etc/udev/rules.d/*amdgpu*"}, Item{"/etc/udev/rules.d/*kfd*"}, Item{"/etc/udev/rules.d/*render*"}, Item{"/etc/udev/rules.d/*rocm*"},
    Item{"/etc/modprobe.d/*"}, Item{"/lib/modprobe.d/*"}, Item{"/usr/lib/modprobe.d/*"}, Item{"/run/modprobe.d/*"},
    Item{"/.dockerenv", stat}, Item{"/run/.containerenv"}, Item{"/run/systemd/container"}, Item{"/.singularity.d/labels.json"},
    Item{"/run/.toolboxenv", stat}, Item{"/var/run/secrets/kubernetes.io", stat},
    Item{"/var/run/reboot-required"}, Item{"/var/run/reboot-required.pkgs"},
    Item{"/opt/rocm*", link}, Item{"/opt/rocm*/.info/version*"},
};

// "/sys/module/amdgpu" itself tells loaded (or built in) from absent.
constexpr std::array module_items{
    Item{"/sys/module/amdgpu", stat}, Item{"/sys/module/amdgpu/version"}, Item{"/sys/module/amdgpu/srcversion"},
    Item{"/sys/module/amdgpu/initstate"}, Item{"/sys/module/amdgpu/refcnt"}, Item{"/sys/module/amdgpu/taint"},
    Item{"/sys/module/amdgpu/parameters/*"},
    Item{"/sys/module/amdkcl", stat}, Item{"/sys/module/amdkcl/version"}, Item{"/sys/module/amdttm/version"}, Item{"/sys/module/amdxcp", stat},
    Item{"/sys/module/amddrm_ttm_helper/version"}, Item{"/sys/module/ttm/parameters/*"},
    Item{"/sys/module/radeon", stat}, Item{"/sys/module/nouveau", stat},
    Item{"/sys/module/nvidia", stat}, Item{"/sys/module/nvidia/version"},
    Item{"/sys/module/vfio_pci", stat}, Item{"/sys/module/pcie_aspm/parameters/policy"},
};

constexpr std::array kfd_items{
    Item{"/sys/class/kfd/kfd/topology/generation_id"}, Item{"/sys/class/kfd/kfd/topology/system_properties"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/gpu_id"}, Item{"/sys/class/kfd/kfd/topology/nodes/*/name"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/properties"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/properties"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/used_memory"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/io_links/*/properties"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/p2p_links/*/properties"},
    Item{"/sys/class/kfd/kfd/topology/nodes/*/caches/*/properties"},
    Item{"/sys/class/kfd/kfd/proc/*/pasid"}, Item{"/sys/class/kfd/kfd/proc/*/vram_*"}, Item{"/sys/class/kfd/kfd/proc/*/sdma_*"},
    Item{"/sys/class/kfd/kfd/proc/*/stats_*/evicted_ms"},
    Item{"/sys/class/kfd/kfd/proc/*/queues/*/type"}, Item{"/sys/class/kfd/kfd/proc/*/queues/*/gpuid"},
};

constexpr std::array device_items{
    Item{"/sys/class/iommu", names}, Item{"/sys/kernel/iommu_groups/*/type"}, Item{"/sys/kernel/iommu_groups/*/devices/*", link},
    Item{"/sys/bus/pci/slots/*/address"},
    Item{"/sys/devices/system/node/node[0-9]*/cpulist"}, Item{"/sys/devices/system/node/*/meminfo"},
    Item{"/sys/devices/system/cpu/online"}, Item{"/sys/devices/system/cpu/possible"},
    Item{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"}, Item{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"},
    Item{"/sys/kernel/mm/transparent_hugepage/enabled"}, Item{"/sys/kernel/mm/transparent_hugepage/defrag"},
    Item{"/sys/kernel/mm/hugepages/*/nr_hugepages"},
    Item{"/sys/class/infiniband/*/ports/*/state"}, Item{"/sys/class/infiniband/*/ports/*/rate"}, Item{"/sys/class/infiniband/*/ports/*/link_layer"},
    Item{"/sys/class/infiniband/*/device", link},
    Item{"/sys/class/net/*/operstate"}, Item{"/sys/class/net/*/speed"}, Item{"/sys/class/net/*/mtu"}, Item{"/sys/class/net/*/device", link},
    Item{"/sys/block/[!lr]*/size"}, Item{"/sys/block/[!lr]*/ro"}, Item{"/sys/block/[!lr]*/queue/rotational"},
    Item{"/sys/block/[!lr]*/queue/scheduler"}, Item{"/sys/block/[!lr]*/device/model"},
    Item{"/sys/class/dmi/id/sys_vendor"}, Item{"/sys/class/dmi/id/product_name"}, Item{"/sys/class/dmi/id/board_vendor"},
    Item{"/sys/class/dmi/id/board_name"}, Item{"/sys/class/dmi/id/bios_version"}, Item{"/sys/class/dmi/id/bios_date"},
    Item{"/sys/hypervisor/type"}, Item{"/sys/firmware/efi/efivars/SecureBoot-*"}, Item{"/sys/kernel/security/lockdown"},
    Item{"/sys/fs/cgroup/memory.max"}, Item{"/sys/fs/cgroup/cpu.max"}, Item{"/sys/fs/cgroup/memory/memory.limit_in_bytes"},
};

constexpr std::array core_dump_items{
    Item{"/sys/class/devcoredump/*/failing_device", link}, Item{"/sys/class/devcoredump/*/data", file, large},
};

constexpr std::array node_items{
    Item{"/dev/kfd", stat}, Item{"/dev/dri", stat}, Item{"/dev/dri/*", stat}, Item{"/dev/dri/by-path/*", link}, Item{"/dev/dxg", stat},
    Item{"/dev/nvidia*", stat}, Item{"/dev/shm", stat}, Item{"/dev/kmsg", stat}, Item{"/dev/kvm", stat},
    Item{"/dev/infiniband/*", stat}, Item{"/dev/vfio/*", stat},
};

constexpr std::array groups{
    ItemGroup{"process", process_items}, ItemGroup{"configuration", configuration_items}, ItemGroup{"modules", module_items},
    ItemGroup{"kfd", kfd_items},         ItemGroup{"devices", device_items},             ItemGroup{"core-dumps", core_dump_items},
    ItemGroup{"nodes", node_items},
};

// vendor, device and the like are remembered by the kernel; the current link is read from the device.
constexpr std::array pci_items{
    Item{"vendor"}, Item{"device"}, Item{"class"}, Item{"revision"}, Item{"subsystem_vendor"}, Item{"subsystem_device"}, Item{"numa_node"},
    Item{"driver", link}, Item{"iommu_group", link}, Item{"physfn", link},
    Item{"max_link_speed", file, small, true}, Item{"max_link_width", file, small, true},
    Item{"current_link_speed", file, small, true}, Item{"current_link_width", file, small, true},
};

constexpr std::array pci_path{
    Item{"power/runtime_status"}, Item{"power/control"}, Item{"power/runtime_active_time"}, Item{"d3cold_allowed"}, Item{"power_state"},
    Item{"resource"}, Item{"enable"}, Item{"reset_method"}, Item{"local_cpulist"}, Item{"label"}, Item{"boot_vga"},
    Item{"sriov_numvfs"}, Item{"sriov_totalvfs"}, Item{"msi_bus"}, Item{"broken_parity_status"}, Item{"driver_override"},
    Item{"aer_dev_correctable"}, Item{"aer_dev_fatal"}, Item{"aer_dev_nonfatal"},
    Item{"aer_rootport_total_err_cor"}, Item{"aer_rootport_total_err_fatal"}, Item{"aer_rootport_total_err_nonfatal"},
    Item{"config", file, 4096, true},
};

// pcie_bw is left out: reading it measures for a second. reg_state, rom and psp_vbflash have side effects or need root.
// What the driver remembers stands first, so that a hung controller costs only what has to be asked.
constexpr std::array drm_items{
    Item{"dev"}, Item{"device", link}, Item{"device/driver", link},
    Item{"device/vendor"}, Item{"device/device"}, Item{"device/class"}, Item{"device/revision"},
    Item{"device/subsystem_vendor"}, Item{"device/subsystem_device"}, Item{"device/numa_node"}, Item{"device/local_cpulist"},
    Item{"device/uevent"}, Item{"device/resource"}, Item{"device/reset_method"}, Item{"device/boot_vga"}, Item{"device/enable"},
    Item{"device/power/runtime_status"}, Item{"device/power/control"}, Item{"device/power_state"}, Item{"device/d3cold_allowed"},
    Item{"device/aer_dev_correctable"}, Item{"device/aer_dev_fatal"}, Item{"device/aer_dev_nonfatal"},
    Item{"device/unique_id"}, Item{"device/serial_number"}, Item{"device/product_name"}, Item{"device/product_number"},
    Item{"device/fru_id"}, Item{"device/manufacturer"},
    Item{"device/vbios_version"}, Item{"device/vbios_build"}, Item{"device/board_info"}, Item{"device/fw_version/*"},
    Item{"device/mem_info_*"},
    Item{"device/current_compute_partition"}, Item{"device/available_compute_partition"},
    Item{"device/current_memory_partition"}, Item{"device/available_memory_partition"},
    Item{"device/enforce_isolation"}, Item{"device/*_reset_mask"}, Item{"device/thermal_throttling_logging"},
    Item{"device/xgmi_*"}, Item{"device/xgmi_hive_info/xgmi_hive_id"},
    Item{"device/ip_discovery/die/*/11/*/major"}, Item{"device/ip_discovery/die/*/11/*/minor"},
    Item{"device/ip_discovery/die/*/11/*/revision"}, Item{"device/ip_discovery/die/*/11/*/harvest"},
    Item{"device/hwmon/*/name"}, Item{"device/hwmon/*/*_label"}, Item{"device/uma/*"},
    Item{"device/max_link_speed", file, small, true}, Item{"device/max_link_width", file, small, true},
    Item{"device/current_link_speed", file, small, true}, Item{"device/current_link_width", file, small, true},
    Item{"device/config", file, 4096, true},
    Item{"device/ras/*", file, small, true},
    Item{"device/pcie_replay_count", file, small, true},
    Item{"device/hwmon/*/*_crit", file, small, true}, Item{"device/hwmon/*/*_emergency", file, small, true},
    Item{"device/hwmon/*/power*_cap*", file, small, true},
    Item{"device/hwmon/*/*_input", file, small, true}, Item{"device/hwmon/*/*_average", file, small, true},
    Item{"device/hwmon/*/fan*", file, small, true}, Item{"device/hwmon/*/pwm*", file, small, true},
    Item{"device/power_dpm_state", file, small, true}, Item{"device/power_dpm_force_performance_level", file, small, true},
    Item{"device/pp_dpm_*", file, small, true}, Item{"device/pp_features", file, small, true},
    Item{"device/pp_power_profile_mode", file, small, true}, Item{"device/pp_od_clk_voltage", file, small, true},
    Item{"device/pp_table", file, small, true},
    Item{"device/pm_policy/*", file, small, true}, Item{"device/gpu_od/fan_ctrl/*", file, small, true},
    Item{"device/gpu_busy_percent", file, small, true}, Item{"device/mem_busy_percent", file, small, true},
    Item{"device/gpuboard_temp", file, small, true}, Item{"device/baseboard_temp", file, small, true},
    Item{"device/baseboard_power", file, small, true}, Item{"device/npm_status", file, small, true},
    Item{"device/gpu_metrics", file, small, true},
    Item{"device/devcoredump/*", file, large},
};

}  // namespace

std::span<const ItemGroup> host_groups() { return groups; }
std::span<const Item> pci_device_items() { return pci_items; }
std::span<const Item> pci_path_items() { return pci_path; }
std::span<const Item> drm_card_items() { return drm_items; }

const std::vector<CommandItem>& commands_to_run() {
  using std::chrono::milliseconds;
  constexpr std::size_t mib = 1 << 20;
  static const std::vector<CommandItem> items{
      {"journalctl-k", {"journalctl", "-k", "-b", "0", "-o", "short-iso-precise", "--no-pager", "-q", "-n", "20000"}, milliseconds(4000), 16 * mib},
      {"journalctl-k-previous", {"journalctl", "-k", "-b", "-1", "-o", "short-iso-precise", "--no-pager", "-q", "-n", "20000"}, milliseconds(4000), 16 * mib},
      {"lspci-vvv", {"lspci", "-D", "-nn", "-vvv", "-k"}, milliseconds(4000), 8 * mib, true},
      {"dpkg", {"dpkg-query", "-W", "-f", "${Package}\\t${Version}\\t${db:Status-Abbrev}\\n"}, milliseconds(4000), 8 * mib},
      {"rpm", {"rpm", "-qa", "--qf", "%{NAME}\\t%{VERSION}-%{RELEASE}\\n"}, milliseconds(5000), 8 * mib},
      {"dkms-status", {"dkms", "status"}, milliseconds(4000), 1 * mib},
      {"modinfo-amdgpu", {"modinfo", "amdgpu"}, milliseconds(3000), 1 * mib},
      {"rocminfo", {"rocminfo"}, milliseconds(5000), 4 * mib, true},
      {"rocm-smi-json", {"rocm-smi", "-a", "--json"}, milliseconds(6000), 4 * mib, true},
      {"amd-smi-list-json", {"amd-smi", "list", "--json"}, milliseconds(6000), 4 * mib, true},
      {"amd-smi-static-json", {"amd-smi", "static", "--json"}, milliseconds(6000), 4 * mib, true},
      {"amd-smi-metric-json", {"amd-smi", "metric", "--json"}, milliseconds(6000), 4 * mib, true},
      {"hipcc-version", {"hipcc", "--version"}, milliseconds(4000), 1 * mib},
      {"clang-version", {"amdclang", "--version"}, milliseconds(4000), 1 * mib},
  };
  return items;
}

}  // namespace ff::capture
