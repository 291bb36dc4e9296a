// Any bytes through every extractor: no crash, no hang, and facts that can be printed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/value.h"
#include "diagnosis/extract.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Source text is asked for its code only, everything else by all the other extractors.
  for (const char* name : {"input.log", "input.py"}) {
    std::vector<ff::facts::NamedFact> facts;
    ff::diagnosis::extract_all(text, name, facts);
    for (const auto& fact : facts) {
      if (fact.name.empty()) std::abort();
      (void)ff::to_json(fact.value);
    }
  }
  return 0;
}
