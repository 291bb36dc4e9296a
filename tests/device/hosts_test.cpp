// The recorded machines and the real trees: right answers, and no failure where nothing is broken.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "capture/open.h"
#include "ladder/ladder.h"
#include "report/machine_summary.h"
#include "support/host_file.h"
#include "support/machines.h"
#include "support/paths.h"

namespace ff::device::test {
namespace {

namespace fs = std::filesystem;

fs::path source() { return ff::test::source_directory(); }

/// Climbs rung 1 on a capture, with the runner that `firstfault check` uses.
ladder::Climb climb(const capture::Capture& capture) {
  static constexpr std::array<ladder::RungEntry, 1> rung{{{Rung::device, &checks, [](const CheckInputs&) { return std::string(); }}}};
  CheckInputs inputs;
  inputs.live = false;
  const auto machine = facts::read_machine(capture, knowledge::Knowledge::built_in());
  auto out = ladder::climb({capture, machine, knowledge::Knowledge::built_in(), inputs, "", [](std::string_view) {}}, {}, {}, rung);
  for (const auto& check : out.rungs.at(0).checks) answers_so_far()[check.id].insert(check.status);
  return out;
}

std::string bad_ones(const ladder::Climb& climb) {
  std::string out;
  for (const auto& check : climb.rungs.at(0).checks)
    if (check.status == Status::fail || check.status == Status::error) out += check.id + ": " + check.summary + "\n";
  return out;
}

/// The hosts on which rung 1 does not hold, and the check that says so.
const std::map<std::string, std::string, std::less<>>& broken_hosts() {
  static const std::map<std::string, std::string, std::less<>> hosts{
      {"no-gpu", "device.gpu-on-bus"},
      {"mi300x-render-group", "device.nodes-openable"},
      {"strix-halo", "device.torch-covers-gpu"},  // its PyTorch is the rocm6.4 wheel, which has no gfx1151
  };
  return hosts;
}

TEST(Hosts, FailOnlyWhereSomethingIsBroken) {
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(source() / "tests/hosts")) {
    if (entry.path().extension() != ".host") continue;
    const auto name = entry.path().stem().string();
    ++seen;
    const auto result = climb(ff::test::host(name));
    const auto broken = broken_hosts().find(name);
    const std::string expected = broken == broken_hosts().end() ? "" : broken->second;
    EXPECT_EQ(result.first_fault, expected) << name << "\n" << bad_ones(result);
  }
  EXPECT_GE(seen, 8U);
}

TEST(Hosts, WithoutAGpuGiveOneFailureAndSkipsThatNameIt) {
  const auto result = climb(ff::test::host("no-gpu"));
  EXPECT_EQ(result.first_fault, "device.gpu-on-bus");
  std::size_t failures = 0, blocked = 0;
  for (const auto& check : result.rungs.at(0).checks) {
    if (check.status == Status::fail) ++failures;
    if (check.blocked_by == "device.gpu-on-bus") ++blocked;
  }
  EXPECT_EQ(failures, 1U) << bad_ones(result);
  EXPECT_GE(blocked, 20U);
  EXPECT_EQ(result.find("device.gpu-on-bus")->causes.front(), "device.no-gpu-on-bus");
}

TEST(Hosts, InAContainerNameTheHostsGroupNumber) {
  const auto result = climb(ff::test::host("mi300x-render-group"));
  const auto* check = result.find("device.nodes-openable");
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(check->causes.front(), "container.group-not-mapped");
  EXPECT_NE(check->summary.find("group 992 of the host"), std::string::npos) << check->summary;
  EXPECT_NE(check->summary.find("its own group \"render\" is 109"), std::string::npos) << check->summary;
  EXPECT_NE(check->fix.front().find("--group-add 992"), std::string::npos);
}

TEST(Hosts, SayWhatAnIntegratedGpuIsNotApplicableFor) {
  const auto result = climb(ff::test::host("strix-halo"));
  for (const auto* id : {"device.pcie-link", "device.bar-space", "device.pcie-atomics"})
    EXPECT_NE(result.find(id)->summary.find("not applicable"), std::string::npos) << id << ": " << result.find(id)->summary;
}

TEST(Hosts, SeePartitionsAsWhole) {
  const auto result = climb(ff::test::host("mi300x-cpx"));
  EXPECT_EQ(bad_ones(result), "");
  EXPECT_EQ(result.find("device.kfd-present")->status, Status::pass) << result.find("device.kfd-present")->summary;
}

/// The two packages in CPX mode with what this adds.
std::string on_the_second_card(int nodes_from, int nodes_to, std::string text) {
  std::string nodes = R"("/dev/kfd": {"errno": 0, "how": "open"})";
  for (int n = nodes_from; n <= nodes_to; ++n)
    if (!text.ends_with(fmt::format("renderD{}\n", n))) nodes += fmt::format(R"(, "/dev/dri/renderD{}": {{"errno": 0, "how": "open"}})", n);
  return text + "== probe access\n{" + nodes + "}\n";
}

TEST(Hosts, CountWhatACardCountsOnceHoweverManyPartitionsItHas) {
  const auto result = climb(ff::test::host("mi300x-cpx", "== file /sys/class/drm/card0/device/ras/umc_err_count\nue: 2\nce: 0\nde: 0\n"));
  const auto* check = result.find("device.ras-counters");
  EXPECT_EQ(check->status, Status::fail) << check->summary;
  EXPECT_EQ(check->summary.find("more of this kind"), std::string::npos) << check->summary;
  EXPECT_EQ(check->measured["gpus"].items().size(), 2U) << "two cards";
  const auto warm = climb(ff::test::host("mi300x-cpx")).find("device.temperature")->measured["sensors"].items().size();
  const auto spx = climb(ff::test::host("mi300x")).find("device.temperature")->measured["sensors"].items().size();
  EXPECT_EQ(4 * warm, spx) << "two cards against eight";
  const auto machine = facts::read_machine(ff::test::host("mi300x-cpx"), knowledge::Knowledge::built_in());
  EXPECT_TRUE(report::machine_summary(machine).starts_with("2 x AMD Instinct MI300X (gfx942) as 16 CPX partitions"))
      << report::machine_summary(machine);
}

TEST(Hosts, NameTheRenderNodeThatUdevDidNotMakeAndTheLinkToIt) {
  const auto missing = on_the_second_card(128, 143,
                                          "== link /dev/dri/by-path/pci-0000:26:00.0-render -> ../renderD137\n"
                                          "== absent /dev/dri/renderD137\n");
  const auto result = climb(ff::test::host("mi300x-cpx", missing));
  const auto* check = result.find("device.nodes-openable");
  EXPECT_EQ(check->status, Status::fail) << check->summary;
  EXPECT_EQ(check->causes.front(), "permission.device-node-mode") << check->summary;
  EXPECT_NE(check->summary.find("/dev/dri/renderD137 does not exist"), std::string::npos) << check->summary;
  EXPECT_NE(check->fix.front().find("udevadm"), std::string::npos) << check->fix.front();
  for (const auto& line : check->fix) EXPECT_EQ(line.find("kfd"), std::string::npos) << "the advice is about another node: " << line;
  EXPECT_TRUE(std::ranges::any_of(check->evidence, [](const Evidence& e) { return e.source.ends_with("pci-0000:26:00.0-render"); }));
}

TEST(Hosts, NameLinksThatLeadNowhere) {
  const auto stale = climb(ff::test::host("rx7900xtx", "== link /dev/dri/by-path/pci-0000:2d:00.0-render -> ../renderD129\n"));
  const auto* nodes = stale.find("device.nodes-openable");
  EXPECT_EQ(nodes->status, Status::warn) << nodes->summary;
  EXPECT_NE(nodes->summary.find("pci-0000:2d:00.0-render leads to ../renderD129"), std::string::npos) << nodes->summary;
  const auto good = climb(ff::test::host("rx7900xtx", "== link /dev/dri/by-path/pci-0000:03:00.0-render -> ../renderD128\n"));
  EXPECT_EQ(good.find("device.nodes-openable")->status, Status::pass) << good.find("device.nodes-openable")->summary;
  const auto rocm =
      climb(ff::test::host("rx7900xtx",
                           "== probe rocm\n"
                           R"([{"root": "/opt/rocm", "kind": "system", "libraries": {}, "is_link_to": "", "dangling": "/opt/rocm-6.4.0"}, )"
                           R"({"root": "/opt/rocm-7.0.2", "kind": "system", "version": "7.0.2-98", "libraries": {"libamdhip64.so.7": ""}}])"
                           "\n"));
  const auto* one = rocm.find("device.one-rocm");
  EXPECT_EQ(one->status, Status::warn) << one->summary;
  EXPECT_EQ(one->causes.front(), "runtime.library-missing");
  EXPECT_NE(one->summary.find("/opt/rocm leads to /opt/rocm-6.4.0, which is not there"), std::string::npos) << one->summary;
  EXPECT_NE(one->fix.front().find("ln -sfn /opt/rocm-7.0.2 /opt/rocm"), std::string::npos) << one->fix.front();
  EXPECT_TRUE(std::ranges::any_of(one->evidence, [](const Evidence& e) { return e.text.find("libamdhip64.so.7") != std::string::npos; }));
}

TEST(Hosts, SeeThatAPartitionIsMissing) {
  // Number 3 of the second package, then its last one, which only the other package tells.
  for (const auto& [node, words] : {std::pair{"13", "number 3 is missing"}, {"17", "as many as 0000:05:00.0 has): number 7 is missing"}}) {
    const auto result = climb(ff::test::host("mi300x-cpx", fmt::format("== remove /sys/class/kfd/kfd/topology/nodes/{}\n", node)));
    const auto* check = result.find("device.kfd-present");
    EXPECT_EQ(check->status, Status::fail) << check->summary;
    EXPECT_NE(check->summary.find(words), std::string::npos) << check->summary;
    EXPECT_NE(check->summary.find("7 of the 8 partitions"), std::string::npos) << check->summary;
  }
}

/// One variant of a recorded machine, and the check that must say so through the readers of the facts.
struct Variant {
  const char* host;
  const char* check;
  Status status;
  const char* cause;
  const char* text;
};

void PrintTo(const Variant& v, std::ostream* out) { *out << v.host << ' ' << v.check; }

class HostVariant : public testing::TestWithParam<Variant> {};

TEST_P(HostVariant, IsSeenThroughTheFacts) {
  const auto& v = GetParam();
  const auto result = climb(ff::test::host(v.host, v.text));
  const auto* check = result.find(v.check);
  ASSERT_NE(check, nullptr);
  EXPECT_EQ(status_name(check->status), status_name(v.status)) << check->summary;
  EXPECT_EQ(check->causes.empty() ? "" : check->causes.front(), v.cause) << check->summary;
}

INSTANTIATE_TEST_SUITE_P(
    Rx7900xtx, HostVariant,
    testing::Values(Variant{"rx7900xtx", "device.override", Status::fail, "runtime.override-harmful",
                            "== probe env\n{\"VIRTUAL_ENV\": \"/opt/venv\", \"HSA_OVERRIDE_GFX_VERSION\": \"10.3.0\"}\n"},
                    Variant{"rx7900xtx", "device.visible-devices", Status::fail, "runtime.visible-devices",
                            "== probe env\n{\"VIRTUAL_ENV\": \"/opt/venv\", \"HIP_VISIBLE_DEVICES\": \"1\"}\n"},
                    Variant{"rx7900xtx", "device.pcie-link", Status::fail, "hardware.pcie-link-degraded",
                            "== value /sys/bus/pci/devices/0000:01:00.0/current_link_width 4\n"},
                    Variant{"rx7900xtx", "device.aer-counters", Status::fail, "hardware.pcie-errors",
                            "== file /sys/bus/pci/devices/0000:03:00.0/aer_dev_fatal\nDLP 1\nTLP 0\n"},
                    Variant{"rx7900xtx", "device.dkms-built", Status::warn, "driver.dkms-build-failed",
                            "== cmd dkms-status exit=0 -- dkms status\namdgpu/6.14.14-2226257.24.04, 6.8.0-60-generic, x86_64: installed\n"},
                    Variant{"rx7900xtx", "device.module-parameters", Status::warn, "driver.module-parameter",
                            "== value /sys/module/amdgpu/parameters/sched_policy 2\n"},
                    Variant{"rx7900xtx", "device.shared-memory", Status::warn, "memory.host-limits",
                            "== probe shm\n{\"path\": \"/dev/shm\", \"total_bytes\": 67108864, \"free_bytes\": 67108864, \"used_bytes\": 0}\n"},
                    Variant{"rx7900xtx", "device.reboot-pending", Status::warn, "driver.reboot-pending",
                            "== file /var/run/reboot-required\n*** System restart required ***\n"}));

TEST(Hosts, WarnAboutAnIntegratedGpuBesideADiscreteOne) {
  const auto result = climb(ff::test::host("igpu-beside-dgpu"));
  EXPECT_EQ(result.find("device.integrated-beside-discrete")->status, Status::warn) << result.find("device.integrated-beside-discrete")->summary;
}

// The real trees lie beside the repository when it is developed; the project passes without them.
fs::path samples() { return source() / "../shared/samples"; }

TEST(RealTrees, OfDrmDevicesGiveNoFalseFailure) {
  if (!fs::exists(samples() / "drm")) GTEST_SKIP() << "no sample trees here";
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(samples() / "drm")) {
    if (!entry.is_directory()) continue;
    const auto capture = capture::open({entry.path().string()});
    ASSERT_TRUE(capture) << entry.path() << capture.error().to_string();
    const auto result = climb(*capture);
    EXPECT_EQ(bad_ones(result), "") << entry.path();
    EXPECT_EQ(result.find("device.gpu-on-bus")->status, Status::pass) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 9U);
}

// A part of a tree is placed by where it lies.
TEST(RealTrees, InPartsAreRecognised) {
  if (!fs::exists(samples() / "drm")) GTEST_SKIP() << "no sample trees here";
  for (const auto* part :
       {"drm/rx7900xtx/card0", "drm/rx7900xtx/card0/device", "drm/rx7900xtx/card0/device/uevent", "drm/rx7900xtx/card0/device/hwmon",
        "kfd/mi210-xgmi-pcie/nodes", "kfd/mi210-xgmi-pcie/nodes/2", "kfd/mi210-xgmi-pcie/nodes/2/properties"}) {
    const auto capture = capture::open({(samples() / part).string()});
    ASSERT_TRUE(capture) << part;
    EXPECT_EQ(climb(*capture).find("device.gpu-on-bus")->status, Status::pass) << part;
    EXPECT_TRUE(capture->probe("env").is_null()) << part;
  }
  const auto links = capture::open({(samples() / "kfd/mi210-xgmi-pcie/nodes/2/io_links").string()});
  ASSERT_TRUE(links);
  EXPECT_NE(links->file("/sys/class/kfd/kfd/topology/nodes/2/io_links/0/properties"), std::nullopt);
}

TEST(RealTrees, OfKfdTopologiesGiveNoFalseFailure) {
  if (!fs::exists(samples() / "kfd")) GTEST_SKIP() << "no sample trees here";
  for (const auto* name : {"mi210-xgmi-pcie", "one-gpu-copied"}) {
    const auto capture = capture::open({(samples() / "kfd" / name).string()});
    ASSERT_TRUE(capture) << name;
    EXPECT_EQ(bad_ones(climb(*capture)), "") << name;
  }
  const auto mi210 = climb(*capture::open({(samples() / "kfd/mi210-xgmi-pcie").string()}));
  EXPECT_EQ(mi210.find("device.xgmi-complete")->status, Status::pass) << mi210.find("device.xgmi-complete")->summary;
  EXPECT_NE(mi210.find("device.gpu-on-bus")->summary.find("8 AMD GPUs"), std::string::npos);
}

}  // namespace
}  // namespace ff::device::test
