#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ff::media {

/// A picture of 8-bit red, green, blue (rows from top to bottom) as the bytes of a PNG file, not compressed (RFC 2083).
/// `rgb` holds width * height * 3 values; for pictures up to 65,535 bytes a row.
std::string png_bytes(std::span<const std::uint8_t> rgb, std::size_t width, std::size_t height);

}  // namespace ff::media
