#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/value.h"

namespace ff::capture {
class Capture;
}
namespace ff::knowledge {
class Knowledge;
}

namespace ff::facts {

/// Where a fact was read: a path of the captured machine, "cmd/rocminfo/stdout", or a handed-over file's name.
struct Origin {
  std::string source;
  std::uint64_t line = 0;  ///< 1-based; 0: the whole thing
  std::string text;        ///< the line or value as it stood there, for the reader
};

/// A typed value read out of evidence, or "unknown". Never a default that nobody measured.
template <class T>
struct Known {
  std::optional<T> value;
  Origin origin;

  Known() = default;
  Known(T v, Origin o) : value(std::move(v)), origin(std::move(o)) {}
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  T value_or(T fallback) const { return value.value_or(std::move(fallback)); }
};

struct PcieLink {
  Known<double> speed_gts;  ///< current, GT/s
  Known<int> width;         ///< current, lanes
  Known<double> max_speed_gts;
  Known<int> max_width;
  std::string judged_at;             ///< PCI address whose link counts: the topmost bridge of the board, else the GPU
  bool parents_known = false;        ///< the bridges above were captured; else a board with its own switch hides the slot's link
  Known<double> slot_max_speed_gts;  ///< what the port above can do
  Known<int> slot_max_width;
};

struct XgmiLink {
  int to_node = -1;  ///< KFD node
  std::int64_t weight = 0;
  std::int64_t max_bandwidth_mbs = 0;
};

/// A base address register of a GPU: its window in the machine's address space.
struct Bar {
  int index = 0;
  std::uint64_t size_bytes = 0;
  bool assigned = false;  ///< false: firmware and kernel found no room for it
};

struct RasBlock {
  std::string block;  ///< "umc", "sdma", "gfx", ...
  std::uint64_t correctable = 0;
  std::uint64_t uncorrectable = 0;
  std::uint64_t deferred = 0;
  Origin origin;
};

struct Gpu {
  // identity
  Known<std::string> pci;  ///< "0000:03:00.0"
  Known<int> kfd_node;
  Known<std::uint32_t> kfd_gpu_id;
  Known<int> drm_card;           ///< N of /dev/dri/cardN
  Known<int> render_minor;       ///< N of /dev/dri/renderDN
  Known<int> hip_index;          ///< under the visibility variables in force; unknown when hidden
  Known<int> smi_id;             ///< index of amd-smi / rocm-smi
  Known<std::string> slot;       ///< physical slot label
  Known<std::string> unique_id;  ///< 16 hex digits
  Known<std::string> package;    ///< GCDs or partitions of one package share it
  Known<std::string> product;
  Known<std::uint32_t> vendor_id;
  Known<std::uint32_t> device_id;
  Known<std::uint32_t> revision;
  Known<bool> integrated;  ///< APU
  Known<int> partition;    ///< number of this partition in its package, when the package is partitioned
  Known<bool> virtual_function;
  // compute
  Known<std::string> gfx;       ///< "gfx942"
  Known<std::string> features;  ///< "sramecc+:xnack-" as rocminfo says
  Known<int> compute_units;
  Known<int> wavefront;
  Known<int> lds_kib;
  Known<int> xcc;                        ///< XCCs in this node
  Known<std::string> compute_partition;  ///< "SPX", ...
  Known<std::string> memory_partition;   ///< "NPS1", ...
  Known<std::uint64_t> vram_total_bytes;
  Known<std::uint64_t> vram_used_bytes;
  Known<std::uint64_t> visible_vram_bytes;
  Known<std::uint64_t> gtt_total_bytes;
  Known<std::uint64_t> gtt_used_bytes;
  Known<int> numa_node;
  // driver's view
  Known<std::string> driver;          ///< "amdgpu", "vfio-pci", "" when none is bound
  Known<std::string> runtime_status;  ///< "active", "suspended"
  Known<bool> asleep;
  Known<std::string> vbios;
  std::map<std::string, Known<std::string>> firmware;  ///< "mec" -> "0x0000007f"
  Known<std::string> reset_method;
  Known<std::string> iommu_group;
  Known<std::string> iommu_domain;  ///< "identity", "DMA", "DMA-FQ" of that group
  Known<bool> acs_redirect;         ///< a port above sends peer traffic up to the root (ACS request redirect)
  std::vector<Bar> bars;
  Known<bool> pcie_atomics;
  // state
  PcieLink link;
  Known<std::string> hive;
  std::vector<XgmiLink> xgmi;
  std::vector<RasBlock> ras;
  Known<int> bad_pages;  ///< retired
  Known<int> bad_pages_pending;
  std::map<std::string, Known<std::uint64_t>> aer;               ///< "cor.RxErr" -> count, at the GPU and the ports above
  std::map<std::string, Known<double>> temperature_c;            ///< "edge", "junction", "mem"
  std::map<std::string, Known<double>> temperature_limit_c;      ///< "crit": where the driver throttles
  std::map<std::string, Known<double>> temperature_emergency_c;  ///< where it shuts down
  Known<double> power_w;
  Known<double> power_cap_w;
  Known<double> power_cap_default_w;
  Known<int> sclk_mhz;
  Known<int> mclk_mhz;
  Known<int> busy_percent;
  Known<int> fan_rpm;
  Known<std::uint64_t> pcie_replays;
  Known<std::string> performance_level;
  Known<std::uint64_t> throttle_bits;  ///< independent throttle status of gpu_metrics
  std::vector<std::string> throttle_reasons;
  Known<std::string> metrics_version;  ///< "1.3": format and content revision of gpu_metrics
  Value metrics;                       ///< gpu_metrics decoded: name -> value, "unavailable" fields left out
};

struct PciDevice {
  std::string address;
  Known<std::uint32_t> vendor_id, device_id, device_class;
  Known<std::string> driver;
  Known<std::string> name;
  bool is_amd_gpu = false;  ///< AMD and display, 3D or processing accelerator
};

struct DeviceNode {
  std::string path;
  bool exists = false;
  bool absent_known = false;  ///< looked for and not there
  Known<std::uint32_t> mode, uid, gid;
  Known<std::string> group;
  Known<int> open_errno;  ///< 0: open(O_RDWR) worked for this user
  std::string acl;        ///< as getfacl says it, when there is one
};

struct RocmInstall {
  std::string root;  ///< "/opt/rocm-7.0.2", ".../site-packages/_rocm_sdk_core"
  std::string kind;  ///< "system", "wheel", "conda", "distribution"
  Known<std::string> version;
  std::map<std::string, Known<std::string>> libraries;             ///< soname -> path
  std::string link_to;                                             ///< for "/opt/rocm": what it links to
  std::map<std::string, std::vector<std::string>> kernel_targets;  ///< "rocblas" -> gfx targets with kernel files
};

struct PythonPackage {
  std::string name, version;
  Origin origin;
};

struct PythonEnv {
  std::string prefix;
  Known<std::string> executable, version;
  Known<bool> conda, virtual_env;
  std::vector<PythonPackage> packages;  ///< names normalised: lower case, "-" for "_" and "."
  Known<std::string> torch_version;
  Known<std::string> torch_hip;   ///< "7.0.51831", "" when it is no HIP build
  Known<std::string> torch_cuda;  ///< "12.8", "" when it is no CUDA build
  std::vector<std::string> torch_arch_list;
  Origin torch_arch_origin;
  std::vector<std::string> bundled_libraries;
  std::map<std::string, std::vector<std::string>> kernel_targets;  ///< "torch/lib/rocblas/library", "torch/lib/librccl.so": gfx targets
  std::string asked_by;                                            ///< "--python", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH" or the handed-over file
  bool user_site = false;                                          ///< packages of the user's own site directory are in reach
  [[nodiscard]] const PythonPackage* package(std::string_view name) const;
};

/// One message of the kernel log, prefix removed.
struct KernelRecord {
  std::string source;
  std::uint64_t line = 0;
  std::optional<double> seconds;     ///< since boot
  std::optional<double> wall_clock;  ///< seconds since 1970, when the line carries a date
  int level = -1;                    ///< 0..7, -1: not in the text
  std::string pci;                   ///< device of the prefix, empty when none
  std::string text;                  ///< whole line as it stands
};

struct Host {
  Known<std::string> hostname, kernel_release, kernel_cmdline, os_id, os_version, os_name, cpu_model;
  Known<int> logical_cpus, sockets, numa_nodes;
  Known<int> numa_balancing;
  Known<std::string> governor;
  Known<std::uint64_t> memory_total_bytes, memory_available_bytes, swap_total_bytes;
  Known<std::string> virtualisation;  ///< "", "wsl", "kvm", "vmware", ...
  Known<bool> wsl;
  Known<bool> secure_boot;
  Known<std::string> iommu_mode;  ///< "off", "pt", "translated"
  Known<bool> kernel_headers;     ///< of the running kernel
};

struct Driver {
  Known<bool> amdgpu_loaded, amdgpu_builtin, amdgpu_blacklisted, amdgpu_installed;
  Known<std::string> blacklist_reason;
  Known<std::string> amdgpu_version;  ///< of the loaded module (dkms), empty: in-kernel
  Known<std::string> amdgpu_version_on_disk;
  Known<std::string> dkms_status;
  Known<bool> kfd_device;  ///< /dev/kfd exists
  Known<int> kfd_nodes;
  Known<std::string> kfd_interface;                      ///< version of the ioctl interface of /dev/kfd, "1.17"
  std::map<std::string, Known<std::string>> parameters;  ///< module parameters as in sysfs
  Known<std::string> newest_kernel_installed;
  std::map<std::string, Known<std::string>> configured_parameters;  ///< from modprobe.d and the kernel command line
  Known<std::string> module_kernel;                                 ///< kernel release that the module on disk was built for
  Known<bool> firmware_installed;                                   ///< the directory /lib/firmware/amdgpu has files
  Known<bool> reboot_required;                                      ///< the distribution's package tools ask for a reboot
  Known<std::string> reboot_packages;                               ///< which packages ask for it
  std::vector<std::string> other_gpu_modules;                       ///< loaded: "nvidia", "nouveau", "radeon"
};

struct Access {
  Known<std::string> user;
  Known<std::uint32_t> uid, gid;
  std::map<std::uint32_t, std::string> groups;  ///< of this process: gid -> name ("" unknown)
  Known<bool> groups_known;
  std::vector<std::string> database_groups;  ///< groups that the group database gives this user
  std::vector<DeviceNode> nodes;             ///< /dev/kfd, /dev/dri/*
  Known<bool> user_namespace;                ///< ids are mapped
};

struct Container {
  Known<std::string> kind;  ///< "", "docker", "podman", "lxc", "kubernetes", "singularity", "toolbox"
  Known<std::uint64_t> shm_bytes, shm_used_bytes;
  Known<std::string> cgroup_memory_max;
  Known<bool> seccomp;
};

struct Limits {
  Known<std::string> memlock;  ///< soft limit, bytes or "unlimited"
  Known<std::uint64_t> nofile;
};

struct Disk {
  std::string purpose;  ///< "work", "tmp", "home", "cache:huggingface", ...
  std::string path;
  Known<std::uint64_t> free_bytes, total_bytes, free_inodes;
  Known<bool> writable;
  Known<std::string> options;
};

struct GpuProcess {
  int pid = 0;
  std::string command;
  std::vector<std::string> devices;
  Known<std::uint64_t> vram_bytes;
};

/// Everything that is known about one machine.
struct Machine {
  std::string evidence_kind;  ///< "live", "bundle", "loose"
  std::vector<Gpu> gpus;      ///< AMD GPUs, in PCI order
  std::vector<PciDevice> pci_devices;
  Known<bool> pci_listed;  ///< true: the PCI bus was listed, so that absence means absence
  Known<bool> kfd_listed;  ///< true: the KFD topology was looked for
  Host host;
  Driver driver;
  Access access;
  Container container;
  Limits limits;
  std::vector<RocmInstall> rocm;
  std::vector<PythonEnv> pythons;
  std::map<std::string, Known<std::string>> env;       ///< of the captured process; secrets already redacted
  std::vector<Known<std::string>> loader_directories;  ///< of /etc/ld.so.conf and what it includes, in the order of search
  Known<bool> env_known;                               ///< true: the environment was captured, so that absence means unset
  std::map<std::string, Known<std::string>> packages;  ///< system packages: name -> version
  std::vector<Disk> disks;
  std::vector<GpuProcess> gpu_processes;
  std::vector<KernelRecord> kernel_log;  ///< in time order: previous boot first
  std::vector<Origin> unreadable;        ///< what could not be read, with the errno's text
};

/// Reads everything that the capture holds. Pure: the same capture gives the same facts.
Machine read_machine(const capture::Capture& capture, const knowledge::Knowledge& knowledge);

/// One fact under its dotted name: "gpus[0].gfx".
struct NamedFact {
  std::string name;
  Value value;
  Origin origin;
};
/// All known facts under their dotted names, which are the member names above ("gpus[0].link.width",
/// "driver.parameters.noretry", "pythons[0].packages.torch", "env.HSA_OVERRIDE_GFX_VERSION"). Unknown ones are left out.
std::vector<NamedFact> named_facts(const Machine& machine);

}  // namespace ff::facts
