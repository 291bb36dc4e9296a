// The real trees of other people's GPUs, when the samples lie beside the repository.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "capture/capture.h"
#include "facts/machine.h"
#include "knowledge/knowledge.h"
#include "support/paths.h"

namespace ff::facts {
namespace {

namespace fs = std::filesystem;

fs::path samples() { return ff::test::source_directory() / "../shared/samples"; }

/// Puts a directory's files under `to`; symbolic links are followed by nobody and not needed here.
void put(capture::Capture& capture, const fs::path& from, const std::string& to) {
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    capture.add_file(to + "/" + fs::relative(entry.path(), from).string(), {std::istreambuf_iterator<char>(file), {}});
  }
}

struct Expected {
  const char* name;
  const char* card;
  const char* gfx;
  double speed_gts;
  int width;
  const char* pci;
  std::optional<std::uint64_t> vram;
  std::optional<int> compute_units;
  bool integrated;
};

void PrintTo(const Expected& v, std::ostream* out) { *out << v.name; }

class RealTree : public ::testing::TestWithParam<Expected> {};

TEST_P(RealTree, GivesTheRightFacts) {
  const Expected& e = GetParam();
  const fs::path tree = samples() / "drm" / e.name;
  if (!fs::exists(tree)) GTEST_SKIP() << "no samples beside the repository";
  capture::Capture capture;
  put(capture, tree / e.card, std::string("/sys/class/drm/") + e.card);
  if (fs::exists(tree / "kfd/topology")) put(capture, tree / "kfd/topology", "/sys/class/kfd/kfd/topology");
  const Machine m = read_machine(capture, knowledge::Knowledge::built_in());
  ASSERT_EQ(m.gpus.size(), 1U);
  const Gpu& g = m.gpus[0];
  EXPECT_EQ(g.gfx.value, e.gfx);
  EXPECT_EQ(g.link.speed_gts.value, e.speed_gts);
  EXPECT_EQ(g.link.width.value, e.width);
  EXPECT_FALSE(g.link.parents_known);
  EXPECT_EQ(g.pci.value, e.pci);
  EXPECT_EQ(g.vram_total_bytes.value, e.vram);
  EXPECT_EQ(g.compute_units.value, e.compute_units);
  EXPECT_EQ(g.integrated.value, e.integrated);
  EXPECT_EQ(g.driver.value, "amdgpu");
  EXPECT_FALSE(m.pci_listed) << "a tree of one card says nothing about the bus";
  EXPECT_TRUE(g.throttle_reasons.empty());
  for (const auto& [label, value] : g.temperature_c) {
    EXPECT_GT(*value, 0) << label;
    EXPECT_LT(*value, 110) << label;
  }
}

INSTANTIATE_TEST_SUITE_P(Desktop, RealTree,
                         ::testing::Values(Expected{"rx7900xtx", "card0", "gfx1100", 16, 16, "0000:03:00.0", {}, {}, false},
                                           Expected{"rx7800xt", "card1", "gfx1101", 16, 16, "0000:03:00.0", {}, {}, false},
                                           Expected{"rx9070", "card1", "gfx1201", 32, 16, "0000:03:00.0", {}, {}, false},
                                           Expected{"rx6900xt", "card0", "gfx1030", 16, 16, "0000:0c:00.0", 17163091968U, {}, false},
                                           Expected{"rx5700xt", "card1", "gfx1010", 16, 16, "0000:28:00.0", {}, {}, false},
                                           Expected{"rx5500xt", "card1", "gfx1012", 16, 16, "0000:04:00.0", {}, {}, false},
                                           Expected{"vega56", "card0", "gfx900", 8, 16, "0000:0b:00.0", 8573157376U, {}, false},
                                           Expected{"vangogh", "card0", "gfx1033", 8, 16, "0000:04:00.0", 8589934592U, 8, true},
                                           Expected{"phoenix", "card1", "gfx1103", 16, 16, "0000:64:00.0", 4294967296U, 12, true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(RealKfdTree, OfEightMi210InTwoHivesOfFour) {
  if (!fs::exists(samples() / "kfd")) GTEST_SKIP() << "no samples beside the repository";
  capture::Capture capture;
  put(capture, samples() / "kfd/mi210-xgmi-pcie", "/sys/class/kfd/kfd/topology");
  const Machine m = read_machine(capture, knowledge::Knowledge::built_in());
  ASSERT_EQ(m.gpus.size(), 8U);
  EXPECT_EQ(m.driver.kfd_nodes.value, 10);
  std::map<std::string, int> hives;
  for (const Gpu& g : m.gpus) {
    EXPECT_EQ(g.gfx.value, "gfx90a");
    EXPECT_EQ(g.compute_units.value, 104);
    EXPECT_EQ(g.wavefront.value, 64);
    EXPECT_EQ(g.lds_kib.value, 64);
    EXPECT_EQ(g.pcie_atomics.value, true);
    EXPECT_EQ(g.xgmi.size(), 3U);
    EXPECT_EQ(g.package.value, g.pci.value) << "each MI210 is a package of its own";
    EXPECT_FALSE(g.partition);
    ++hives[g.hive.value_or("none")];
  }
  EXPECT_EQ(hives.size(), 2U);
  EXPECT_EQ(m.gpus[0].pci.value, "0000:03:00.0");
  EXPECT_EQ(m.gpus[0].kfd_node.value, 4);
  EXPECT_EQ(m.gpus[0].render_minor.value, 130);
  EXPECT_EQ(m.gpus[0].unique_id.value, "93bb3629c01aea1c");
}

TEST(RealKfdTree, OfAnOldKernelWithoutTargetVersion) {
  if (!fs::exists(samples() / "kfd")) GTEST_SKIP() << "no samples beside the repository";
  capture::Capture capture;
  put(capture, samples() / "kfd/one-gpu-copied/topology", "/sys/class/kfd/kfd/topology");
  const Machine m = read_machine(capture, knowledge::Knowledge::built_in());
  ASSERT_EQ(m.gpus.size(), 2U);
  EXPECT_EQ(m.gpus[0].gfx.value, "gfx900");
  EXPECT_EQ(m.gpus[0].compute_units.value, 64);
  EXPECT_EQ(m.gpus[0].vram_total_bytes.value, 17163091968U);
  EXPECT_FALSE(m.gpus[0].xcc);
}

TEST(ShippedTable, NamesEveryDeviceThatItHolds) {
  const auto& knowledge = knowledge::Knowledge::built_in();
  const auto& devices = knowledge.table("pci")["devices"];
  ASSERT_GT(devices.members().size(), 200U);
  for (const auto& [id, entry] : devices.members()) {
    capture::Capture capture;
    const std::string device = "/sys/class/drm/card0/device/";
    capture.add_file(device + "vendor", "0x1002\n");
    capture.add_file(device + "device", "0x" + id + "\n");
    capture.add_file(device + "class", "0x030000\n");
    capture.add_file(device + "uevent", "DRIVER=amdgpu\nPCI_ID=1002:" + id + "\nPCI_SLOT_NAME=0000:03:00.0\n");
    const Machine m = read_machine(capture, knowledge);
    ASSERT_EQ(m.gpus.size(), 1U) << id;
    EXPECT_EQ(m.gpus[0].gfx.value.value_or(""), entry["gfx"].as_text()) << id;
  }
}

}  // namespace
}  // namespace ff::facts
