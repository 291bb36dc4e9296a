#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ff::diagnosis {

/// What a file is that holds no text, and what reads it.
struct NotText {
  std::string what;    ///< "an ELF core file"
  std::string remedy;  ///< the command that reads such a file, or how to get text out of it
};

/// Judges the first bytes of a file (64 KiB are enough). Nothing when they may be text of any 8-bit encoding; UTF-16 is not for this function.
[[nodiscard]] std::optional<NotText> not_text(std::string_view head);

}  // namespace ff::diagnosis
