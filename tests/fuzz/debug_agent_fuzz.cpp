#include <cstddef>
#include <cstdint>

#include "compute/debug_agent.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto report = ff::compute::read_debug_agent({reinterpret_cast<const char*>(data), size});
  (void)ff::compute::agent_text(report);
  return 0;
}
