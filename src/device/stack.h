#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/judge.h"

/// What several checks ask about ROCm, Python and the variables that choose between devices.
namespace ff::device {

/// Value of a variable of the captured process; nothing when it was not set or is not known.
const Known<std::string>* variable(const Machine& machine, std::string_view name);
/// True when it is known which variables were set, so that a missing one was unset.
bool environment_known(const Machine& machine);

/// The Python environment that is meant: the one asked for, else the first that has PyTorch, else the first.
const facts::PythonEnv* judged_python(const CheckContext& context);
/// Version of PyTorch in it; nothing when it is not installed.
std::optional<std::string> torch_version(const facts::PythonEnv& env);
/// True when the environment's packages bring their own ROCm runtime (libamdhip64).
bool brings_rocm(const facts::PythonEnv& env);

/// "6.4" out of "6.4.43484-123eb5128"; "7.0" out of "7.0.2".
std::string major_minor(std::string_view version);
int major_of(std::string_view version);

/// The ROCm installation that programs find without further ado: /opt/rocm, else the only or newest system one.
const facts::RocmInstall* system_rocm(const Machine& machine);

/// One token of a visibility variable and the GPU it chose.
struct Selection {
  std::vector<const Gpu*> all;                       ///< GPUs with a compute node, in the runtime's order
  std::vector<const Gpu*> visible;                   ///< what the variables leave, in HIP's order
  std::vector<std::string> problems;                 ///< tokens that name nothing, and what they do
  std::vector<const Known<std::string>*> variables;  ///< those in force, in the order in which they act
  std::vector<std::string> names;                    ///< their names
};
/// Applies ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES or (when that is unset) CUDA_VISIBLE_DEVICES, as the runtimes
/// do: a list ends at its first token that names no device; HIP's numbers count within what ROCr left.
Selection select_devices(const Machine& machine);

}  // namespace ff::device
