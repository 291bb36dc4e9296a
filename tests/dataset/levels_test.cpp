#include <gtest/gtest.h>

#include <random>

#include "support/parquet_levels.h"

namespace ff_parquet {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put_varint(Bytes& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<std::uint8_t>(v | 0x80));
  out.push_back(static_cast<std::uint8_t>(v));
}

/// Encodes levels as writers do: equal neighbours from eight on as a run, the rest packed in groups of eight.
Bytes encode(const std::vector<int>& levels, int bits) {
  Bytes out;
  for (std::size_t i = 0; i < levels.size();) {
    std::size_t same = i;
    while (same < levels.size() && levels[same] == levels[i]) ++same;
    if (same - i >= 8) {
      put_varint(out, (same - i) << 1);
      out.push_back(static_cast<std::uint8_t>(levels[i]));
      i = same;
      continue;
    }
    put_varint(out, 1 << 1 | 1);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 8 && i < levels.size(); ++k, ++i)
      group |= static_cast<std::uint32_t>(levels[i]) << (k * static_cast<std::size_t>(bits));
    for (int b = 0; b < bits; ++b) out.push_back(static_cast<std::uint8_t>(group >> (8 * b)));
  }
  return out;
}

std::vector<int> lists(std::int64_t rows, std::int64_t width) {
  std::vector<int> out;
  for (std::int64_t i = 0; i < rows * width; ++i) out.push_back(i % width == 0 ? 0 : 1);
  return out;
}

bool follows(const Bytes& b, std::int64_t count, std::int64_t width) {
  return ListLevels(width).follow(b.data(), static_cast<std::int64_t>(b.size()), count);
}

TEST(Levels, ListsOfEveryWidthAreFollowedOverPages) {
  for (std::int64_t width = 1; width <= 40; ++width) {
    const auto levels = lists(57, width);
    const auto bytes = encode(levels, 1);
    EXPECT_TRUE(follows(bytes, static_cast<std::int64_t>(levels.size()), width)) << width;
    // Two pages, the border anywhere.
    for (std::size_t cut = 1; cut < levels.size(); cut += 7) {
      ListLevels followed(width);
      for (const auto& part : {std::vector(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(cut)),
                               std::vector(levels.begin() + static_cast<std::ptrdiff_t>(cut), levels.end())}) {
        const auto page = encode(part, 1);
        ASSERT_TRUE(followed.follow(page.data(), static_cast<std::int64_t>(page.size()), static_cast<std::int64_t>(part.size())))
            << width << " " << cut;
      }
      EXPECT_TRUE(followed.between_lists());
    }
  }
}

TEST(Levels, OneOtherLevelAnywhereIsSeen) {
  for (const std::int64_t width : {1, 2, 7, 8, 14, 33}) {
    auto levels = lists(20, width);
    for (auto& level : levels) {
      level ^= 1;
      EXPECT_FALSE(follows(encode(levels, 1), static_cast<std::int64_t>(levels.size()), width)) << width;
      level ^= 1;
    }
  }
  for (int level = 1; level <= 3; ++level) {
    std::vector<int> levels(75, level);
    const auto all = [&] {
      const auto b = encode(levels, level > 1 ? 2 : 1);
      return all_defined(b.data(), static_cast<std::int64_t>(b.size()), 75, level);
    };
    EXPECT_TRUE(all());
    for (auto& l : levels) {
      l = level - 1;
      EXPECT_FALSE(all()) << level;
      l = level;
    }
  }
}

TEST(Levels, EveryTruncationIsRefused) {
  const auto levels = lists(30, 14);
  const auto bytes = encode(levels, 1);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(follows(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)), static_cast<std::int64_t>(levels.size()), 14)) << n;
}

TEST(Levels, AgreeWithWritingThemOutOnRandomBytes) {
  std::mt19937 random(7);
  std::size_t right = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto width = static_cast<std::int64_t>(1 + random() % 16);
    auto bytes = encode(lists(static_cast<std::int64_t>(1 + random() % 12), width), 1);
    for (auto k = random() % 3; k > 0 && !bytes.empty(); --k) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    const auto count = static_cast<std::int64_t>(1 + random() % 200);
    const bool expected = ff::test::regular_lists(bytes, count, width);
    right += expected ? 1 : 0;
    ASSERT_EQ(follows(bytes, count, width), expected) << round;
    const int level = static_cast<int>(1 + random() % 3);
    ASSERT_EQ(all_defined(bytes.data(), static_cast<std::int64_t>(bytes.size()), count, level), ff::test::defined(bytes, count, level)) << round;
  }
  EXPECT_GT(right, 500U);
}

}  // namespace
}  // namespace ff_parquet
