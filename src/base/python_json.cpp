#include "base/python_json.h"

#include <charconv>

namespace ff {
namespace {

bool word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

/// Length of the number at the beginning when it is too large for a double; 0: it is none, or fits.
std::size_t too_large(std::string_view s) {
  std::size_t length = s.front() == '-' ? 1 : 0;
  bool exponent = false, negative_exponent = false;
  while (length < s.size() &&
         (digit(s[length]) || s[length] == '.' || s[length] == 'e' || s[length] == 'E' || s[length] == '+' || s[length] == '-')) {
    if (s[length] == 'e' || s[length] == 'E') exponent = true;
    if (exponent && s[length] == '-') negative_exponent = true;
    ++length;
  }
  // Three digits of exponent or three hundred digits are needed; most numbers are done with here.
  if (length < 5 || (!exponent && length < 300) || negative_exponent) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + length, value);
  return error == std::errc::result_out_of_range && end == s.data() + length ? length : 0;
}

}  // namespace

std::string without_nonfinite(std::string_view json, Nonfinite as) {
  std::string out;
  out.reserve(json.size());
  const auto put = [&](std::string_view word) {
    if (as == Nonfinite::null)
      out += "null";
    else
      out.append("\"").append(word).append("\"");
  };
  bool inside = false;
  char before = ' ';
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inside) {
      out += c;
      if (c == '\\' && i + 1 < json.size())
        out += json[++i];
      else if (c == '"')
        inside = false;
      before = c;
      continue;
    }
    const auto rest = json.substr(i);
    std::string_view word;
    std::size_t length = 0;
    if (!word_char(before) && (c == 'N' || c == 'I' || c == '-'))
      for (const std::string_view w : {"NaN", "Infinity", "-Infinity"})
        if (rest.starts_with(w) && (rest.size() == w.size() || !word_char(rest[w.size()]))) {
          word = w;
          length = w.size();
        }
    if (length == 0 && !word_char(before) && before != '.' && before != '-' && before != '+' && (c == '-' || digit(c)))
      if (length = too_large(rest); length > 0) word = c == '-' ? "-Infinity" : "Infinity";
    if (length > 0) {
      put(word);
      i += length - 1;
      before = 'x';
      continue;
    }
    inside = c == '"';
    out += c;
    before = c;
  }
  return out;
}

}  // namespace ff
