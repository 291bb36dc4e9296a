#include "report/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace ff::report {
namespace {

bool wants_colour(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): read before any thread starts
  return isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace

Style Style::for_stdout() { return Style(wants_colour(STDOUT_FILENO)); }
Style Style::for_stderr() { return Style(wants_colour(STDERR_FILENO)); }

std::string Style::wrap(std::string_view code, std::string_view s) const {
  if (!colour_) return std::string(s);
  std::string out = "\x1b[";
  out.append(code).append("m").append(s).append("\x1b[0m");
  return out;
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::clamp<std::size_t>(size.ws_col, 60, 160);
  return 100;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  bool first_word = true;
  for (const std::string_view word : words(text)) {
    if (!first_word && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first_word = true;
    }
    if (!first_word) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    first_word = false;
  }
  return out;
}

std::string printable(std::string_view text, std::size_t max_characters) {
  const bool cut = text.size() > max_characters;
  std::string out = to_utf8(text.substr(0, max_characters));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t')
      c = ' ';
    else if (byte < 0x20 || byte == 0x7F)
      c = '?';
  }
  if (cut) out += "…";
  return out;
}

}  // namespace ff::report
