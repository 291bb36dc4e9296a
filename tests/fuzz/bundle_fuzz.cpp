// Any bytes through each reader of offload bundles.
#include <cstdint>
#include <string_view>

#include "elf/bundle.h"
#include "elf/kpack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ff::elf::Bytes bytes(std::string_view(reinterpret_cast<const char*>(data), size));
  (void)ff::elf::read_bundle(bytes);
  if (const auto header = ff::elf::read_compressed_header(bytes)) (void)ff::elf::read_compressed_bundle(bytes, *header);
  (void)ff::elf::decompress(bytes, std::uint64_t{1} << 22);
  (void)ff::elf::read_offload_binary(bytes);
  if (const auto archive = ff::elf::read_kpack(bytes))
    for (const auto& row : archive->rows)
      if (const auto frame = bytes.sub(row.offset, row.stored_size); frame && row.packed)
        (void)ff::elf::unpack_kpack(*frame, row.original_size & 0xffffU);
  (void)ff::elf::read_kpack_reference(bytes);
  (void)ff::elf::parse_target_id(bytes.view());
  return 0;
}
