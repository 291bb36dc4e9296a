#include "capture/probes.h"

namespace ff::capture {

const std::vector<Probe>& probes() {
  static const std::vector<Probe> all{
      {"access", probe_access},
      {"user", probe_user},
      {"process", probe_process},
      {"disks", probe_disks},
      {"gpu-processes", probe_gpu_processes},
      {"rocm", probe_rocm},
      {"kernels", probe_kernels},
      {"tools", probe_tools},
      {"kernel-log", probe_kernel_log},
      {"work", probe_work},
  };
  return all;
}

}  // namespace ff::capture
