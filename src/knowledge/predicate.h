#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "knowledge/model.h"

namespace ff::knowledge {

/// Reads "present", "= 3", "< 7.0", "in a, b", "~ RE2", "contains x" and two or more of them joined by " and ".
/// A bare word is "= word". Errors say which part is wrong; regular expressions are compiled to check them.
Result<Predicate> parse_predicate(std::string_view text);

/// Values of the same evidence for "$fact:NAME" and "$signal:ID.FIELD"; empty when nothing is known.
using Lookup = std::function<std::vector<std::string>(std::string_view reference)>;

/// Whether a known value fits. `name` is the field's or fact's: names of versions compare as versions ("2.10" > "2.9"),
/// others as numbers where both sides are numbers. A reference that is not known fits nothing, not even "!=".
bool holds(const Predicate& predicate, std::string_view name, std::string_view value, const Lookup& lookup);

}  // namespace ff::knowledge
