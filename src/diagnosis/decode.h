#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/evidence.h"
#include "knowledge/knowledge.h"

namespace ff::diagnosis {

/// "hip 98" -> "hipErrorInvalidDeviceFunction (98): invalid device function. …": one sentence, empty when unknown.
/// Kinds: hip, hsa, exit, signal. Values by number (decimal, hexadecimal) or name.
[[nodiscard]] std::string decode(std::string_view kind, std::string_view value, const knowledge::Knowledge& knowledge);

/// Sentences about the numbers of one occurrence, by the signal's `decode:` map (field: kind).
[[nodiscard]] std::vector<std::string> decode_occurrence(const knowledge::Signal& signal, const Occurrence& occurrence, const knowledge::Knowledge& knowledge);

/// A ready search: the tracker's address with the line's fixed words (no numbers, paths or host names).
[[nodiscard]] std::string search_query(std::string_view line, const knowledge::Knowledge& knowledge);

}  // namespace ff::diagnosis
