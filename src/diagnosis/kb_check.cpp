#include "diagnosis/kb_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/explain.h"
#include "diagnosis/scanner.h"
#include "knowledge/impl.h"
#include "knowledge/place.h"

namespace ff::diagnosis {

std::vector<Error> check_cause_examples(const std::vector<knowledge::Cause>& causes, const knowledge::Knowledge& knowledge) {
  std::vector<Error> out;
  auto scanner = Scanner::make(knowledge);
  if (!scanner) return {scanner.error()};
  for (const knowledge::Cause& c : causes) {
    const auto where = [&](const knowledge::Example& e, std::string_view field) {
      return fmt::format("{}: {}: {}", knowledge::place(e.at.file, e.at.line), c.text.id, field);
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

KbCheck check_directories(const std::vector<std::string>& directories) {
  KbCheck out;
  const std::vector<knowledge::File> files = knowledge::read_directories(directories, out.problems);
  out.nothing_read = files.empty();
  knowledge::Bundle own;
  knowledge::Problems again;  // the same as those of `joined`
  knowledge::load(files, own, again);
  out.signals = own.signals.size();
  out.causes = own.causes.size();
  if (!files.empty() && again.empty() && out.signals + out.causes == 0)
    out.problems.push_back(Error{"hold neither signals nor causes", directories.front(), "begin a file with 'signals:' or 'causes:'", 3});
  auto bundle = knowledge::joined(knowledge::built_in_blob(), files, out.problems);
  if (!bundle) {
    out.problems.push_back(bundle.error());
    return out;
  }
  const auto has_problem = [&](const knowledge::Cause& c) {
    return c.broken ||
           std::any_of(out.problems.begin(), out.problems.end(), [&](const Error& e) { return contains(e.where, ": " + c.text.id + ": "); });
  };
  std::erase_if(own.causes, has_problem);
  out.examples_judged = std::none_of(own.signals.begin(), own.signals.end(), [](const knowledge::Signal& s) { return s.broken; });
  if (own.causes.empty() || !out.examples_judged) return out;
  auto knowledge = knowledge::compiled(std::move(*bundle));
  if (!knowledge) {
    out.problems.push_back(knowledge.error());
    return out;
  }
  for (Error& e : check_cause_examples(own.causes, **knowledge)) out.problems.push_back(std::move(e));
  return out;
}

}  // namespace ff::diagnosis
