// Any bytes through the lister of code objects and the readers of what a container holds.
#include <cstdint>
#include <string_view>

#include "elf/code_objects.h"
#include "elf/elf.h"
#include "elf/msgpack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto listing = ff::elf::list_code_objects(bytes);
  if (const auto file = ff::elf::File::parse(bytes)) {
    for (const auto& note : file->notes()) (void)ff::elf::read_msgpack(note.content);
    (void)file->symbols(true);
    (void)file->symbols(false);
    (void)file->build_id();
    (void)file->interpreter();
  }
  if (size < 65536) (void)ff::elf::visit_code(bytes, listing, [](const ff::elf::CodeObject&, std::string_view) {});
  return 0;
}
