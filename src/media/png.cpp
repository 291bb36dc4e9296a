#include "media/png.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ff::media {
namespace {

void big_endian(std::string& out, std::uint32_t x) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) out.push_back(static_cast<char>(x >> shift));
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? 0xEDB88320U ^ (crc >> 1U) : crc >> 1U;
  }
  return ~crc;
}

std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t modulus = 65521;
  std::uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % modulus;
    b = (b + a) % modulus;
  }
  return b << 16U | a;
}

void chunk(std::string& out, std::string_view type, std::string_view content) {
  big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = out.size();
  out.append(type).append(content);
  big_endian(out, crc32(std::string_view(out).substr(begin)));
}

/// A zlib stream of stored blocks.
std::string stored(std::string_view bytes) {
  constexpr std::size_t largest = 65535;
  std::string out("\x78\x01", 2);
  do {
    const std::size_t n = std::min(largest, bytes.size());
    out.push_back(n == bytes.size() ? 1 : 0);
    for (const std::size_t length : {n, ~n}) {
      out.push_back(static_cast<char>(length));
      out.push_back(static_cast<char>(length >> 8U));
    }
    out.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
  } while (!bytes.empty());
  return out;
}

}  // namespace

std::string png_bytes(std::span<const std::uint8_t> rgb, std::size_t width, std::size_t height) {
  std::string head, rows;
  big_endian(head, static_cast<std::uint32_t>(width));
  big_endian(head, static_cast<std::uint32_t>(height));
  constexpr std::array<char, 5> rgb8{8, 2, 0, 0, 0};  // bits, colour type, compression, filter, interlace
  head.append(rgb8.data(), rgb8.size());
  for (std::size_t y = 0; y < height; ++y) {
    rows.push_back(0);  // no filter
    rows.append(reinterpret_cast<const char*>(rgb.data()) + y * width * 3, width * 3);
  }
  std::string compressed = stored(rows);
  big_endian(compressed, adler32(rows));
  std::string out("\x89PNG\r\n\x1a\n", 8);
  chunk(out, "IHDR", head);
  chunk(out, "IDAT", compressed);
  chunk(out, "IEND", "");
  return out;
}

}  // namespace ff::media
