#include "media/png.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace ff::media {
namespace {

TEST(Png, IsWhatPythonsZlibWritesWithoutCompression) {
  // zlib.compress(rows, 0) between the chunks of a PNG file, written with Python 3.11.
  constexpr std::array<std::uint8_t, 12> rgb{255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3};
  std::string hex;
  for (const char byte : png_bytes(rgb, 2, 2)) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(
      hex,
      "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a7300000019494441547801010e00f1ff00ff000000ff00000000ff01020319fe03048c41ae"
      "930000000049454e44ae426082");
}

TEST(Png, SplitsLargePicturesIntoBlocks) {
  const std::vector<std::uint8_t> rgb(300 * 200 * 3, 7);
  const std::string png = png_bytes(rgb, 300, 200);
  // Three stored blocks of at most 65,535 bytes for 200 rows of 901 bytes.
  EXPECT_EQ(png.size(), 8 + 25 + 12 + (2 + 3 * 5 + 200 * 901 + 4) + 12);
}

}  // namespace
}  // namespace ff::media
