#include "elf/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "elf/inflate.h"

namespace ff::elf {
namespace {

constexpr std::uint64_t entry_numbers_size = 24;
constexpr std::uint64_t id_limit_bytes = 4096;
constexpr std::uint64_t step_bytes = std::uint64_t{1} << 16;
/// An entry table longer than this is refused (bundle_entry_limit entries of ordinary ids have 400 KiB).
constexpr std::uint64_t table_limit_bytes = std::uint64_t{16} << 20;

template <class Write>
Result<std::uint64_t> inflate_any(Bytes compressed_bundle, const CompressedHeader& header, Write write) {
  const auto rest = compressed_bundle.from(header.header_size);
  if (!rest) return fail("a compressed offload bundle cut short");
  auto consumed = header.method == 0 ? inflate_pieces(rest->view(), DeflateFrame::zlib, step_bytes, write) : inflate_zstd_pieces(rest->view(), write);
  if (!consumed) return consumed;
  return *consumed + header.header_size;
}

}  // namespace

Result<Bundle> read_bundle(Bytes bytes, std::uint64_t total_size) {
  if (!bytes.starts_with(bundle_magic)) return fail("no offload bundle");
  const auto count = bytes.number<std::uint64_t>(bundle_magic.size());
  if (!count) return fail("an offload bundle cut short in its header");
  if (*count > bundle_entry_limit) return fail(fmt::format("an offload bundle that claims {} entries (limit {})", *count, bundle_entry_limit));
  Bundle bundle;
  std::uint64_t at = bundle_magic.size() + 8;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto offset = bytes.number<std::uint64_t>(at), size = bytes.number<std::uint64_t>(at + 8), id_size = bytes.number<std::uint64_t>(at + 16);
    if (!offset || !size || !id_size) return fail(fmt::format("an offload bundle cut short in entry {} of {}", i, *count));
    if (*id_size > id_limit_bytes) return fail(fmt::format("an offload bundle whose entry {} claims an id of {} bytes", i, *id_size));
    const auto id = bytes.sub(at + entry_numbers_size, *id_size);
    if (!id) return fail(fmt::format("an offload bundle cut short in the id of entry {} of {}", i, *count));
    const auto end = add(*offset, *size);
    if (!end || *end > total_size)
      return fail(fmt::format("entry {} (\"{}\") of an offload bundle lies outside its {} bytes: offset {}, size {}", i, id->view(), total_size,
                              *offset, *size));
    BundleEntry entry{.id = std::string(id->view()), .kind = {}, .target = {}, .offset = *offset, .size = *size};
    const auto hyphen = id->view().find('-');
    entry.kind = std::string(id->view().substr(0, hyphen));
    if (hyphen != std::string_view::npos && entry.kind != "host") entry.target = parse_target_id(id->view().substr(hyphen + 1));
    bundle.entries.push_back(std::move(entry));
    bundle.size = std::max(bundle.size, *end);
    at += entry_numbers_size + *id_size;
  }
  bundle.header_size = at;
  bundle.size = std::max(bundle.size, at);
  return bundle;
}

Result<CompressedHeader> read_compressed_header(Bytes bytes) {
  if (!bytes.starts_with(compressed_magic)) return fail("no compressed offload bundle");
  const auto version = bytes.number<std::uint16_t>(4), method = bytes.number<std::uint16_t>(6);
  if (!version || !method) return fail("a compressed offload bundle cut short in its header");
  if (*version < 1 || *version > 3)
    return fail(fmt::format("a compressed offload bundle of version {}, which is newer than this program (1 to 3)", *version));
  if (*method > 1) return fail(fmt::format("a compressed offload bundle with the unknown method {}", *method));
  CompressedHeader header{.version = *version, .method = *method, .header_size = 0, .file_size = {}, .uncompressed_size = 0};
  std::optional<std::uint64_t> size;
  if (*version == 3) {
    header.header_size = 32;
    header.file_size = bytes.number<std::uint64_t>(8);
    size = bytes.number<std::uint64_t>(16);
  } else if (*version == 2) {
    header.header_size = 24;
    if (const auto file_size = bytes.number<std::uint32_t>(8)) header.file_size = *file_size;
    size = bytes.number<std::uint32_t>(12);
  } else {
    header.header_size = 20;
    size = bytes.number<std::uint32_t>(8);
  }
  if (!size || bytes.size() < header.header_size) return fail("a compressed offload bundle cut short in its header");
  if (header.file_size && *header.file_size < header.header_size)
    return fail(fmt::format("a compressed offload bundle that claims a size of {} bytes, less than its header", *header.file_size));
  header.uncompressed_size = *size;
  return header;
}

Result<Decompressed> decompress(Bytes compressed_bundle, std::uint64_t limit) {
  const auto header = read_compressed_header(compressed_bundle);
  if (!header) return std::unexpected(header.error());
  limit = std::min(limit, decompressed_limit_bytes);
  Decompressed out;
  out.complete = true;
  const auto consumed = inflate_any(compressed_bundle, *header, [&](std::string_view piece) {
    if (piece.size() > limit - out.content.size()) {
      piece = piece.substr(0, static_cast<std::size_t>(limit - out.content.size()));
      out.complete = false;
    }
    out.content += piece;
    return out.complete;
  });
  if (!consumed) return std::unexpected(consumed.error());
  if (out.complete && out.content.size() != header->uncompressed_size)
    return fail(fmt::format("a compressed offload bundle holds {} bytes, its header says {}", out.content.size(), header->uncompressed_size));
  out.consumed = *consumed;
  return out;
}

Result<Bundle> read_compressed_bundle(Bytes compressed_bundle, const CompressedHeader& header) {
  std::string content;
  Result<Bundle> bundle = fail("a compressed offload bundle without content");
  const auto consumed = inflate_any(compressed_bundle, header, [&](std::string_view piece) {
    content += piece;
    bundle = read_bundle(Bytes(content), header.uncompressed_size);
    return !bundle && content.size() < table_limit_bytes;
  });
  if (!bundle && !consumed) return std::unexpected(consumed.error());
  return bundle;
}

Result<OffloadBinary> read_offload_binary(Bytes bytes) {
  if (!bytes.starts_with(offload_binary_magic)) return fail("no offload binary");
  constexpr std::uint64_t header_size = 32, entry_size = 40, string_entry_size = 16, string_limit = 64;
  if (bytes.size() < header_size) return fail("an offload binary cut short in its header");
  OffloadBinary out;
  const auto version = *bytes.number<std::uint32_t>(4);
  out.version = static_cast<int>(std::min<std::uint32_t>(version, 1000));
  out.size = *bytes.number<std::uint64_t>(8);
  const auto whole = bytes.sub(0, out.size);
  if (!whole || out.size < header_size) return fail(fmt::format("an offload binary that claims {} bytes of {}", out.size, bytes.size()));
  const auto entries_at = *bytes.number<std::uint64_t>(16), size_or_count = *bytes.number<std::uint64_t>(24);
  const std::uint64_t count = version <= 1 ? 1 : size_or_count;
  if (count > bundle_entry_limit) return fail(fmt::format("an offload binary that claims {} entries (limit {})", count, bundle_entry_limit));
  const auto entries = whole->table(entries_at, count, entry_size);
  if (!entries) return fail("an offload binary whose entry table lies outside it");
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes row = *entries->sub(i * entry_size, entry_size);
    OffloadImage image{.image_kind = *row.number<std::uint16_t>(0),
                       .offload_kind = *row.number<std::uint16_t>(2),
                       .triple = {},
                       .arch = {},
                       .target = {},
                       .offset = *row.number<std::uint64_t>(24),
                       .size = *row.number<std::uint64_t>(32)};
    if (!whole->sub(image.offset, image.size)) return fail(fmt::format("image {} of an offload binary lies outside it", i));
    const auto strings_at = *row.number<std::uint64_t>(8), strings = *row.number<std::uint64_t>(16);
    const auto table = strings <= string_limit ? whole->table(strings_at, strings, string_entry_size) : std::nullopt;
    if (!table) return fail(fmt::format("the strings of image {} of an offload binary lie outside it", i));
    for (std::uint64_t s = 0; s < strings; ++s) {
      const auto key = whole->text(*table->number<std::uint64_t>(s * string_entry_size));
      const auto value = whole->text(*table->number<std::uint64_t>(s * string_entry_size + 8));
      if (!key || !value) continue;
      if (*key == "triple") image.triple = *value;
      if (*key == "arch") image.arch = *value;
    }
    if (image.triple.starts_with("amdgcn") || image.triple.starts_with("amdgpu") || image.triple.starts_with("spirv64-amd"))
      image.target = parse_target_id(image.arch);
    out.images.push_back(std::move(image));
  }
  return out;
}

}  // namespace ff::elf
