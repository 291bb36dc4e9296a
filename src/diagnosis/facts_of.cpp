#include "diagnosis/facts_of.h"

#include <filesystem>

#include "capture/capture.h"
#include "capture/loose.h"
#include "capture/open.h"
#include "facts/machine.h"

namespace ff::diagnosis {

namespace {

void take(std::vector<facts::NamedFact>&& from, std::vector<Fact>& to) {
  for (facts::NamedFact& f : from)
    to.push_back(Fact{std::move(f.name), std::move(f.value), std::move(f.origin.source), f.origin.line, std::move(f.origin.text)});
}

}  // namespace

std::vector<Fact> facts_of_capture(const capture::Capture& capture, const knowledge::Knowledge& knowledge) {
  std::vector<Fact> out;
  take(facts::named_facts(facts::read_machine(capture, knowledge)), out);
  return out;
}

std::vector<Fact> facts_of_files(const std::vector<std::string>& files, const knowledge::Knowledge& knowledge) {
  std::vector<std::string> small;
  for (const std::string& file : files) {
    std::error_code error;
    if (std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) <= max_fact_file_bytes) small.push_back(file);
  }
  if (small.empty()) return {};
  std::vector<Fact> out;
  // What cannot be opened as a machine's file is still scanned as text.
  if (auto capture = capture::open(small)) out = facts_of_capture(*capture, knowledge);
  return out;
}

std::vector<Fact> facts_of_texts(const std::vector<std::pair<std::string, std::string>>& files, const knowledge::Knowledge& knowledge) {
  capture::Capture all;
  capture::Members members;
  for (const auto& [name, text] : files)
    if (text.size() <= max_fact_file_bytes) members[name] = text;
  std::vector<Fact> out;
  if (!members.empty() && capture::add_loose(members, all)) out = facts_of_capture(all, knowledge);
  return out;
}

}  // namespace ff::diagnosis
