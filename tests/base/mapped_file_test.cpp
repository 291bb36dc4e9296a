#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ff {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  std::string directory = testing::TempDir() + "mapped_file." + std::to_string(::getpid());
  void SetUp() override { std::filesystem::create_directories(directory); }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(directory + "/" + name, std::ios::binary) << content;
    return directory + "/" + name;
  }
};

TEST_F(MappedFileTest, GivesTheWholeFileAndSurvivesMoves) {
  auto file = MappedFile::open(write("a", std::string("one\0two", 7)));
  ASSERT_TRUE(file);
  MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.bytes(), std::string_view("one\0two", 7));
  auto other = MappedFile::open(write("b", "other"));
  ASSERT_TRUE(other);
  moved = std::move(*other);
  EXPECT_EQ(moved.bytes(), "other");
}

TEST_F(MappedFileTest, OpensAnEmptyFile) {
  auto file = MappedFile::open(write("empty", ""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, SaysWhyItCannotOpen) {
  auto absent = MappedFile::open(directory + "/absent");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().to_string(), directory + "/absent: cannot be opened: No such file or directory");
  auto folder = MappedFile::open(directory);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().what.find("directory"), std::string::npos);
  ASSERT_EQ(::mkfifo((directory + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(MappedFile::open(directory + "/pipe")) << "a pipe must neither block nor be mapped";
}

}  // namespace
}  // namespace ff
