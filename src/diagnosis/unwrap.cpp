#include "diagnosis/unwrap.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "diagnosis/kind.h"
#include "diagnosis/moment.h"

namespace ff::diagnosis {

namespace {

/// A line that begins like this is no continuation.
bool begins_message(std::string_view line) {
  if (line.empty()) return true;
  if (moment_of(line) || looks_like_kernel_line(line)) return true;
  constexpr std::array<std::string_view, 8> heads = {"Traceback", "  File ", "$ ", "# ", ">>> ", "- ", "* ", "=="};
  return std::any_of(heads.begin(), heads.end(), [&](std::string_view head) { return line.starts_with(head); });
}

}  // namespace

Unwrapped unwrap(std::string_view text) {
  const std::vector<std::string_view> all = lines(text);
  std::size_t width = 0;
  for (std::string_view line : all) width = std::max(width, line.size());
  Unwrapped out;
  if (all.size() < 2 || width < min_wrap_width || width > max_wrap_width) return out;
  bool joined_any = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!out.line_numbers.empty() || i > 0) out.text += '\n';
    out.line_numbers.push_back(i + 1);
    std::string_view line = all[i];
    out.text += line;
    std::size_t joined = 0;
    while (i + 1 < all.size() && joined < 12) {
      const std::string_view next = all[i + 1];
      const std::string_view rest = trim(next);
      if (rest.empty() || begins_message(next)) break;
      // Cut in a word: the line is as long as any. Cut at a blank: the next word would not have fitted.
      const bool cut = line.size() == width;
      const auto blank = rest.find(' ');
      const std::size_t word = blank == std::string_view::npos ? rest.size() : blank;
      const bool at_blank = !cut && line.size() + 1 + word > width && line.size() + 40 > width;
      if (!cut && !at_blank) break;
      if (!cut || line.ends_with(' ') || next.starts_with(' ')) {
        if (!out.text.ends_with(' ')) out.text += ' ';
      }
      out.text += rest;
      line = next;
      joined_any = true;
      ++joined;
      ++i;
    }
  }
  if (!joined_any) return Unwrapped{};
  return out;
}

}  // namespace ff::diagnosis
