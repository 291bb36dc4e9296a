// A shell transcript: the pieces' outputs lie inside the text, in order, and their line numbers are right.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "capture/transcript.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const char* at = text.data();
  for (const auto& piece : ff::capture::split_transcript(text)) {
    if (piece.output.empty()) continue;
    if (piece.output.data() < at || piece.output.data() + piece.output.size() > text.data() + text.size()) __builtin_trap();
    const auto newlines = std::count(text.data(), piece.output.data(), '\n');
    if (static_cast<std::uint64_t>(newlines) + 1 != piece.output_line) __builtin_trap();
    at = piece.output.data() + piece.output.size();
  }
  return 0;
}
