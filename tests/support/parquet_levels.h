#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// The part of firstfault-parquet.so that needs no Arrow, compiled into the test: nothing links against the plugin.
#include "parquet/levels.cpp"  // NOLINT(bugprone-suspicious-include)

namespace ff::test {

/// The plain way: writes every level out. Nothing when the encoding breaks off or is none.
inline std::optional<std::vector<int>> decode_levels(const std::vector<std::uint8_t>& bytes, std::int64_t count, int bits) {
  std::vector<int> out;
  std::size_t at = 0;
  while (static_cast<std::int64_t>(out.size()) < count) {
    std::uint64_t header = 0;
    for (int shift = 0;; shift += 7) {
      if (at == bytes.size() || shift > 28) return std::nullopt;
      header |= static_cast<std::uint64_t>(bytes[at] & 0x7f) << shift;
      if ((bytes[at++] & 0x80) == 0) break;
    }
    if (header >> 1 == 0) return std::nullopt;
    if ((header & 1) != 0) {
      const std::uint64_t levels = (header >> 1) * 8;
      for (std::uint64_t i = 0; i < levels && static_cast<std::int64_t>(out.size()) < count; ++i) {
        int level = 0;
        for (int b = 0; b < bits; ++b) {
          const std::uint64_t bit = i * static_cast<std::uint64_t>(bits) + static_cast<std::uint64_t>(b);
          if (at + bit / 8 >= bytes.size()) return std::nullopt;
          level |= (bytes[at + bit / 8] >> (bit % 8) & 1) << b;
        }
        out.push_back(level);
      }
      at += static_cast<std::size_t>(std::min<std::uint64_t>((header >> 1) * static_cast<std::uint64_t>(bits), bytes.size() - at));
    } else {
      if (at == bytes.size()) return std::nullopt;
      const int level = bytes[at++];
      for (std::uint64_t i = 0; i < header >> 1 && static_cast<std::int64_t>(out.size()) < count; ++i) out.push_back(level);
    }
  }
  return out;
}

/// What follow() and all_defined() have to answer.
inline bool regular_lists(const std::vector<std::uint8_t>& bytes, std::int64_t count, std::int64_t width) {
  const auto levels = decode_levels(bytes, count, 1);
  if (!levels) return false;
  for (std::size_t i = 0; i < levels->size(); ++i)
    if ((*levels)[i] != (i % static_cast<std::size_t>(width) == 0 ? 0 : 1)) return false;
  return true;
}
inline bool defined(const std::vector<std::uint8_t>& bytes, std::int64_t count, int level) {
  const auto levels = decode_levels(bytes, count, level > 1 ? 2 : 1);
  if (!levels) return false;
  for (const int l : *levels)
    if (l != level) return false;
  return true;
}

}  // namespace ff::test
