#pragma once

#include <string>
#include <string_view>

namespace ff::report {

/// Terminal decoration. Plain text unless the stream is a terminal and NO_COLOR is unset or empty.
class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}
  static Style for_stdout();
  static Style for_stderr();

  [[nodiscard]] std::string bold(std::string_view s) const { return wrap("1", s); }
  [[nodiscard]] std::string dim(std::string_view s) const { return wrap("2", s); }
  [[nodiscard]] std::string red(std::string_view s) const { return wrap("31;1", s); }
  [[nodiscard]] std::string green(std::string_view s) const { return wrap("32", s); }
  [[nodiscard]] std::string yellow(std::string_view s) const { return wrap("33", s); }
  [[nodiscard]] std::string cyan(std::string_view s) const { return wrap("36", s); }
  [[nodiscard]] bool colour() const { return colour_; }

 private:
  [[nodiscard]] std::string wrap(std::string_view code, std::string_view s) const;
  bool colour_;
};

/// Columns of the terminal on stdout; 100 when it is none. Between 60 and 160.
[[nodiscard]] std::size_t terminal_width();

/// Breaks text at blanks so that no line is longer than `width`; every line after the first starts with `indent` blanks.
/// The first line is taken to start at column `indent` already. Words longer than a line stay whole (paths, commands).
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

/// Text of foreign origin made fit for a terminal: control characters (escape sequences among them) become "?",
/// invalid UTF-8 becomes U+FFFD, and at most `max_characters` bytes are kept ("…" marks the cut).
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_characters = 400);

}  // namespace ff::report
