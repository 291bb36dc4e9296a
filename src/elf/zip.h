#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "elf/bytes.h"

namespace ff::elf {

inline constexpr std::uint64_t zip_member_limit = 1'000'000;
inline constexpr std::uint64_t zip_member_size_limit_bytes = std::uint64_t{16} << 30;

struct ZipMember {
  std::string_view name;     ///< into the archive's bytes
  std::uint16_t method = 0;  ///< 0 stored, 8 deflated
  std::uint32_t crc32 = 0;   ///< of the unpacked bytes
  std::uint64_t compressed_size = 0, size = 0, header_offset = 0;
};

/// Reads a zip archive's central directory (wheels are zip archives), with its 64-bit extension. Nothing is unpacked.
Result<std::vector<ZipMember>> read_zip_directory(Bytes archive);

/// The bytes of one member: in place when it is stored, else unpacked into an unnamed temporary file.
class ZipContent {
 public:
  [[nodiscard]] std::string_view bytes() const { return file_ ? file_->bytes() : in_place_; }

 private:
  friend Result<ZipContent> open_zip_member(Bytes, const ZipMember&);
  std::string_view in_place_;
  std::optional<MappedFile> file_;
};
/// Errors: damaged data, more data than the directory says, no space in $TMPDIR.
Result<ZipContent> open_zip_member(Bytes archive, const ZipMember& member);

}  // namespace ff::elf
