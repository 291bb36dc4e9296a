#include "base/impostor.h"

#include "base/text.h"

namespace ff {

std::optional<Impostor> common_impostor(std::string_view head, std::uint64_t size_bytes) {
  if (size_bytes == 0) return Impostor{Impostor::Kind::empty, "an empty file", -1};
  if (head.starts_with("version https://git-lfs.github.com/spec/")) {
    std::int64_t size = -1;
    for (const auto line : lines(head))
      if (line.starts_with("size ")) size = to_integer(line.substr(5)).value_or(-1);
    return Impostor{Impostor::Kind::lfs_pointer,
                    "a Git LFS pointer, not the data" +
                        (size >= 0 ? " (" + human_bytes(static_cast<std::uint64_t>(size)) + " were not downloaded)" : std::string()),
                    size};
  }
  const std::string start = lower(trim(head.substr(0, 64)));
  if (start.starts_with("<!doctype html") || start.starts_with("<html"))
    return Impostor{Impostor::Kind::html, "an HTML page (a failed download)", -1};
  return std::nullopt;
}

}  // namespace ff
