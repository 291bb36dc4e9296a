#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "diagnosis/explain.h"
#include "diagnosis/scanner.h"
#include "knowledge/knowledge.h"
#include "knowledge/yaml.h"
#include "support/paths.h"

namespace ff::diagnosis {

using Files = std::vector<std::pair<std::string, std::string>>;

struct Incident {
  std::string name, expect, least;
  std::vector<std::string> accept, forbid;
  Files files;
};

inline std::vector<std::string> texts(const knowledge::Yaml* node) {
  std::vector<std::string> out;
  if (node != nullptr)
    for (const auto& item : node->items) out.push_back(item.text);
  return out;
}

/// Every directory of tests/incidents with an expect.yaml, by name.
inline std::vector<Incident> incidents() {
  namespace fs = std::filesystem;
  std::vector<Incident> out;
  for (const auto& entry : fs::directory_iterator(ff::test::source_directory() / "tests/incidents")) {
    if (!entry.is_directory()) continue;
    Incident i;
    i.name = entry.path().filename().string();
    auto expect = read_file(entry.path() / "expect.yaml");
    if (!expect) continue;
    auto yaml = knowledge::parse_yaml(*expect, i.name);
    EXPECT_TRUE(yaml) << i.name;
    if (!yaml || yaml->find("expect") == nullptr) continue;
    i.expect = yaml->find("expect")->text;
    i.accept = texts(yaml->find("accept"));
    i.forbid = texts(yaml->find("forbid"));
    for (const auto& file : fs::directory_iterator(entry.path()))
      if (file.path().filename() != "expect.yaml" && file.is_regular_file())
        i.files.emplace_back(file.path().filename().string(), *read_file(file.path()));
    std::sort(i.files.begin(), i.files.end());
    out.push_back(std::move(i));
  }
  std::sort(out.begin(), out.end(), [](const Incident& a, const Incident& b) { return a.name < b.name; });
  return out;
}

inline const std::vector<Incident>& all() {
  static const std::vector<Incident> list = incidents();
  return list;
}

/// The first cause that is named for these files; "benign" or "nothing" when there is none.
inline std::string first_of(const Files& files) {
  static Scanner scanner = std::move(*Scanner::make(knowledge::Knowledge::built_in()));
  const Explanation e = explain_texts(scanner, files, knowledge::Knowledge::built_in());
  for (const Diagnosis& d : e.judgement.diagnoses)
    if (!d.benign) return d.cause;
  return e.judgement.diagnoses.empty() ? "nothing" : "benign";
}

inline bool right(const Incident& i, const std::string& got) {
  if (i.expect == "unknown") return std::find(i.forbid.begin(), i.forbid.end(), got) == i.forbid.end();
  if (i.expect == "none") return got == "nothing" || got == "benign";
  if (i.expect == "benign") return got == "benign" || std::find(i.accept.begin(), i.accept.end(), got) != i.accept.end();
  return got == i.expect || std::find(i.accept.begin(), i.accept.end(), got) != i.accept.end();
}

}  // namespace ff::diagnosis
