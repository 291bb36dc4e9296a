#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ff::diagnosis {

/// Text with broken lines joined. `line_numbers[i]`: the line (from 1) of the original on which line i begins.
struct Unwrapped {
  std::string text;  ///< empty when no line looks broken
  std::vector<std::uint64_t> line_numbers;
};

/// Joins lines that something broke at a fixed width (a terminal, a mail program, a ticket): a line goes on when it is
/// about as long as the longest lines of the text allow, and the next one does not begin like a new message. A line that was broken at a blank is
/// joined with a blank, one that was cut inside a word without.
Unwrapped unwrap(std::string_view text);

inline constexpr std::size_t min_wrap_width = 40;
inline constexpr std::size_t max_wrap_width = 240;

}  // namespace ff::diagnosis
