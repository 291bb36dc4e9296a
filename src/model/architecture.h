#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "knowledge/knowledge.h"
#include "model/formula.h"

namespace ff::model {

/// A tensor that a configuration calls for.
struct ExpectedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  bool optional = false;  ///< may be absent: tied to another, or left out by some versions
  std::string tied;       ///< not empty: the same matrix as the tensor of that name; one of the two has to be there
  bool buffer = false;    ///< no parameter
  bool lookup = false;    ///< read by index and not by a matrix product: an embedding
  [[nodiscard]] std::uint64_t elements() const;
  [[nodiscard]] std::string shape_text() const;
};

/// One architecture of knowledge/tables/architectures.yaml with one configuration's numbers in its formulas.
struct Architecture {
  std::string family, title;
  bool complete = false;  ///< every tensor of the model is in `tensors`; else some telling ones
  Variables values;       ///< h, L, … by the table's names
  std::vector<ExpectedTensor> tensors;
  std::vector<std::string> prefixes;  ///< that may stand before a name or be missing: "model.", "transformer."
  const Value* entry = nullptr;       ///< the family's entry in the table, which lives as long as the knowledge

  [[nodiscard]] std::uint64_t parameters() const;  ///< by the table's own formula where it has one
  [[nodiscard]] std::uint64_t lookups() const;     ///< parameters of embeddings that no matrix product uses
};

/// The architecture of a config.json; nothing when the table has none for it. Errors: the configuration lacks a number that
/// the table needs, or gives one that cannot be.
Result<std::optional<Architecture>> architecture_of(const Value& config, const knowledge::Knowledge& knowledge);

/// Names of the families that the table knows, for messages.
std::vector<std::string> known_families(const knowledge::Knowledge& knowledge);

inline constexpr std::uint64_t max_expected_tensors = 200'000;

}  // namespace ff::model
