#include "support/machines.h"

namespace ff::device::test {
namespace {

void dmesg(Subject& s, std::string text, std::string name = "dmesg") {
  capture::CommandOutput output;
  output.out = std::move(text);
  output.exit_status = 0;
  s.capture.add_command(name, std::move(output));
}

// Lines as amdgpu of Linux 6.12 prints them when it starts well.
constexpr auto quiet =
    "[    3.201] [drm] amdgpu kernel modesetting enabled.\n"
    "[    3.402] [drm] initializing kernel modesetting (IP DISCOVERY 0x1002:0x744C 0x1EAE:0x7901 0xC8).\n"
    "[    4.110] amdgpu 0000:03:00.0: amdgpu: VRAM: 24560M 0x0000008000000000 - 0x00000085FEFFFFFF (24560M used)\n"
    "[    4.910] kfd kfd: amdgpu: added device 1002:744c\n"
    "[    4.950] [drm] Initialized amdgpu 3.59.0 for 0000:03:00.0 on minor 1\n";

TEST(KernelLogClean, PassesAQuietLogAndSkipsWithoutOne) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.kernel-log-clean").status, Status::skip);
  dmesg(s, quiet);
  const auto result = s.ask("device.kernel-log-clean");
  EXPECT_EQ(result.status, Status::pass) << result.summary;
}

TEST(KernelLogClean, FailsOnAFaultOfTheHardware) {
  auto s = desktop();
  dmesg(s, std::string(quiet) +
               "[  812.100] amdgpu 0000:03:00.0: amdgpu: {1}socket: 0 1 uncorrectable hardware errors detected in umc block\n"
               "[  812.101] amdgpu 0000:03:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n"
               "[  813.000] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n");
  const auto result = s.ask("device.kernel-log-clean");
  EXPECT_EQ(result.status, Status::fail) << result.summary;
  ASSERT_FALSE(result.causes.empty());
  EXPECT_TRUE(result.causes.front().starts_with("hardware.")) << result.causes.front();
  ASSERT_FALSE(result.evidence.empty());
  EXPECT_GE(result.evidence.front().line, 6U);
}

TEST(KernelLogClean, WarnsAboutAProgramsOwnFault) {
  auto s = desktop();
  dmesg(s, std::string(quiet) +
               "[  901.000] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32779)\n"
               "[  901.001] amdgpu 0000:03:00.0: amdgpu:  in process python3 pid 4242 thread python3 pid 4242\n"
               "[  901.002] amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x00007f31d6000000 from client 10\n"
               "[  901.003] amdgpu 0000:03:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00801431\n");
  const auto result = s.ask("device.kernel-log-clean");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
  ASSERT_FALSE(result.causes.empty());
  EXPECT_TRUE(result.causes.front().starts_with("kernel-fault.")) << result.causes.front();
}

TEST(KernelLogClean, WarnsAboutAFaultOfTheHardwareInTheBootBefore) {
  auto s = desktop();
  dmesg(s, quiet);
  dmesg(s, "2026-11-29T10:00:00+00:00 host kernel: amdgpu 0000:03:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n",
        "journalctl-k-previous");
  const auto result = s.ask("device.kernel-log-clean");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
  EXPECT_NE(result.summary.find("the boot before"), std::string::npos) << result.summary;
  ASSERT_FALSE(result.causes.empty());
  EXPECT_TRUE(result.causes.front().starts_with("hardware.")) << result.causes.front();
}

TEST(KernelLogClean, LeavesAProgramsFaultInTheBootBeforeOut) {
  auto s = desktop();
  dmesg(s, quiet);
  dmesg(s, "2026-11-29T10:00:00+00:00 host kernel: amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32779)\n",
        "journalctl-k-previous");
  EXPECT_EQ(s.ask("device.kernel-log-clean").status, Status::pass);
}

TEST(KernelLogClean, WarnsAboutResetsWithoutAReason) {
  auto s = desktop();
  dmesg(s, std::string(quiet) +
               "[  813.000] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n[  814.000] amdgpu 0000:03:00.0: amdgpu: GPU reset(1) succeeded!\n");
  const auto result = s.ask("device.kernel-log-clean");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
}

TEST(DriverAnswers, SeesADeviceThatLeftTheBusAndADumpThatWaits) {
  auto gone = desktop();
  gone.capture.add_file("/sys/bus/pci/devices/0000:03:00.0/config", std::string(256, '\xff'));
  const auto fell = gone.ask("device.driver-answers");
  EXPECT_EQ(fell.status, Status::fail) << fell.summary;
  EXPECT_EQ(fell.causes.front(), "hardware.fell-off-bus");
  auto dump = desktop();
  dump.capture.add_file("/sys/class/devcoredump/devcd1/data", "x");
  const auto kept = dump.ask("device.driver-answers");
  EXPECT_EQ(kept.status, Status::warn) << kept.summary;
  EXPECT_EQ(kept.causes.front(), "kernel-fault.hang");
  EXPECT_NE(kept.summary.find("1 device core dump"), std::string::npos) << kept.summary;
}

Subject strix_halo() {
  auto s = desktop();
  auto& g = s.gpu();
  g.gfx = known("gfx1151");
  g.product = known("Radeon 8060S");
  g.integrated = known(true);
  g.firmware["mes"] = known("0x00000080", "/sys/class/drm/card1/device/fw_version/mes_fw_version");
  s.machine.driver.amdgpu_version = known("");
  s.machine.host.kernel_release = known("6.18.9-200.fc43.x86_64", "/proc/sys/kernel/osrelease");
  return s;
}

TEST(KnownBad, ComparesFirmwareKernelAndRocm) {
  EXPECT_EQ(desktop().ask("device.known-bad").status, Status::pass);
  auto s = strix_halo();
  EXPECT_EQ(s.ask("device.known-bad").status, Status::pass) << s.ask("device.known-bad").summary;
  s.gpu().firmware["mes"] = known("0x00000083");
  auto result = s.ask("device.known-bad");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "driver.firmware-fault");
  s.gpu().firmware["mes"] = known("0x00140083");
  EXPECT_EQ(s.ask("device.known-bad").status, Status::warn) << "the version is in the lower bits";
  s = strix_halo();
  s.machine.pythons.at(0).torch_hip = known("7.1.25424");
  EXPECT_EQ(s.ask("device.known-bad").causes.front(), "version.known-bug");
  s = strix_halo();
  s.machine.host.kernel_release = known("6.14.0-37-generic");
  EXPECT_EQ(s.ask("device.known-bad").causes.front(), "driver.kernel-too-old");
  s.machine.driver.amdgpu_version = known("6.16.13");
  EXPECT_EQ(s.ask("device.known-bad").status, Status::pass) << "a driver package replaces the kernel's driver";
  s.gpu().firmware["mes"] = known("0x00000083");
  s.gpu().gfx = known("gfx1100");
  EXPECT_EQ(s.ask("device.known-bad").status, Status::pass) << "another GPU";
}

}  // namespace
}  // namespace ff::device::test
