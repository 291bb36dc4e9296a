#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ff {

[[nodiscard]] std::string_view trim(std::string_view s);
[[nodiscard]] std::vector<std::string_view> split(std::string_view s, char separator);
/// Splits at runs of blanks and tabs; no empty pieces.
[[nodiscard]] std::vector<std::string_view> words(std::string_view s);
/// Lines without their "\n" or "\r\n"; a trailing newline makes no empty last line.
[[nodiscard]] std::vector<std::string_view> lines(std::string_view s);
[[nodiscard]] std::string lower(std::string_view s);
[[nodiscard]] bool contains(std::string_view s, std::string_view part);
[[nodiscard]] std::string replace_all(std::string s, std::string_view from, std::string_view to);
[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// Text between the first `open` and the next `close` after it; nothing when either is missing.
[[nodiscard]] std::optional<std::string_view> between(std::string_view s, std::string_view open, std::string_view close);

/// The whole text as a number, blanks around it allowed; nothing when any other character is there or it overflows.
template <class Integer = std::int64_t>
[[nodiscard]] std::optional<Integer> to_integer(std::string_view s, int base = 10) {
  s = trim(s);
  if (base == 16 && s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) s.remove_prefix(2);
  Integer value{};
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc() || end != s.data() + s.size() || s.empty()) return std::nullopt;
  return value;
}
[[nodiscard]] std::optional<double> to_real(std::string_view s);

/// "1.5 GiB", "512 B".
[[nodiscard]] std::string human_bytes(std::uint64_t size_bytes);
/// Compares dotted versions number by number; "6.4" < "6.10", "7.0" == "7.0.0", letters after the numbers are ignored.
/// Returns <0, 0, >0.
[[nodiscard]] int compare_versions(std::string_view a, std::string_view b);
/// Valid UTF-8: the text itself; else every invalid byte replaced by U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view bytes);

}  // namespace ff
