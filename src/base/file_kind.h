#pragma once

#include <string>
#include <string_view>

namespace ff {

/// What a file's first bytes say that it is.
struct FileKind {
  std::string_view what;     ///< "a PNG picture", "a text"; empty: not known
  bool other_video = false;  ///< a video in another container than MP4
};

/// By the magic numbers of its first bytes (64 are enough for all but texts). MP4 and everything unknown: no name.
[[nodiscard]] FileKind file_kind(std::string_view head);

}  // namespace ff
