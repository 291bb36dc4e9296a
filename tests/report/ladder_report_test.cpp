#include "report/ladder_report.h"

#include <gtest/gtest.h>

namespace ff::report {
namespace {

ladder::Climb broken() {
  CheckResult fault = CheckResult::fail("permission.not-in-render-group", "user ana may not open /dev/kfd\x1b[2J <b>|");
  fault.id = "device.nodes-openable";
  fault.fix = {"sudo usermod -aG render ana", "log in again"};
  fault.verify = {"test -r /dev/kfd"};
  fault.evidence = {{"/dev/kfd", 0, "crw-rw---- root:render (992)"}, {"dmesg.txt", 812, "x"}};
  ladder::RungResult device;
  device.rung = Rung::device;
  device.status = ladder::RungStatus::fail;
  device.checks = {fault};
  ladder::RungResult compute;
  compute.rung = Rung::compute;
  compute.reason = "the climb stopped at device.nodes-openable";
  ladder::Climb climb;
  climb.rungs = {device, compute};
  climb.first_fault = fault.id;
  return climb;
}

TEST(LadderReport, LeadsWithTheFaultItsFixAndItsProof) {
  const std::string text = ladder_text(broken(), {.subject = "this machine"}, Style(false), 100);
  const auto fault = text.find("First fault  device.nodes-openable");
  const auto fix = text.find("1. sudo usermod -aG render ana");
  const auto proof = text.find("$ test -r /dev/kfd");
  ASSERT_NE(fault, std::string::npos) << text;
  EXPECT_LT(fault, fix);
  EXPECT_LT(fix, proof);
  EXPECT_NE(text.find("dmesg.txt:812"), std::string::npos);
}

TEST(LadderReport, SaysWhatTheClimbDidNotReachInOneLine) {
  ladder::Climb climb = broken();
  for (const Rung which : {Rung::dataset, Rung::model}) {
    ladder::RungResult rung = climb.rungs.back();
    rung.rung = which;
    climb.rungs.push_back(rung);
  }
  const std::string text = ladder_text(climb, {}, Style(false), 100);
  EXPECT_NE(text.find("  2 -       compute to model: the climb stopped at device.nodes-openable\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("  3 "), std::string::npos) << text;
}

TEST(LadderReport, ShowsEvidenceThatDiffersInNumbersOnce) {
  ladder::Climb climb = broken();
  auto& evidence = climb.rungs.front().checks.front().evidence;
  evidence.clear();
  for (int minor = 128; minor < 136; ++minor) {
    evidence.push_back({"/dev/dri/renderD" + std::to_string(minor), 0, "group 992"});
    evidence.push_back({"probe/access", 0, "/dev/dri/renderD" + std::to_string(minor) + ": Permission denied"});
  }
  const std::string text = ladder_text(climb, {}, Style(false), 100);
  EXPECT_NE(text.find("/dev/dri/renderD128: group 992 (and 7 alike)"), std::string::npos) << text;
  EXPECT_NE(text.find("probe/access: /dev/dri/renderD128: Permission denied (and 7 alike)"), std::string::npos) << text;
  EXPECT_EQ(text.find("renderD129"), std::string::npos) << text;
  EXPECT_EQ(text.find("more (--json"), std::string::npos) << text;
}

TEST(LadderReport, NeverPassesControlCharactersOrMarkupOn) {
  EXPECT_EQ(ladder_text(broken(), {}, Style(false), 100).find('\x1b'), std::string::npos);
  const std::string markdown = ladder_markdown(broken(), {});
  EXPECT_EQ(markdown.find('\x1b'), std::string::npos);
  EXPECT_EQ(markdown.find("<b>"), std::string::npos);
}

TEST(LadderReport, ReadsBackWhatItWrote) {
  const Value document = ladder_value(broken(), Value::list(), "runs/x");
  const auto parsed = parse_json(to_json(document));
  ASSERT_TRUE(parsed);
  const auto climb = climb_from_value(*parsed);
  ASSERT_TRUE(climb) << climb.error().to_string();
  EXPECT_EQ(to_json(ladder_value(*climb, Value::list(), "runs/x")), to_json(document));
  EXPECT_FALSE(climb_from_value(Value::object({{"schema", "other"}})));
}

TEST(Wrapping, KeepsLongWordsWholeAndIndents) {
  EXPECT_EQ(wrapped("aa bb cc", 2, 7), "aa bb\n  cc");
  EXPECT_EQ(wrapped("/a/very/long/path x", 0, 5), "/a/very/long/path\nx");
}

}  // namespace
}  // namespace ff::report
