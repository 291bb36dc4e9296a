// A whole capture: the input is a recorded machine in the one-file form of tests/support/host_file.h, asked whether it is one machine, read and
// named.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capture/one_machine.h"
#include "facts/machine.h"
#include "facts/tables_for_tests.h"
// Fuzz targets do not link the test support library, whose main() is GoogleTest's.
#include "support/host_file.cpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto capture = ff::test::parse_host(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!capture) return 0;
  (void)ff::capture::check_one_machine(*capture);
  (void)ff::facts::named_facts(ff::facts::read_machine(*capture, ff::facts::test_tables()));
  return 0;
}
