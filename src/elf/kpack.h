#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "elf/bytes.h"

namespace ff::elf {

inline constexpr std::string_view kpack_magic = "KPAK";

/// One code object of a .kpack archive.
struct KpackRow {
  std::string binary;               ///< the library it was taken out of and which of its code objects: "lib/librocblas.so.5#0"
  std::string arch;                 ///< "gfx942", "gfx90a:xnack+"
  std::uint64_t offset = 0;         ///< of the stored bytes in the file
  std::uint64_t stored_size = 0;    ///< 0: where they lie is not known (a problem says why)
  std::uint64_t original_size = 0;  ///< unpacked; 0: not said
  bool packed = false;              ///< one zstd frame
};
struct Kpack {
  std::vector<KpackRow> rows;
  std::vector<std::string> problems;  ///< what is damaged or would not be found at run time, in words
};
/// The table of contents of a .kpack archive: header "KPAK", u32 version, u64 offset of a msgpack map; its "toc" names for each
/// library and target an ordinal into "blobs" (stored), or into a row of frames "u32 size, zstd frame" after a u32 count.
/// Source: ROCm/rocm-systems shared/kpack (runtime/src/toc_parser.cpp, python/rocm_kpack/kpack.py).
Result<Kpack> read_kpack(Bytes bytes);
/// One packed code object. `frame`: from its first byte on; what follows it is not looked at. Errors: damaged data, another size
/// than the table says.
Result<std::string> unpack_kpack(Bytes frame, std::uint64_t original_size);

/// A library's .rocm_kpack_ref section. Source: shared/kpack/runtime/src/loader.cpp.
struct KpackReference {
  std::string binary;              ///< "lib/librocblas.so.5": how the archives name it
  std::vector<std::string> paths;  ///< relative to the library; "@GFXARCH@" stands for the target
};
Result<KpackReference> read_kpack_reference(Bytes section);

}  // namespace ff::elf
