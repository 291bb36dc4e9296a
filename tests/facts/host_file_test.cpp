#include "support/host_file.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ff::test {
namespace {

TEST(HostFile, HoldsEveryKindOfEvidence) {
  const auto c = parse_host(R"(How this was made: by hand.
== kind live
== file /proc/version
Linux version 6.8.0
\== not a section

== values /sys/bus/pci/devices
0000:03:00.0/vendor: 0x1002
0000:03:00.0/label:

== link /sys/bus/pci/devices/0000:03:00.0/driver -> ../../../bus/pci/drivers/amdgpu
== stat /dev/kfd c 0660 0 992 root render 234:0 acl=user:1000:rw-
== error /dev/dri/renderD128 EACCES
== absent /opt/rocm
== cmd rocminfo exit=1 -- rocminfo
ROCk module is NOT loaded
== err rocminfo
oops
== probe limits
{"nofile": 1024}
== hex /sys/class/drm/card0/device/gpu_metrics
78 00 01
03
== text dmesg.txt
[    0.1] hello
== about
{"host": "a"}
)",
                            "inline");
  ASSERT_TRUE(c) << c.error().to_string();
  EXPECT_EQ(c->kind(), "live");
  EXPECT_EQ(*c->file("/proc/version"), "Linux version 6.8.0\n== not a section\n");
  EXPECT_EQ(*c->value("/sys/bus/pci/devices/0000:03:00.0/vendor"), "0x1002");
  EXPECT_EQ(*c->file("/sys/bus/pci/devices/0000:03:00.0/label"), "");
  EXPECT_EQ(*c->link("/sys/bus/pci/devices/0000:03:00.0/driver"), "../../../bus/pci/drivers/amdgpu");
  const auto* kfd = c->stat("/dev/kfd");
  ASSERT_NE(kfd, nullptr);
  EXPECT_EQ(kfd->type, 'c');
  EXPECT_EQ(kfd->mode, 0660U);
  EXPECT_EQ(kfd->gid, 992U);
  EXPECT_EQ(kfd->group, "render");
  EXPECT_EQ(kfd->major, 234U);
  EXPECT_EQ(kfd->acl, "user:1000:rw-");
  EXPECT_EQ(c->error_of("/dev/dri/renderD128"), EACCES);
  EXPECT_TRUE(c->known_absent("/opt/rocm"));
  const auto* rocminfo = c->command("rocminfo");
  ASSERT_NE(rocminfo, nullptr);
  EXPECT_EQ(rocminfo->exit_status, 1);
  EXPECT_EQ(rocminfo->out, "ROCk module is NOT loaded\n");
  EXPECT_EQ(rocminfo->err, "oops\n");
  EXPECT_EQ(rocminfo->argv, std::vector<std::string>{"rocminfo"});
  EXPECT_EQ(c->probe("limits")["nofile"].as_int(), 1024);
  EXPECT_EQ(c->file("/sys/class/drm/card0/device/gpu_metrics"), std::string_view("\x78\x00\x01\x03", 4));
  EXPECT_EQ(c->texts().at("dmesg.txt"), "[    0.1] hello\n");
  EXPECT_EQ(c->about()["host"].as_text(), "a");
}

TEST(HostFile, LaterSectionsOverrideAndCopyAndRemove) {
  const auto c = parse_host(
      "== values /a/0\nx: 1\ny: 2\n== copy /a/0 /a/1\n== value /a/1/x 5\n== remove /a/0/y\n"
      "== cmd lspci\nout\n== remove-cmd lspci\n== probe p\n{}\n",
      "inline");
  ASSERT_TRUE(c) << c.error().to_string();
  EXPECT_EQ(c->list("/a/0"), std::vector<std::string>{"x"});
  EXPECT_EQ(*c->value("/a/1/x"), "5");
  EXPECT_EQ(*c->value("/a/1/y"), "2");
  EXPECT_EQ(c->command("lspci"), nullptr);
  EXPECT_FALSE(c->probe("p").is_null());
}

TEST(HostFile, NamesTheLineOfAMistake) {
  for (const char* text : {"== sat /dev/kfd c", "== stat /dev/kfd c 9 0 0", "== error /x ENOSUCH", "== hex /x\nzz", "== hex /x\n123", "== link /a /b",
                           "== copy /nothing /b", "== base nowhere.host", "== values /a\nno separator"}) {
    const auto c = parse_host(text, "bad");
    ASSERT_FALSE(c) << text;
    EXPECT_NE(c.error().to_string().find("bad:1"), std::string::npos) << c.error().to_string();
  }
}

}  // namespace
}  // namespace ff::test
