// Archives that somebody hands over: unpacked in memory with small limits, then read as a capture or as loose files.
#include <cstdint>
#include <string_view>

#include "capture/open.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ff::capture::Limits limits{.total_bytes = 4 << 20, .file_bytes = 1 << 20, .entries = 500};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto members = ff::capture::read_archive(bytes, "input", limits);
  if (members)
    for (const auto& [path, content] : *members)
      if (path.starts_with('/') || path.starts_with("../") || path.find("/../") != std::string::npos || content.size() > limits.file_bytes)
        __builtin_trap();
  (void)ff::capture::open_bytes(bytes, "input", limits);
  return 0;
}
