#include "knowledge/load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "knowledge/blob.h"
#include "knowledge/impl.h"
#include "knowledge/pattern.h"
#include "knowledge/predicate.h"
#include "knowledge/yaml.h"

namespace ff::knowledge {
namespace {

const char* const good = R"(
signals:
  - id: test.lost-card
    title: A card is lost
    layer: hardware
    severity: error
    match: ['card (?P<number>\d+) is lost']
    source: made for this test
    examples: ["card 3 is lost"]
    not: ["card three is lost"]
causes:
  - id: hardware.fell-off-bus
    title: The card left the bus
    explain: It is no longer there.
    rules:
      - when: {all: [{signal: test.lost-card, where: {number: ">= 1"}}]}
        score: 0.7
        because: the log says so
    fix: [Reseat it.]
    verify: [lspci]
    sources: [made for this test]
    examples: [{files: {a.txt: "card 3 is lost"}}]
)";

Problems problems_of(const std::string& text, Bundle* into = nullptr) {
  Bundle bundle;
  Problems problems;
  load({File{"test.yaml", text}}, bundle, problems);
  if (problems.empty()) check(bundle, problems);
  if (into != nullptr) *into = std::move(bundle);
  return problems;
}

std::string all(const Problems& problems) {
  std::string out;
  for (const Error& e : problems) out += e.to_string() + "\n";
  return out;
}

TEST(Load, a_complete_entry_is_accepted) {
  Bundle bundle;
  EXPECT_EQ(all(problems_of(good, &bundle)), "");
  ASSERT_EQ(bundle.signals.size(), 1u);
  EXPECT_EQ(bundle.signals[0].match[0].text, R"(card (?P<number>\d+) is lost)");
  ASSERT_EQ(bundle.causes.size(), 1u);
  EXPECT_EQ(bundle.causes[0].text.layer, "hardware");
}

struct Broken {
  const char* from;
  const char* to;
  const char* expected;  ///< part of the complaint
};
void PrintTo(const Broken& v, std::ostream* out) { *out << v.expected; }

class BrokenEntry : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenEntry, is_refused_with_file_line_and_field) {
  const std::string text = replace_all(good, GetParam().from, GetParam().to);
  ASSERT_NE(text, good);
  const std::string said = all(problems_of(text));
  EXPECT_TRUE(contains(said, GetParam().expected)) << said;
  EXPECT_TRUE(contains(said, "test.yaml:")) << said;
}

INSTANTIATE_TEST_SUITE_P(Kinds, BrokenEntry,
                         ::testing::Values(Broken{"id: test.lost-card", "id: Test card", "id: must be lower-case"},
                                           Broken{"    layer: hardware\n", "    layer: metal\n", "'metal' is no layer"},
                                           Broken{"severity: error", "severity: bad", "none of error, warning, info"},
                                           Broken{"    source: made for this test\n", "", "source: is missing"},
                                           Broken{"    examples: [\"card 3 is lost\"]\n", "", "examples: is missing"},
                                           Broken{"    not: [\"card three is lost\"]\n", "", "not: is missing"},
                                           Broken{"[\"card 3 is lost\"]", "[\"card x is lost\"]", "no pattern matches the example"},
                                           Broken{"card three is lost", "card 33 is lost", "a pattern matches the look-alike"},
                                           Broken{"card (?P<number>\\d+) is lost", "card (?P<number>\\d+", "not valid RE2"},
                                           Broken{"'card (?P<number>\\d+) is lost'", "'\\d+ (ab|c)'", "no literal of 3 characters"},
                                           Broken{"score: 0.7", "score: 1.5", "must be a number from 0 to 0.98"},
                                           Broken{"signal: test.lost-card", "signal: test.unheard", "there is no signal 'test.unheard'"},
                                           Broken{"{number: \">= 1\"}", "{size: \">= 1\"}", "has no field 'size'"},
                                           Broken{"\">= 1\"", "\">=\"", "nothing to compare with"},
                                           Broken{"hardware.fell-off-bus", "metal.fell-off-bus", "of a known layer"},
                                           Broken{"    fix: [Reseat it.]\n", "", "fix: is missing"},
                                           Broken{"score: 0.7", "scores: 0.7", "is not a known field"},
                                           Broken{"    verify: [lspci]", "    verify: &x [lspci]", "anchors are not allowed"},
                                           Broken{"title: A card is lost", "title: A card: is lost", "not valid YAML"}));

TEST(Load, a_cause_may_stand_in_two_files_but_have_one_title) {
  const std::string more = R"(
causes:
  - id: hardware.fell-off-bus
    rules:
      - name: a known bug
        when: {all: [{signal: test.lost-card, where: {number: 7}}]}
        score: 0.9
)";
  Bundle bundle;
  Problems problems;
  load({File{"a.yaml", good}, File{"b.yaml", more}}, bundle, problems);
  check(bundle, problems);
  EXPECT_EQ(all(problems), "");
  EXPECT_EQ(bundle.causes.at(0).rules.size(), 2u);

  Bundle misspelt;
  load({File{"a.yaml", good}, File{"b.yaml", replace_all(more, "test.lost-card", "test.lost-cart")}}, misspelt, problems);
  check(misspelt, problems);
  EXPECT_FALSE(problems.empty());
  for (const Error& problem : problems) EXPECT_TRUE(problem.where.starts_with("b.yaml:5")) << problem.to_string();
  problems.clear();

  Bundle twice;
  load({File{"a.yaml", good}, File{"b.yaml", good}}, twice, problems);
  EXPECT_TRUE(contains(all(problems), "already has a title")) << all(problems);
  EXPECT_TRUE(contains(all(problems), "stands already in a.yaml")) << all(problems);
}

TEST(Yaml, refuses_what_could_grow_without_bound) {
  EXPECT_FALSE(parse_yaml("a: &x [1]\nb: *x\n", "t"));
  EXPECT_FALSE(parse_yaml("a: 1\na: 2\n", "t"));
  const auto nested = [](int depth) { return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']'); };
  EXPECT_TRUE(parse_yaml(nested(max_yaml_depth), "t"));
  EXPECT_FALSE(parse_yaml(nested(max_yaml_depth + 1), "t"));
  EXPECT_FALSE(parse_yaml(nested(100'000), "t"));
  EXPECT_FALSE(parse_yaml(std::string(max_yaml_bytes + 1, ' '), "t"));
}

TEST(Predicate, compares_versions_as_versions_and_numbers_as_numbers) {
  const auto fits = [](const char* predicate, const char* name, const char* value) {
    auto p = parse_predicate(predicate);
    EXPECT_TRUE(p) << predicate;
    return p && holds(*p, name, value, {});
  };
  EXPECT_TRUE(fits("< 2.10", "pythons[0].packages.torch", "2.9"));
  EXPECT_TRUE(fits("< 2.10", "pythons[0].packages.torch", "2.9.1+rocm6.4"));
  EXPECT_FALSE(fits("< 2.10", "loss", "2.9"));
  EXPECT_TRUE(fits(">= 6.10 and < 7", "host.kernel_release", "6.17.0-19-generic"));
  EXPECT_TRUE(fits("= 8", "pasid", "0x8"));
  EXPECT_FALSE(fits("!= 0", "pasid", "0"));
  EXPECT_TRUE(fits("in gfx1100, gfx1101", "gfx", "gfx1101"));
  EXPECT_FALSE(fits("not in gfx1100, gfx1101", "gfx", "gfx1101"));
  EXPECT_TRUE(fits("~ ^gfx1[01] and !~ 36$", "gfx", "gfx1030"));
  EXPECT_TRUE(fits("contains and then", "text", "this AND THEN that"));
  EXPECT_TRUE(fits("~ black and white", "text", "black and white"));
  EXPECT_FALSE(fits("< 3", "x", "many"));
  EXPECT_FALSE(parse_predicate("~ ("));
  EXPECT_FALSE(parse_predicate(""));
  EXPECT_FALSE(parse_predicate("present 3"));
}

TEST(Predicate, an_unknown_reference_fits_nothing) {
  const auto p = *parse_predicate("not in $fact:gpus[*].gfx");
  EXPECT_FALSE(holds(p, "arch", "gfx900", [](std::string_view) { return std::vector<std::string>{}; }));
  EXPECT_TRUE(holds(p, "arch", "gfx900", [](std::string_view) { return std::vector<std::string>{"gfx1100"}; }));
}

TEST(Pattern, every_match_holds_one_of_the_literals) {
  EXPECT_EQ(literal_cover("page fault \\(src_id:(\\d+)").value(), std::vector<std::string>{"page fault (src_id:"});
  EXPECT_EQ(literal_cover("(alpha|bravo) \\d+").value().size(), 2u);
  EXPECT_FALSE(literal_cover("(alpha|b) \\d+"));
  EXPECT_FALSE(literal_cover(".*"));
  EXPECT_FALSE(literal_cover(std::string(max_pattern_length + 1, 'a')));
}

TEST(Blob, survives_truncation_and_flipped_bytes) {
  Bundle bundle;
  ASSERT_TRUE(problems_of(good, &bundle).empty());
  bundle.tables["t"] = Value::object({{"a", Value::list({1, 2.5, "x", true, nullptr})}});
  ASSERT_TRUE(compile_patterns(bundle));
  const std::string blob = write_blob(bundle);
  auto back = read_blob(blob);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->bundle.signals.at(0).match.at(0).text, bundle.signals[0].match[0].text);
  EXPECT_EQ(back->bundle.causes.at(0).rules.at(0).score, 0.7);
  EXPECT_EQ(read_table(back->tables.at(0).second).value(), bundle.tables["t"]);
  for (std::size_t n = 0; n < blob.size(); ++n) EXPECT_FALSE(read_blob(std::string_view(blob).substr(0, n)));
  for (std::size_t i = 0; i < std::min<std::size_t>(blob.size(), 4000); ++i) {
    std::string bad = blob;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    (void)read_blob(bad);
  }
}

TEST(BuiltIn, holds_tables_causes_and_its_date) {
  const Knowledge& k = Knowledge::built_in();
  EXPECT_EQ(k.date().size(), 10u);
  EXPECT_EQ(k.table("hip_errors")["errors"].items().at(0)["name"].as_text(), "hipSuccess");
  EXPECT_EQ(k.table("pci")["devices"]["744c"]["gfx"].as_text(), "gfx1100");
  EXPECT_TRUE(k.table("nonsense").is_null());
  ASSERT_NE(k.cause("library-coverage.torch-lacks-target"), nullptr);
  EXPECT_FALSE(k.cause("library-coverage.torch-lacks-target")->fix.empty());
  EXPECT_EQ(k.cause("x.y"), nullptr);
}

}  // namespace
}  // namespace ff::knowledge
