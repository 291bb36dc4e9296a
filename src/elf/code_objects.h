#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "elf/target.h"

namespace ff::elf {

/// One piece of device code in a file.
struct CodeObject {
  TargetId target;
  std::string id;                      ///< as it stands in the bundle; of a kpack the library ("lib/x.so#0"); empty for a bare code object
  std::string container;               ///< "code object", "bundle", "compressed bundle", "offload binary", "object bundle", "text bundle", "kpack",
                                       ///< "compressed kpack", "kpack entry" (of which only the table tells)
  std::uint64_t container_offset = 0;  ///< of the bundle in the file
  std::uint64_t offset = 0;            ///< of the code in the file; in a compressed bundle or kpack: in what it unpacks to
  std::uint64_t size = 0;
  int code_object_version = 0;  ///< 0: not read (compressed, bitcode) or not known
};

/// What a file holds for GPUs.
struct Listing {
  std::string kind;  ///< "ELF library", "ELF program", "ELF object", "code object", "bundle", "compressed bundle", "offload binary", "archive",
                     ///< "kpack", "" (none of them)
  std::vector<CodeObject> objects;
  std::uint64_t bundles = 0;  ///< plain and compressed
  std::uint64_t compressed_bundles = 0;
  std::uint64_t newest_compression = 0;  ///< highest CCOB version seen
  bool kpack_split = false;              ///< device code lives in .kpack files beside the library (.rocm_kpack_ref)
  std::string kpack_binary;              ///< how those files name it: "lib/librocblas.so.5"
  std::vector<std::string> kpack_paths;  ///< its search paths, relative to the library
  std::vector<std::string> problems;     ///< damage, in words
};

/// Lists the code objects of a file's bytes. Reads headers only; a compressed bundle is decompressed as far as its entry table.
/// Never fails: a file without GPU code gives an empty listing, damage is a problem in words.
Listing list_code_objects(std::string_view bytes);

/// True for a problem that is no damage: a format or target that this program does not know, or is not made for.
bool beyond_this_program(std::string_view problem);

/// True when a file that starts with these bytes (64 are enough) may hold device code: what a tree walk asks before it maps a file.
bool may_hold_code(std::string_view first_bytes);

/// Calls `visit(object, code)` for every object whose bytes can be had; compressed bundles are decompressed one at a time.
/// Returns problems in words.
std::vector<std::string> visit_code(std::string_view bytes, const Listing& listing,
                                    const std::function<void(const CodeObject&, std::string_view)>& visit);

}  // namespace ff::elf
