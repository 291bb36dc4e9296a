// What a remedy and a proof say must fit the machine at hand, and nothing from a capture may act in a command.
#include "device/advice.h"

#include <cerrno>

#include "base/shell.h"
#include "support/machines.h"

namespace ff::device::test {
namespace {

std::string all(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}
bool says(const std::vector<std::string>& lines, std::string_view text) { return all(lines).find(text) != std::string::npos; }

TEST(ShellWord, QuotesWhatAShellWouldActOn) {
  EXPECT_EQ(shell_word("/opt/rocm-7.0.2"), "/opt/rocm-7.0.2");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a$(reboot)"), "'a$(reboot)'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  for (const char* bad : {"a b", "a;b", "a|b", "a&b", "a`b`", "~", "*", "é"}) EXPECT_EQ(shell_word(bad).front(), '\'') << bad;
}

TEST(Advice, QuotesTheUsersName) {
  auto s = desktop();
  s.machine.access.groups = {{1000, "x"}};
  s.machine.access.database_groups = {"x"};
  for (auto& node : s.machine.access.nodes) node.open_errno = known(EACCES, "probe/access");
  s.machine.access.user = known("a$(reboot)");
  EXPECT_TRUE(says(s.ask("device.nodes-openable").fix, "render 'a$(reboot)'")) << all(s.ask("device.nodes-openable").fix);
  s.machine.access.user = known("-G");
  EXPECT_TRUE(says(s.ask("device.nodes-openable").fix, "render $USER"));
}

TEST(Advice, NamesAGroupWhoseNumberIsNotKnownByItsName) {
  auto s = desktop();
  s.machine.access.groups = {{1000, "ada"}};
  s.machine.access.database_groups = {"ada"};
  for (auto& node : s.machine.access.nodes) {
    node.gid = known(0xFFFFFFFFU);
    node.open_errno = {};
  }
  auto result = s.ask("device.nodes-openable");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.summary.find("4294967295"), std::string::npos) << result.summary;
  EXPECT_NE(result.summary.find("it is for group render"), std::string::npos) << result.summary;
  s.machine.access.groups = {{1000, "ada"}, {992, "render"}};
  result = s.ask("device.nodes-openable");
  EXPECT_EQ(result.status, Status::pass) << "a member by name; " << result.summary;
}

TEST(Advice, SaysThatAnUnmappedGroupsNumberIsToBeReadOnTheHost) {
  auto s = desktop();
  s.machine.container.kind = known("lxc");
  s.machine.access.user_namespace = known(true, "probe/user_namespace");
  for (auto& node : s.machine.access.nodes) {
    node.uid = known(65534U);
    node.gid = known(65534U);
    node.open_errno = known(EACCES, "probe/access");
  }
  for (const char* kind : {"lxc", "docker"}) {
    s.machine.container.kind = known(kind);
    const auto result = s.ask("device.nodes-openable");
    EXPECT_TRUE(says(result.fix, "on the host (stat -c %g /dev/kfd there")) << all(result.fix);
    EXPECT_FALSE(says(result.fix, "map host group 65534"));
    EXPECT_FALSE(says(result.fix, "--group-add 65534"));
  }
}

TEST(Advice, LooksForWhatForbidsANodeToAMember) {
  auto s = desktop();
  for (auto& node : s.machine.access.nodes) node.open_errno = known(EACCES, "probe/access");
  const auto result = s.ask("device.nodes-openable");
  EXPECT_TRUE(says(result.verify, "getfacl -p /dev/kfd")) << all(result.verify);
  EXPECT_TRUE(says(result.verify, "ausearch"));
}

TEST(Advice, SpeaksTheContainersLanguage) {
  auto s = desktop();
  s.machine.driver.kfd_device = known(false, "/dev/kfd");
  for (const auto& [kind, fix, proof] : {std::tuple{"singularity", "apptainer exec --rocm", "apptainer exec --rocm <image> ls"},
                                         std::tuple{"kubernetes", "amd.com/gpu: 1", "kubectl exec"}, std::tuple{"podman", "podman run", "podman run"},
                                         std::tuple{"docker", "docker run", "docker run"}, std::tuple{"lxc", "lxc.mount.entry", "ls -l /dev/kfd"}}) {
    s.machine.container.kind = known(kind);
    const auto result = s.ask("device.kfd-present");
    EXPECT_EQ(result.status, Status::fail) << kind;
    EXPECT_TRUE(says(result.fix, fix)) << kind << ": " << all(result.fix);
    EXPECT_TRUE(says(result.verify, proof)) << kind << ": " << all(result.verify);
    if (std::string_view(kind) != "docker") {
      EXPECT_FALSE(says(result.fix, "docker") || says(result.verify, "docker")) << kind;
    }
  }
}

TEST(Advice, ForSharedMemoryOfADesktopIsToEnlargeIt) {
  auto s = desktop();
  s.machine.container.shm_bytes = known(std::uint64_t{64} << 20);
  s.machine.container.shm_used_bytes = known(std::uint64_t{0});
  s.machine.host.memory_total_bytes = known(std::uint64_t{64} << 30);
  auto result = s.ask("device.shared-memory");
  EXPECT_TRUE(says(result.fix, "mount -o remount,size=16G /dev/shm")) << all(result.fix);
  EXPECT_EQ(all(result.verify), "df -h /dev/shm\n");
  s.machine.host.memory_total_bytes = known(std::uint64_t{8} << 30);
  EXPECT_TRUE(says(s.ask("device.shared-memory").fix, "size=50%")) << "16 GiB would be twice the memory";
}

TEST(Advice, ForNumaBalancingAndGovernorNamesTheSetting) {
  auto s = desktop();
  s.machine.host.numa_nodes = known(2);
  s.machine.host.numa_balancing = known(1);
  const auto result = s.ask("device.numa-balancing");
  EXPECT_TRUE(says(result.fix, "sysctl kernel.numa_balancing=0")) << all(result.fix);
  EXPECT_TRUE(says(result.verify, "/proc/sys/kernel/numa_balancing"));
}

TEST(Advice, UsesTheDistributionsTools) {
  facts::Machine m;
  for (const auto& [id, headers, boot] :
       {std::tuple{"fedora", "dnf install kernel-devel-6.8.0", "grubby --update-kernel=ALL --remove-args=nomodeset"},
        std::tuple{"ubuntu", "apt install linux-headers-6.8.0", "sudo update-grub"}, std::tuple{"rocky", "dnf install", "grubby"},
        std::tuple{"opensuse-tumbleweed", "zypper install", "grub2-mkconfig"}, std::tuple{"arch", "pacman -S", "grub-mkconfig"}}) {
    m.host.os_id = known(id);
    EXPECT_TRUE(install_kernel_headers(m, "6.8.0").find(headers) != std::string::npos) << id << install_kernel_headers(m, "6.8.0");
    EXPECT_TRUE(remove_boot_option(m, "nomodeset").find(boot) != std::string::npos) << id << remove_boot_option(m, "nomodeset");
  }
  m.host.os_id = known("fedora");
  EXPECT_EQ(add_boot_option(m, "iommu=pt"), "sudo grubby --update-kernel=ALL --args=iommu=pt   (then reboot)");
  EXPECT_EQ(install_kernel_headers(m, "6$(x)"), "sudo dnf install 'kernel-devel-6$(x)'");
}

TEST(Advice, ForABlacklistOnTheKernelCommandLineIsTheBootLoader) {
  auto s = desktop();
  s.machine.driver.amdgpu_loaded = known(false, "/sys/module/amdgpu");
  s.machine.gpus.at(0).driver = {};
  s.machine.gpus.at(0).kfd_node = {};
  s.machine.driver.amdgpu_blacklisted = known(true);
  s.machine.driver.blacklist_reason = {"modprobe.blacklist=nouveau,amdgpu on the kernel command line",
                                       {"/proc/cmdline", 1, "modprobe.blacklist=nouveau,amdgpu"}};
  const auto result = s.ask("device.driver-loaded");
  ASSERT_EQ(result.status, Status::fail) << result.summary;
  EXPECT_FALSE(says(result.fix, "from /proc/cmdline")) << all(result.fix);
  EXPECT_TRUE(says(result.fix, "modprobe.blacklist=nouveau,amdgpu"));
  EXPECT_TRUE(says(result.fix, "\"modprobe.blacklist=nouveau\" to")) << "nouveau stays out; " << all(result.fix);
}

TEST(Advice, NamesTheVariableThatShadows) {
  auto s = desktop();
  auto& env = s.machine.pythons.at(0);
  env.torch_hip = known("6.4.43484");
  s.machine.env["LD_PRELOAD"] = known(s.machine.rocm.at(0).root + "/lib/libamdhip64.so.7");
  const auto result = s.ask("device.one-rocm");
  ASSERT_NE(result.status, Status::pass) << result.summary;
  EXPECT_EQ(result.fix.front(), "unset LD_PRELOAD   (the wheel needs none)");
  EXPECT_EQ(all(result.verify), "env -u LD_PRELOAD <your command>\n");
  EXPECT_NE(result.summary.find("LD_PRELOAD puts"), std::string::npos) << result.summary;
}

TEST(Advice, ProvesALinkAtThePortThatWasJudged) {
  auto s = desktop();
  s.gpu().link.width = known(1);
  const auto result = s.ask("device.pcie-link");
  ASSERT_EQ(result.status, Status::fail) << result.summary;
  EXPECT_FALSE(says(result.verify, "<")) << all(result.verify);
  EXPECT_TRUE(says(result.verify, "/current_link_width")) << all(result.verify);
}

TEST(Advice, SaysWhatACacheIsFor) {
  auto s = desktop();
  s.machine.disks = {{"cache:huggingface", "/home/a b/hf", {}, {}, {}, known(false), {}}};
  auto result = s.ask("device.paths-writable");
  EXPECT_NE(result.summary.find("cannot be downloaded"), std::string::npos) << result.summary;
  EXPECT_TRUE(says(result.verify, "ls -ld '/home/a b/hf'")) << all(result.verify);
  s.machine.disks.front().purpose = "cache:miopen";
  EXPECT_NE(s.ask("device.paths-writable").summary.find("kernels are compiled again"), std::string::npos);
}

TEST(Advice, ComputesTheNumberOfTheCard) {
  auto s = desktop();
  auto apu = s.gpu();
  apu.integrated = known(true);
  apu.kfd_node = known(0);
  apu.pci = known("0000:0d:00.0");
  s.machine.gpus.push_back(apu);
  s.gpu().integrated = known(false);
  const auto result = s.ask("device.integrated-beside-discrete");
  ASSERT_EQ(result.status, Status::fail) << result.summary;
  EXPECT_TRUE(says(result.verify, "HIP_VISIBLE_DEVICES=1 ")) << all(result.verify);
}

TEST(Advice, OfOneGpuOfSeveralIsAboutThatGpu) {
  auto s = server();
  s.gpu(1).kfd_node = {};
  const auto result = s.ask("device.kfd-present");
  ASSERT_EQ(result.status, Status::fail) << result.summary;
  EXPECT_TRUE(says(result.fix, "grep -F " + *s.gpu(1).pci)) << all(result.fix);
  EXPECT_FALSE(says(result.fix, "CONFIG_HSA_AMD"));
}

// Why a check was skipped must be true of the machine at hand.

TEST(SkipReasons, OfHiddenGpusAreNotAboutTheEnvironment) {
  auto s = desktop();
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("-1");
  for (const char* id : {"device.override", "device.torch-covers-gpu", "device.libraries-cover-gpu"}) {
    const auto result = s.ask(id);
    EXPECT_EQ(result.summary.find("no environment variables"), std::string::npos) << id << ": " << result.summary;
    EXPECT_EQ(result.summary.find("names no gfx target"), std::string::npos) << id << ": " << result.summary;
  }
}

TEST(SkipReasons, SayAsleepAndHowToReadIt) {
  auto s = desktop();
  s.gpu().asleep = known(true);
  s.gpu().temperature_c.clear();
  s.gpu().vram_used_bytes = {};
  s.gpu().performance_level = {};
  s.gpu().throttle_bits = {};
  for (const char* id : {"device.temperature", "device.vram-free", "device.pcie-link", "device.performance-level", "device.throttle-reasons"}) {
    const auto result = s.ask(id);
    EXPECT_EQ(result.status, Status::skip) << id;
    EXPECT_EQ(result.summary, "the GPU is asleep; --wake reads it") << id;
  }
}

TEST(SkipReasons, UnderWslAndOfIntegratedGpusSayNotApplicable) {
  Subject wsl = nothing("live");
  wsl.machine.host.wsl = known(true);
  for (const char* id : {"device.bar-space", "device.pcie-atomics", "device.pcie-link", "device.aer-counters", "device.temperature",
                         "device.power-cap", "device.throttle-reasons", "device.performance-level", "device.vram-free", "device.ras-counters",
                         "device.retired-pages", "device.module-parameters", "device.gfx-known"}) {
    const auto result = wsl.ask(id);
    EXPECT_EQ(result.status, Status::skip) << id;
    EXPECT_NE(result.summary.find("not applicable"), std::string::npos) << id << ": " << result.summary;
  }
  auto apu = desktop();
  apu.gpu().integrated = known(true);
  apu.gpu().temperature_c.clear();
  apu.gpu().aer.clear();
  for (const char* id : {"device.aer-counters", "device.temperature", "device.power-cap", "device.vram-free"})
    EXPECT_NE(apu.ask(id).summary.find("not applicable"), std::string::npos) << id << ": " << apu.ask(id).summary;
}

TEST(SkipReasons, DoNotCallAnInstinctAConsumerBoard) {
  auto s = server();
  for (auto& gpu : s.machine.gpus) gpu.ras.clear();
  auto result = s.ask("device.ras-counters");
  EXPECT_EQ(result.summary.find("consumer"), std::string::npos) << result.summary;
  EXPECT_NE(result.summary.find("holds no error counters of"), std::string::npos) << result.summary;
  for (auto& gpu : s.machine.gpus) gpu.virtual_function = known(true);
  result = s.ask("device.ras-counters");
  EXPECT_NE(result.summary.find("virtual function"), std::string::npos) << result.summary;
  auto board = desktop();
  board.gpu().ras.clear();
  EXPECT_NE(board.ask("device.ras-counters").summary.find("consumer"), std::string::npos);
}

TEST(PcieLink, WarnsAboutTheOneThatIsSlowerThanItsEquals) {
  auto s = server();
  for (auto& gpu : s.machine.gpus) {
    gpu.package = {};
    gpu.busy_percent = {};
    gpu.link.speed_gts = known(32.0);
    gpu.link.max_speed_gts = known(32.0);
    gpu.link.slot_max_speed_gts = known(32.0);
  }
  s.gpu(2).link.speed_gts = known(16.0);
  auto result = s.ask("device.pcie-link");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
  EXPECT_NE(result.summary.find("its 3 equals are faster"), std::string::npos) << result.summary;
  EXPECT_NE(result.summary.find(*s.gpu(2).pci), std::string::npos) << result.summary;
  s.gpu(1).link.speed_gts = known(16.0);
  result = s.ask("device.pcie-link");
  EXPECT_EQ(result.status, Status::pass) << "two that idle are no odd one out; " << result.summary;
  EXPECT_NE(result.summary.find("does not say how busy"), std::string::npos) << result.summary;
}

TEST(TorchBuild, KnowsACudaBuildByTheLibrariesThatItBrings) {
  Subject s = nothing("loose");
  facts::PythonEnv env;
  env.packages = {{"torch", "2.9.0", {"pip.txt", 3, "torch 2.9.0"}}};
  s.machine.pythons = {env};
  EXPECT_EQ(s.ask("device.torch-build").status, Status::skip);
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::skip) << "a list of packages says nothing about the loader's path";
  s.machine.pythons[0].packages.push_back({"nvidia-cublas-cu12", "12.8.4.1", {"pip.txt", 2, "nvidia-cublas-cu12 12.8.4.1"}});
  const auto result = s.ask("device.torch-build");
  EXPECT_EQ(result.status, Status::fail) << result.summary;
  EXPECT_EQ(result.causes.front(), "version.cuda-build-on-amd");
}

TEST(VisibleDevices, SaysShortlyWhetherTheyAreRenumbered) {
  auto s = server();
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("3,2,1,0");
  const auto result = s.ask("device.visible-devices");
  EXPECT_NE(result.summary.find("renumbered"), std::string::npos) << result.summary;
  EXPECT_LT(result.summary.size(), 240U) << result.summary;
  EXPECT_EQ(result.measured["hip_order"].items().size(), 4U);
}

TEST(RocmSupport, TakesTheListOfTheMinorReleaseOrWhatItsNeighboursAgreeOn) {
  auto s = server();  // gfx90a
  for (const char* version : {"6.4.3", "7.0.2", "7.1.1", "7.2.0"}) {
    for (auto& install : s.machine.rocm) install.version = known(version);
    const auto result = s.ask("device.rocm-supports-gfx");
    EXPECT_EQ(result.status, Status::pass) << version << ": " << result.summary;
  }
  for (auto& install : s.machine.rocm) install.version = known("7.0.2");
  for (auto& gpu : s.machine.gpus) gpu.gfx = known("gfx1201");  // in 7.1.0's list, not in 6.3.3's
  auto result = s.ask("device.rocm-supports-gfx");
  EXPECT_EQ(result.status, Status::skip) << result.summary;
  EXPECT_NE(result.summary.find("only 7.1.0 names gfx1201"), std::string::npos) << result.summary;
  for (auto& gpu : s.machine.gpus) gpu.gfx = known("gfx803");
  result = s.ask("device.rocm-supports-gfx");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
}

}  // namespace
}  // namespace ff::device::test
