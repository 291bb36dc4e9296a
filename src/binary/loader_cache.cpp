#include <fmt/format.h>

#include "binary/loader.h"

namespace ff::binary {

Result<std::vector<std::pair<std::string, std::string>>> read_loader_cache(elf::Bytes bytes) {
  constexpr std::string_view old_magic = "ld.so-1.7.0", magic = "glibc-ld.so.cache1.1";
  constexpr std::uint64_t header_size = 48, entry_size = 24, old_header = 16, old_entry = 12;
  // FLAG_ELF_LIBC6 | FLAG_X8664_LIB64; the low byte is the type, the next the ABI.
  constexpr std::uint32_t x86_64_flags = 0x0303;
  if (bytes.starts_with(old_magic)) {
    // The old table first, the new one behind it, aligned to 8.
    const auto count = bytes.number<std::uint32_t>(12);
    if (!count) return fail("the loader's cache is cut short");
    const auto rest = bytes.from((old_header + std::uint64_t{*count} * old_entry + 7) & ~std::uint64_t{7});
    if (!rest) return fail("the loader's cache is cut short");
    bytes = *rest;
  }
  if (!bytes.starts_with(magic)) return fail("the loader's cache has an unknown format");
  const auto count = bytes.number<std::uint32_t>(20);
  if (!count) return fail("the loader's cache is cut short");
  const auto table = bytes.table(header_size, *count, entry_size);
  if (!table) return fail(fmt::format("the loader's cache claims {} entries and is shorter", *count));
  std::vector<std::pair<std::string, std::string>> out;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const elf::Bytes row = *table->sub(i * entry_size, entry_size);
    if (*row.number<std::uint32_t>(0) != x86_64_flags) continue;
    const auto key = bytes.text(*row.number<std::uint32_t>(4)), value = bytes.text(*row.number<std::uint32_t>(8));
    if (key && value) out.emplace_back(*key, *value);
  }
  return out;
}

}  // namespace ff::binary
