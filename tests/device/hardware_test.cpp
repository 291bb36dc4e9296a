#include "support/machines.h"

namespace ff::device::test {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t gib = 1ULL << 30;

TEST(PcieLink, FailsOnMissingLanes) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::pass);
  s.gpu().link.width = known(4, "/sys/bus/pci/devices/0000:01:00.0/current_link_width");
  const auto result = s.ask("device.pcie-link");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "hardware.pcie-link-degraded");
  EXPECT_NE(result.summary.find("is x4 at 16 GT/s, card and slot can do x16 at 16 GT/s (judged at 0000:01:00.0)"), std::string::npos)
      << result.summary;
  s.gpu().link.slot_max_width = known(4);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::pass) << "the slot has no more lanes";
}

TEST(PcieLink, KnowsPowerSavingFromALoss) {
  auto s = desktop();
  auto& g = s.gpu();
  g.link.speed_gts = known(2.5);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::pass) << "an idle link is slow";
  g.busy_percent = known(99);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::warn) << "a busy one is not";
  g.busy_percent = known(1);
  g.link.width = known(1);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::fail);
  s.capture.add_file("/sys/class/drm/card1/device/pp_dpm_pcie", "0: 2.5GT/s, x1 310Mhz *\n1: 16.0GT/s, x16 619Mhz \n");
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::pass) << "its own list of states has one lane for idling";
  g.busy_percent = known(99);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::fail);
}

TEST(PcieLink, LeavesOutWhatHasNoSlotOrSleeps) {
  auto s = desktop();
  s.gpu().link.width = known(1);
  s.gpu().asleep = known(true);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::skip);
  s.gpu().integrated = known(true);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::skip);
  s.gpu().integrated = known(false);
  s.gpu().virtual_function = known(true);
  EXPECT_EQ(s.ask("device.pcie-link").status, Status::skip);
}

TEST(XgmiComplete, FindsMissingAndOneSidedLinks) {
  auto s = server();
  EXPECT_EQ(s.ask("device.xgmi-complete").status, Status::pass);
  std::erase_if(s.gpu(1).xgmi, [](const auto& link) { return link.to_node == 4; });
  auto result = s.ask("device.xgmi-complete");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "hardware.xgmi-errors");
  EXPECT_NE(result.summary.find("not the other way round"), std::string::npos) << result.summary;
  std::erase_if(s.gpu(2).xgmi, [](const auto& link) { return link.to_node == 3; });
  result = s.ask("device.xgmi-complete");
  EXPECT_NE(result.summary.find("no link between them"), std::string::npos) << result.summary;
  auto alone = server();
  alone.gpu(3).hive = {};
  for (std::size_t i = 0; i < 3; ++i) std::erase_if(alone.gpu(i).xgmi, [](const auto& link) { return link.to_node == 5; });
  EXPECT_EQ(alone.ask("device.xgmi-complete").status, Status::warn) << "unlike its equals it is in no hive";
  EXPECT_EQ(desktop().ask("device.xgmi-complete").status, Status::skip);
}

TEST(XgmiComplete, AsksNoLinksBetweenPartitionsOfOnePackage) {
  auto s = server();
  for (auto& g : s.machine.gpus) {
    g.package = known("43449a3d9e4c51c0");
    g.xgmi.clear();
  }
  EXPECT_EQ(s.ask("device.xgmi-complete").status, Status::skip);
}

TEST(AerCounters, WeighTheKindOfError) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.aer-counters").status, Status::pass);
  s.gpu().aer["cor.RxErr"] = known(std::uint64_t{7});
  EXPECT_EQ(s.ask("device.aer-counters").status, Status::pass);
  s.gpu().aer["cor.RxErr"] = known(std::uint64_t{5000});
  EXPECT_EQ(s.ask("device.aer-counters").status, Status::warn);
  s.gpu().aer["nonfatal.CmpltTO"] = known(std::uint64_t{1});
  EXPECT_EQ(s.ask("device.aer-counters").status, Status::warn);
  s.gpu().aer["fatal.DLP"] = known(std::uint64_t{1}, "/sys/bus/pci/devices/0000:03:00.0/aer_dev_fatal");
  const auto result = s.ask("device.aer-counters");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "hardware.pcie-errors");
  EXPECT_NE(result.summary.find("DLP 1"), std::string::npos);
  s.gpu().aer.clear();
  EXPECT_EQ(s.ask("device.aer-counters").status, Status::skip);
}

TEST(IommuMultiGpu, MattersBetweenGpus) {
  auto s = desktop();
  s.machine.host.iommu_mode = known("translated", "/proc/cmdline");
  EXPECT_EQ(s.ask("device.iommu-multi-gpu").status, Status::skip);
  auto two = server();
  EXPECT_EQ(two.ask("device.iommu-multi-gpu").status, Status::pass);
  two.machine.host.iommu_mode = known("translated", "/proc/cmdline");
  const auto result = two.ask("device.iommu-multi-gpu");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "communication.peer-access-blocked");
  EXPECT_NE(result.fix.front().find("iommu=pt"), std::string::npos);
}

TEST(IommuMultiGpu, SeesAcsRedirection) {
  auto s = server();
  s.gpu(0).acs_redirect = known(false, "/sys/bus/pci/devices/0000:20:01.0/config");
  s.gpu(1).acs_redirect = known(true, "/sys/bus/pci/devices/0000:40:01.0/config");
  EXPECT_EQ(s.ask("device.iommu-multi-gpu").status, Status::pass) << "XGMI joins all of them";
  for (auto& g : s.machine.gpus) g.hive = {};
  const auto result = s.ask("device.iommu-multi-gpu");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("above 1 of 2 GPUs redirect"), std::string::npos) << result.summary;
  ASSERT_FALSE(result.evidence.empty());
  EXPECT_EQ(result.evidence.back().source, "/sys/bus/pci/devices/0000:40:01.0/config");
}

TEST(RasCounters, FailOnUncorrectableErrors) {
  auto s = server();
  EXPECT_EQ(s.ask("device.ras-counters").status, Status::pass);
  s.gpu(1).ras.at(0).correctable = 3;
  EXPECT_EQ(s.ask("device.ras-counters").status, Status::pass);
  s.gpu(1).ras.at(0).correctable = 300;
  EXPECT_EQ(s.ask("device.ras-counters").causes.front(), "hardware.correctable-ecc-rising");
  s.gpu(1).ras.at(0).deferred = 1;
  EXPECT_EQ(s.ask("device.ras-counters").status, Status::warn);
  s.gpu(1).ras.at(0).uncorrectable = 1;
  const auto result = s.ask("device.ras-counters");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "hardware.uncorrectable-ecc");
  EXPECT_NE(result.summary.find("0000:43:00.0"), std::string::npos) << result.summary;
  EXPECT_EQ(desktop().ask("device.ras-counters").status, Status::skip);
}

TEST(RetiredPages, HaveALimit) {
  auto s = server();
  EXPECT_EQ(s.ask("device.retired-pages").status, Status::pass);
  s.gpu().bad_pages = known(63);
  EXPECT_EQ(s.ask("device.retired-pages").status, Status::pass);
  s.gpu().bad_pages = known(64);
  EXPECT_EQ(s.ask("device.retired-pages").status, Status::warn);
  s.gpu().bad_pages = known(128);
  EXPECT_EQ(s.ask("device.retired-pages").status, Status::fail);
  s.machine.driver.parameters["bad_page_threshold"] = known("400");
  EXPECT_EQ(s.ask("device.retired-pages").status, Status::pass) << "the driver's own threshold";
  s.gpu().bad_pages_pending = known(1);
  EXPECT_EQ(s.ask("device.retired-pages").status, Status::warn);
}

TEST(Temperature, ComparesWithTheSensorsOwnLimit) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.temperature").status, Status::pass);
  s.gpu().temperature_c["mem"] = known(0.0);
  s.gpu().temperature_limit_c["mem"] = known(0.0);
  EXPECT_EQ(s.ask("device.temperature").status, Status::pass) << "a sensor that the board lacks reads 0";
  s.gpu().temperature_c["junction"] = known(106.0);
  EXPECT_EQ(s.ask("device.temperature").status, Status::warn);
  s.gpu().temperature_c["junction"] = known(110.0);
  const auto result = s.ask("device.temperature");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "hardware.thermal");
  s.gpu().temperature_limit_c.clear();
  EXPECT_EQ(s.ask("device.temperature").status, Status::skip);
}

TEST(PowerCap, WarnsFarBelowTheDefault) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.power-cap").status, Status::pass);
  s.gpu().power_cap_w = known(200.0);
  EXPECT_EQ(s.ask("device.power-cap").status, Status::warn);
  EXPECT_EQ(s.ask("device.power-cap").causes.front(), "hardware.power");
}

TEST(ThrottleReasons, AreNamed) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.throttle-reasons").status, Status::pass);
  s.gpu().throttle_bits = known(std::uint64_t{1} << 36);
  s.gpu().throttle_reasons = {"TEMP_HOTSPOT"};
  EXPECT_EQ(s.ask("device.throttle-reasons").causes.front(), "hardware.thermal");
  s.gpu().throttle_reasons = {"PPT0"};
  EXPECT_EQ(s.ask("device.throttle-reasons").causes.front(), "hardware.power");
  EXPECT_EQ(s.ask("device.throttle-reasons").status, Status::warn);
}

TEST(PerformanceLevel, WarnsWhenHeldLow) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.performance-level").status, Status::pass);
  s.gpu().performance_level = known("low");
  EXPECT_EQ(s.ask("device.performance-level").causes.front(), "performance.low-clocks");
}

TEST(VramFree, NamesWhoHoldsIt) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.vram-free").status, Status::pass);
  facts::GpuProcess p;
  p.pid = 4242;
  p.command = "python3";
  p.vram_bytes = known(20 * gib);
  s.machine.gpu_processes.push_back(p);
  s.gpu().vram_used_bytes = known(20 * gib);
  auto result = s.ask("device.vram-free");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("python3 (pid 4242, 20 GiB)"), std::string::npos) << result.summary;
  s.gpu().vram_used_bytes = known(24 * gib - 100 * mib);
  result = s.ask("device.vram-free");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "memory.held-by-others");
  s.gpu().integrated = known(true);
  EXPECT_EQ(s.ask("device.vram-free").status, Status::skip);
}

TEST(Memlock, MattersWithSeveralGpus) {
  auto s = desktop();
  s.machine.limits.memlock = known("65536", "probe/limits");
  EXPECT_EQ(s.ask("device.memlock").status, Status::pass);
  s.capture.add_file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  EXPECT_EQ(s.ask("device.memlock").causes.front(), "memory.host-limits");
  auto many = server();
  EXPECT_EQ(many.ask("device.memlock").status, Status::pass);
  many.machine.limits.memlock = known("65536");
  many.machine.container.kind = known("docker");
  const auto result = many.ask("device.memlock");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "container.confined");
  EXPECT_NE(result.fix.front().find("--ulimit memlock=-1"), std::string::npos);
}

TEST(SharedMemory, KnowsDockersDefault) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.shared-memory").status, Status::pass);
  s.machine.container.kind = known("docker");
  s.machine.container.shm_bytes = known(64 * mib);
  const auto result = s.ask("device.shared-memory");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "container.shared-memory-small");
  EXPECT_NE(result.fix.front().find("--shm-size"), std::string::npos);
  s.machine.container.shm_used_bytes = known(60 * mib);
  EXPECT_EQ(s.ask("device.shared-memory").status, Status::fail);
}

TEST(DiskSpace, CountsBytesAndInodes) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.disk-space").status, Status::pass);
  auto& disk = s.machine.disks.at(0);
  disk.free_bytes = known(2 * gib);
  EXPECT_EQ(s.ask("device.disk-space").status, Status::warn);
  disk.free_bytes = known(10 * mib);
  EXPECT_EQ(s.ask("device.disk-space").status, Status::fail);
  EXPECT_EQ(s.ask("device.disk-space").causes.front(), "runtime.disk-full");
  disk.free_bytes = known(200 * gib);
  disk.free_inodes = known(std::uint64_t{3});
  const auto result = s.ask("device.disk-space");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_NE(result.summary.find("3 inodes"), std::string::npos) << result.summary;
  disk.purpose = "root";
  EXPECT_EQ(s.ask("device.disk-space").status, Status::pass) << "nobody writes to a small root file system";
}

TEST(PathsWritable, FailOnlyForTheTemporaryDirectory) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.paths-writable").status, Status::pass);
  for (auto& disk : s.machine.disks)
    if (disk.purpose == "cache:miopen") {
      disk.writable = known(false);
      disk.options = known("ro,relatime");
    }
  auto result = s.ask("device.paths-writable");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("mounted read-only"), std::string::npos) << result.summary;
  for (auto& disk : s.machine.disks)
    if (disk.purpose == "tmp") disk.writable = known(false);
  EXPECT_EQ(s.ask("device.paths-writable").status, Status::fail);
  EXPECT_EQ(s.ask("device.paths-writable").causes.front(), "permission.path-not-writable");
}

TEST(HostMemory, HasTwoMarks) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.host-memory").status, Status::pass);
  s.machine.host.memory_available_bytes = known(2 * gib);
  EXPECT_EQ(s.ask("device.host-memory").status, Status::warn);
  s.machine.host.memory_available_bytes = known(100 * mib);
  EXPECT_EQ(s.ask("device.host-memory").causes.front(), "memory.host-exhausted");
  EXPECT_EQ(s.ask("device.host-memory").status, Status::fail);
}

TEST(CpuGovernor, KnowsDriversWherePowersaveIsNormal) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.cpu-governor").status, Status::pass);
  s.machine.host.governor = known("powersave");
  EXPECT_EQ(s.ask("device.cpu-governor").status, Status::pass) << "the scaling driver is not known";
  s.capture.add_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n");
  EXPECT_EQ(s.ask("device.cpu-governor").status, Status::warn);
  s.capture.add_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "amd-pstate-epp\n");
  EXPECT_EQ(s.ask("device.cpu-governor").status, Status::pass);
}

TEST(NumaBalancing, MattersWithSeveralNodes) {
  auto s = server();
  EXPECT_EQ(s.ask("device.numa-balancing").status, Status::pass);
  s.machine.host.numa_balancing = known(1, "/proc/sys/kernel/numa_balancing");
  EXPECT_EQ(s.ask("device.numa-balancing").causes.front(), "performance.host-bound");
  s.machine.host.numa_nodes = known(1);
  EXPECT_EQ(s.ask("device.numa-balancing").status, Status::skip);
}

}  // namespace
}  // namespace ff::device::test
