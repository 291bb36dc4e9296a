#pragma once

#include "check/check.h"

/// The checks of rung 1, one function each; the table in checks.cpp gives them their ids, their order and their words.
namespace ff::device {

// bus.cpp
CheckResult gpu_on_bus(const CheckContext& context);
CheckResult wsl_bridge(const CheckContext& context);
CheckResult bar_space(const CheckContext& context);
CheckResult pcie_atomics(const CheckContext& context);

// module.cpp
CheckResult dkms_built(const CheckContext& context);
CheckResult kernel_headers(const CheckContext& context);
CheckResult driver_loaded(const CheckContext& context);
CheckResult module_parameters(const CheckContext& context);
CheckResult reboot_pending(const CheckContext& context);

// answers.cpp
CheckResult driver_answers(const CheckContext& context);

// driver.cpp
CheckResult firmware_present(const CheckContext& context);
CheckResult driver_initialised(const CheckContext& context);
CheckResult kfd_present(const CheckContext& context);

// selection.cpp
CheckResult visible_devices(const CheckContext& context);
CheckResult integrated_beside_discrete(const CheckContext& context);
CheckResult environment(const CheckContext& context);

// target.cpp
CheckResult gfx_known(const CheckContext& context);
CheckResult rocm_supports_gfx(const CheckContext& context);
CheckResult gfx_override(const CheckContext& context);
CheckResult torch_covers_gpu(const CheckContext& context);
CheckResult libraries_cover_gpu(const CheckContext& context);

// versions.cpp
CheckResult one_rocm(const CheckContext& context);
CheckResult torch_build(const CheckContext& context);
CheckResult torch_matches_rocm(const CheckContext& context);
CheckResult kfd_interface(const CheckContext& context);

// link.cpp
CheckResult pcie_link(const CheckContext& context);
CheckResult xgmi_complete(const CheckContext& context);
CheckResult aer_counters(const CheckContext& context);
CheckResult iommu_multi_gpu(const CheckContext& context);

// health.cpp
CheckResult ras_counters(const CheckContext& context);
CheckResult retired_pages(const CheckContext& context);
CheckResult temperature(const CheckContext& context);
CheckResult power_cap(const CheckContext& context);
CheckResult throttle_reasons(const CheckContext& context);
CheckResult performance_level(const CheckContext& context);

// room.cpp
CheckResult vram_free(const CheckContext& context);
CheckResult memlock(const CheckContext& context);
CheckResult shared_memory(const CheckContext& context);
CheckResult disk_space(const CheckContext& context);
CheckResult paths_writable(const CheckContext& context);
CheckResult host_memory(const CheckContext& context);
CheckResult cpu_governor(const CheckContext& context);
CheckResult numa_balancing(const CheckContext& context);

// faults.cpp
CheckResult kernel_log_clean(const CheckContext& context);
CheckResult known_bad(const CheckContext& context);

// access.cpp
CheckResult nodes_openable(const CheckContext& context);

}  // namespace ff::device
