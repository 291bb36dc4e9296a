#include "support/machines.h"

namespace ff::device::test {
namespace {

facts::PythonEnv& python(Subject& s) { return s.machine.pythons.at(0); }

TEST(GfxKnown, WarnsAboutHardwareThatIsNewer) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.gfx-known").status, Status::pass);
  s.gpu().gfx = known("gfx1399");
  const auto result = s.ask("device.gfx-known");
  EXPECT_EQ(result.status, Status::warn) << "never a failure";
  EXPECT_EQ(result.causes.front(), "device.device-id-unknown");
  s.gpu().gfx = {};
  EXPECT_EQ(s.ask("device.gfx-known").status, Status::warn);
}

TEST(RocmSupportsGfx, WarnsWhenTheReleaseDoesNotListIt) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.rocm-supports-gfx").status, Status::pass);
  s.gpu().gfx = known("gfx1102");
  EXPECT_EQ(s.ask("device.rocm-supports-gfx").status, Status::warn);
  s.machine.rocm.at(0).version = known("6.3.3");
  s.gpu().gfx = known("gfx950");
  const auto result = s.ask("device.rocm-supports-gfx");
  EXPECT_EQ(result.causes.front(), "version.gpu-dropped");
  EXPECT_NE(result.summary.find("yet; ROCm 7."), std::string::npos) << result.summary;
  s.machine.rocm.clear();
  EXPECT_EQ(s.ask("device.rocm-supports-gfx").status, Status::skip);
}

TEST(RocmSupportsGfx, IsSilentAboutReleasesWithoutAList) {
  auto s = desktop();
  s.machine.rocm.at(0).version = known("7.14.0");
  EXPECT_EQ(s.ask("device.rocm-supports-gfx").status, Status::skip);
}

TEST(Override, IsHarmfulForAnotherFamily) {
  auto s = server();
  EXPECT_EQ(s.ask("device.override").status, Status::pass);
  for (const auto* value : {"9.0.0", "9.4.2", "10.3.0", "11.0.0"}) {
    s.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known(value, "probe/env");
    const auto result = s.ask("device.override");
    EXPECT_EQ(result.status, Status::fail) << value;
    EXPECT_EQ(result.causes.front(), "runtime.override-harmful");
    EXPECT_EQ(result.fix.front(), "unset HSA_OVERRIDE_GFX_VERSION");
  }
}

TEST(Override, IsRefusedWhenItIsNoVersion) {
  auto s = desktop();
  for (const auto* value : {"gfx1100", "11.0", "11.0.0.0", "", "64.0.0", "11.0.300", "-1.0.0"}) {
    s.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known(value);
    EXPECT_EQ(s.ask("device.override").status, Status::fail) << value;
  }
}

TEST(Override, ThatChangesNothingIsAWarning) {
  auto s = desktop();
  s.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known("11.0.0");
  EXPECT_EQ(s.ask("device.override").status, Status::warn);
  auto mi = server();
  mi.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known("9.0.10");
  EXPECT_EQ(mi.ask("device.override").status, Status::warn) << "9.0.10 is gfx90a: the step is hexadecimal";
}

TEST(Override, IsMissingWhereOnlyItMakesTheGpuRun) {
  auto s = desktop();
  s.gpu().gfx = known("gfx1031");
  auto result = s.ask("device.override");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "runtime.override-missing");
  EXPECT_NE(result.fix.front().find("export HSA_OVERRIDE_GFX_VERSION=10.3.0"), std::string::npos);
  s.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known("10.3.0");
  EXPECT_EQ(s.ask("device.override").status, Status::pass);
  EXPECT_EQ(s.ask("device.torch-covers-gpu").status, Status::pass);
  python(s).torch_arch_list.push_back("gfx1031");
  EXPECT_EQ(s.ask("device.override").status, Status::warn) << "not needed any more";
}

TEST(Override, IsNotAskedForWhereItIsDoubtful) {
  auto s = desktop();
  s.gpu().gfx = known("gfx1103");
  EXPECT_EQ(s.ask("device.override").status, Status::pass);
  EXPECT_EQ(s.ask("device.torch-covers-gpu").status, Status::fail);
  s.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known("11.0.0");
  EXPECT_EQ(s.ask("device.override").status, Status::warn);
  EXPECT_EQ(s.ask("device.torch-covers-gpu").status, Status::pass);
}

TEST(Override, OfOneNodeIsRead) {
  auto s = desktop();
  s.gpu().gfx = known("gfx1031");
  s.machine.env["HSA_OVERRIDE_GFX_VERSION_1"] = known("10.3.0");
  EXPECT_EQ(s.ask("device.override").status, Status::pass);
  s.machine.env["HSA_OVERRIDE_GFX_VERSION_1"] = known("11.0.0");
  EXPECT_EQ(s.ask("device.override").status, Status::fail);
}

TEST(TorchCoversGpu, ComparesTargetsAndGenericOnes) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.torch-covers-gpu").status, Status::pass);
  python(s).torch_arch_list = {"gfx90a:sramecc+:xnack-", "gfx942"};
  const auto result = s.ask("device.torch-covers-gpu");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "library-coverage.torch-lacks-target");
  EXPECT_NE(result.summary.find("no kernels for gfx1100"), std::string::npos) << result.summary;
  python(s).torch_arch_list = {"gfx11-generic"};
  EXPECT_EQ(s.ask("device.torch-covers-gpu").status, Status::pass);
  auto mi = server();
  python(mi).torch_arch_list = {"gfx90a:sramecc+:xnack-"};
  EXPECT_EQ(mi.ask("device.torch-covers-gpu").status, Status::pass) << "features are no part of the target";
  python(s).torch_arch_list.clear();
  EXPECT_EQ(s.ask("device.torch-covers-gpu").status, Status::skip) << "unknown is not a failure";
}

TEST(TorchCoversGpu, NamesTheOverrideAndWhetherItIsSafe) {
  auto s = desktop();
  s.gpu().gfx = known("gfx1103");
  python(s).torch_arch_list = {"gfx1102", "gfx942"};
  const auto safe = s.ask("device.torch-covers-gpu");
  EXPECT_EQ(safe.status, Status::fail);
  EXPECT_NE(safe.summary.find("HSA_OVERRIDE_GFX_VERSION=11.0.2 runs its gfx1102 code and is safe"), std::string::npos) << safe.summary;
  python(s).torch_arch_list = {"gfx1100"};
  const auto unsafe = s.ask("device.torch-covers-gpu");
  EXPECT_NE(unsafe.summary.find("11.0.0 would run its gfx1100 code and is not safe"), std::string::npos) << unsafe.summary;
  python(s).torch_arch_list = {"gfx942"};
  EXPECT_EQ(s.ask("device.torch-covers-gpu").summary.find("OVERRIDE"), std::string::npos);
  auto mi = server();
  python(mi).torch_arch_list = {"gfx9-generic"};
  EXPECT_EQ(mi.ask("device.torch-covers-gpu").status, Status::fail) << "gfx90a is no member of gfx9-generic";
  mi.machine.gpus.at(0).gfx = known("gfx950");
  python(mi).torch_arch_list = {"gfx9-4-generic"};
  EXPECT_NE(mi.ask("device.torch-covers-gpu").status, Status::skip);
}

TEST(LibrariesCoverGpu, JudgesEachByWhatAProgramLosesWithoutIt) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.libraries-cover-gpu").status, Status::skip) << "no library was read";
  auto& held = python(s).kernel_targets;
  held["torch/lib/rocblas/library"] = {"gfx1100", "gfx942"};
  held["torch/lib/hipblaslt/library"] = {"gfx942"};
  held["torch/lib/librccl.so"] = {"gfx942"};
  held["torch/lib/libMIOpen.so"] = {"gfx942"};
  held["torch/lib/librocsparse.so"] = {"gfx11-generic"};
  auto result = s.ask("device.libraries-cover-gpu");
  EXPECT_EQ(result.status, Status::pass) << result.summary;
  EXPECT_NE(result.summary.find("hipBLASLt (Tensile) has none"), std::string::npos) << result.summary;
  held["bitsandbytes/libbitsandbytes_rocm.so"] = {"gfx942"};
  result = s.ask("device.libraries-cover-gpu");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "library-coverage.extension-lacks-target");
  EXPECT_NE(result.summary.find("libbitsandbytes_rocm.so"), std::string::npos) << result.summary;
  held["torch/lib/rocblas/library"] = {"gfx1030", "gfx942"};
  result = s.ask("device.libraries-cover-gpu");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "library-coverage.rocblas-lacks-target");
  held = {{"torch/lib/libtorch_hip.so", {"gfx942"}}};
  EXPECT_NE(s.ask("device.libraries-cover-gpu").status, Status::fail) << "PyTorch's own kernels have a check of their own";
}

TEST(LibrariesCoverGpu, FollowsTheOverride) {
  auto s = desktop();
  s.gpu().gfx = known("gfx1031");
  python(s).kernel_targets["torch/lib/rocblas/library"] = {"gfx1030"};
  const auto bare = s.ask("device.libraries-cover-gpu");
  EXPECT_EQ(bare.status, Status::fail);
  EXPECT_NE(bare.summary.find("HSA_OVERRIDE_GFX_VERSION=10.3.0 runs its gfx1030 code and is safe"), std::string::npos) << bare.summary;
  s.machine.env["HSA_OVERRIDE_GFX_VERSION"] = known("10.3.0");
  EXPECT_EQ(s.ask("device.libraries-cover-gpu").status, Status::pass);
}

TEST(TorchBuild, NamesTheBuildThatCannotWork) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.torch-build").status, Status::pass);
  auto& env = python(s);
  env.torch_hip = known("");
  env.torch_cuda = known("12.8");
  env.torch_version = known("2.9.0+cu128");
  EXPECT_EQ(s.ask("device.torch-build").causes.front(), "version.cuda-build-on-amd");
  env.torch_cuda = known("");
  env.torch_version = known("2.9.0+cpu");
  EXPECT_EQ(s.ask("device.torch-build").causes.front(), "version.cpu-build");
  env.torch_version = known("2.9.0");
  env.torch_hip = {};
  env.torch_cuda = {};
  EXPECT_EQ(s.ask("device.torch-build").status, Status::skip) << "a bare version says nothing about the build";
  env.torch_version = {};
  env.packages.clear();
  EXPECT_EQ(s.ask("device.torch-build").status, Status::skip);
}

TEST(TorchBuild, LooksAtTheEnvironmentThatWasAskedFor) {
  auto s = desktop();
  auto other = python(s);
  other.prefix = "/home/ada/cuda";
  other.executable = known("/home/ada/cuda/bin/python");
  other.torch_hip = known("");
  other.torch_cuda = known("12.8");
  other.torch_version = known("2.9.0+cu128");
  s.machine.pythons.push_back(other);
  EXPECT_EQ(s.ask("device.torch-build").status, Status::pass);
  s.inputs.python = "/home/ada/cuda/bin/python";
  EXPECT_EQ(s.ask("device.torch-build").status, Status::fail);
}

TEST(TorchMatchesRocm, MattersWhenTheWheelBringsNone) {
  auto s = desktop();
  s.machine.rocm.at(0).version = known("6.4.1");
  EXPECT_EQ(s.ask("device.torch-matches-rocm").status, Status::pass) << "it brings its own";
  python(s).bundled_libraries.clear();
  EXPECT_EQ(s.ask("device.torch-matches-rocm").causes.front(), "version.torch-rocm-mismatch");
  EXPECT_EQ(s.ask("device.torch-matches-rocm").status, Status::fail);
  s.machine.rocm.at(0).version = known("7.0.2");
  EXPECT_EQ(s.ask("device.torch-matches-rocm").status, Status::warn);
  s.machine.rocm.at(0).version = known("7.2.0");
  EXPECT_EQ(s.ask("device.torch-matches-rocm").status, Status::pass);
  s.machine.rocm.clear();
  EXPECT_EQ(s.ask("device.torch-matches-rocm").causes.front(), "runtime.library-missing");
}

TEST(OneRocm, FollowsTheLoaderPath) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::pass);
  auto old = s.machine.rocm.at(0);
  old.root = "/opt/rocm-6.4.1";
  old.version = known("6.4.1");
  s.machine.rocm.push_back(old);
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::pass) << "two may be installed; one is loaded";
  s.machine.env["LD_LIBRARY_PATH"] = known("/opt/rocm-6.4.1/lib:/usr/local/lib", "probe/env");
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::fail) << "a wheel for ROCm 7 behind the libraries of ROCm 6";
  EXPECT_EQ(s.ask("device.one-rocm").causes.front(), "runtime.library-shadowed");
  s.machine.env["LD_LIBRARY_PATH"] = known("/opt/rocm-7.2.4/lib");
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::warn);
  python(s).bundled_libraries.clear();
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::pass);
  s.machine.env["LD_LIBRARY_PATH"] = known("/opt/rocm-7.2.4/lib:/opt/rocm-6.4.1/lib");
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::fail);
}

TEST(OneRocm, FollowsTheLoadersConfiguration) {
  auto s = desktop();
  auto old = s.machine.rocm.at(0);
  old.root = "/opt/rocm-6.4.1";
  old.version = known("6.4.1");
  s.machine.rocm.push_back(old);
  s.machine.loader_directories = {known("/usr/local/lib", "/etc/ld.so.conf.d/libc.conf"),
                                  known("/opt/rocm-7.2.4/lib", "/etc/ld.so.conf.d/10-rocm.conf")};
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::pass) << "one of the two";
  s.machine.loader_directories.push_back(known("/opt/rocm-6.4.1/lib", "/etc/ld.so.conf.d/x86_64-rocm.conf"));
  const auto result = s.ask("device.one-rocm");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("/opt/rocm-7.2.4 (7.2.4, searched first) and /opt/rocm-6.4.1 (6.4.1)"), std::string::npos) << result.summary;
  EXPECT_NE(result.fix.front().find("/etc/ld.so.conf.d/x86_64-rocm.conf"), std::string::npos) << result.fix.front();
}

TEST(OneRocm, ResolvesTheLinkAndSeesADistributionsRocm) {
  auto s = desktop();
  python(s).bundled_libraries.clear();
  s.capture.add_link("/opt/rocm", "/opt/rocm-7.2.4");
  s.machine.env["LD_LIBRARY_PATH"] = known("/opt/rocm/lib");
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::pass);
  facts::RocmInstall debian;
  debian.root = "/usr";
  debian.kind = "distribution";
  debian.version = known("6.1.2");
  s.machine.rocm.push_back(debian);
  EXPECT_EQ(s.ask("device.one-rocm").status, Status::warn);
}

TEST(KfdInterface, ReadsTheReleaseOutOfThePackage) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.kfd-interface").status, Status::pass) << s.ask("device.kfd-interface").summary;
  s.machine.packages["amdgpu-dkms"] = known("1:6.8.5.60204-2070768.22.04", "cmd/dpkg/stdout");
  auto result = s.ask("device.kfd-interface");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("driver is that of ROCm 6.2.4"), std::string::npos) << result.summary;
  python(s).torch_hip = known("6.4.43484");
  EXPECT_EQ(s.ask("device.kfd-interface").status, Status::pass);
  s.machine.packages["amdgpu-dkms"] = known("1:5.16.9.50101-1");
  python(s).torch_hip = known("7.2.53211");
  EXPECT_EQ(s.ask("device.kfd-interface").status, Status::skip) << "no range is known for 5.1";
  s.machine.packages["amdgpu-dkms"] = known("1:5.18.13.50403-1");
  EXPECT_EQ(s.ask("device.kfd-interface").causes.front(), "driver.user-kernel-mismatch");
  EXPECT_EQ(s.ask("device.kfd-interface").status, Status::fail);
  s.machine.packages.clear();
  s.machine.driver.amdgpu_version = known("");
  EXPECT_EQ(s.ask("device.kfd-interface").status, Status::skip);
}

TEST(KfdInterface, TheDriversOwnAnswerDecides) {
  auto s = desktop();
  s.machine.packages.clear();
  s.machine.driver.kfd_interface = known("1.17", "probe/access");
  EXPECT_EQ(s.ask("device.kfd-interface").status, Status::pass);
  s.machine.driver.kfd_interface = known("2.0", "probe/access");
  const auto result = s.ask("device.kfd-interface");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "driver.user-kernel-mismatch");
  EXPECT_NE(result.summary.find("version 2.0"), std::string::npos) << result.summary;
}

}  // namespace
}  // namespace ff::device::test
