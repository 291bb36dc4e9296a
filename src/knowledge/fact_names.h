#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace ff::knowledge {

/// The names that facts can have (table `facts`), with '*' for an index, an address or a key.
class FactNames {
 public:
  explicit FactNames(const Value& table);
  /// Whether a rule may ask for the name, which may hold '*' itself. Without a table every name is known.
  [[nodiscard]] bool known(std::string_view name) const;
  /// Names that are likely meant: of the same last part, then of the longest common beginning; at most 3.
  [[nodiscard]] std::vector<std::string> near(std::string_view name) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace ff::knowledge
