#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "knowledge/model.h"

namespace ff::knowledge {

/// Shortest literal that may stand for a pattern.
inline constexpr int min_literal_length = 3;
inline constexpr std::size_t max_pattern_length = 2000;
/// Lower-case literals of which every match of the pattern holds at least one (without regard to case). The set is
/// found by asking RE2's own prefilter which of its atoms cannot be missing. Fails when the pattern is not valid RE2 or
/// has no such set.
Result<std::vector<std::string>> literal_cover(const std::string& pattern);

/// Lower-case literals that a pattern's matches must hold: one of `any_of`, the rarest such set, and one of each clause of
/// `all_of`.
struct Literals {
  std::vector<std::string> any_of;
  std::vector<std::vector<std::string>> all_of;
};
Result<Literals> literals_of(const std::string& pattern);

/// Whether a match may depend on which digits a line holds, beyond their being digits: the pattern names a digit, or a class of
/// some of them, or something other than hexadecimal digits after "0x". When not, two lines that differ in the digits of
/// numbers, or in the digits after "0x", both match or both do not.
[[nodiscard]] bool numbers_matter(std::string_view pattern);

/// Whether lines of a kernel log can show the signal: it says so (`in:`), one of its examples is such a line, or its
/// layer is one that the kernel reports on.
[[nodiscard]] bool may_be_in_kernel_log(const Signal& signal);

/// Gives every pattern of the bundle that has none its literals (the rarest, by the examples of the bundle) and compiles the Hyperscan databases over
/// their forms: for any x86-64 that Hyperscan runs on, so that the database may be kept and carried.
Result<void> compile_patterns(Bundle& bundle);

}  // namespace ff::knowledge
