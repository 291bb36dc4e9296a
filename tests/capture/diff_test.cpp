#include "capture/diff.h"

#include <gtest/gtest.h>

namespace ff::capture {
namespace {

Capture machine() {
  Capture c;
  c.set_kind("bundle");
  c.add_file("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n");
  c.add_file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz-6.8.0-60 root=/dev/sda ro quiet\n");
  c.add_file("/etc/modprobe.d/amdgpu.conf", "options amdgpu noretry=0\n");
  c.add_stat("/sys/module/amdgpu", {.type = 'd'});
  c.add_file("/sys/module/amdgpu/parameters/noretry", "0\n");
  c.add_file("/sys/class/drm/card0/device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
  c.add_file("/sys/class/drm/card0/device/fw_version/mec_fw_version", "0x0000007f\n");
  c.add_file("/sys/class/drm/card0/device/hwmon/hwmon4/temp1_input", "41000\n");
  c.add_file("/sys/class/drm/card0/device/pp_dpm_sclk", "0: 500Mhz *\n");
  c.add_file("/sys/class/drm/card0/device/gpu_busy_percent", "3\n");
  c.add_file("/proc/uptime", "1.0\n");
  c.add_command("dpkg", {.exit_status = 0, .out = "rocm-core\t7.0.2\tii \nold\t1\trc \n"});
  c.add_probe("env", Value::object({{"HSA_ENABLE_SDMA", "0"}}));
  c.add_probe(
      "pythons",
      Value::list({Value::object({{"prefix", "/v"}, {"packages", Value::list({Value::object({{"name", "torch"}, {"version", "2.8.0"}})})}})}));
  c.add_probe("user", Value::object({{"uid", 1000}, {"groups", Value::list({Value::object({{"gid", 44}, {"name", "video"}})})}}));
  return c;
}

const Change* find(const Difference& difference, std::string_view name) {
  for (const Change& change : difference.changes)
    if (change.name == name) return &change;
  return nullptr;
}

TEST(Diff, KnowsWhetherThereIsAnythingToCompare) {
  EXPECT_TRUE(holds_comparable(machine()));
  Capture text;
  text.set_kind("loose");
  text.add_text("notes.txt", "hello\n");
  EXPECT_FALSE(holds_comparable(text));
  EXPECT_EQ(diff(text, machine()).compared, 0U);
  EXPECT_GT(diff(machine(), machine()).compared, 5U);
}

TEST(Diff, TheSameMachineDoesNotDiffer) {
  const Difference d = diff(machine(), machine());
  EXPECT_TRUE(d.changes.empty());
  EXPECT_TRUE(d.not_compared.empty());
  EXPECT_TRUE(d.groups_changed().empty());
}

TEST(Diff, WhatChangesByItselfIsNoChange) {
  Capture after = machine();
  after.add_file("/sys/class/drm/card0/device/hwmon/hwmon4/temp1_input", "90000\n");
  after.add_file("/sys/class/drm/card0/device/pp_dpm_sclk", "0: 2500Mhz *\n");
  after.add_file("/sys/class/drm/card0/device/gpu_busy_percent", "100\n");
  after.add_file("/proc/uptime", "99.0\n");
  after.add_command("dmesg", {.out = "new line"});
  EXPECT_TRUE(diff(machine(), after).changes.empty());
}

TEST(Diff, NamesWhatChangedUnderItsGroup) {
  Capture after = machine();
  after.add_command("dpkg", {.exit_status = 0, .out = "rocm-core\t7.1.0\tii \nnew\t1\tii \n"});
  after.add_probe("env", Value::object({{"HSA_OVERRIDE_GFX_VERSION", "10.3.0"}}));
  after.add_file("/sys/module/amdgpu/parameters/noretry", "1\n");
  after.add_file("/sys/class/drm/card0/device/fw_version/mec_fw_version", "0x00000080\n");
  after.add_file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz-6.8.0-63 root=/dev/sda ro quiet iommu=pt\n");
  after.add_file("/etc/modprobe.d/amdgpu.conf", "options amdgpu noretry=1\n");
  after.add_probe(
      "user",
      Value::object({{"uid", 1000},
                     {"groups", Value::list({Value::object({{"gid", 44}, {"name", "video"}}), Value::object({{"gid", 992}, {"name", "render"}})})}}));
  const Difference d = diff(machine(), after);
  ASSERT_NE(find(d, "rocm-core"), nullptr);
  EXPECT_EQ(find(d, "rocm-core")->before, "7.0.2");
  EXPECT_EQ(find(d, "rocm-core")->after, "7.1.0");
  EXPECT_FALSE(find(d, "new")->before);
  EXPECT_FALSE(find(d, "HSA_ENABLE_SDMA")->after);
  EXPECT_EQ(find(d, "noretry")->group, "driver");
  EXPECT_EQ(find(d, "0000:03:00.0 mec")->after, "0x00000080");
  EXPECT_EQ(find(d, "iommu")->after, "pt");
  EXPECT_EQ(find(d, "BOOT_IMAGE"), nullptr) << "follows the kernel";
  EXPECT_EQ(find(d, "/etc/modprobe.d/amdgpu.conf")->added_lines, (std::vector<std::string>{"options amdgpu noretry=1"}));
  EXPECT_EQ(find(d, "groups")->after, "render, video");
  EXPECT_EQ(find(d, "old"), nullptr) << "a removed package whose configuration is left";
  EXPECT_EQ(d.groups_changed(), (std::vector<std::string>{"packages", "environment", "driver", "configuration", "command-line", "access"}));
}

TEST(Diff, SaysWhatOnlyOneSideLookedAt) {
  Capture after = machine();
  after.remove_probe("env");
  const Difference d = diff(machine(), after);
  EXPECT_TRUE(d.changes.empty()) << "a variable that nobody looked for was not removed";
  ASSERT_EQ(d.not_compared.size(), 1u);
  EXPECT_EQ(d.not_compared[0].group, "environment");
  EXPECT_FALSE(d.not_compared[0].missing_in_first);
}

TEST(Diff, ComparesCardsByAddressAndNotByNumber) {
  Capture after = machine();
  after.remove("/sys/class/drm/card0");
  after.add_file("/sys/class/drm/card1/device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
  after.add_file("/sys/class/drm/card1/device/fw_version/mec_fw_version", "0x0000007f\n");
  EXPECT_TRUE(diff(machine(), after).changes.empty());
}

TEST(Diff, TheWidthOfACardsLinkIsSeenInItsOwnTree) {
  const auto tree = [](const std::string& width) {
    Capture c;
    c.add_file("/sys/class/drm/card0/device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
    c.add_file("/sys/class/drm/card0/device/current_link_width", width + "\n");
    return c;
  };
  const Difference d = diff(tree("16"), tree("4"));
  ASSERT_EQ(d.changes.size(), 1u);
  EXPECT_EQ(d.changes[0].name, "0000:03:00.0 link width");
  EXPECT_TRUE(diff(tree("16"), tree("16")).changes.empty());
}

}  // namespace
}  // namespace ff::capture
