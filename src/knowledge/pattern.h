#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "knowledge/model.h"

namespace ff::knowledge {

/// Shortest literal that may stand for a pattern, and the length from which one is looked for first: shorter ones are
/// in too many lines.
inline constexpr int min_literal_length = 3;
inline constexpr int good_literal_length = 5;
inline constexpr std::size_t max_pattern_length = 2000;

/// Lower-case literals of which every match of the pattern holds at least one (without regard to case). The set is
/// found by asking RE2's own prefilter which of its atoms cannot be missing. Fails when the pattern is not valid RE2 or
/// has no such set.
Result<std::vector<std::string>> literal_cover(const std::string& pattern);

/// Gives every pattern of the bundle its literals and compiles the Hyperscan database over them: for any x86-64 that
/// Hyperscan runs on, so that the database may be kept and carried.
Result<void> compile_patterns(Bundle& bundle);

}  // namespace ff::knowledge
