#include <cstddef>
#include <cstdint>
#include <string_view>

#include "media/png_read.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)ff::media::read_png(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
