#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnosis/evidence.h"
#include "knowledge/model.h"
#include "knowledge/predicate.h"

namespace ff::diagnosis {

/// What made a condition hold.
struct Trace {
  std::vector<std::pair<const Sighting*, const Occurrence*>> seen;
  std::vector<const Fact*> facts;
};

/// Evaluates the conditions of rules over one body of evidence.
class Matcher {
 public:
  explicit Matcher(const Evidence& evidence);
  /// Whether the condition holds; then what made it hold is added to the trace (nothing for `none` and `absent`).
  [[nodiscard]] bool holds(const knowledge::Condition& condition, Trace& trace) const;
  /// All values of "$fact:NAME" or "$signal:ID.FIELD".
  [[nodiscard]] std::vector<std::string> lookup(std::string_view reference) const;

 private:
  [[nodiscard]] bool signal_holds(const knowledge::Condition& condition, Trace& trace) const;
  [[nodiscard]] bool fact_holds(const knowledge::Condition& condition, Trace& trace) const;
  [[nodiscard]] std::vector<const Sighting*> sightings(std::string_view id) const;
  [[nodiscard]] std::vector<const Fact*> facts(std::string_view name) const;

  const Evidence& evidence_;
  knowledge::Lookup lookup_;
};

/// "gpus[*].gfx" fits "gpus[0].gfx"; names without '*' fit themselves.
[[nodiscard]] bool name_fits(std::string_view pattern, std::string_view name);

}  // namespace ff::diagnosis
