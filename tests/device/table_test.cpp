#include <set>

#include "support/machines.h"

namespace ff::device::test {
namespace {

TEST(DeviceChecks, StandInClimbingOrderWithUniqueIdsAndWords) {
  std::set<std::string_view> seen;
  for (const auto& check : checks()) {
    EXPECT_TRUE(check.id.starts_with("device.")) << check.id;
    EXPECT_EQ(check.rung, Rung::device) << check.id;
    for (const auto need : check.needs) EXPECT_TRUE(seen.count(need)) << check.id << " needs " << need << ", which does not stand before it";
    EXPECT_TRUE(seen.insert(check.id).second) << check.id << " stands twice";
    EXPECT_TRUE(check.question.ends_with("?")) << check.id;
    EXPECT_GT(check.how.size(), 40U) << check.id;
    // The kernel log can show any cause that the knowledge base has.
    EXPECT_EQ(check.causes.empty(), check.id == "device.kernel-log-clean") << check.id;
    EXPECT_TRUE(check.run) << check.id;
  }
  EXPECT_EQ(checks().front().id, "device.gpu-on-bus");
}

TEST(DeviceChecks, HoldOnAHealthyDesktopAndServer) {
  for (const auto& subject : {desktop(), server()})
    for (const auto& check : checks()) {
      const auto result = subject.ask(check.id);
      EXPECT_TRUE(result.status == Status::pass || result.status == Status::skip)
          << check.id << ": " << status_name(result.status) << ": " << result.summary;
      EXPECT_FALSE(result.summary.empty()) << check.id;
    }
}

TEST(DeviceChecks, NeverFailOnAMachineOfWhichNothingIsKnown) {
  for (const auto* kind : {"loose", "bundle", "live"})
    for (const auto& check : checks()) {
      const auto result = nothing(kind).ask(check.id);
      EXPECT_TRUE(result.status == Status::skip || result.status == Status::pass) << kind << " " << check.id << ": " << result.summary;
      EXPECT_FALSE(result.summary.empty()) << check.id;
    }
}

TEST(DeviceChecks, NameACauseThatTheTableLists) {
  // Broken in many ways at once: whatever fails or warns must name causes of its own row.
  auto s = desktop();
  auto& m = s.machine;
  m.driver.kfd_device = known(false, "/dev/kfd");
  m.driver.amdgpu_version_on_disk = known("6.20.0");
  m.driver.dkms_status = known("amdgpu/6.16.13, 6.8.0-1-generic, x86_64: installed");
  m.host.kernel_headers = known(false);
  m.env["HSA_OVERRIDE_GFX_VERSION"] = known("gfx1100");
  m.env["HIP_VISIBLE_DEVICES"] = known("7");
  m.env["AMD_LOG_LEVEL"] = known("4");
  m.limits.memlock = known("65536");
  m.host.memory_available_bytes = known(std::uint64_t{1000});
  m.container.shm_bytes = known(std::uint64_t{1 << 20});
  s.gpu().vram_used_bytes = s.gpu().vram_total_bytes;
  s.gpu().temperature_c["junction"] = known(115.0);
  s.gpu().link.width = known(4);
  std::size_t bad = 0;
  for (const auto& check : checks()) {
    const auto result = s.ask(check.id);
    EXPECT_FALSE(result.status == Status::fail && result.causes.empty()) << check.id;
    if (result.status == Status::fail || result.status == Status::warn) ++bad;
    for (const auto& cause : result.causes) {
      bool listed = false;
      for (const auto c : check.causes) listed = listed || c == cause;
      EXPECT_TRUE(listed) << check.id << " names " << cause;
    }
  }
  EXPECT_GE(bad, 9U);
}

}  // namespace
}  // namespace ff::device::test
