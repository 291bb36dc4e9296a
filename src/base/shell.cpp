#include "base/shell.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace ff {

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./:@%+=,-").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain ? std::string(text) : "'" + replace_all(std::string(text), "'", "'\\''") + "'";
}

}  // namespace ff
