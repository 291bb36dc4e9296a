#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "facts/machine.h"

namespace ff::diagnosis {

/// Reads numbers and relations out of one piece of evidence and adds them as named facts. Pure: text in, facts out; any
/// bytes are allowed. Facts of the same name may be added several times, by one source or by several: a rule's
/// predicate holds when one of them fits. `source` is the evidence's file name, for the origin of the facts only.
using Extractor = void (*)(std::string_view text, std::string_view source, std::vector<facts::NamedFact>& out);

/// Sources above this size are not given to extractors: what they read (metadata, tables, source code, training logs)
/// is smaller, and a kernel log of gigabytes must not be held in memory.
inline constexpr std::size_t max_extract_bytes = 32u << 20;

struct ExtractorEntry {
  std::string_view name;    ///< for messages and tests
  std::string_view prefix;  ///< its facts begin so, separated by blanks: "dataset. video."
  Extractor run;
};

/// All extractors, in a fixed order. Each looks for its own marks first and returns at once when they are absent, so
/// every one may be called on every source, whatever its kind.
[[nodiscard]] std::span<const ExtractorEntry> extractors();

/// Runs all of them on one source; does nothing above max_extract_bytes.
void extract_all(std::string_view text, std::string_view source, std::vector<facts::NamedFact>& out);

}  // namespace ff::diagnosis
