// The scanner counts lines of a form that it has seen before without searching them again. The counts must be those of every
// pattern searched in every line.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/text.h"
#include "diagnosis/compiled.h"
#include "diagnosis/decode.h"
#include "diagnosis/explain.h"
#include "diagnosis/kind.h"
#include "diagnosis/scanner.h"
#include "knowledge/form.h"
#include "knowledge/impl.h"
#include "knowledge/load.h"
#include "knowledge/pattern.h"
#include "support/paths.h"

namespace ff::diagnosis {
namespace {

const knowledge::Bundle& source() {
  static const knowledge::Bundle bundle = [] {
    knowledge::Problems problems;
    knowledge::Bundle b;
    load(knowledge::read_directory(ff::test::source_directory().string() + "/knowledge", problems), b, problems);
    return b;
  }();
  return bundle;
}

TEST(Forms, counts_are_those_of_every_pattern_in_every_line) {
  std::mt19937 random(11);
  const auto digit = [&] { return static_cast<char>('0' + random() % 10); };
  std::vector<std::string> examples;
  for (const knowledge::Signal& s : source().signals) {
    if ((s.kinds & knowledge::kind_kernel_log) == 0 && s.kinds != 0) continue;
    for (const std::string& e : s.examples)
      if (e.find('\n') == std::string::npos && contains(e, "amdgpu") && e.size() < 300) examples.push_back(e);
  }
  ASSERT_GT(examples.size(), 200u);
  std::string text;
  std::vector<std::string> all;
  // Few kinds of line, often: most are of a form that was seen before. In half of them some digits are others.
  for (int i = 0; i < 9000; ++i) {
    std::string line = examples[random() % 60 + (i / 3000) * 60];
    if (random() % 2 == 0)
      for (char& c : line)
        if (c >= '0' && c <= '9' && random() % 4 == 0) c = digit();
    if (!line.starts_with("[")) line = fmt::format("[{:5}.{:06}] ", random() % 90000, random() % 1000000) + line;
    all.push_back(line);
    text += line + "\n";
  }
  auto scanner = Scanner::make(knowledge::Knowledge::built_in());
  ASSERT_TRUE(scanner);
  scanner->begin("kern.log", knowledge::kind_kernel_log);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n', std::min<std::size_t>(rest.size() - 1, 100'000)) + 1;
    scanner->feed(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  const Evidence evidence = scanner->take();
  std::size_t compared = 0, fields = 0;
  for (const knowledge::Signal& s : knowledge::Knowledge::built_in().impl().bundle.signals) {
    if (!s.in_kernel_log || (s.kinds != 0 && (s.kinds & knowledge::kind_kernel_log) == 0)) continue;
    std::vector<std::unique_ptr<RE2>> patterns;
    for (const knowledge::Pattern& p : s.match) patterns.push_back(std::make_unique<RE2>(p.text, RE2::Quiet));
    std::uint64_t expected = 0;
    std::map<std::string, bool> known;
    std::vector<std::uint64_t> first_lines;
    for (std::uint64_t number = 1; const std::string& line : all) {
      auto [it, fresh] = known.try_emplace(line, false);
      if (fresh) it->second = std::any_of(patterns.begin(), patterns.end(), [&](const auto& re) { return RE2::PartialMatch(line, *re); });
      expected += it->second ? 1 : 0;
      if (it->second && first_lines.size() < max_occurrences) first_lines.push_back(number);
      ++number;
    }
    auto it = evidence.signals.find(s.id);
    EXPECT_EQ(it == evidence.signals.end() ? 0 : it->second.count, expected) << s.id;
    compared += expected > 0 ? 1 : 0;
    if (expected == 0) continue;
    // What is kept of each line is what its first fitting pattern reads, whether the line was searched or answered from its form.
    const auto& kept = it->second.occurrences;
    std::size_t place = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (i > 0 && kept[i].line == kept[i - 1].line) continue;  // the same line with other fields
      ASSERT_LT(place, first_lines.size()) << s.id;
      ASSERT_EQ(kept[i].line, first_lines[place++]) << s.id;
      const std::string& line = all[kept[i].line - 1];
      EXPECT_EQ(kept[i].text, trim(line).substr(0, max_text)) << s.id;
      EXPECT_NE(kept[i].kinds & knowledge::kind_kernel_log, 0u) << s.id;
      const auto first = std::find_if(patterns.begin(), patterns.end(), [&](const auto& re) { return RE2::PartialMatch(line, *re); });
      ASSERT_NE(first, patterns.end()) << s.id;
      std::vector<re2::StringPiece> groups(static_cast<std::size_t>((*first)->NumberOfCapturingGroups() + 1));
      ASSERT_TRUE((*first)->Match(line, 0, line.size(), RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size())));
      for (const auto& [index, name] : (*first)->CapturingGroupNames()) {
        const re2::StringPiece& group = groups[static_cast<std::size_t>(index)];
        if (group.data() == nullptr) continue;
        const std::string* field = kept[i].field(name);
        ASSERT_NE(field, nullptr) << s.id << ": " << line;
        EXPECT_EQ(*field, std::string(group.data(), group.size())) << s.id << ": " << line;
        ++fields;
      }
    }
  }
  EXPECT_GT(compared, 40u);
  EXPECT_GT(fields, 1000u);
}

TEST(Forms, a_pattern_of_forms_fits_every_form_that_its_lines_may_have) {
  std::mt19937 random(17);
  std::size_t understood = 0, checked = 0;
  for (const knowledge::Signal& s : source().signals)
    for (const knowledge::Pattern& p : s.match) {
      const std::string wide = pattern_of_forms(p.text);
      if (wide.empty()) continue;
      ++understood;
      const RE2 narrow(p.text, RE2::Quiet), of_forms(wide, RE2::Quiet);
      ASSERT_TRUE(of_forms.ok()) << s.id << ": " << wide;
      for (const std::string& example : s.examples) {
        if (!RE2::PartialMatch(example, narrow)) continue;
        ++checked;
        EXPECT_TRUE(RE2::PartialMatch(knowledge::form_of(example), of_forms)) << s.id << ": " << wide << " | " << example;
      }
    }
  EXPECT_GT(understood, 2000u);
  EXPECT_GT(checked, 1500u);
  const auto fits = [](const char* pattern, const char* line) { return RE2::PartialMatch(knowledge::form_of(line), RE2(pattern_of_forms(pattern))); };
  EXPECT_TRUE(fits("gfx90a: [1-3]", "gfx90a: 2"));
  EXPECT_TRUE(fits("gfx90a", "gfx11a")) << "as far as digits go";
  EXPECT_FALSE(fits("gfx90a", "gfx9b"));
  EXPECT_TRUE(fits("at 0x[^0-9]", "at 0xf"));
  EXPECT_TRUE(fits(R"(at 0x\D{2,3}$)", "at 0xfab"));
  EXPECT_FALSE(fits("ring [[:alpha:]x]+ timeout", "ring - timeout"));
  EXPECT_EQ(pattern_of_forms(R"(\x41)"), "");
}

TEST(Forms, which_patterns_depend_on_digits) {
  for (const char* blind : {R"(ring \w+ timeout, signaled seq=(?P<a>\d+))", R"(address (?P<a>0x[0-9a-f]{16}))", R"(status:0x(?P<x>[0-9A-Fa-f]+)\b)",
                            R"(in {3,40}x)", R"(from 0x\w+ \(\S+\))"})
    EXPECT_FALSE(knowledge::numbers_matter(blind)) << blind;
  for (const char* not_blind :
       {R"(gfx90a)", R"(error -22)", R"(ring [0-3] )", R"(0xdead)", R"(0x\d+)", R"(0000:\w+)", R"(\x41bc)", R"([1-9]\d* errors)", R"(0xf{8})"})
    EXPECT_TRUE(knowledge::numbers_matter(not_blind)) << not_blind;
}

TEST(Scanner, a_programs_line_in_a_kernel_log_is_searched_for_what_programs_say) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("Nov 30 10:00:{:02} host kernel: usb 1-{}: new high-speed USB device number {}\n", i, i % 4 + 1, i);
  text += "Nov 30 10:01:00 host train.sh[4242]: RuntimeError: HIP error: invalid device function\n";
  ASSERT_EQ(kinds_of("journal.txt", text), std::uint32_t{knowledge::kind_kernel_log});
  auto scanner = Scanner::make(knowledge::Knowledge::built_in());
  ASSERT_TRUE(scanner);
  scanner->begin("journal.txt", knowledge::kind_kernel_log);
  scanner->feed(text);
  const Evidence evidence = scanner->take();
  const bool found = std::any_of(evidence.signals.begin(), evidence.signals.end(), [](const auto& s) {
    return s.second.occurrences.front().line == 61 && s.second.signal->severity == knowledge::Severity::error;
  });
  EXPECT_TRUE(found);
}

TEST(Scanner, a_line_of_a_test_that_passed_is_no_fault) {
  for (const char* line :
       {"Test passed: hipErrorNoBinaryForGpu handled", "[       OK ] Hip.hipErrorNoBinaryForGpu (3 ms)",
        "tests/test_hip.py::test_hipErrorNoBinaryForGpu PASSED                [ 50%]", "ok 12 - hipErrorNoBinaryForGpu is reported",
        "test_out_of_memory (test_hip.T) ... ok", "12/40 Test #12: hipErrorNoBinaryForGpu ........   Passed    0.10 sec",
        "hipErrorNoBinaryForGpu raised as expected", "hipErrorNoBinaryForGpu (expected)", "PASS: hipErrorNoBinaryForGpu"}) {
    EXPECT_TRUE(reports_success(line)) << line;
    const auto e = explain_texts({{"run.log", std::string(line) + "\n"}}, knowledge::Knowledge::built_in());
    ASSERT_TRUE(e);
    EXPECT_FALSE(e->fault_found()) << line;
  }
  for (const char* line :
       {"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!", "Test failed: hipErrorNoBinaryForGpu not handled",
        "unexpected error: hipErrorNoBinaryForGpu", "Test passed 3 times, but hipErrorNoBinaryForGpu",
        "terminate called after throwing: unhandled hipErrorNoBinaryForGpu", "the parameter was passed to hipMalloc"})
    EXPECT_FALSE(reports_success(line)) << line;
}

TEST(Decode, what_the_driver_prints_of_its_own_parts) {
  const auto says = [](std::string_view kind, std::string_view value, std::string_view part) {
    const std::string text = decode(kind, value, knowledge::Knowledge::built_in());
    EXPECT_TRUE(contains(text, part)) << kind << " " << value << ": '" << text << "'";
  };
  EXPECT_TRUE(contains(decode("vm-fault", "0x00800932", knowledge::Knowledge::built_in(), "gfx1100"), "mapping error"));
  EXPECT_FALSE(contains(decode("vm-fault", "0x00800832", knowledge::Knowledge::built_in(), "gfx1100"), "mapping error"));
  says("ras-block", "umc", "memory controller");
  says("ras-block", "7", "xgmi_wafl");
  says("ras-block", "mca_mpio", "machine check banks");
  says("smu", "0xFF", "'command failed'");
  says("smu", "0xfe", "does not know the message");
  says("smu", "0xFFFFFFFF", "all ones");
  says("mes", "REMOVE_QUEUE", "a queue is taken away");
  says("mes", "14", "MES message MISC");
  says("mes", "MISC (WAIT_REG_MEM)", "TLB flushes");
  says("ip-block", "gfx_v11_0", "compute and graphics engine");
  says("ip-block", "vcn_v4_0", "compute can often do without");
  says("errno", "-110", "ETIMEDOUT");
  says("errno", "ENODEV", "no such device");
  says("mce", "0xbc82a80001020135", "did not correct");
  says("mce", "0xbc82a80001020135", "bad data was used");
  says("mce", "bea0000000000108", "PCC");
  says("mce", "0x9c20400000010135", "a corrected error");
  says("mce", "0x1c20400000010135", "not valid");
  for (const auto& [kind, value] : {std::pair{"ras-block", "42"},
                                    {"smu", "0x77"},
                                    {"mes", "DANCE"},
                                    {"ip-block", "frobnicator"},
                                    {"mce", "zz"},
                                    {"mce", "12"},
                                    {"errno", "9999"},
                                    {"errno", ""},
                                    {"mes", ""},
                                    {"nonsense", "1"}})
    EXPECT_EQ(decode(kind, value, knowledge::Knowledge::built_in()), "") << kind << " " << value;
}

}  // namespace
}  // namespace ff::diagnosis
