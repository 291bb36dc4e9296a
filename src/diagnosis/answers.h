#pragma once

#include <string_view>

#include "diagnosis/unwrap.h"

namespace ff::diagnosis {

/// Commands of shell transcripts and Python sessions with what they answered, one a line: "uname -r => 6.8.0-45-generic",
/// "lsmod | grep amdgpu => (nothing)". Answers of up to `max_answer_lines` lines, joined with " ; ". "(nothing)" stands only
/// where another prompt follows, since a transcript may have been cut after its last command. Empty: no such command.
Unwrapped answers(std::string_view text);

inline constexpr std::size_t max_answer_lines = 6;
inline constexpr std::size_t max_answer_bytes = 600;

}  // namespace ff::diagnosis
