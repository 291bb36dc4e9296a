#pragma once

#include <re2/re2.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "knowledge/model.h"

namespace ff::diagnosis {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// A pattern of the knowledge with its compiled form, made when a line first needs it.
class Compiled {
 public:
  explicit Compiled(const knowledge::Pattern& pattern);

  [[nodiscard]] const knowledge::Pattern& pattern() const { return *pattern_; }
  /// Whether the line matches; named groups go to `fields` when it is given, and stay when they are there.
  bool run(std::string_view line, Fields* fields);
  /// After `run` gave fields: those of further places of the line where the pattern matches, or, of a list, of its next words. `take` says
  /// whether to go on.
  void further(std::string_view line, const std::function<bool(Fields&&)>& take);
  /// Whether a line of this form (knowledge::form_of) may match, whatever its digits are. False is certain, true is not.
  bool may_match_form(std::string_view form);
  /// Whether a clause of the pattern (Pattern::also) has texts of which a line's form does not tell whether it holds them.
  [[nodiscard]] bool digits_in_clauses() const { return digits_in_clauses_; }

 private:
  const RE2& get();
  bool match(std::string_view line, std::size_t from, Fields& fields);

  const knowledge::Pattern* pattern_;
  std::string plain_;  ///< the pattern is this text and nothing else
  std::unique_ptr<RE2> re_, blind_;
  std::vector<std::pair<int, std::string>> groups_;
  int group_count_ = 0;
  bool digits_in_clauses_ = false;
  bool of_list_ = false;                          ///< may pass over words of a list to its fields: each word in turn can be an occurrence
  std::size_t fields_begin_ = 0, match_end_ = 0;  ///< in the line that `run` gave fields of
};

/// A pattern that matches the form of every line that the given one matches: whatever a digit of any base may match may also match '0'. Empty
/// when the pattern holds something that is not understood here.
[[nodiscard]] std::string pattern_of_forms(std::string_view pattern);

}  // namespace ff::diagnosis
