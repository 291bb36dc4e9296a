#include "elf/kpack.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "elf/bundle.h"
#include "elf/inflate.h"
#include "elf/msgpack.h"

namespace ff::elf {
namespace {

struct Place {
  std::uint64_t offset = 0, size = 0;
};

std::uint64_t number(const Value& value) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value.as_int())); }

/// "blobs": where each ordinal lies in the file.
std::vector<Place> stored_places(const Value& toc, std::uint64_t file_size, Kpack& out) {
  std::vector<Place> places;
  for (const auto& blob : toc["blobs"].items()) {
    Place place{number(blob["offset"]), number(blob["size"])};
    if (place.offset > file_size || place.size > file_size - place.offset) {
      out.problems.push_back(fmt::format("blob {} of a kpack archive lies outside its {} bytes: offset {}, size {}", places.size(), file_size,
                                         place.offset, place.size));
      place.size = 0;
    }
    places.push_back(place);
  }
  return places;
}

/// "u32 count", then per ordinal "u32 size, frame".
std::vector<Place> packed_places(const Value& toc, Bytes bytes, Kpack& out) {
  std::vector<Place> places;
  const std::uint64_t start = number(toc["zstd_offset"]);
  const auto count = bytes.number<std::uint32_t>(start);
  if (!count) {
    out.problems.push_back(fmt::format("the frames of a kpack archive lie outside its {} bytes: offset {}", bytes.size(), start));
    return places;
  }
  std::uint64_t at = start + 4;
  for (std::uint32_t i = 0; i < *count; ++i) {
    const auto size = bytes.number<std::uint32_t>(at);
    if (!size || !bytes.sub(at + 4, *size)) {
      out.problems.push_back(fmt::format("frame {} of {} of a kpack archive lies outside its {} bytes", i, *count, bytes.size()));
      break;
    }
    places.push_back({at + 4, *size});
    at += 4 + *size;
  }
  return places;
}

}  // namespace

Result<Kpack> read_kpack(Bytes bytes) {
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
  if (!toc->is_object()) return fail("the table of contents of a kpack archive is no map");

  Kpack out;
  const auto scheme = (*toc)["compression_scheme"].as_text("none");
  const bool packed = scheme == "zstd-per-kernel";
  std::vector<Place> places;
  if (packed)
    places = packed_places(*toc, bytes, out);
  else if (scheme == "none")
    places = stored_places(*toc, bytes.size(), out);
  else
    out.problems.push_back(fmt::format("a kpack archive packed as \"{}\", which is not read (none and zstd-per-kernel are)", scheme));
  const bool readable = packed || scheme == "none";

  std::set<std::string_view> listed, unlisted;
  for (const auto& arch : (*toc)["gfx_arches"].items()) listed.insert(arch.as_text());
  for (const auto& [binary, arches] : (*toc)["toc"].members())
    for (const auto& [arch, entry] : arches.members()) {
      KpackRow row{.binary = binary, .arch = arch, .offset = 0, .stored_size = 0, .original_size = number(entry["original_size"]), .packed = packed};
      const auto ordinal = number(entry["ordinal"]);
      if (ordinal < places.size()) {
        row.offset = places[ordinal].offset;
        row.stored_size = places[ordinal].size;
      } else if (readable) {
        out.problems.push_back(
            fmt::format("{} for {}: its ordinal {} is none of the archive's {} code objects", binary, arch, ordinal, places.size()));
      }
      if (!listed.contains(arch)) unlisted.insert(arch);
      out.rows.push_back(std::move(row));
    }
  for (const auto arch : unlisted)
    out.problems.push_back(fmt::format("{} is not in the archive's list of targets (gfx_arches): the runtime does not look for it here", arch));
  return out;
}

Result<std::string> unpack_kpack(Bytes frame, std::uint64_t original_size) {
  const std::uint64_t limit = original_size == 0 ? decompressed_limit_bytes : std::min(original_size, decompressed_limit_bytes);
  std::string content;
  bool longer = false;
  const auto consumed = inflate_zstd_pieces(frame.view(), [&](std::string_view piece) {
    longer = piece.size() > limit - content.size();
    if (!longer) content += piece;
    return !longer;
  });
  if (!consumed) return std::unexpected(consumed.error());
  if (longer) return fail(fmt::format("it unpacks to more than the {} bytes that its table says", limit));
  if (original_size != 0 && content.size() != original_size)
    return fail(fmt::format("it unpacks to {} bytes, its table says {}", content.size(), original_size));
  return content;
}

Result<KpackReference> read_kpack_reference(Bytes section) {
  const auto reference = read_msgpack(section);
  if (!reference) return fail("section .rocm_kpack_ref is damaged: " + reference.error().what);
  KpackReference out{.binary = std::string((*reference)["kernel_name"].as_text()), .paths = {}};
  for (const auto& path : (*reference)["kpack_search_paths"].items()) out.paths.emplace_back(path.as_text());
  if (out.binary.empty() || out.paths.empty()) return fail("section .rocm_kpack_ref names no library or no archives");
  return out;
}

}  // namespace ff::elf
