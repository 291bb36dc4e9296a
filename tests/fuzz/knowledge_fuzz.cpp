// Any bytes as a YAML file of knowledge, and as compiled knowledge.
#include <cstdint>
#include <string>

#include "knowledge/blob.h"
#include "knowledge/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ff::knowledge;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Problems problems;
  Bundle bundle;
  load({File{"input.yaml", text}, File{"tables/input.yaml", text}}, bundle, problems);
  check(bundle, problems);
  (void)read_blob(text);
  (void)read_table(text);
  return 0;
}
