#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "elf/target.h"

namespace ff::binary {

/// The target in the name of a Tensile file: "TensileLibrary_lazy_gfx942.dat", "Kernels.so-000-gfx90a-xnack-.hsaco",
/// "TensileLibrary_Type_HH_..._fallback_gfx11-generic.co". Nothing when the name holds none.
std::optional<elf::TargetId> target_in_name(std::string_view file_name);

/// The target of a Tensile file by its name or, where each target has a directory of its own, by that: "rocblas/library/gfx942/….dat".
std::optional<elf::TargetId> tensile_target(std::string_view path);

struct MiopenName {
  std::string processor;
  int compute_units = 0;  ///< 0: for every count ("gfx90a.kdb"); RDNA parts are counted in work-group processors
};
/// Base names of MIOpen databases: "gfx942130.HIP.fdb.txt" (0x130 compute units), "gfx1030_36.db", "gfx90a.kdb".
/// Source: MIOpen src/include/miopen/handle.hpp, GetDbBasename.
std::optional<MiopenName> miopen_name(std::string_view file_name);

/// Processors that "gfx942", "gfx11xx" or "gfx120x" of an AOTriton image directory name stands for: "x" is any digit.
std::vector<std::string> processors_like(std::string_view pattern);

}  // namespace ff::binary
