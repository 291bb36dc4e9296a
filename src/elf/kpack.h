#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "elf/bytes.h"

namespace ff::elf {

inline constexpr std::string_view kpack_magic = "KPAK";

struct KpackRow {
  std::string binary;  ///< "lib/librocblas.so.5#0"
  std::string arch;    ///< "gfx942"
};
/// The table of contents of a .kpack archive (header "KPAK", u32 version, u64 offset of a msgpack map).
/// Source: TheRock docs/rfcs/RFC0008-Multi-Arch-Packaging.md and rocm_kpack's packed_kernel_archive.
Result<std::vector<KpackRow>> read_kpack(Bytes bytes);
/// The search paths of a library's .rocm_kpack_ref section.
Result<std::vector<std::string>> read_kpack_reference(Bytes section);

}  // namespace ff::elf
