#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ff {

/// A regular file mapped read-only. Nothing is read before it is looked at, so that a header of a 1 GiB library costs
/// one page. A file that another process truncates while it is mapped raises SIGBUS, as with every mapping.
class MappedFile {
 public:
  /// Errors: no such file, no permission, not a regular file (a pipe or device would block or lie about its size).
  static Result<MappedFile> open(const std::string& path);
  /// The same from an open descriptor, which stays the caller's.
  static Result<MappedFile> from_descriptor(int descriptor, const std::string& name);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// The whole file; valid as long as this object lives, also after a move.
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, std::size_t size) : data_(data), size_(size) {}
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ff
