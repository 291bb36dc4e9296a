#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "binary/occupancy.h"
#include "elf/code_objects.h"

namespace ff::binary {

/// The 64-byte kernel descriptor that the hardware reads, or what version 2 wrote before the code (properties and rsrc3 are 0 then).
/// Source: LLVM llvm/Support/AMDHSAKernelDescriptor.h.
struct Descriptor {
  std::uint32_t lds_bytes = 0, scratch_bytes = 0, kernarg_bytes = 0;
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint16_t properties = 0, kernarg_preload = 0;
  [[nodiscard]] bool wave32() const { return (properties & (1U << 10)) != 0; }
  [[nodiscard]] bool dynamic_stack() const { return (properties & (1U << 11)) != 0; }
  [[nodiscard]] bool workgroup_processor() const { return (rsrc1 & (1U << 29)) != 0; }
  /// Vector registers that a wave is given, from the granules of rsrc1.
  [[nodiscard]] std::uint64_t vgprs_allocated(int generation, bool unified_registers) const;
};

/// What a user wants to launch a kernel with.
struct Launch {
  std::uint64_t x = 0, y = 1, z = 1;  ///< workgroup size; x = 0: not given
  std::uint64_t dynamic_lds_bytes = 0;
};

struct Kernel {
  std::string name;  ///< as in the metadata (mangled)
  Value metadata;    ///< the metadata's members, names without their dot, args likewise
  std::optional<Descriptor> descriptor;
  std::optional<Occupancy> occupancy;
  std::vector<std::string> faults;   ///< reasons why a launch must fail
  std::vector<std::string> remarks;  ///< what costs speed: spills, scratch, a workgroup that is no multiple of the wavefront
};

/// The kernels of one code object (an AMDGPU ELF file of code object version 2 or newer).
/// `limits`: of the target, nothing when it is not known (then there is no occupancy).
/// Errors: no code object, no metadata, damaged metadata.
Result<std::vector<Kernel>> read_kernels(std::string_view code, const std::optional<TargetLimits>& limits, const Launch& launch);

/// One kernel of the "firstfault/code/1" document.
Value kernel_to_json(const Kernel& kernel, std::string_view file, std::string_view target);

}  // namespace ff::binary
