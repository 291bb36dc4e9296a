#include <cerrno>

#include "support/machines.h"

namespace ff::device::test {
namespace {

constexpr auto nodes = "device.nodes-openable";

facts::DeviceNode& kfd(Subject& s) { return s.machine.access.nodes.at(0); }

/// The user is in no group that matters, and open() said EACCES.
Subject refused() {
  auto s = desktop();
  s.machine.access.groups = {{1000, "ada"}};
  s.machine.access.database_groups = {"ada"};
  for (auto& node : s.machine.access.nodes) node.open_errno = known(EACCES, "probe/access");
  return s;
}

TEST(NodesOpenable, PassesWithUserAndNodes) {
  const auto result = desktop().ask(nodes);
  EXPECT_EQ(result.status, Status::pass) << result.summary;
  EXPECT_NE(result.summary.find("ada can open /dev/kfd and /dev/dri/renderD128"), std::string::npos);
}

TEST(NodesOpenable, NamesGroupNumberAndCommandOnTheHost) {
  const auto result = refused().ask(nodes);
  EXPECT_EQ(result.status, Status::fail);
  EXPECT_EQ(result.causes.front(), "permission.not-in-render-group");
  EXPECT_NE(result.summary.find("group 992 (render)"), std::string::npos) << result.summary;
  EXPECT_EQ(result.fix.front(), "sudo usermod -a -G render ada   (then log out and in again)");
}

TEST(NodesOpenable, SendsToANewLoginWhenOnlyTheSessionIsOld) {
  auto s = refused();
  s.machine.access.database_groups = {"ada", "render"};
  const auto result = s.ask(nodes);
  EXPECT_EQ(result.causes.front(), "permission.not-in-render-group");
  EXPECT_NE(result.summary.find("login session was started before"), std::string::npos) << result.summary;
  EXPECT_NE(result.fix.front().find("Log out"), std::string::npos);
}

TEST(NodesOpenable, TellsTheContainersGroupNumberFromTheHosts) {
  auto s = refused();
  s.machine.container.kind = known("docker");
  s.machine.access.groups = {{1000, "ada"}, {109, "render"}};
  for (auto& node : s.machine.access.nodes) node.group = known("");
  const auto result = s.ask(nodes);
  EXPECT_EQ(result.causes.front(), "container.group-not-mapped");
  EXPECT_NE(result.summary.find("group 992 of the host"), std::string::npos) << result.summary;
  EXPECT_NE(result.summary.find("its own group \"render\" is 109"), std::string::npos) << result.summary;
  EXPECT_NE(result.fix.front().find("--group-add 992"), std::string::npos);
  s.machine.container.kind = known("podman");
  EXPECT_NE(s.ask(nodes).fix.front().find("keep-groups"), std::string::npos);
  s.machine.container.kind = known("kubernetes");
  EXPECT_NE(s.ask(nodes).fix.front().find("supplementalGroups: [992]"), std::string::npos);
}

TEST(NodesOpenable, MissesTheRenderNodesThatAContainerWasNotGiven) {
  auto s = desktop();
  s.machine.container.kind = known("docker");
  std::erase_if(s.machine.access.nodes, [](const auto& node) { return node.path.starts_with("/dev/dri/"); });
  const auto none = s.ask(nodes);
  EXPECT_EQ(none.status, Status::fail) << none.summary;
  EXPECT_EQ(none.causes.front(), "container.devices-not-mapped");
  EXPECT_NE(none.summary.find("/dev/dri/renderD128"), std::string::npos) << none.summary;
  EXPECT_NE(none.fix.front().find("--device"), std::string::npos);
  auto unlisted = s;
  unlisted.machine.evidence_kind = "loose";
  EXPECT_NE(unlisted.ask(nodes).status, Status::fail) << "loose files do not list /dev/dri as a whole";
}

TEST(NodesOpenable, NamesOnlyWhatWasOpenedWhereOneOfSeveralGpusIsHandedOver) {
  auto s = server();
  s.machine.container.kind = known("kubernetes");
  const auto all = s.machine.access.nodes.size();
  for (auto it = s.machine.access.nodes.end(); it != s.machine.access.nodes.begin();)
    if ((--it)->path.starts_with("/dev/dri/renderD")) {
      it = s.machine.access.nodes.erase(it);
      break;
    }
  ASSERT_LT(s.machine.access.nodes.size(), all);
  const auto result = s.ask(nodes);
  EXPECT_EQ(result.status, Status::pass) << result.summary;
  EXPECT_NE(result.summary.find("1 more GPU of the host is not handed to this container"), std::string::npos) << result.summary;
}

TEST(DriverAnswers, FailsWhereAReadDidNotComeBack) {
  EXPECT_EQ(desktop().ask("device.driver-answers").status, Status::pass);
  auto s = desktop();
  s.capture.add_error("/sys/class/drm/card0/device/gpu_busy_percent", ETIMEDOUT);
  const auto result = s.ask("device.driver-answers");
  EXPECT_EQ(result.status, Status::fail) << result.summary;
  EXPECT_EQ(result.causes.front(), "driver.not-answering");
  auto open = desktop();
  open.capture.add_error("/dev/kfd", ETIMEDOUT);
  EXPECT_EQ(open.ask("device.driver-answers").status, Status::fail);
  auto other = desktop();
  other.capture.add_error("/sys/class/net/eth0/speed", ETIMEDOUT);
  EXPECT_EQ(other.ask("device.driver-answers").status, Status::pass) << "a file of another driver";
}

TEST(DriverAnswers, FailsWhereAToolHungAndWarnsWhereRocminfoFailed) {
  auto hung = desktop();
  capture::CommandOutput output;
  output.argv = {"rocminfo"};
  output.timed_out = true;
  hung.capture.add_command("rocminfo", output);
  EXPECT_EQ(hung.ask("device.driver-answers").status, Status::fail);
  auto failed = desktop();
  output.timed_out = false;
  output.exit_status = 8;
  output.err = "hsa api call failure at: rocminfo.cc:1282\n";
  failed.capture.add_command("rocminfo", output);
  const auto result = failed.ask("device.driver-answers");
  EXPECT_EQ(result.status, Status::warn) << result.summary;
  EXPECT_EQ(nothing("loose").ask("device.driver-answers").status, Status::skip);
}

TEST(NodesOpenable, SeesAUserNamespaceInBetween) {
  auto s = refused();
  s.machine.container.kind = known("podman");
  s.machine.access.user_namespace = known(true, "probe/user_namespace");
  for (auto& node : s.machine.access.nodes) {
    node.uid = known(65534U);
    node.gid = known(65534U);
    node.group = known("nogroup");
  }
  const auto result = s.ask(nodes);
  EXPECT_EQ(result.causes.front(), "container.group-not-mapped");
  EXPECT_NE(result.summary.find("user namespace"), std::string::npos) << result.summary;
}

TEST(NodesOpenable, BlamesModeWhenNoGroupCouldHelp) {
  auto s = refused();
  for (auto& node : s.machine.access.nodes) {
    node.mode = known(0600U);
    node.gid = known(0U);
    node.group = known("root");
  }
  const auto result = s.ask(nodes);
  EXPECT_EQ(result.causes.front(), "permission.device-node-mode");
  EXPECT_NE(result.summary.find("mode 0600"), std::string::npos) << result.summary;
}

TEST(NodesOpenable, BlamesWhatIsBeyondGroupsForAMember) {
  auto s = refused();
  s.machine.access.groups = {{1000, "ada"}, {992, "render"}};
  EXPECT_EQ(s.ask(nodes).causes.front(), "permission.device-node-mode");
  s.machine.container.kind = known("docker");
  EXPECT_EQ(s.ask(nodes).causes.front(), "container.confined");
}

TEST(NodesOpenable, ReadsOtherRefusals) {
  auto s = desktop();
  s.machine.container.kind = known("docker");
  kfd(s).open_errno = known(EPERM);
  EXPECT_EQ(s.ask(nodes).causes.front(), "container.devices-not-mapped") << "the device cgroup";
  kfd(s).open_errno = known(ENXIO);
  EXPECT_EQ(s.ask(nodes).causes.front(), "driver.init-failed");
  kfd(s).open_errno = known(ENOENT);
  EXPECT_EQ(s.ask(nodes).causes.front(), "container.devices-not-mapped");
  s.machine.container.kind = known("");
  EXPECT_EQ(s.ask(nodes).causes.front(), "driver.kfd-unavailable");
  kfd(s).open_errno = known(ENOMEM);
  EXPECT_EQ(s.ask(nodes).status, Status::fail);
}

TEST(NodesOpenable, JudgesFromPermissionsWhenNobodyTried) {
  auto s = refused();
  for (auto& node : s.machine.access.nodes) node.open_errno = {};
  EXPECT_EQ(s.ask(nodes).status, Status::fail) << "in no group of the nodes";
  auto seat = s;
  for (auto& node : seat.machine.access.nodes) node.acl = "user:1000:rw-";
  EXPECT_EQ(seat.ask(nodes).status, Status::skip) << "an access control list may grant it";
  s.machine.access.groups[992] = "render";
  EXPECT_EQ(s.ask(nodes).status, Status::pass);
  s.machine.access.groups.clear();
  s.machine.access.groups_known = {};
  EXPECT_EQ(s.ask(nodes).status, Status::skip) << "the groups are unknown";
  s.machine.access.uid = known(0U);
  const auto result = s.ask(nodes);
  EXPECT_EQ(result.status, Status::pass);
  EXPECT_NE(result.summary.find("as root"), std::string::npos);
  for (auto& node : s.machine.access.nodes) node.mode = known(0666U);
  s.machine.access.uid = known(1000U);
  EXPECT_EQ(s.ask(nodes).status, Status::pass) << "open to everybody";
}

}  // namespace
}  // namespace ff::device::test
