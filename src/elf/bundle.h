#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "elf/bytes.h"
#include "elf/target.h"

namespace ff::elf {

inline constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
inline constexpr std::string_view compressed_magic = "CCOB";
inline constexpr std::string_view offload_binary_magic{"\x10\xff\x10\xad", 4};
/// More entries than this in one bundle are refused: the largest known libraries hold about 30.
inline constexpr std::uint64_t bundle_entry_limit = 4096;
/// A bundle is never decompressed beyond this (bundles are one translation unit or one library; larger ones were not seen).
inline constexpr std::uint64_t decompressed_limit_bytes = std::uint64_t{2} << 30;

struct BundleEntry {
  std::string id;                      ///< as it stands: "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "host-x86_64-unknown-linux-gnu-"
  std::string kind;                    ///< "hipv4", "hip", "openmp", "host"
  std::optional<TargetId> target;      ///< nothing for the host and for ids that name no AMD processor
  std::uint64_t offset = 0, size = 0;  ///< from the start of the (decompressed) bundle
};

struct Bundle {
  std::vector<BundleEntry> entries;
  std::uint64_t header_size = 0;  ///< bytes of magic and entry table
  std::uint64_t size = 0;         ///< up to the end of the last entry
};

/// Reads "__CLANG_OFFLOAD_BUNDLE__", u64 count, and per entry u64 offset, u64 size, u64 id length, id.
/// Only the header is read. Entries must lie within `total_size` bytes (the whole bundle may be longer than `bytes`).
/// Format: LLVM docs ClangOffloadBundler.rst, "Bundled Code Object File Layout".
Result<Bundle> read_bundle(Bytes bytes, std::uint64_t total_size);
inline Result<Bundle> read_bundle(Bytes bytes) { return read_bundle(bytes, bytes.size()); }

/// The header of a compressed bundle, "CCOB" (same document, "Compressed Offload Bundle Format").
struct CompressedHeader {
  int version = 0;  ///< 1, 2 or 3
  int method = 0;   ///< 0 zlib, 1 zstd
  std::uint64_t header_size = 0;
  std::optional<std::uint64_t> file_size;  ///< header included; version 1 does not say
  std::uint64_t uncompressed_size = 0;
};
Result<CompressedHeader> read_compressed_header(Bytes bytes);

/// What decompressing a "CCOB" gave.
struct Decompressed {
  std::string content;
  std::uint64_t consumed = 0;  ///< bytes of the input up to the end of the compressed data, header included
  bool complete = false;       ///< false: stopped at `limit`
};
/// Decompresses up to `limit` bytes. Memory grows with what really comes out, not with what the header claims.
Result<Decompressed> decompress(Bytes compressed_bundle, std::uint64_t limit);
/// The entry table of a compressed bundle; only as much is decompressed as the table needs.
Result<Bundle> read_compressed_bundle(Bytes compressed_bundle, const CompressedHeader& header);

/// One image of an offload binary (10 FF 10 AD), the container of clang's new offload driver.
struct OffloadImage {
  std::uint16_t image_kind = 0;    ///< 1 object, 2 bitcode, 3 cubin, 4 fat binary, 5 PTX, 6 SPIR-V
  std::uint16_t offload_kind = 0;  ///< up to LLVM 19 a number (1 OpenMP, 2 CUDA, 3 HIP), later a bit mask
  std::string triple, arch;
  std::optional<TargetId> target;
  std::uint64_t offset = 0, size = 0;  ///< of the image, from the start of the offload binary
};
struct OffloadBinary {
  int version = 0;
  std::uint64_t size = 0;  ///< the next one, if any, starts here (aligned to 8)
  std::vector<OffloadImage> images;
};
/// Source: LLVM llvm/Object/OffloadBinary.h. Versions 1 (one image) and later (entry count) are read.
Result<OffloadBinary> read_offload_binary(Bytes bytes);

}  // namespace ff::elf
