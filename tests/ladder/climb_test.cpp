#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>

#include "capture/capture.h"
#include "facts/machine.h"
#include "knowledge/knowledge.h"
#include "ladder/ladder.h"

namespace ff::ladder {
namespace {

Check check(std::string_view id, CheckResult result, std::vector<std::string_view> needs = {}) {
  return {.id = id, .rung = Rung::device, .question = "?", .how = "", .causes = {}, .needs = std::move(needs), .run = [result](const CheckContext&) {
            return result;
          }};
}

std::vector<Check> first, second;
std::span<const Check> first_checks() { return first; }
std::span<const Check> second_checks() { return second; }
std::string nothing_missing(const CheckInputs&) { return ""; }

constexpr std::array<RungEntry, 2> two_rungs{{{Rung::device, &first_checks, &nothing_missing}, {Rung::compute, &second_checks, &nothing_missing}}};

class ClimbTest : public testing::Test {
 protected:
  Climb run(const Options& options = {}) { return climb(context_, options, observer_, two_rungs); }
  capture::Capture capture_;
  facts::Machine machine_;
  CheckInputs inputs_;
  CheckContext context_{capture_, machine_, knowledge::Knowledge::built_in(), inputs_, "", [](std::string_view) {}};
  Observer observer_;
};

TEST_F(ClimbTest, StopsAtTheFirstRungThatDoesNotHold) {
  first = {check("a", CheckResult::pass("fine")), check("b", CheckResult::fail("device.no-gpu-on-bus", "broken"))};
  second = {check("c", CheckResult::pass("fine"))};
  const Climb result = run();
  EXPECT_EQ(result.first_fault, "b");
  EXPECT_EQ(result.exit_code(), 1);
  EXPECT_EQ(result.rungs[1].status, RungStatus::not_reached);
  EXPECT_EQ(run({.keep_going = true}).rungs[1].status, RungStatus::pass);
}

TEST_F(ClimbTest, ARungInWhichNothingPassedIsNotJudged) {
  first = {check("a", CheckResult::skip("needs a topology")), check("b", CheckResult::warn("kernel-fault.out-of-bounds", "a line of the log"))};
  second = {check("c", CheckResult::skip("needs a device"))};
  const Climb result = run();
  EXPECT_EQ(result.rungs[0].status, RungStatus::skip);
  EXPECT_NE(result.rungs[0].reason.find("a: needs a topology"), std::string::npos) << result.rungs[0].reason;
  EXPECT_EQ(result.rungs[1].status, RungStatus::skip);
  EXPECT_NE(result.rungs[1].reason.find("c: needs a device"), std::string::npos) << result.rungs[1].reason;
  EXPECT_TRUE(result.judged_nothing());
  EXPECT_EQ(run({.only_checks = {"b"}}).rungs[0].status, RungStatus::warn) << "a single check that was asked for";
  second = {check("c", CheckResult::pass("fine")), check("d", CheckResult::skip("not given"))};
  EXPECT_FALSE(run().judged_nothing());
  EXPECT_EQ(run().rungs[1].status, RungStatus::pass);
  EXPECT_TRUE(run().rungs[1].reason.empty());
}

TEST_F(ClimbTest, TurnsDependantsIntoSkipsThatNameTheRoot) {
  first = {check("a", CheckResult::fail("device.no-gpu-on-bus", "broken")), check("b", CheckResult::pass("would pass"), {"a"}),
           check("c", CheckResult::pass("would pass"), {"b"}), check("d", CheckResult::pass("independent"))};
  second = {};
  const Climb result = run();
  ASSERT_EQ(result.rungs[0].checks.size(), 4U);
  EXPECT_EQ(result.rungs[0].checks[1].blocked_by, "a");
  EXPECT_EQ(result.rungs[0].checks[2].blocked_by, "a") << "the root, not the neighbour";
  EXPECT_EQ(result.rungs[0].checks[3].status, Status::pass);
}

TEST_F(ClimbTest, ASkipForLackOfEvidenceDoesNotBlock) {
  first = {check("a", CheckResult::skip("not given")), check("b", CheckResult::pass("fine"), {"a"})};
  second = {};
  EXPECT_EQ(run().rungs[0].checks[1].status, Status::pass);
}

TEST_F(ClimbTest, AnErrorStopsTheClimbWithItsOwnExitCode) {
  first = {check("a", CheckResult::error(Error{"cannot", "x", "", 3}))};
  second = {check("c", CheckResult::pass("fine"))};
  const Climb result = run();
  EXPECT_EQ(result.exit_code(), 3);
  EXPECT_EQ(result.rungs[1].status, RungStatus::not_reached);
}

TEST_F(ClimbTest, AnExceptionInACheckIsAnErrorOfThatCheckOnly) {
  first = {check("a", CheckResult::pass("")), check("b", CheckResult::pass("fine"))};
  first[0].run = [](const CheckContext&) -> CheckResult { throw std::runtime_error("boom"); };
  second = {};
  const Climb result = run();
  EXPECT_EQ(result.rungs[0].checks[0].status, Status::error);
  EXPECT_EQ(result.rungs[0].checks[1].status, Status::pass);
}

TEST_F(ClimbTest, AFailWithoutACauseIsOurError) {
  first = {check("a", CheckResult::pass(""))};
  first[0].run = [](const CheckContext&) {
    CheckResult r = CheckResult::pass("x");
    r.status = Status::fail;
    return r;
  };
  second = {};
  EXPECT_EQ(run().rungs[0].checks[0].status, Status::error);
}

TEST_F(ClimbTest, WarningsAndSkipsBesideWhatPassedHold) {
  first = {check("a", CheckResult::warn("hardware.thermal", "hot")), check("b", CheckResult::skip("n/a")), check("d", CheckResult::pass("fine"))};
  second = {check("c", CheckResult::pass("fine"))};
  const Climb result = run();
  EXPECT_EQ(result.rungs[0].status, RungStatus::warn);
  EXPECT_EQ(result.rungs[1].status, RungStatus::pass);
  EXPECT_EQ(result.exit_code(), 0);
}

TEST_F(ClimbTest, OnlyRunsTheAskedCheckAndWhatItNeeds) {
  first = {check("a", CheckResult::pass("fine")), check("b", CheckResult::pass("fine"), {"a"}), check("x", CheckResult::pass("other"))};
  second = {check("c", CheckResult::pass("fine"))};
  const Climb result = run({.only_checks = {"b"}});
  ASSERT_EQ(result.rungs[0].checks.size(), 2U);
  EXPECT_EQ(result.rungs[1].status, RungStatus::not_reached);
  EXPECT_EQ(unknown_checks({"b", "nonsense"}, two_rungs), std::vector<std::string>{"nonsense"});
}

TEST_F(ClimbTest, UpToACheckStopsAfterIt) {
  first = {check("a", CheckResult::pass("fine")), check("b", CheckResult::pass("fine"))};
  second = {check("c", CheckResult::pass("fine"))};
  const Climb result = run({.up_to_check = "a"});
  EXPECT_EQ(result.rungs[0].checks.size(), 1U);
  EXPECT_EQ(result.rungs[1].status, RungStatus::not_reached);
}

TEST(Rungs, AreInOrderAndTheirChecksBelongToThem) {
  std::size_t position = 0;
  std::set<std::string_view> seen;
  for (const auto& entry : rungs()) {
    EXPECT_EQ(static_cast<std::size_t>(entry.rung), position++);
    for (const auto& c : entry.checks()) {
      EXPECT_EQ(c.rung, entry.rung) << c.id;
      EXPECT_TRUE(c.id.starts_with(rung_name(entry.rung))) << c.id;
      EXPECT_FALSE(c.question.empty()) << c.id;
      EXPECT_FALSE(c.how.empty()) << c.id;
      for (const auto need : c.needs) EXPECT_TRUE(seen.contains(need)) << c.id << " needs " << need << ", which comes later or not at all";
      EXPECT_TRUE(seen.insert(c.id).second) << c.id << " twice";
      for (const auto cause : c.causes)
        EXPECT_NE(knowledge::Knowledge::built_in().cause(cause), nullptr) << c.id << " names the unknown cause " << cause;
    }
  }
  EXPECT_EQ(position, rung_count);
}

TEST_F(ClimbTest, LetsAChecksOwnRemedyAndProofStandAlone) {
  auto own = CheckResult::fail("device.no-gpu-on-bus", "broken");
  first = {check("a", own)};
  const auto general = run().rungs[0].checks[0];
  ASSERT_FALSE(general.fix.empty());
  ASSERT_FALSE(general.verify.empty());
  own.fix = {"my fix"};
  first = {check("a", own)};
  EXPECT_EQ(run().rungs[0].checks[0].fix.size(), 1 + general.fix.size()) << "a remedy alone goes before those of the knowledge";
  EXPECT_EQ(run().rungs[0].checks[0].verify, general.verify);
  own.verify = {"my proof"};
  first = {check("a", own)};
  EXPECT_EQ(run().rungs[0].checks[0].fix, own.fix);
  EXPECT_EQ(run().rungs[0].checks[0].verify, own.verify);
  own.fix.clear();
  first = {check("a", own)};
  EXPECT_EQ(run().rungs[0].checks[0].fix, general.fix);
  EXPECT_EQ(run().rungs[0].checks[0].verify, own.verify);
}

}  // namespace
}  // namespace ff::ladder
