#include "elf/kpack.h"

#include <fmt/format.h>

#include "elf/msgpack.h"

namespace ff::elf {

Result<std::vector<KpackRow>> read_kpack(Bytes bytes) {
  if (!bytes.starts_with(kpack_magic)) return fail("no kpack archive");
  const auto version = bytes.number<std::uint32_t>(4);
  const auto toc_offset = bytes.number<std::uint64_t>(8);
  if (!version || !toc_offset) return fail("a kpack archive cut short in its header");
  if (*version != 1) return fail(fmt::format("a kpack archive of version {}, which is newer than this program (1)", *version));
  const auto toc_bytes = bytes.from(*toc_offset);
  if (!toc_bytes || toc_bytes->empty())
    return fail(fmt::format("a kpack archive cut short: its table of contents at {} lies outside its {} bytes", *toc_offset, bytes.size()));
  const auto toc = read_msgpack(*toc_bytes);
  if (!toc) return fail("the table of contents of a kpack archive is damaged: " + toc.error().what);
  std::vector<KpackRow> rows;
  for (const auto& [binary, arches] : (*toc)["toc"].members())
    for (const auto& [arch, entry] : arches.members()) rows.push_back({binary, arch});
  if (rows.empty())
    for (const auto& arch : (*toc)["gfx_arches"].items()) rows.push_back({std::string((*toc)["group_name"].as_text()), std::string(arch.as_text())});
  return rows;
}

Result<std::vector<std::string>> read_kpack_reference(Bytes section) {
  const auto reference = read_msgpack(section);
  if (!reference) return fail("section .rocm_kpack_ref is damaged: " + reference.error().what);
  std::vector<std::string> paths;
  for (const auto& path : (*reference)["kpack_search_paths"].items()) paths.emplace_back(path.as_text());
  return paths;
}

}  // namespace ff::elf
