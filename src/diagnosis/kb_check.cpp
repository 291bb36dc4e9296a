#include "diagnosis/kb_check.h"

#include <fmt/format.h>

#include "diagnosis/explain.h"
#include "diagnosis/scanner.h"
#include "knowledge/load.h"

namespace ff::diagnosis {

std::vector<Error> check_cause_examples(const std::vector<knowledge::Cause>& causes, const knowledge::Knowledge& knowledge) {
  std::vector<Error> out;
  auto scanner = Scanner::make(knowledge);
  if (!scanner) return {scanner.error()};
  for (const knowledge::Cause& c : causes) {
    const auto where = [&](const knowledge::Example& e, std::string_view field) {
      return fmt::format("{}:{}: {}: {}", c.at.file, e.line, c.text.id, field);
    };
    for (const knowledge::Example& e : c.examples) {
      const Explanation explanation = explain_texts(*scanner, e.files, knowledge);
      const auto& diagnoses = explanation.judgement.diagnoses;
      if (diagnoses.empty() || diagnoses.front().cause != c.text.id || diagnoses.front().benign)
        out.push_back(Error{fmt::format("the cause must come first for this evidence, but {}",
                                        diagnoses.empty() ? "nothing is named" : diagnoses.front().cause + " does"),
                            where(e, "examples"), "firstfault explain --why on the same text shows the rules that held", 3});
    }
    for (const knowledge::Example& e : c.look_alikes) {
      const Explanation explanation = explain_texts(*scanner, e.files, knowledge);
      for (const Diagnosis& d : explanation.judgement.diagnoses)
        if (d.cause == c.text.id && !d.benign && d.confidence != "possible")
          out.push_back(Error{fmt::format("the cause is named ({}) for evidence that it must not be named for", d.confidence), where(e, "not"),
                              "add a rule to `against`, or ask for more in `when`", 3});
    }
  }
  return out;
}

std::vector<Error> check_directories(const std::vector<std::string>& directories) {
  knowledge::Problems problems;
  knowledge::Bundle own;
  for (const std::string& directory : directories) knowledge::load(knowledge::read_directory(directory, problems), own, problems);
  if (!problems.empty()) return problems;
  auto knowledge = knowledge::Knowledge::with(directories);
  if (!knowledge) {
    problems.push_back(knowledge.error());
    return problems;
  }
  return check_cause_examples(own.causes, **knowledge);
}

}  // namespace ff::diagnosis
