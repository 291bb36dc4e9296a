#include "capture/store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"
#include "capture/open.h"

namespace ff::capture {
namespace {

/// One of everything, with the names that make trouble.
Capture full() {
  Capture c;
  c.set_kind("live");
  c.add_file("/etc/os-release", "ID=debian\n");
  c.add_file("/sys/class/drm/card0/device", "a file where also a directory is");
  c.add_file("/sys/class/drm/card0/device/vendor", "0x1002\n");
  c.add_file("/sys/class/drm/card0/device/gpu_metrics", std::string("\0\1\xff\n", 4));
  c.add_file("/odd/../path", "x");
  c.add_file("/odd/" + std::string(300, 'n'), "long");
  c.add_file("relative", "y");
  c.add_file("/empty", "");
  c.add_link("/sys/class/drm/card0/device/driver", "../../bus/pci/drivers/amdgpu");
  c.add_stat("/dev/kfd", {.type = 'c',
                          .mode = 0660,
                          .uid = 0,
                          .gid = 992,
                          .user = "root",
                          .group = "render",
                          .major = 235,
                          .minor = 0,
                          .acl = "user::rw-,user:1000:rw-"});
  c.add_error("/dev/dri/renderD128", EACCES);
  c.add_error("/sys/gone", ENOENT);
  c.add_command("dmesg", {.argv = {"dmesg", "--raw"}, .exit_status = 0, .out = "<6>[1.0] x\n", .err = "warning\n"});
  c.add_command("hung", {.argv = {"amd-smi"}, .signal = 9, .timed_out = true});
  c.add_command("../evil name", {.argv = {"x"}, .start_errno = ENOENT});
  c.add_probe("access", Value::object({{"/dev/kfd", Value::object({{"errno", 0}, {"how", "open"}})}}));
  c.add_probe("big", Value(std::uint64_t{18446744073709551615ULL}));
  c.add_text("notes.txt", "hello");
  c.add_text("../notes", "there");
  c.about_mut().set("hostname", "h");
  return c;
}

void expect_same(const Capture& a, const Capture& b) {
  EXPECT_EQ(a.files(), b.files());
  EXPECT_EQ(a.links(), b.links());
  EXPECT_EQ(a.errors(), b.errors());
  EXPECT_EQ(a.probes(), b.probes());
  EXPECT_EQ(a.texts(), b.texts());
  EXPECT_EQ(a.about(), b.about());
  ASSERT_EQ(a.stats().size(), b.stats().size());
  for (const auto& [path, stat] : a.stats()) {
    const NodeStat* other = b.stat(path);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(std::tie(stat.type, stat.mode, stat.uid, stat.gid, stat.user, stat.group, stat.size_bytes, stat.major, stat.minor, stat.acl),
              std::tie(other->type, other->mode, other->uid, other->gid, other->user, other->group, other->size_bytes, other->major, other->minor,
                       other->acl));
  }
  ASSERT_EQ(a.commands(), b.commands());
  for (const auto& [name, command] : a.all_commands()) {
    const CommandOutput* other = b.command(name);
    EXPECT_EQ(std::tie(command.argv, command.exit_status, command.signal, command.timed_out, command.start_errno, command.out, command.err),
              std::tie(other->argv, other->exit_status, other->signal, other->timed_out, other->start_errno, other->out, other->err));
  }
}

class Store : public testing::TestWithParam<const char*> {};

TEST_P(Store, GivesBackWhatItTook) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const std::string target = (directory->path() / GetParam()).string();
  const Capture before = full();
  const auto stored = store(before, target);
  ASSERT_TRUE(stored) << stored.error().to_string();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory->path()), {}), 1) << "nothing beside the target";
  const auto after = open({target});
  ASSERT_TRUE(after) << after.error().to_string();
  EXPECT_EQ(after->kind(), "bundle");
  expect_same(before, *after);
}
INSTANTIATE_TEST_SUITE_P(Forms, Store, testing::Values("capture", "capture.tar.zst"));

TEST(Store, PutsNothingButPlainFilesInPlainPlaces) {
  for (const auto& [member, content] : to_members(full())) {
    EXPECT_EQ(member.find(".."), std::string::npos) << member;
    EXPECT_FALSE(member.starts_with('/')) << member;
  }
  EXPECT_TRUE(to_members(full()).contains("fs/etc/os-release"));
  EXPECT_TRUE(to_members(full()).contains("cmd/dmesg/stdout"));
}

TEST(Store, DoesNotOverwriteADirectoryThatHoldsSomething) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  ASSERT_TRUE(write_file(directory->path() / "precious", "x"));
  EXPECT_FALSE(store(full(), directory->path()));
  EXPECT_EQ(read_file(directory->path() / "precious").value(), "x");
}

TEST(Store, RefusesOtherArchiveForms) {
  const auto result = store(full(), "/tmp/x.zip");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().exit_code, 2);
}

TEST(Store, SaysWhereItCannotWrite) {
  for (const char* target : {"/proc/firstfault-capture", "/proc/firstfault-capture.tar.zst"}) {
    const auto result = store(full(), target);
    ASSERT_FALSE(result) << target;
    EXPECT_NE(result.error().to_string().find("/proc/firstfault-capture"), std::string::npos);
  }
}

TEST(Open, NamesTheMemberOfABrokenCapture) {
  Members members = to_members(full());
  members["manifest.json"] = "{\"schema\": \"firstfault/capture/1\", \"kind\"";
  const auto broken = from_members(members, "x");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().to_string().find("x: manifest.json"), std::string::npos);
  members = to_members(full());
  members["manifest.json"] = R"({"schema": "firstfault/capture/99"})";
  EXPECT_FALSE(from_members(members, "x"));
  members = to_members(full());
  members.erase("cmd/dmesg/status.json");
  const auto missing = from_members(members, "x");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().to_string().find("cmd/dmesg/status.json"), std::string::npos);
}

TEST(Open, FindsACaptureInTheOneDirectoryOfAnArchive) {
  Members below;
  for (const auto& [member, content] : to_members(full())) below["node7/" + member] = content;
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const std::string target = (directory->path() / "a.tar.zst").string();
  ASSERT_TRUE(write_archive(target, below));
  const auto capture = open({target});
  ASSERT_TRUE(capture) << capture.error().to_string();
  EXPECT_EQ(capture->value("/etc/os-release"), "ID=debian");
}

TEST(Open, AddsLooseFilesToACaptureButRefusesTwoCaptures) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const std::string a = (directory->path() / "a").string(), b = (directory->path() / "b").string(),
                    notes = (directory->path() / "notes.txt").string();
  ASSERT_TRUE(store(full(), a));
  ASSERT_TRUE(store(full(), b));
  ASSERT_TRUE(write_file(notes, "it broke\n"));
  const auto both = open({a, notes});
  ASSERT_TRUE(both) << both.error().to_string();
  EXPECT_EQ(both->kind(), "bundle");
  EXPECT_EQ(both->texts().at("notes.txt"), "it broke\n");
  EXPECT_FALSE(open({a, b}));
}

TEST(Open, AManifestOfAnotherToolIsALooseFile) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  ASSERT_TRUE(write_file(directory->path() / "manifest.json", R"({"name": "app"})"));
  const auto capture = open({directory->path().string()});
  ASSERT_TRUE(capture) << capture.error().to_string();
  EXPECT_EQ(capture->kind(), "loose");
}

}  // namespace
}  // namespace ff::capture
