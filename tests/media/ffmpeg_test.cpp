#include "media/ffmpeg.h"

#include <gtest/gtest.h>

namespace ff::media {
namespace {

/// Written by ffmpeg 5.1.9: -v error -copyts -sseof -0.1 -i file-000.mp4 -map 0:v:0 -f framecrc -
constexpr std::string_view written =
    "#software: Lavf59.27.100\n#tb 0: 1/20\n#media_type 0: video\n#codec_id 0: rawvideo\n#dimensions 0: 64x48\n#sar 0: 1/1\n"
    "0,         16,         16,        1,     4608, 0x6fbde4d3\n0,         17,         17,        1,     4608, 0x3e80e533\n";

TEST(Framecrc, TimesAreTicksOfTheTimeBase) {
  const auto times = framecrc_times(written);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_NEAR(times[0], 0.8, 1e-12);
  EXPECT_NEAR(times[1], 0.85, 1e-12);
  EXPECT_TRUE(framecrc_times("").empty());
  EXPECT_TRUE(framecrc_times("0, 16, 16, 1, 4608, 0x0\n").empty()) << "no time base";
  EXPECT_TRUE(framecrc_times("#tb 0: 1/0\n0, 16, 16, 1, 4608, 0x0\n").empty());
  for (std::size_t n = 0; n < written.size(); ++n) EXPECT_LE(framecrc_times(written.substr(0, n)).size(), 2U);
}

TEST(Ffmpeg, AVariableThatNamesNoFileMeansNone) {
  ASSERT_EQ(setenv("FIRSTFAULT_FFMPEG", "/nonexistent", 1), 0);
  EXPECT_EQ(find_ffmpeg(), "");
  unsetenv("FIRSTFAULT_FFMPEG");
}

}  // namespace
}  // namespace ff::media
