#include "media/png_read.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/file.h"
#include "media/png.h"
#include "support/paths.h"

namespace ff::media {
namespace {

/// Files that Pillow 11 wrote, one for each colour type and depth that it knows, with filters as zlib's level asks for; CRC-32 of the pixels as
/// Pillow reads them again (of 16 bits: the upper 8).
TEST(PngRead, GivesThePixelsThatPillowReads) {
  const std::vector<std::pair<const char*, std::uint32_t>> files{
      {"rgb-gradient.png", 0x7ca7a6c6U}, {"rgb-noise.png", 0x2526e2b0U},  {"rgb-smooth.png", 0xc73dab22U},  {"rgba.png", 0xc73dab22U},
      {"grey.png", 0x886496d2U},         {"grey-alpha.png", 0x886496d2U}, {"black-white.png", 0x76317907U}, {"palette-2.png", 0x082517cdU},
      {"palette-4.png", 0xed3e5af5U},    {"palette-8.png", 0xafb7d27eU},  {"grey-16.png", 0x0cc780c8U},
  };
  for (const auto& [name, expected] : files) {
    const auto bytes = read_file(test::source_directory() / "tests/fuzz/corpus/png" / name);
    ASSERT_TRUE(bytes) << name;
    const auto picture = read_png(*bytes);
    ASSERT_TRUE(picture) << name << ": " << picture.error().to_string();
    EXPECT_EQ(picture->width, 13U) << name;
    EXPECT_EQ(picture->height, 7U) << name;
    EXPECT_EQ(crc32(0, picture->rgb.data(), static_cast<uInt>(picture->rgb.size())), expected) << name;
    for (std::size_t n = 0; n < bytes->size(); ++n) EXPECT_FALSE(read_png(std::string_view(*bytes).substr(0, n))) << name << " cut to " << n;
  }
}

TEST(PngRead, ReadsWhatIsWrittenHere) {
  std::vector<std::uint8_t> rgb(300 * 200 * 3);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * i >> 3U);
  const auto picture = read_png(png_bytes(rgb, 300, 200));
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->rgb, rgb);
}

TEST(PngRead, RefusesASizeThatItsBytesCannotHold) {
  std::string png = png_bytes(std::vector<std::uint8_t>(12), 2, 2);
  png[16] = 0, png[17] = 0, png[18] = 0x1f, png[20] = 0, png[21] = 0, png[22] = 0x1f;  // 7936 x 7936
  const auto picture = read_png(png);
  ASSERT_FALSE(picture);
  EXPECT_NE(picture.error().what.find("pixels are missing"), std::string::npos);
}

}  // namespace
}  // namespace ff::media
