// Any bytes as a block of lines: the ways to read them with and without wide registers agree.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "diagnosis/terminal_control.h"
#include "knowledge/form.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ff;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (diagnosis::holds_terminal_control(text) != diagnosis::holds_terminal_control_portable(text)) std::abort();
  static knowledge::LineForm a, b;
  const char* const end = text.data() + size;
  for (const char* at = text.data(); at < end; ++at) {
    const bool read = a.read(at, end);
    if (read != b.read_portable(at, end)) std::abort();
    if (!read) break;
    if (a.length() != b.length() || a.key() != b.key() || a.text() != b.text()) std::abort();
    at += a.length();
  }
  return 0;
}
