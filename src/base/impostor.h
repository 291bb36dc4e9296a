#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ff {

/// Why a file's content is not what its name says: "a Git LFS pointer (4.2 MiB were not downloaded)", "an HTML page", "an
/// empty file". `pointer_size` is set for an LFS pointer that states the size of what it stands for.
struct Impostor {
  enum class Kind { lfs_pointer, html, empty, truncated, foreign } kind;
  std::string what;
  std::int64_t pointer_size = -1;
};

/// What any kind of data file can turn out to be: empty, a Git LFS pointer, an error page. `head` are the first bytes (up
/// to 512) of a file of `size_bytes`. Nothing when it is none of these; formats look further themselves.
std::optional<Impostor> common_impostor(std::string_view head, std::uint64_t size_bytes);

}  // namespace ff
