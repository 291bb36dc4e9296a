#include "dataset/mp4.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/judge_metadata.h"

namespace ff::dataset {
namespace {

TEST(Mp4, ReadsFramesRateAndSizeFromTheBoxes) {
  const auto bytes = read_file(FIRSTFAULT_SOURCE_DIR "/tests/fuzz/corpus/mp4/small.mp4");
  ASSERT_TRUE(bytes);
  const auto video = read_mp4(*bytes, "small.mp4");
  ASSERT_TRUE(video) << video.error().to_string();
  EXPECT_EQ(video->frames, 30);
  EXPECT_DOUBLE_EQ(video->fps, 30);
  EXPECT_EQ(video->width, 64);
  EXPECT_EQ(video->height, 48);
  EXPECT_EQ(codec_name(video->codec), "h264");
  EXPECT_TRUE(video->constant_rate);
  EXPECT_TRUE(video->moov_first);
}

TEST(Mp4, SaysThatATruncatedFileIsIncomplete) {
  const auto bytes = read_file(FIRSTFAULT_SOURCE_DIR "/tests/fuzz/corpus/mp4/small.mp4");
  ASSERT_TRUE(bytes);
  for (std::size_t size = 0; size + 1 < bytes->size(); ++size) {
    const auto video = read_mp4(std::string_view(*bytes).substr(0, size), "cut.mp4");
    // Between two boxes the rest is well-formed; then only the missing index shows. After the index, only mdat is cut.
    if (video) {
      EXPECT_EQ(video->frames, 30) << size;
    }
  }
  EXPECT_FALSE(read_mp4("", "empty.mp4"));
}

TEST(Impostor, TellsPointersPagesAndCutFilesApart) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4096\n";
  EXPECT_EQ(impostor("a.parquet", pointer, pointer.substr(pointer.size() - 12), pointer.size())->pointer_size, 4096);
  EXPECT_EQ(impostor("a.mp4", "<!DOCTYPE html>", "</html>", 100)->kind, Impostor::Kind::html);
  EXPECT_EQ(impostor("a.parquet", "PAR1....", "........", 100)->kind, Impostor::Kind::truncated);
  EXPECT_EQ(impostor("a.parquet", "", "", 0)->kind, Impostor::Kind::empty);
  EXPECT_FALSE(impostor("a.parquet", "PAR1....", "....PAR1", 100));
}

TEST(Template, FillsPythonsFieldsAndKeepsUnknownOnes) {
  EXPECT_EQ(fill_template("data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet", {{"chunk_index", 1}, {"file_index", 1234}}),
            "data/chunk-001/file-1234.parquet");
  EXPECT_EQ(fill_template("{a}/{b:03d}/{", {{"a", "x"}}), "x/{b:03d}/{");
}

}  // namespace
}  // namespace ff::dataset
