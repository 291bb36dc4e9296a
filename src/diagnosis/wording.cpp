#include "diagnosis/wording.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/text.h"

namespace ff::diagnosis {

using knowledge::Knowledge;

namespace {

inline constexpr std::size_t longest_value = 120;

/// A value of the evidence stands in a command that a person copies: nothing that a shell would take for more than a word.
bool plain_word(std::string_view s) {
  return !s.empty() && s.size() <= longest_value && s.front() != '-' && std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || contains("_./:+-", std::string_view(&c, 1));
  });
}

/// The value of the first reference that the evidence answers; empty when it answers with several.
std::string value_for(const Matcher& matcher, const Value& references) {
  for (const Value& reference : references.items()) {
    std::set<std::string> values;
    for (std::string v : matcher.lookup(reference.as_text())) {
      if (v.starts_with("gfx")) v = v.substr(0, v.find(':'));  // without ":xnack-"
      values.insert(std::move(v));
    }
    if (values.empty()) continue;
    return values.size() == 1 && plain_word(*values.begin()) ? *values.begin() : std::string();
  }
  return {};
}

void put(std::vector<std::string>& lines, std::string_view placeholder, const std::string& value) {
  for (std::string& line : lines)
    for (std::size_t at = line.find(placeholder); at != std::string::npos; at = line.find(placeholder, at + value.size()))
      line.replace(at, placeholder.size(), value);
}

bool holds(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& l) { return contains(l, text); });
}

bool any_of(const Value& texts, std::string_view line) {
  const auto& all = texts.items();
  return std::any_of(all.begin(), all.end(), [&](const Value& t) { return contains(line, t.as_text()); });
}

/// The lines under the diagnosis hold a sign of Windows and none of Linux.
bool of_windows(const Diagnosis& d, const Value& table) {
  bool windows = false;
  for (const Support& s : d.evidence_for) {
    if (any_of(table["not"], s.text)) return false;
    windows = windows || any_of(table["signs"], s.text);
  }
  return windows;
}

/// One of the command's words is a program that Windows does not have.
bool foreign(std::string_view command, const std::set<std::string_view>& programs) {
  for (std::string_view w : words(command)) {
    while (!w.empty() && contains("$()|;&'\"", w.substr(0, 1))) w.remove_prefix(1);
    while (!w.empty() && contains("()|;&'\"", w.substr(w.size() - 1))) w.remove_suffix(1);
    if (programs.count(w) != 0 || w.starts_with("/dev/") || w.starts_with("/opt/") || w.starts_with("/sys/") || w.starts_with("/proc/")) return true;
  }
  return false;
}

void for_windows(Diagnosis& d, const Value& table, const std::set<std::string_view>& programs) {
  std::erase_if(d.verify, [&](const std::string& command) { return foreign(command, programs); });
  if (!d.verify.empty()) return;
  const Value& layers = table["proofs"];
  for (const Value& command : (layers[d.layer].items().empty() ? layers["other"] : layers[d.layer]).items()) d.verify.emplace_back(command.as_text());
}

}  // namespace

void word_for_evidence(const Evidence& evidence, const Matcher& matcher, const Knowledge& knowledge, std::vector<Diagnosis>& diagnoses) {
  if (evidence.signals.empty() && evidence.facts.empty()) return;
  const Value& table = knowledge.table("wording");
  const Value& windows = table["windows"];
  std::set<std::string_view> programs;
  for (const Value& program : windows["absent"].items()) programs.insert(program.as_text());
  for (Diagnosis& d : diagnoses) {
    for (const Value& entry : table["placeholders"].items()) {
      const std::string placeholder = "<" + std::string(entry["name"].as_text()) + ">";
      if (!holds(d.fix, placeholder) && !holds(d.verify, placeholder)) continue;
      const std::string value = value_for(matcher, entry["from"]);
      if (value.empty()) continue;
      put(d.fix, placeholder, value);
      put(d.verify, placeholder, value);
    }
    if (of_windows(d, windows)) for_windows(d, windows, programs);
  }
}

}  // namespace ff::diagnosis
