#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts/machine.h"

namespace ff::facts {

/// The GPUs that a visibility list leaves, in its order: positions in `gpus`. Entries are positions ("0,2") or
/// "GPU-" and the first digits of a unique id; the list ends at the first entry that fits no GPU, as ROCr and HIP do it.
std::vector<std::size_t> visible(std::string_view list, const std::vector<std::size_t>& gpus, const Machine& machine);

/// Sets each GPU's HIP index: KFD order, then ROCR_VISIBLE_DEVICES, then HIP_VISIBLE_DEVICES (else
/// CUDA_VISIBLE_DEVICES, else GPU_DEVICE_ORDINAL). A GPU that is hidden, or whose render node this user cannot open, gets
/// none. Without knowledge of the environment all stay unknown.
void number_for_hip(Machine& machine);

}  // namespace ff::facts
