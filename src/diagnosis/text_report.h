#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "diagnosis/explain.h"

namespace ff::diagnosis {

using Decorate = std::function<std::string(std::string_view)>;

struct TextOptions {
  bool why = false;  ///< the rules that held
  bool all = false;  ///< every candidate and unexplained line
  std::size_t width = 100;
  Decorate bold = [](std::string_view s) { return std::string(s); };
  Decorate dim = [](std::string_view s) { return std::string(s); };
  Decorate alarm = [](std::string_view s) { return std::string(s); };
};

/// The screen of `explain`: the answer first, then why, the lines, the fix, the proof, and what else it could be.
std::string text_report(const Explanation& explanation, const knowledge::Knowledge& knowledge, const TextOptions& options);
/// The same for an issue or a ticket.
std::string markdown_report(const Explanation& explanation, const knowledge::Knowledge& knowledge, const TextOptions& options);

/// "The knowledge is of 2026-11-30, 4 months old: …" when it is older than three months at `today` ("2027-03-30"); else empty.
std::string age_note(std::string_view date, std::string_view today);

}  // namespace ff::diagnosis
