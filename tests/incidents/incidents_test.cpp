// Every incident of this directory, every example of a cause, and variants of both: other prefixes, addresses, numbers of
// processes and devices. The answer must not depend on them.
#include "incidents/incidents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "base/value.h"
#include "diagnosis/explain.h"
#include "diagnosis/kb_check.h"
#include "diagnosis/kind.h"
#include "diagnosis/scanner.h"
#include "knowledge/fact_names.h"
#include "knowledge/load.h"
#include "knowledge/yaml.h"
#include "support/paths.h"

namespace ff::diagnosis {
namespace {

TEST(Incidents, each_is_explained_by_its_cause) {
  ASSERT_GT(all().size(), 20u);
  for (const Incident& i : all()) EXPECT_TRUE(right(i, first_of(i.files))) << i.name << ": expected " << i.expect << ", got " << first_of(i.files);
}

/// Rewrites each line of the logs among the files (not structured files, whose form is their meaning).
Files rewritten(const Files& files, const std::function<std::string(std::string_view, bool kernel)>& line) {
  Files out;
  for (const auto& [name, text] : files) {
    const std::uint32_t kinds = kinds_of(name, text);
    const bool kernel = kinds == knowledge::kind_kernel_log;
    const bool program = name.ends_with(".log") || name == "stderr.txt" || name == "traceback.txt";
    if (!kernel && !program) {
      out.emplace_back(name, text);
      continue;
    }
    std::string changed;
    for (std::string_view l : lines(text)) changed += line(l, kernel) + "\n";
    out.emplace_back(name, std::move(changed));
  }
  return out;
}

struct Variant {
  const char* name;
  std::function<std::string(std::string_view, bool)> line;
};

/// The line without a kernel time stamp, so that another prefix can stand there.
std::string bare(std::string_view line) {
  static const RE2 stamp(R"(^(<\d>)?\[\s*\d+\.\d+\]\s*)");
  std::string s(line);
  RE2::Replace(&s, stamp, "");
  return s;
}

std::string quoted(const std::string& text) { return to_json(Value(text)); }

/// Digits in the middle of long hexadecimal numbers are exchanged: what is zero, near zero or all ones keeps its meaning.
std::string with_other_addresses(std::string_view line) {
  std::string s(line);
  re2::StringPiece rest(s);
  re2::StringPiece found;
  static const RE2 captured("(?i)(0x[0-9a-f]{12,16})");
  while (RE2::FindAndConsume(&rest, captured, &found)) {
    const auto at = static_cast<std::size_t>(found.data() - s.data());
    const std::string_view digits = std::string_view(s).substr(at + 2, found.size() - 2);
    if (digits.find_first_not_of("0fF") == std::string_view::npos ||
        digits.substr(0, digits.size() - 5).find_first_not_of('0') == std::string_view::npos)
      continue;
    for (std::size_t i = at + found.size() - 8; i < at + found.size() - 4; ++i)
      if (s[i] >= '1' && s[i] <= '8') ++s[i];
  }
  return s;
}

const std::vector<Variant>& variants() {
  static const RE2 pci("0000:[0-9a-f]{2}:");
  static const RE2 pid("(pid|PID) (?:[0-9]+)");
  static const RE2 home("/home/[A-Za-z0-9_.-]+");
  static const std::vector<Variant> list = {
      {"journal prefix", [](std::string_view l, bool kernel) { return kernel ? "Nov 30 15:21:10 node17 kernel: " + bare(l) : std::string(l); }},
      {"journal prefix with ISO time",
       [](std::string_view l, bool kernel) { return kernel ? "2026-11-30T15:21:10.123456+00:00 node17 kernel: " + bare(l) : std::string(l); }},
      {"dmesg --raw level", [](std::string_view l, bool kernel) { return kernel ? "<3>" + std::string(l) : std::string(l); }},
      {"another slot",
       [](std::string_view l, bool kernel) {
         std::string s(l);
         if (kernel) RE2::GlobalReplace(&s, pci, "0000:c3:");
         return s;
       }},
      {"another process",
       [](std::string_view l, bool) {
         std::string s(l);
         RE2::GlobalReplace(&s, pid, "\\1 77123");
         return s;
       }},
      {"container prefix", [](std::string_view l, bool kernel) { return kernel ? std::string(l) : "trainer-1  | " + std::string(l); }},
      {"CI prefix", [](std::string_view l, bool kernel) { return kernel ? std::string(l) : "2026-11-30T15:21:10.1234567Z " + std::string(l); }},
      {"rank prefix", [](std::string_view l, bool kernel) { return kernel ? std::string(l) : "[rank3]: " + std::string(l); }},
      {"colours", [](std::string_view l, bool) { return "\x1b[31m" + std::string(l) + "\x1b[0m"; }},
      {"carriage returns", [](std::string_view l, bool) { return std::string(l) + "\r"; }},
      {"time of day", [](std::string_view l,
                         bool kernel) { return kernel ? "[Mon Nov 30 15:21:10 2026] " + bare(l) : "[2026-11-30 15:21:10,123] " + std::string(l); }},
      {"journal as JSON",
       [](std::string_view l, bool kernel) {
         return kernel ? R"({"__REALTIME_TIMESTAMP":"1764516070123456","_HOSTNAME":"node17","_TRANSPORT":"kernel","MESSAGE":)" + quoted(bare(l)) + "}"
                       : std::string(l);
       }},
      {"container log as JSON",
       [](std::string_view l, bool kernel) {
         return kernel ? std::string(l)
                       : R"({"log":)" + quoted(std::string(l) + "\n") + R"(,"stream":"stderr","time":"2026-11-30T15:21:10.123456789Z"})";
       }},
      {"other addresses", [](std::string_view l, bool) { return with_other_addresses(l); }},
      {"other directories",
       [](std::string_view l, bool) {
         std::string s(l);
         RE2::GlobalReplace(&s, home, "/mnt/daten/größe-2");
         return s;
       }},
      // Measurements of a training log stand in one line; half of one is none.
      {"lines cut at 120 columns",
       [](std::string_view l, bool) {
         std::string s(l);
         if (contains(s, "loss")) return s;
         for (std::size_t at = 120; at < s.size(); at += 121)
           if (static_cast<unsigned char>(s[at]) < 0x80) s.insert(at, "\n");
         return s;
       }},
  };
  return list;
}

TEST(Incidents, variants_keep_their_answer) {
  std::size_t tried = 0;
  std::size_t kept = 0;
  std::string lost;
  for (const Incident& i : all()) {
    const std::string plain = first_of(i.files);
    if (!right(i, plain)) continue;
    for (const Variant& v : variants()) {
      const Files changed = rewritten(i.files, v.line);
      if (changed == i.files) continue;
      ++tried;
      const std::string got = first_of(changed);
      if (right(i, got))
        ++kept;
      else
        lost += fmt::format("  {} with {}: {} instead of {}\n", i.name, v.name, got, plain);
    }
  }
  EXPECT_GT(tried, 100u);
  EXPECT_EQ(kept, tried) << lost;
}

TEST(Incidents, facts_have_the_names_that_rules_may_ask_for) {
  const knowledge::FactNames names(knowledge::Knowledge::built_in().table("facts"));
  std::set<std::string> unknown;
  std::size_t seen = 0;
  for (const Incident& i : all()) {
    auto e = explain_texts(i.files, knowledge::Knowledge::built_in());
    ASSERT_TRUE(e) << i.name;
    for (const Fact& f : e->evidence.facts) {
      ++seen;
      if (!names.known(f.name)) unknown.insert(f.name);
    }
  }
  EXPECT_GT(seen, 1000u);
  EXPECT_EQ(unknown, std::set<std::string>{}) << "add them to knowledge/tables/facts.yaml";
}

TEST(Incidents, every_example_of_a_cause_is_explained_by_it) {
  knowledge::Problems problems;
  knowledge::Bundle bundle;
  load(knowledge::read_directory(ff::test::source_directory().string() + "/knowledge", problems), bundle, problems);
  ASSERT_TRUE(problems.empty());
  std::string said;
  for (const Error& e : check_cause_examples(bundle.causes, knowledge::Knowledge::built_in())) said += e.to_string() + "\n";
  EXPECT_EQ(said, "");
}

TEST(Incidents, foreign_text_gets_no_diagnosis) {
  std::string prose;
  for (int i = 0; i < 2000; ++i)
    prose += "The committee met on a rainy day, failed to agree, and the reset of the calendar caused an error in the minutes.\n";
  std::string bytes;
  std::uint32_t x = 12345;
  for (int i = 0; i < 200'000; ++i) {
    x = x * 1664525u + 1013904223u;
    bytes.push_back(static_cast<char>(x >> 24));
  }
  for (const auto& [name, text] :
       Files{{"notes.txt", prose}, {"dump.bin", bytes}, {"long.json", "{\"a\": \"" + std::string(2'000'000, 'b') + "\"}"}, {"empty.txt", ""}}) {
    const std::string got = first_of({{name, text}});
    EXPECT_EQ(got, "nothing") << name;
  }
}

}  // namespace
}  // namespace ff::diagnosis
