#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "diagnosis/decode.h"
#include "diagnosis/explain.h"
#include "diagnosis/match.h"
#include "diagnosis/text_report.h"
#include "knowledge/impl.h"
#include "knowledge/pattern.h"

namespace ff::diagnosis {
namespace {

/// A small world: signals alpha, bravo, charlie of a field called "test", and the causes that a test writes.
std::shared_ptr<const knowledge::Knowledge> world(const std::string& causes) {
  std::string text = "signals:\n";
  for (const char* name : {"alpha", "bravo", "charlie"})
    text += fmt::format(
        "  - {{id: test.{0}, title: {0} seen, layer: driver, severity: error, match: ['{0} happened(?: on (?P<gpu>\\d+))?(?: with "
        "(?P<version>[\\d.]+))?'], source: test, examples: ['{0} happened'], not: ['{0} is well']}}\n",
        name);
  text +=
      "  - {id: test.harmless, title: harmless thing, layer: driver, severity: warning, benign: true, mistaken_for: driver.init-failed, explain: It "
      "is nothing., match: ['harmless warning'], source: test, examples: ['harmless warning'], not: ['harm']}\n";
  text +=
      "  - id: test.block\n    title: block\n    layer: driver\n    severity: error\n    match: ['block begins (?P<name>\\w+)']\n    follow: "
      "[{within: 2, match: 'address (?P<address>0x[0-9a-f]+)'}]\n    source: test\n    examples: ['block begins x']\n    not: ['block ends x']\n";
  text += "causes:\n" + causes;
  knowledge::Bundle bundle;
  knowledge::Problems problems;
  load({knowledge::File{"world.yaml", text}}, bundle, problems);
  for (const Error& e : problems) ADD_FAILURE() << e.to_string();
  EXPECT_TRUE(compile_patterns(bundle));
  return from_bundle(std::move(bundle));
}

std::string cause(const std::string& id, const std::string& rules, const std::string& more = "") {
  return fmt::format(
      "  - id: {}\n    title: title of {}\n    explain: because\n    fix: [do]\n    verify: [look]\n    sources: [test]\n    rules:\n{}{}", id, id,
      rules, more);
}

Judgement judged(const knowledge::Knowledge& k, const std::string& text) {
  auto e = explain_texts({{"a.log", text}}, k);
  EXPECT_TRUE(e);
  return e->judgement;
}

std::string names(const Judgement& j) {
  std::string out;
  for (const Diagnosis& d : j.diagnoses) out += fmt::format("{} {}{}; ", d.cause, d.confidence, d.benign ? " benign" : "");
  return out;
}

TEST(Judge, the_strongest_rule_decides_and_further_rules_raise_it) {
  const auto k = world(cause("driver.one",
                             "      - {when: {all: [{signal: test.alpha}]}, score: 0.5, because: a}\n      - {when: {all: [{signal: test.bravo}]}, "
                             "score: 0.4, because: b}\n"));
  EXPECT_DOUBLE_EQ(judged(*k, "alpha happened\n").diagnoses.at(0).score, 0.5);
  EXPECT_NEAR(judged(*k, "alpha happened\nbravo happened\n").diagnoses.at(0).score, 0.6, 1e-9);
  EXPECT_TRUE(judged(*k, "nothing\n").diagnoses.empty());
}

TEST(Judge, evidence_against_lowers_and_silences) {
  const auto k = world(cause("driver.one", "      - {when: {all: [{signal: test.alpha}]}, score: 0.8, because: a}\n",
                             "    against: [{when: {all: [{signal: test.bravo}]}, score: 0.9, because: not so}]\n"));
  EXPECT_EQ(names(judged(*k, "alpha happened\n")), "driver.one likely; ");
  EXPECT_EQ(names(judged(*k, "alpha happened\nbravo happened\n")), "");
}

TEST(Judge, confirmed_needs_a_rule_that_excludes_the_alternatives_and_no_rival) {
  const std::string one = cause("driver.one", "      - {when: {all: [{signal: test.alpha}]}, score: 0.9, confirms: true, because: a}\n");
  EXPECT_EQ(names(judged(*world(one), "alpha happened\n")), "driver.one confirmed; ");
  const std::string rival = cause("driver.two", "      - {when: {all: [{signal: test.bravo}]}, score: 0.8, because: b}\n");
  EXPECT_EQ(names(judged(*world(one + rival), "alpha happened\nbravo happened\n")), "driver.one likely; driver.two likely; ");
  const std::string covering =
      cause("driver.one", "      - {when: {all: [{signal: test.alpha}]}, score: 0.9, confirms: true, because: a}\n", "    covers: [test.bravo]\n");
  const auto j = judged(*world(covering + rival), "alpha happened\nbravo happened\n");
  EXPECT_EQ(names(j), "driver.one confirmed; driver.two likely; ");
  EXPECT_EQ(j.diagnoses[1].consequence_of, "driver.one");
}

TEST(Judge, the_first_event_outranks_its_consequence) {
  const auto k = world(cause("driver.one", "      - {when: {all: [{signal: test.alpha}]}, score: 0.7, because: a}\n", "    covers: [test.bravo]\n") +
                       cause("driver.two", "      - {when: {all: [{signal: test.bravo}]}, score: 0.85, because: b}\n"));
  EXPECT_EQ(judged(*k, "alpha happened\nbravo happened\n").diagnoses.at(0).cause, "driver.one");
  EXPECT_EQ(judged(*k, "bravo happened\nalpha happened\n").diagnoses.at(0).cause, "driver.two");
}

TEST(Judge, conditions_ask_fields_counts_and_order) {
  const auto k = world(
      cause("driver.field", "      - {when: {all: [{signal: test.alpha, where: {gpu: '>= 2', version: '< 2.10'}}]}, score: 0.7, because: a}\n") +
      cause("driver.count", "      - {when: {all: [{signal: test.bravo, count: '>= 3'}]}, score: 0.7, because: a}\n") +
      cause("driver.order", "      - {when: {all: [{signal: test.bravo, before: test.charlie}]}, score: 0.7, because: a}\n") +
      cause("driver.other",
            "      - {when: {all: [{signal: test.charlie, where: {gpu: 'not in $signal:test.alpha.gpu'}}]}, score: 0.7, because: a}\n"));
  EXPECT_EQ(names(judged(*k, "alpha happened on 2 with 2.9.1\n")), "driver.field likely; ");
  EXPECT_EQ(names(judged(*k, "alpha happened on 1 with 2.9.1\nalpha happened on 2 with 2.11\n")), "");
  EXPECT_EQ(names(judged(*k, "bravo happened\nbravo happened\n")), "");
  EXPECT_EQ(names(judged(*k, "bravo happened\nbravo happened\nbravo happened\n")), "driver.count likely; ");
  EXPECT_EQ(names(judged(*k, "bravo happened\ncharlie happened\n")), "driver.order likely; ");
  EXPECT_EQ(names(judged(*k, "charlie happened\nbravo happened\n")), "");
  EXPECT_EQ(names(judged(*k, "alpha happened on 1\ncharlie happened on 3\n")), "driver.other likely; ");
  EXPECT_EQ(names(judged(*k, "charlie happened on 3\n")), "");
}

TEST(Judge, harmless_lines_are_said_to_be_harmless) {
  const auto j = judged(*world(""), "harmless warning\n");
  EXPECT_EQ(names(j), "driver.init-failed possible benign; ");
  Explanation e;
  e.judgement = j;
  EXPECT_FALSE(e.fault_found());
}

TEST(Judge, an_error_that_no_cause_explains_is_shown) {
  const auto j = judged(*world(""), "ok\nalpha happened\nalpha happened\n");
  EXPECT_TRUE(j.diagnoses.empty());
  ASSERT_EQ(j.unexplained.size(), 1u);
  EXPECT_EQ(j.unexplained[0].line, 2u);
  EXPECT_EQ(j.unexplained[0].count, 2u);
}

TEST(Scanner, continuation_lines_give_fields_to_the_head_they_follow) {
  const auto k = world("");
  auto e = explain_texts({{"a.log", "block begins one\nnoise\naddress 0x12\nblock begins two\naddress 0x34\naddress 0x56\n"}}, *k);
  ASSERT_TRUE(e);
  const auto& o = e->evidence.signals.at("test.block").occurrences;
  ASSERT_EQ(o.size(), 2u);
  ASSERT_NE(o[0].field("address"), nullptr);
  EXPECT_EQ(*o[0].field("address"), "0x12");
  EXPECT_EQ(*o[1].field("address"), "0x34");
  auto far = explain_texts({{"a.log", "block begins one\n1\n2\naddress 0x12\n"}}, *k);
  EXPECT_EQ(far->evidence.signals.at("test.block").occurrences[0].field("address"), nullptr);
}

TEST(Scanner, repetitions_are_counted_and_kept_to_a_limit) {
  std::string text;
  for (std::size_t i = 0; i < max_occurrences + 50; ++i) text += "alpha happened on " + std::to_string(i) + "\n";
  auto e = explain_texts({{"a.log", text}}, *world(""));
  const Sighting& s = e->evidence.signals.at("test.alpha");
  EXPECT_EQ(s.count, max_occurrences + 50);
  EXPECT_EQ(s.occurrences.size(), max_occurrences);
  EXPECT_EQ(s.occurrences.back().line, max_occurrences);
}

TEST(Scanner, a_long_line_is_scanned_in_pieces) {
  const std::string filler(100'000, 'x');
  auto e = explain_texts({{"a.log", filler + " alpha happened on 7 " + filler}}, *world(""));
  EXPECT_EQ(e->evidence.signals.at("test.alpha").count, 1u);
}

TEST(Match, a_star_stands_for_an_index) {
  EXPECT_TRUE(name_fits("gpus[*].gfx", "gpus[12].gfx"));
  EXPECT_FALSE(name_fits("gpus[*].gfx", "gpus[12].gfx2"));
  EXPECT_FALSE(name_fits("gpus[*].gfx", "gpu.gfx"));
  EXPECT_TRUE(name_fits("env.*", "env.HOME"));
}

TEST(Decode, puts_numbers_into_words) {
  const auto& k = knowledge::Knowledge::built_in();
  EXPECT_TRUE(contains(decode("hip", "98", k), "hipErrorInvalidDeviceFunction"));
  EXPECT_TRUE(contains(decode("hip", "hipErrorNoBinaryForGpu", k), "209"));
  EXPECT_TRUE(contains(decode("hsa", "0x1008", k), "HSA_STATUS_ERROR_OUT_OF_RESOURCES"));
  EXPECT_TRUE(contains(decode("exit", "-6", k), "SIGABRT"));
  EXPECT_TRUE(contains(decode("exit", "137", k), "SIGKILL"));
  EXPECT_TRUE(contains(decode("exit", "139", k), "SIGSEGV"));
  EXPECT_TRUE(contains(decode("aer-cor", "0x00001040", k), "BadTLP")) << decode("aer-cor", "0x00001040", k);
  EXPECT_TRUE(contains(decode("vm-fault", "0x00841051", k, "gfx90a"), "TCP")) << decode("vm-fault", "0x00841051", k, "gfx90a");
  EXPECT_EQ(decode("hip", "123456", k), "");
  EXPECT_EQ(decode("nonsense", "1", k), "");
}

TEST(Report, is_plain_text_with_the_answer_first_and_no_control_characters) {
  const auto k = world(cause("driver.one", "      - {when: {all: [{signal: test.alpha}]}, score: 0.8, because: a}\n"));
  auto e = explain_texts({{"a.log", std::string("alpha happened \x07\x01 here\n")}}, *k);
  const std::string text = text_report(*e, *k, {});
  EXPECT_EQ(text.find("title of driver.one"), 0u) << text;
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_TRUE(contains(text, "a.log:1"));
  EXPECT_TRUE(contains(markdown_report(*e, *k, {}), "# title of driver.one"));
}

TEST(Report, says_when_the_knowledge_is_old) {
  EXPECT_EQ(age_note("2026-11-30", "2027-02-27"), "");
  EXPECT_TRUE(contains(age_note("2026-11-30", "2027-03-30"), "4 months"));
  EXPECT_EQ(age_note("", "2027-03-30"), "");
}

}  // namespace
}  // namespace ff::diagnosis
