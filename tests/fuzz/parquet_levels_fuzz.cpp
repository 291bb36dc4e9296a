#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "support/parquet_levels.h"

/// Width and count from the first bytes; the rest is encoded levels, judged fast and by writing them out.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const auto width = static_cast<std::int64_t>(1 + data[0] % 64);
  const auto count = static_cast<std::int64_t>(data[1]) * 8 + data[2] % 8;
  const std::vector<std::uint8_t> bytes(data + 3, data + size);
  const auto length = static_cast<std::int64_t>(bytes.size());
  if (ff_parquet::ListLevels(width).follow(bytes.data(), length, count) != ff::test::regular_lists(bytes, count, width)) std::abort();
  for (int level = 1; level <= 3; ++level)
    if (ff_parquet::all_defined(bytes.data(), length, count, level) != ff::test::defined(bytes, count, level)) std::abort();
  return 0;
}
