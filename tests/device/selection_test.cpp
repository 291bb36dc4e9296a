#include "support/machines.h"

namespace ff::device::test {
namespace {

constexpr auto visible = "device.visible-devices";

TEST(VisibleDevices, PassWithoutVariables) { EXPECT_EQ(server().ask(visible).status, Status::pass); }

TEST(VisibleDevices, WarnWhenSomeAreHiddenOrRenumbered) {
  auto s = server();
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("2,0", "probe/env");
  auto result = s.ask(visible);
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("2 of 4 GPUs visible, renumbered: HIP device 0 is Instinct MI210 at 0000:63:00.0"), std::string::npos)
      << result.summary;
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("0,1,2,3");
  EXPECT_EQ(s.ask(visible).status, Status::pass) << "all, in order";
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("1");
  s.machine.env["SLURM_JOB_ID"] = known("4711");
  EXPECT_EQ(s.ask(visible).status, Status::pass) << "a batch system gave this job one GPU";
}

TEST(VisibleDevices, CountHipNumbersWithinWhatRocrLeft) {
  auto s = server();
  s.machine.env["ROCR_VISIBLE_DEVICES"] = known("2", "probe/env");
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("2", "probe/env");
  const auto result = s.ask(visible);
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "runtime.visible-devices");
  EXPECT_NE(result.summary.find("there is 1 device at that point"), std::string::npos) << result.summary;
  EXPECT_EQ(result.fix.front(), "unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES");
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("0");
  EXPECT_EQ(s.ask(visible).status, Status::warn);
}

TEST(VisibleDevices, FollowUuids) {
  auto s = server();
  s.machine.env["ROCR_VISIBLE_DEVICES"] = known("GPU-43449A3D9E4C51C1");
  EXPECT_EQ(s.ask(visible).status, Status::warn);
  s.machine.env["ROCR_VISIBLE_DEVICES"] = known("GPU-deadbeef00000000");
  const auto result = s.ask(visible);
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_NE(result.summary.find("no GPU here has that id"), std::string::npos) << result.summary;
}

TEST(VisibleDevices, FailWhenNothingIsLeft) {
  auto s = desktop();
  for (const auto* value : {"-1", "1", "a"}) {
    s.machine.env["HIP_VISIBLE_DEVICES"] = known(value);
    EXPECT_EQ(s.ask(visible).status, Status::fail) << value;
  }
  s.machine.env.clear();
  s.machine.env["CUDA_VISIBLE_DEVICES"] = known("3");
  EXPECT_EQ(s.ask(visible).status, Status::fail) << "HIP reads CUDA_VISIBLE_DEVICES when its own is unset";
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("0");
  EXPECT_EQ(s.ask(visible).status, Status::warn) << "the two disagree";
}

TEST(VisibleDevices, IgnoreWhatFollowsAWrongToken) {
  auto s = server();
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("0,9,1");
  const auto result = s.ask(visible);
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_NE(result.summary.find("1 of 4 GPUs stay visible"), std::string::npos) << result.summary;
}

TEST(VisibleDevices, MentionAnEmptyList) {
  auto s = desktop();
  s.machine.env["CUDA_VISIBLE_DEVICES"] = known("");
  const auto result = s.ask(visible);
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.fix.front(), "unset CUDA_VISIBLE_DEVICES");
}

/// A desktop whose processor has a small GPU of its own.
Subject mixed(int integrated_node) {
  auto s = desktop();
  auto apu = s.gpu();
  apu.pci = known("0000:0e:00.0");
  apu.integrated = known(true);
  apu.gfx = known("gfx1036");
  apu.product = known("Radeon Graphics");
  apu.kfd_node = known(integrated_node);
  apu.render_minor = known(129);
  s.gpu().kfd_node = known(integrated_node == 1 ? 2 : 1);
  s.machine.gpus.push_back(apu);
  s.machine.access.nodes.push_back(s.machine.access.nodes.back());
  s.machine.access.nodes.back().path = "/dev/dri/renderD129";
  return s;
}

TEST(IntegratedBesideDiscrete, FailsWhenItIsTheDefaultDevice) {
  const auto result = mixed(1).ask("device.integrated-beside-discrete");
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "runtime.integrated-gpu-selected");
  EXPECT_NE(result.fix.front().find("HIP_VISIBLE_DEVICES=1"), std::string::npos) << result.fix.front();
}

TEST(IntegratedBesideDiscrete, WarnsWhenItIsSecondAndPassesWhenHidden) {
  auto s = mixed(2);
  const auto result = s.ask("device.integrated-beside-discrete");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
  EXPECT_NE(result.fix.front().find("HIP_VISIBLE_DEVICES=0"), std::string::npos);
  s.machine.env["HIP_VISIBLE_DEVICES"] = known("0");
  EXPECT_EQ(s.ask("device.integrated-beside-discrete").status, Status::skip);
  EXPECT_EQ(s.ask(visible).status, Status::pass) << "hiding the integrated one is what the fix says";
  EXPECT_EQ(server().ask("device.integrated-beside-discrete").status, Status::pass);
}

TEST(Environment, KnowsNamesThatNothingReads) {
  auto s = desktop();
  EXPECT_EQ(s.ask("device.environment").status, Status::pass);
  s.machine.env["ROCM_VISIBLE_DEVICES"] = known("0", "probe/env");
  auto result = s.ask("device.environment");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "runtime.visible-devices");
  EXPECT_NE(result.summary.find("ROCM_VISIBLE_DEVICES=0"), std::string::npos);
  s.machine.env.clear();
  s.machine.env["AMD_VISIBLE_DEVICES"] = known("all");
  EXPECT_EQ(s.ask("device.environment").status, Status::warn);
  s.machine.container.kind = known("docker");
  EXPECT_EQ(s.ask("device.environment").status, Status::pass) << "the container toolkit sets and reads it";
}

TEST(Environment, KnowsWhatSlowsEveryRun) {
  auto s = desktop();
  s.machine.env["AMD_SERIALIZE_KERNEL"] = known("3");
  auto result = s.ask("device.environment");
  EXPECT_EQ(result.status, Status::warn);
  EXPECT_EQ(result.causes.front(), "performance.host-bound");
  s.machine.env.clear();
  s.machine.env["AMD_LOG_LEVEL"] = known("0");
  s.machine.env["HIP_LAUNCH_BLOCKING"] = known("0");
  s.machine.env["HSA_ENABLE_SDMA"] = known("1");
  EXPECT_EQ(s.ask("device.environment").status, Status::pass);
  s.machine.env["HSA_ENABLE_SDMA"] = known("0");
  EXPECT_EQ(s.ask("device.environment").causes.front(), "performance.slow-transfer");
}

}  // namespace
}  // namespace ff::device::test
