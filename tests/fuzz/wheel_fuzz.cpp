// Any bytes as a wheel: its directory, and its small members unpacked.
#include <cstdint>
#include <string_view>

#include "binary/names.h"
#include "elf/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t unpacked_limit = 1U << 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto members = ff::elf::read_zip_directory(bytes);
  if (!members) return 0;
  int opened = 0;
  for (const auto& member : *members) {
    (void)ff::binary::target_in_name(member.name);
    (void)ff::binary::miopen_name(member.name);
    if (member.size <= unpacked_limit && opened++ < 4) (void)ff::elf::open_zip_member(bytes, member);
  }
  return 0;
}
