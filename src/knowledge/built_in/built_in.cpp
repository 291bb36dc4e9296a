#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "knowledge/impl.h"

extern "C" {
extern const char ff_knowledge_blob_begin[];
extern const char ff_knowledge_blob_end[];
}

namespace ff::knowledge {

std::string_view built_in_blob() { return {ff_knowledge_blob_begin, static_cast<std::size_t>(ff_knowledge_blob_end - ff_knowledge_blob_begin)}; }

const Knowledge& Knowledge::built_in() {
  static const std::shared_ptr<const Knowledge> knowledge = [] {
    auto opened = open_blob(built_in_blob());
    if (!opened) {  // the program's own bytes are damaged; nothing sensible is left to do
      std::cerr << "firstfault: " << opened.error().to_string() << "\n";
      std::abort();
    }
    return *opened;
  }();
  return *knowledge;
}

Result<std::shared_ptr<const Knowledge>> Knowledge::with(const std::vector<std::string>& directories) {
  if (directories.empty()) {
    static const auto nothing_owned = std::shared_ptr<const Knowledge>(&built_in(), [](const Knowledge*) {});
    return nothing_owned;
  }
  return extend_cached(built_in_blob(), directories);
}

}  // namespace ff::knowledge
