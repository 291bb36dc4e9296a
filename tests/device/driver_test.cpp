#include <cerrno>

#include "support/machines.h"

namespace ff::device::test {
namespace {

testing::AssertionResult says(const CheckResult& result, Status status, std::string_view cause, std::string_view words) {
  if (result.status != status) return testing::AssertionFailure() << status_name(result.status) << ": " << result.summary;
  if (!cause.empty() && (result.causes.empty() || result.causes.front() != cause))
    return testing::AssertionFailure() << "cause " << (result.causes.empty() ? "none" : result.causes.front()) << ": " << result.summary;
  if (result.summary.find(words) == std::string::npos) return testing::AssertionFailure() << "summary: " << result.summary;
  return testing::AssertionSuccess();
}

TEST(GpuOnBus, PassesWithNamesAndFailsWhenTheBusHoldsNone) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.gpu-on-bus"), Status::pass, "", "Radeon RX 7900 XTX at 0000:03:00.0"));
  s.machine.gpus.clear();
  s.machine.kernel_log.clear();
  s.machine.pci_devices.front().vendor_id = known(0x10deU);
  s.machine.pci_devices.front().name = known("NVIDIA H200");
  const auto result = s.ask("device.gpu-on-bus");
  EXPECT_TRUE(says(result, Status::fail, "device.no-gpu-on-bus", "there is 0000:03:00.0 (NVIDIA H200)"));
  s.machine.pci_devices.clear();
  EXPECT_TRUE(says(s.ask("device.gpu-on-bus"), Status::fail, "device.no-gpu-on-bus", "no PCI device at all"));
}

TEST(GpuOnBus, TellsAGpuThatWentAwayFromOneThatNeverWas) {
  auto s = desktop();
  s.machine.gpus.clear();
  s.machine.kernel_log.clear();
  log_line(s, "[    5.1] amdgpu 0000:03:00.0: amdgpu: added device 1002:744c");
  EXPECT_TRUE(says(s.ask("device.gpu-on-bus"), Status::fail, "hardware.fell-off-bus", "earlier in this boot"));
  s.machine.kernel_log.front().source = "cmd/journalctl-k-previous/stdout";
  EXPECT_TRUE(says(s.ask("device.gpu-on-bus"), Status::fail, "device.no-gpu-on-bus", "No AMD GPU")) << "an earlier boot says nothing about now";
  s.machine.pci_devices.front().vendor_id = known(0xffffU);
  EXPECT_TRUE(says(s.ask("device.gpu-on-bus"), Status::fail, "hardware.fell-off-bus", "all ones"));
}

TEST(GpuOnBus, SaysThatAGuestMustBeGivenOne) {
  auto s = desktop();
  s.machine.gpus.clear();
  s.machine.pci_devices.clear();
  s.machine.kernel_log.clear();
  s.machine.host.virtualisation = known("kvm");
  const auto result = s.ask("device.gpu-on-bus");
  ASSERT_FALSE(result.fix.empty());
  EXPECT_NE(result.fix.front().find("kvm guest"), std::string::npos);
}

TEST(WslBridge, IsAskedForOnlyUnderWsl) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.wsl-bridge"), Status::skip, "", "not applicable"));
  s.machine.host.wsl = known(true, "/proc/version");
  s.machine.gpus.clear();
  EXPECT_TRUE(says(s.ask("device.gpu-on-bus"), Status::skip, "", "WSL"));
  s.capture.add_error("/dev/dxg", ENOENT);
  EXPECT_TRUE(says(s.ask("device.wsl-bridge"), Status::fail, "driver.wsl-bridge", "/dev/dxg is missing"));
  Subject bridged = desktop();
  bridged.machine.host.wsl = known(true, "/proc/version");
  bridged.capture.add_stat("/dev/dxg", {.type = 'c', .mode = 0666});
  EXPECT_TRUE(says(bridged.ask("device.wsl-bridge"), Status::pass, "", "/dev/dxg"));
  for (const auto* id :
       {"device.driver-loaded", "device.driver-initialised", "device.kfd-present", "device.nodes-openable", "device.firmware-present"})
    EXPECT_TRUE(says(bridged.ask(id), Status::skip, "", "WSL")) << id;
}

TEST(BarSpace, FailsWhenBarZeroGotNoAddress) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.bar-space"), Status::pass, "", "address space"));
  auto& g = s.gpu();
  g.kfd_node = {};
  g.drm_card = {};
  g.vram_total_bytes = {};
  g.visible_vram_bytes = {};
  log_line(s, "pci 0000:03:00.0: BAR 0: no space for [mem size 0x600000000 64bit pref]");
  EXPECT_TRUE(says(s.ask("device.bar-space"), Status::fail, "driver.bar-space", "no address space"));
}

TEST(BarSpace, ReadsTheBarItself) {
  auto s = desktop();
  s.gpu().bars.push_back({.index = 0, .size_bytes = 256U << 20, .assigned = true});
  EXPECT_EQ(s.ask("device.bar-space").status, Status::pass);
  s.gpu().bars.at(0).assigned = false;
  s.capture.add_file("/sys/bus/pci/devices/0000:03:00.0/resource", "0x0000000000000000 0x000000000fffffff 0x000000000014220c\n");
  const auto result = s.ask("device.bar-space");
  EXPECT_TRUE(says(result, Status::fail, "driver.bar-space", "no address space"));
  EXPECT_EQ(result.evidence.front().source, "/sys/bus/pci/devices/0000:03:00.0/resource");
}

TEST(BarSpace, IgnoresIoWindowsAndRetriesThatSucceeded) {
  auto s = desktop();
  log_line(s, "pci 0000:03:00.0: BAR 4: no space for [io  size 0x0100]");
  log_line(s, "pci 0000:03:00.0: BAR 0: no space for [mem size 0x600000000 64bit pref]");
  EXPECT_EQ(s.ask("device.bar-space").status, Status::pass) << "the GPU is driven, so a later attempt succeeded";
}

TEST(BarSpace, SmallWindowMattersOnlyBetweenGpus) {
  auto s = desktop();
  s.gpu().visible_vram_bytes = known(std::uint64_t{256} << 20);
  EXPECT_TRUE(says(s.ask("device.bar-space"), Status::pass, "", "resizable BAR is off"));
  auto two = server();
  two.gpu(1).visible_vram_bytes = known(std::uint64_t{256} << 20);
  EXPECT_TRUE(says(two.ask("device.bar-space"), Status::warn, "driver.bar-space", "Resizable BAR is off"));
  s.gpu().integrated = known(true);
  EXPECT_TRUE(says(s.ask("device.bar-space"), Status::skip, "", "integrated"));
}

TEST(DkmsBuilt, ComparesWithTheRunningKernel) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.dkms-built"), Status::pass, "", "6.16.13"));
  s.machine.driver.dkms_status =
      known("amdgpu/6.16.13-2278356.24.04, 6.8.0-60-generic, x86_64: installed\nnvidia/550, 6.8.0-63-generic, x86_64: installed");
  EXPECT_TRUE(says(s.ask("device.dkms-built"), Status::warn, "driver.dkms-build-failed", "kernel's own amdgpu"));
  s.machine.driver.amdgpu_loaded = known(false, "/proc/modules");
  EXPECT_TRUE(says(s.ask("device.dkms-built"), Status::fail, "driver.dkms-build-failed", "no amdgpu is loaded"));
  s.machine.driver.dkms_status = known("amdgpu, 6.2.4-1683306.22.04, 6.8.0-63-generic, x86_64: installed");
  EXPECT_EQ(s.ask("device.dkms-built").status, Status::pass) << "the older form of dkms status";
  s.machine.driver.dkms_status = known("nvidia/550, 6.8.0-63-generic, x86_64: installed");
  EXPECT_TRUE(says(s.ask("device.dkms-built"), Status::skip, "", "not applicable"));
}

TEST(KernelHeaders, MatterOnlyWithDkms) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.kernel-headers").status, Status::pass);
  s.machine.host.kernel_headers = known(false, "probe/kernels");
  EXPECT_TRUE(says(s.ask("device.kernel-headers"), Status::warn, "driver.dkms-build-failed", "6.8.0-63-generic"));
  s.machine.driver.amdgpu_loaded = known(false);
  EXPECT_EQ(s.ask("device.kernel-headers").status, Status::fail);
  s.machine.packages.clear();
  s.machine.driver.dkms_status = {};
  EXPECT_TRUE(says(s.ask("device.kernel-headers"), Status::skip, "", "not applicable"));
}

TEST(DriverLoaded, SaysWhatKeepsItOut) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::pass, "", "amdgpu 6.16.13 (DKMS)"));
  auto& m = s.machine;
  m.driver.amdgpu_loaded = known(false, "/proc/modules");
  s.gpu().driver = known("");
  s.gpu().kfd_node = {};
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::fail, "driver.module-not-loaded", "not loaded in 6.8.0-63-generic"));
  m.driver.amdgpu_installed = known(false);
  auto result = s.ask("device.driver-loaded");
  EXPECT_TRUE(says(result, Status::fail, "driver.module-not-loaded", "no amdgpu module"));
  EXPECT_EQ(result.fix.front(), "sudo apt install linux-modules-extra-6.8.0-63-generic && sudo modprobe amdgpu");
  m.driver.dkms_status = known("amdgpu/6.16.13-2278356.24.04: added");
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::fail, "driver.dkms-build-failed", "DKMS"));
  log_line(s, "Loading of unsigned module is rejected", "");
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::fail, "driver.secure-boot-unsigned", "signed"));
  m.driver.amdgpu_blacklisted = known(true, "/etc/modprobe.d/blacklist-amdgpu.conf");
  m.driver.blacklist_reason = {std::string("blacklist amdgpu"), {"/etc/modprobe.d/blacklist-amdgpu.conf", 3, "blacklist amdgpu"}};
  result = s.ask("device.driver-loaded");
  EXPECT_TRUE(says(result, Status::fail, "driver.module-blacklisted", "blacklist amdgpu"));
  EXPECT_NE(result.fix.front().find("/etc/modprobe.d/blacklist-amdgpu.conf"), std::string::npos);
  m.host.kernel_cmdline = known("root=/dev/sda1 nomodeset quiet");
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::fail, "driver.module-blacklisted", "\"nomodeset\""));
}

TEST(DriverLoaded, KnowsOtherDrivers) {
  auto s = desktop();
  s.gpu().driver = known("vfio-pci");
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::fail, "driver.passthrough", "vfio-pci"));
  auto two = server();
  two.gpu(0).driver = known("vfio-pci");
  EXPECT_TRUE(says(two.ask("device.driver-loaded"), Status::pass, "", "kept for virtual machines")) << "one of several may be given away";
  s.gpu().driver = known("radeon");
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::fail, "driver.module-not-loaded", "\"radeon\""));
}

TEST(DriverLoaded, AcceptsOneThatIsBuiltIn) {
  auto s = desktop();
  s.machine.driver.amdgpu_loaded = known(false);
  s.machine.driver.amdgpu_builtin = known(true);
  s.machine.driver.amdgpu_version = known("");
  EXPECT_TRUE(says(s.ask("device.driver-loaded"), Status::pass, "", "built into the kernel"));
}

TEST(FirmwarePresent, NamesTheFileThatIsMissing) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.firmware-present"), Status::pass, "", "firmware"));
  log_line(s, "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/psp_13_0_0_sos.bin failed with error -2");
  EXPECT_TRUE(says(s.ask("device.firmware-present"), Status::warn, "driver.firmware-missing", "amdgpu/psp_13_0_0_sos.bin")) << "it runs without";
  auto& g = s.gpu();
  g.kfd_node = {};
  g.drm_card = {};
  g.render_minor = {};
  g.firmware.clear();
  g.driver = known("");
  EXPECT_TRUE(says(s.ask("device.firmware-present"), Status::fail, "driver.firmware-missing", "amdgpu/psp_13_0_0_sos.bin"));
}

TEST(FirmwarePresent, SeesThatNoneIsInstalled) {
  auto s = desktop();
  s.gpu().firmware.clear();
  s.machine.kernel_log.clear();
  s.machine.driver.firmware_installed = known(false, "probe/amdgpu_files");
  EXPECT_TRUE(says(s.ask("device.firmware-present"), Status::warn, "driver.firmware-missing", "/lib/firmware/amdgpu"));
}

TEST(DriverInitialised, ShowsWhereTheDriverGaveUp) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.driver-initialised").status, Status::pass);
  auto& g = s.gpu();
  g.kfd_node = {};
  g.drm_card = {};
  g.render_minor = {};
  g.driver = known("", "/sys/bus/pci/devices/0000:03:00.0/driver");
  EXPECT_TRUE(says(s.ask("device.driver-initialised"), Status::fail, "driver.kernel-too-old", "744c"));
  log_line(s, "[drm:amdgpu_device_init.cold [amdgpu]] *ERROR* hw_init of IP block <psp> failed -22", "");
  log_line(s, "amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init");
  const auto result = s.ask("device.driver-initialised");
  EXPECT_TRUE(says(result, Status::fail, "driver.init-failed", "gave up"));
  EXPECT_EQ(result.evidence.size(), 3U);
  EXPECT_EQ(result.evidence.at(1).line, 2U);
}

TEST(PcieAtomics, FailOnlyWhenTheDriverRefusedTheGpu) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.pcie-atomics").status, Status::pass);
  s.gpu().pcie_atomics = known(false, "/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties");
  EXPECT_TRUE(says(s.ask("device.pcie-atomics"), Status::warn, "driver.pcie-atomics-missing", "can do without"));
  s.gpu().kfd_node = {};
  log_line(s, "kfd kfd: amdgpu: skipped device 1002:7300, PCI rejects atomics 730<0", "");
  EXPECT_TRUE(says(s.ask("device.pcie-atomics"), Status::fail, "driver.pcie-atomics-missing", "atomic operations"));
  s.gpu().integrated = known(true);
  EXPECT_TRUE(says(s.ask("device.pcie-atomics"), Status::skip, "", "not applicable"));
}

TEST(KfdPresent, TellsAContainerFromADriver) {
  auto s = desktop();
  EXPECT_TRUE(says(s.ask("device.kfd-present"), Status::pass, "", "node 1 (0000:03:00.0)"));
  s.machine.driver.kfd_device = known(false, "/dev/kfd");
  EXPECT_TRUE(says(s.ask("device.kfd-present"), Status::fail, "driver.kfd-unavailable", "/dev/kfd does not exist"));
  s.machine.container.kind = known("docker", "/.dockerenv");
  const auto result = s.ask("device.kfd-present");
  EXPECT_TRUE(says(result, Status::fail, "container.devices-not-mapped", "docker"));
  EXPECT_NE(result.fix.front().find("docker run --device=/dev/kfd --device=/dev/dri"), std::string::npos);
}

TEST(KfdPresent, FailsForAGpuThatTheTopologyLacks) {
  auto s = server();
  s.gpu(2).kfd_node = {};
  EXPECT_TRUE(says(s.ask("device.kfd-present"), Status::fail, "driver.kfd-unavailable", "0000:63:00.0"));
  s.machine.container.kind = known("docker");
  EXPECT_TRUE(says(s.ask("device.kfd-present"), Status::warn, "container.devices-not-mapped", "not given to this container"))
      << "three others were given";
  auto apu = server();
  apu.gpu(3).kfd_node = {};
  apu.gpu(3).integrated = known(true);
  EXPECT_TRUE(says(apu.ask("device.kfd-present"), Status::warn, "driver.kfd-unavailable", "integrated"));
  s.machine.evidence_kind = "loose";
  EXPECT_EQ(s.ask("device.kfd-present").status, Status::pass) << "in loose evidence absence means nothing";
}

TEST(RebootPending, ComparesWhatRunsWithWhatIsInstalled) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.reboot-pending").status, Status::pass);
  s.machine.driver.newest_kernel_installed = known("6.8.0-64-generic", "probe/kernels");
  EXPECT_TRUE(says(s.ask("device.reboot-pending"), Status::warn, "driver.reboot-pending", "6.8.0-64-generic is installed"));
  s = desktop();
  s.machine.driver.amdgpu_version_on_disk = known("6.19.4");
  EXPECT_TRUE(says(s.ask("device.reboot-pending"), Status::warn, "driver.reboot-pending", "6.19.4"));
  s = desktop();
  s.machine.driver.reboot_required = known(true, "/var/run/reboot-required");
  s.machine.driver.reboot_packages = known("linux-image-6.8.0-64-generic, libc6", "/var/run/reboot-required.pkgs");
  EXPECT_TRUE(says(s.ask("device.reboot-pending"), Status::warn, "driver.reboot-pending", "libc6"));
}

TEST(ModuleParameters, SayWhatAChangeDoes) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.module-parameters").status, Status::pass);
  s.machine.driver.parameters["noretry"] = known("1");
  EXPECT_TRUE(says(s.ask("device.module-parameters"), Status::pass, "", "noretry=1")) << "harmless";
  s.machine.driver.parameters["noretry"] = known("0", "/sys/module/amdgpu/parameters/noretry");
  EXPECT_TRUE(says(s.ask("device.module-parameters"), Status::warn, "driver.module-parameter", "noretry=0 (default -1)"));
}

}  // namespace
}  // namespace ff::device::test
