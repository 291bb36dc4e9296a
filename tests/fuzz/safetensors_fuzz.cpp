#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/safetensors.h"
#include "model/scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = ff::model::parse_safetensors(std::string_view(reinterpret_cast<const char*>(data), size));
  if (parsed)
    for (const auto& t : parsed->tensors) (void)ff::model::scan_values(t.dtype, t.bytes);
  return 0;
}
