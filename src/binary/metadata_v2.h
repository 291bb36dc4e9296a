#pragma once

#include <string_view>

#include "base/error.h"
#include "base/value.h"

namespace ff::binary {

/// The kernels of code object version 2, whose metadata is YAML (note "AMD" 10, NT_AMD_HSA_METADATA), under the names that
/// version 3 and later give the same things ("vgpr_count" for CodeProps.NumVGPRs), without dots. Offsets of arguments are worked
/// out from sizes and alignments, as version 2 does not write them. Source of the names: LLVM docs/AMDGPUUsage.rst.
/// Errors: no YAML, anchors, too large or too deep.
Result<Value> read_version_2_kernels(std::string_view yaml);

}  // namespace ff::binary
