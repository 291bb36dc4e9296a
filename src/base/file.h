#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ff {

/// The whole content of a regular file, pipe or proc file. Errors: the errno's text; larger than `limit_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t limit_bytes = 256ULL << 20);

/// Replaces a file in one step: written under a temporary name beside it, then renamed. A reader sees the old or the
/// new content, never a part.
Result<void> write_file(const std::filesystem::path& path, std::string_view content);

/// Writes all bytes to a descriptor, through interrupts and short writes. Returns 0 or the errno.
int write_all(int descriptor, std::string_view bytes);

/// A name beside `target` that nobody uses: ".<name>.tmp-<pid>-<n>".
std::filesystem::path temporary_beside(const std::filesystem::path& target);

/// A new empty directory below $TMPDIR (else /tmp), readable by this user only; removed with all it holds at the end.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> make(std::string_view prefix = "firstfault");
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace ff
