#include "diagnosis/answers.h"

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "capture/transcript.h"

namespace ff::diagnosis {

namespace {

/// What follows ">>> " or "In [3]: ".
std::optional<std::string_view> session_command(std::string_view line) {
  if (line.starts_with(">>> ")) return trim(line.substr(4));
  if (!line.starts_with("In [")) return std::nullopt;
  const auto end = line.find("]: ");
  if (end == std::string_view::npos || end > 12) return std::nullopt;
  return trim(line.substr(end + 3));
}

void add(Unwrapped& out, std::string_view command, std::string_view answer, bool another_follows, std::uint64_t line) {
  if (command.empty() || command.size() > max_answer_bytes) return;
  std::string joined;
  std::size_t count = 0;
  for (std::string_view l : lines(answer)) {
    std::string_view t = trim(l);
    if (t.starts_with("Out[")) t = trim(t.substr(std::min(t.find("]:") + 2, t.size())));
    if (t.empty()) continue;
    if (++count > max_answer_lines || joined.size() + t.size() > max_answer_bytes) return;
    if (!joined.empty()) joined += " ; ";
    joined += t;
  }
  if (joined.empty()) {
    if (!another_follows) return;
    joined = "(nothing)";
  }
  if (!out.text.empty()) out.text += '\n';
  out.text += command;
  out.text += " => ";
  out.text += joined;
  out.line_numbers.push_back(line);
}

void add_session(Unwrapped& out, std::string_view text) {
  std::string_view command;
  std::uint64_t at = 0;
  std::string answer;
  std::uint64_t number = 0;
  for (std::string_view line : lines(text)) {
    ++number;
    const auto next = session_command(line);
    if (!next) {
      if (!command.empty() && answer.size() <= max_answer_bytes) answer += std::string(line) + "\n";
      continue;
    }
    if (!trim(answer).empty()) add(out, command, answer, true, at);
    command = *next;
    at = number;
    answer.clear();
  }
  if (!trim(answer).empty()) add(out, command, answer, false, at);
}

}  // namespace

Unwrapped answers(std::string_view text) {
  Unwrapped out;
  const auto plain = capture::plain_transcript(text);
  if (plain) {
    text = *plain;
    const auto pieces = capture::split_transcript(text);
    for (std::size_t i = 0; i < pieces.size(); ++i) add(out, pieces[i].command, pieces[i].output, i + 1 < pieces.size(), pieces[i].command_line);
  }
  if (text.find(">>> ") != std::string_view::npos || text.find("In [") != std::string_view::npos) add_session(out, text);
  return out;
}

}  // namespace ff::diagnosis
