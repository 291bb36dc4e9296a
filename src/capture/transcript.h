#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ff::capture {

/// One command of a shell transcript with what it printed.
struct TranscriptPiece {
  std::string command;  ///< as typed, without the prompt; empty: text before the first prompt
  std::string user;     ///< "root" in "root@host:~#", "#" prompts; empty when the prompt does not say
  std::string host;
  std::string_view output;         ///< the lines up to the next prompt; points into the transcript
  std::uint64_t command_line = 0;  ///< 1-based line of the prompt; 0 for text before the first
  std::uint64_t output_line = 1;   ///< 1-based line on which the output begins
};

/// Splits text at its shell prompts: "$ command", "# command" (only beside a prompt of another form and with
/// a usual program, since it also starts comments), "user@host:dir$ command", "[user@host dir]# command", "(env) … $ command", "% command",
/// "user@host ~/dir> command" (fish), "host% command" and "+ command" (a shell's trace) before a usual program, "> " continuation lines. Text without
/// any prompt is one piece with an empty command.
[[nodiscard]] std::vector<TranscriptPiece> split_transcript(std::string_view text);

/// The text without the time stamps ("[15:21:10] ", "2026-11-30 15:21:10 ") with which every line begins; nothing when one does not.
[[nodiscard]] std::optional<std::string> without_times(std::string_view text);

/// The transcript with one prompt, "$ ", before every command, and without such time stamps: for readers that look for a command and its answer. Line
/// numbers stay. Nothing when it is no transcript.
[[nodiscard]] std::optional<std::string> plain_transcript(std::string_view text);

/// True when at least one line is a shell prompt with a command.
[[nodiscard]] bool is_transcript(std::string_view text);

}  // namespace ff::capture
