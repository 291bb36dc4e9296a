#include "parquet/levels.h"

#include <algorithm>

namespace ff_parquet {
namespace {

/// Walks the runs of an encoding of `bits` bits a level; `repeated(level, n)` and `packed(bytes, n)` say whether they are right.
template <class Repeated, class Packed>
bool walk(const uint8_t* at, int64_t size, int64_t count, int bits, Repeated&& repeated, Packed&& packed) {
  const uint8_t* const end = at + size;
  while (count > 0) {
    uint64_t header = 0;
    for (int shift = 0;; shift += 7) {
      if (at == end || shift > 28) return false;
      const uint8_t byte = *at++;
      header |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    if ((header & 1) != 0) {
      const auto groups = static_cast<int64_t>(header >> 1);
      if (groups == 0) return false;
      // The last group may be cut off: only the bytes that hold levels have to be there.
      const int64_t levels = std::min(groups * 8, count);
      if ((levels * bits + 7) / 8 > end - at) return false;
      if (!packed(at, levels)) return false;
      at += std::min<int64_t>(groups * bits, end - at);
      count -= levels;
    } else {
      const auto levels = std::min(static_cast<int64_t>(header >> 1), count);
      if (levels == 0 || at == end) return false;
      if (!repeated(*at++, levels)) return false;
      count -= levels;
    }
  }
  return true;
}

}  // namespace

ListLevels::ListLevels(int64_t width) : width_(width), expected_(static_cast<size_t>(width)) {
  for (int64_t phase = 0; phase < width; ++phase)
    for (int bit = 0; bit < 8; ++bit)
      if ((phase + bit) % width != 0) expected_[static_cast<size_t>(phase)] |= static_cast<uint8_t>(1 << bit);
}

bool ListLevels::follow(const uint8_t* bytes, int64_t size, int64_t count) {
  const auto repeated = [&](uint8_t level, int64_t n) {
    if (level == 1) {
      if (phase_ == 0 || phase_ + n > width_) return false;
    } else if (level != 0 || (width_ > 1 && (phase_ != 0 || n > 1))) {
      return false;
    }
    phase_ = (phase_ + n) % width_;
    return true;
  };
  const auto packed = [&](const uint8_t* at, int64_t n) {
    for (; n >= 8; n -= 8, ++at) {
      if (*at != expected_[static_cast<size_t>(phase_)]) return false;
      phase_ = (phase_ + 8) % width_;
    }
    if (n > 0) {
      const auto mask = static_cast<uint8_t>((1 << n) - 1);
      if (((*at ^ expected_[static_cast<size_t>(phase_)]) & mask) != 0) return false;
      phase_ = (phase_ + n) % width_;
    }
    return true;
  };
  return walk(bytes, size, count, 1, repeated, packed);
}

bool all_defined(const uint8_t* bytes, int64_t size, int64_t count, int level) {
  const int bits = level > 1 ? 2 : 1;
  const uint8_t expected = level == 2 ? 0xaa : 0xff;  // 10 10 10 10, or nothing but ones
  const auto repeated = [&](uint8_t found, int64_t) { return found == level; };
  const auto packed = [&](const uint8_t* at, int64_t n) {
    int64_t left = n * bits;
    for (; left >= 8; left -= 8, ++at)
      if (*at != expected) return false;
    return left == 0 || ((*at ^ expected) & ((1 << left) - 1)) == 0;
  };
  return walk(bytes, size, count, bits, repeated, packed);
}

}  // namespace ff_parquet
