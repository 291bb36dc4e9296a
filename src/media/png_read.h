#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ff::media {

/// A picture of 8-bit red, green, blue, rows from top to bottom: width * height * 3 values.
struct Picture {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

/// Decodes a PNG file (RFC 2083): every colour type and bit depth; of 16 bits the upper 8; transparency is left out. Errors: no PNG, damaged,
/// interlaced (nothing that records writes that), larger than 2^26 pixels.
Result<Picture> read_png(std::string_view bytes);

}  // namespace ff::media
