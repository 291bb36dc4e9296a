#include "capture/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "capture/open.h"

namespace ff::capture {
namespace {

struct Entry {
  std::string path;
  std::string content;
  unsigned type = AE_IFREG;
  std::string link;
  bool hard = false;
};

/// An archive made with libarchive as `tar` or `zip` would make it, hostile entries included.
std::string make_archive(const std::vector<Entry>& entries, bool zip = false, bool zstd = false) {
  std::string out(8 << 20, '\0');
  std::size_t used = 0;
  archive* a = archive_write_new();
  if (zip)
    archive_write_set_format_zip(a);
  else
    archive_write_set_format_pax_restricted(a);
  if (zstd) archive_write_add_filter_zstd(a);
  archive_write_set_bytes_in_last_block(a, 1);
  archive_write_open_memory(a, out.data(), out.size(), &used);
  for (const Entry& entry : entries) {
    archive_entry* e = archive_entry_new();
    archive_entry_set_pathname(e, entry.path.c_str());
    archive_entry_set_filetype(e, entry.type);
    archive_entry_set_perm(e, 0644);
    if (!entry.link.empty()) entry.hard ? archive_entry_set_hardlink(e, entry.link.c_str()) : archive_entry_set_symlink(e, entry.link.c_str());
    archive_entry_set_size(e, static_cast<la_int64_t>(entry.content.size()));
    archive_write_header(a, e);
    archive_write_data(a, entry.content.data(), entry.content.size());
    archive_entry_free(e);
  }
  archive_write_close(a);
  archive_write_free(a);
  out.resize(used);
  return out;
}

std::string refusal(const std::string& bytes, const Limits& limits = {}) {
  const auto members = read_archive(bytes, "x.tar", limits);
  return members ? "accepted" : members.error().to_string();
}

TEST(Archive, ReadsWhatItWrote) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const Members members{{"manifest.json", "{}"}, {"fs/etc/os-release", "ID=x\n"}, {"fs/binary", std::string("\0\xff\n", 3)}, {"empty", ""}};
  const auto path = directory->path() / "a.tar.zst";
  ASSERT_TRUE(write_archive(path, members));
  const auto read = read_archive(read_file(path).value(), "a.tar.zst");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, members);
}

TEST(Archive, ReadsZipAndPlainTar) {
  for (const bool zip : {false, true}) {
    const auto members = read_archive(make_archive({{"a/b", "text"}, {"a", "", AE_IFDIR}}, zip), "x");
    ASSERT_TRUE(members) << members.error().to_string();
    EXPECT_EQ(*members, (Members{{"a/b", "text"}}));
  }
}

TEST(Archive, RefusesPathsThatLeaveTheirDirectory) {
  for (const char* path : {"../etc/passwd", "a/../../b", "/etc/passwd", "a/..", "..", "a\\..\\b"})
    EXPECT_NE(refusal(make_archive({{path, "x"}})).find("leaves its directory"), std::string::npos)
        << path << ": " << refusal(make_archive({{path, "x"}}));
}

TEST(Archive, RefusesLinksAndDevices) {
  EXPECT_NE(refusal(make_archive({{"a", "", AE_IFLNK, "/etc/passwd"}})).find("a link"), std::string::npos);
  EXPECT_NE(refusal(make_archive({{"a", "x"}, {"b", "", AE_IFREG, "a", true}})).find("a link"), std::string::npos);
  EXPECT_NE(refusal(make_archive({{"a", "", AE_IFCHR}})).find("a device"), std::string::npos);
  EXPECT_NE(refusal(make_archive({{"a", "", AE_IFIFO}})).find("a device"), std::string::npos);
}

TEST(Archive, HoldsEachLimitAtItsEdge) {
  const std::string two = make_archive({{"a", "12345"}, {"b", "123"}});
  EXPECT_EQ(refusal(two, {.total_bytes = 8, .file_bytes = 5, .entries = 2}), "accepted");
  EXPECT_NE(refusal(two, {.total_bytes = 7}).find("in all"), std::string::npos);
  EXPECT_NE(refusal(two, {.file_bytes = 4}).find("a file of more than"), std::string::npos);
  EXPECT_NE(refusal(two, {.entries = 1}).find("more than 1 entries"), std::string::npos);
  EXPECT_EQ(refusal(make_archive({{"a/b/c", "x"}}), {.depth = 2}), "accepted");
  EXPECT_NE(refusal(make_archive({{"a/b/c", "x"}}), {.depth = 1}).find("directories inside each other"), std::string::npos);
  EXPECT_EQ(refusal(make_archive({{"abcd", "x"}}), {.path_bytes = 4}), "accepted");
  EXPECT_NE(refusal(make_archive({{"abcde", "x"}}), {.path_bytes = 4}).find("a path of more than"), std::string::npos);
}

TEST(Archive, CountsWhileDecompressing) {
  // Four MiB of zeros in a few hundred bytes.
  const std::string bomb = make_archive({{"zeros", std::string(4 << 20, '\0')}}, false, true);
  ASSERT_LT(bomb.size(), 10'000u);
  EXPECT_NE(refusal(bomb, {.file_bytes = 1 << 20}).find("a file of more than"), std::string::npos);
}

TEST(Archive, EveryTruncationIsRefusedOrReadWithoutHarm) {
  const std::string whole = make_archive({{"a", "some text"}, {"b/c", std::string(3000, 'x')}}, false, true);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto members = read_archive(std::string_view(whole).substr(0, size), "x.tar.zst");
    if (members) {
      EXPECT_LE(members->size(), 2u);
    }
  }
  const auto half = read_archive(std::string_view(whole).substr(0, whole.size() / 2), "x.tar.zst");
  EXPECT_FALSE(half);
}

TEST(Archive, ACompressedTextIsOneMember) {
  std::string out(65536, '\0');
  std::size_t used = 0;
  archive* a = archive_write_new();
  archive_write_set_format_raw(a);
  archive_write_add_filter_gzip(a);
  archive_write_set_bytes_in_last_block(a, 1);
  archive_write_open_memory(a, out.data(), out.size(), &used);
  archive_entry* e = archive_entry_new();
  archive_entry_set_filetype(e, AE_IFREG);
  archive_write_header(a, e);
  archive_write_data(a, "hello\n", 6);
  archive_entry_free(e);
  archive_write_close(a);
  archive_write_free(a);
  out.resize(used);
  const auto members = read_archive(out, "/tmp/dmesg.txt.gz");
  ASSERT_TRUE(members) << members.error().to_string();
  EXPECT_EQ(*members, (Members{{"dmesg.txt", "hello\n"}}));
}

TEST(Directory, FollowsNoLinksAndOpensNoPipes) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const std::string root = directory->path().string();
  ASSERT_TRUE(write_file(root + "/a", "text"));
  ASSERT_EQ(::symlink("/etc/passwd", (root + "/link").c_str()), 0);
  ASSERT_EQ(::symlink(".", (root + "/loop").c_str()), 0);
  ASSERT_EQ(::mkfifo((root + "/pipe").c_str(), 0600), 0);
  const auto members = read_directory(root);
  ASSERT_TRUE(members) << members.error().to_string();
  EXPECT_EQ(*members, (Members{{"a", "text"}}));
  EXPECT_FALSE(read_directory(root, {.file_bytes = 3}));
  EXPECT_TRUE(read_directory(root, {.file_bytes = 4}));
}

TEST(Open, SaysWhatIsWrongWithAPath) {
  const auto missing = open({"/no/such/thing"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().exit_code, 2);
  EXPECT_NE(missing.error().to_string().find("/no/such/thing"), std::string::npos);
  EXPECT_FALSE(open({}));
  EXPECT_FALSE(open({"/dev/null"}));
}

TEST(Open, RefusesAFileAboveTheLimitAndReadsOneAtIt) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const std::string path = (directory->path() / "notes.txt").string();
  ASSERT_TRUE(write_file(path, "12345"));
  EXPECT_TRUE(open({path}, {.file_bytes = 5}));
  EXPECT_FALSE(open({path}, {.file_bytes = 4}));
}

TEST(Open, ReadsLooseFilesInAnArchive) {
  const auto capture = open_bytes(make_archive({{"case/dmesg.txt", "[    1.000000] amdgpu: x\n"}}, false, true), "case.tar.zst");
  ASSERT_TRUE(capture) << capture.error().to_string();
  EXPECT_EQ(capture->kind(), "loose");
  EXPECT_NE(capture->command("dmesg"), nullptr);
}

}  // namespace
}  // namespace ff::capture
