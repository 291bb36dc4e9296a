// The binary gpu_metrics file and the PCI configuration space.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "facts/gpu_metrics.h"
#include "facts/pci_config.h"
#include "facts/tables_for_tests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)ff::facts::decode_gpu_metrics(bytes, ff::facts::test_tables().gpu_metrics);
  (void)ff::facts::decode_pci_config(bytes);
  return 0;
}
