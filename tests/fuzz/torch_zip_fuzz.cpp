#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/scan.h"
#include "model/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = ff::model::read_torch_file(bytes, "a.pt", true);
  for (const auto& s : file.storages)
    if (s.dtype) (void)ff::model::scan_values(*s.dtype, s.bytes);
  return 0;
}
