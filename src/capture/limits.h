#pragma once

#include <cstddef>
#include <cstdint>

namespace ff::capture {

/// What reading other people's files may cost. Counted while reading and decompressing; declared sizes are not believed.
struct Limits {
  std::uint64_t total_bytes = 1ULL << 30;
  std::uint64_t file_bytes = 256ULL << 20;
  std::size_t entries = 200'000;
  std::size_t path_bytes = 4096;
  std::size_t depth = 64;  ///< directories inside each other
};

}  // namespace ff::capture
