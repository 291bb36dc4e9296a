#include "base/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace ff {

namespace {

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7F; }

/// $'…' of bash, zsh and POSIX 2024: what a terminal does not show stands as its number.
std::string dollar_quoted(std::string_view text, bool whole_utf8) {
  std::string out = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\'' || c == '\\')
      (out += '\\') += c;
    else if (is_control(byte) || (byte >= 0x80 && !whole_utf8))
      out += fmt::format("\\{:03o}", byte);  // three digits: a letter behind it does not belong to it
    else
      out += c;
  }
  return out + "'";
}

}  // namespace

std::string shell_word(std::string_view text) {
  const bool whole_utf8 = to_utf8(text) == text;
  if (!whole_utf8 || std::ranges::any_of(text, is_control)) return dollar_quoted(text, whole_utf8);
  const bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./:@%+=,-").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? std::string(text) : "'" + replace_all(std::string(text), "'", "'\\''") + "'";
}

}  // namespace ff
