#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/collect.h"
#include "capture/emitter.h"
#include "capture/hardware.h"
#include "capture/reader.h"

namespace ff::capture {

/// What a probe may look at. Probes run in workers of their own.
struct ProbeContext {
  const CollectOptions& options;
  const FoundHardware& hardware;
  Reader& reader;
  Emitter& emitter;

  [[nodiscard]] std::string path(std::string_view of_machine) const { return below_root(options.root, of_machine); }
  [[nodiscard]] bool live() const { return options.root == "/" || options.root.empty(); }
  /// Value of an environment variable, empty when unset.
  [[nodiscard]] std::string_view variable(std::string_view name) const;
};

struct Probe {
  std::string_view name;
  void (*run)(ProbeContext& context);
};
/// All probes, each for a worker of its own; those that cannot hang share one ("process").
[[nodiscard]] const std::vector<Probe>& probes();

// The probes, one file each. The shapes of their answers are in docs/capture.md.
void probe_access(ProbeContext& context);         ///< "access"
void probe_user(ProbeContext& context);           ///< "user"
void probe_process(ProbeContext& context);        ///< "limits", "user_namespace", "env", "host"
void probe_disks(ProbeContext& context);          ///< "disks", "shm"
void probe_gpu_processes(ProbeContext& context);  ///< "gpu_processes"
void probe_rocm(ProbeContext& context);           ///< "rocm"
void probe_kernels(ProbeContext& context);        ///< "kernels", "amdgpu_files"
void probe_tools(ProbeContext& context);          ///< "tools"
void probe_work(ProbeContext& context);           ///< "work"
void probe_kernel_log(ProbeContext& context);     ///< the command "dmesg"
/// One Python environment, an interpreter or a directory: "pythons".
void probe_python(ProbeContext& context, const std::string& given, std::string_view asked_by);
/// The environments to look at: those asked for, else the active one. (path, asked by).
[[nodiscard]] std::vector<std::pair<std::string, std::string>> python_environments(const CollectOptions& options);

/// The variables that are kept, as patterns ("HSA_*").
[[nodiscard]] bool is_kept_variable(std::string_view name);
/// Where a program of this name is, through `PATH`, the sbin directories and /opt/rocm/bin; empty when nowhere.
[[nodiscard]] std::string find_program(const CollectOptions& options, std::string_view name);
/// PATH with the directories added in which kernel tools and ROCm's programs live.
[[nodiscard]] std::string search_path(const CollectOptions& options);
/// The libraries whose presence says that a directory holds a ROCm, under "libx.so.N" -> resolved path.
[[nodiscard]] Value rocm_libraries(const ProbeContext& context, const std::string& directory);
/// gfx targets in the file names of a kernel directory ("Kernels.so-000-gfx1100.hsaco"), sorted.
[[nodiscard]] Value kernel_targets(const std::string& directory);

}  // namespace ff::capture
