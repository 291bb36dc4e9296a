#include "elf/elf.h"

#include <fmt/format.h>

namespace ff::elf {
namespace {

constexpr std::uint64_t header_size = 64, section_header_size = 64, segment_header_size = 56, symbol_size = 24;

}  // namespace

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Result<File> File::parse(std::string_view data) {
  const Bytes bytes(data);
  if (!bytes.starts_with(elf_magic)) return fail("no ELF file");
  const auto elf_class = bytes.number<std::uint8_t>(4), endian = bytes.number<std::uint8_t>(5);
  if (elf_class && *elf_class != 2) return fail(fmt::format("an ELF file of class {}, only 64-bit files are read", *elf_class));
  if (endian && *endian != 1) return fail("a big-endian ELF file, only little-endian files are read");
  if (bytes.size() < header_size)
    return fail(fmt::format("an ELF file cut short: {} bytes, its header alone has {}", bytes.size(), header_size), {}, "fetch the file again");
  File file;
  file.bytes_ = bytes;
  // The header is complete, so none of these reads can fail.
  const auto u16 = [&](std::uint64_t at) { return *bytes.number<std::uint16_t>(at); };
  const auto u64 = [&](std::uint64_t at) { return *bytes.number<std::uint64_t>(at); };
  file.header_ = {.os_abi = *bytes.number<std::uint8_t>(7),
                  .abi_version = *bytes.number<std::uint8_t>(8),
                  .type = u16(16),
                  .machine = u16(18),
                  .flags = *bytes.number<std::uint32_t>(48),
                  .entry = u64(24)};
  const std::uint64_t segment_offset = u64(32), section_offset = u64(40);
  std::uint64_t segment_count = u16(56), section_count = u16(60), names = u16(62);
  // Counts that do not fit 16 bits stand in section 0: sh_size sections, sh_info segments, sh_link string table.
  if (section_offset != 0 && (section_count == 0 || segment_count == 0xffff || names == 0xffff)) {
    if (const auto first = bytes.sub(section_offset, section_header_size)) {
      if (section_count == 0) section_count = *first->number<std::uint64_t>(32);
      if (segment_count == 0xffff) segment_count = *first->number<std::uint32_t>(44);
      if (names == 0xffff) names = *first->number<std::uint32_t>(40);
    }
  }
  if (segment_offset != 0 && segment_count != 0) {
    const auto table = u16(54) == segment_header_size ? bytes.table(segment_offset, segment_count, segment_header_size) : std::nullopt;
    if (!table) {
      file.problems_.push_back(
          fmt::format("{} program headers at {:#x} lie outside the file of {} bytes", segment_count, segment_offset, bytes.size()));
    } else {
      for (std::uint64_t i = 0; i < segment_count; ++i) {
        const Bytes row = *table->sub(i * segment_header_size, segment_header_size);
        file.segments_.push_back({.type = *row.number<std::uint32_t>(0),
                                  .flags = *row.number<std::uint32_t>(4),
                                  .offset = *row.number<std::uint64_t>(8),
                                  .address = *row.number<std::uint64_t>(16),
                                  .file_size = *row.number<std::uint64_t>(32),
                                  .memory_size = *row.number<std::uint64_t>(40)});
      }
    }
  }
  if (section_offset != 0 && section_count != 0 && !file.read_sections(section_offset, section_count, u16(58), names))
    file.problems_.push_back(fmt::format("{} section headers at {:#x} lie outside the file of {} bytes: it was cut short or damaged", section_count,
                                         section_offset, bytes.size()));
  return file;
}

bool File::read_sections(std::uint64_t offset, std::uint64_t count, std::uint64_t entry_size, std::uint64_t names) {
  if (entry_size != section_header_size) return false;
  const auto table = bytes_.table(offset, count, section_header_size);
  if (!table) return false;
  const auto row_at = [&](std::uint64_t i) { return *table->sub(i * section_header_size, section_header_size); };
  Bytes strings;
  if (names < count) {
    const Bytes row = row_at(names);
    strings = bytes_.sub(*row.number<std::uint64_t>(24), *row.number<std::uint64_t>(32)).value_or(Bytes{});
  }
  // Sections are found by their names: without them a file would look as if it held nothing. Index 0 says that there are none.
  if (names != 0 && strings.empty())
    problems_.push_back(fmt::format("the names of its {} sections cannot be read (section {}): it was cut short or damaged", count, names));
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes row = row_at(i);
    sections_.push_back({.name = strings.text(*row.number<std::uint32_t>(0)).value_or(std::string_view{}),
                         .type = *row.number<std::uint32_t>(4),
                         .link = *row.number<std::uint32_t>(40),
                         .info = *row.number<std::uint32_t>(44),
                         .flags = *row.number<std::uint64_t>(8),
                         .address = *row.number<std::uint64_t>(16),
                         .offset = *row.number<std::uint64_t>(24),
                         .size = *row.number<std::uint64_t>(32),
                         .entry_size = *row.number<std::uint64_t>(56)});
  }
  return true;
}

const Section* File::section(std::string_view name) const {
  for (const auto& section : sections_)
    if (section.name == name) return &section;
  return nullptr;
}

std::optional<Bytes> File::content(const Section& section) const {
  if (section.type == section_no_bits) return Bytes{};
  return bytes_.sub(section.offset, section.size);
}

std::optional<Bytes> File::content(const Segment& segment) const { return bytes_.sub(segment.offset, segment.file_size); }

std::optional<Bytes> File::at_address(std::uint64_t address) const {
  for (const auto& segment : segments_) {
    if (segment.type != segment_load || address < segment.address || address - segment.address >= segment.file_size) continue;
    const auto bytes = content(segment);
    return bytes ? bytes->from(address - segment.address) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<Note> read_notes(Bytes bytes) {
  std::vector<Note> notes;
  std::uint64_t at = 0;
  while (bytes.size() - at >= 12) {
    const std::uint64_t name_size = *bytes.number<std::uint32_t>(at), content_size = *bytes.number<std::uint32_t>(at + 4);
    const std::uint32_t type = *bytes.number<std::uint32_t>(at + 8);
    // 32-bit sizes: these sums cannot overflow 64 bits.
    const std::uint64_t content_at = at + 12 + ((name_size + 3) & ~std::uint64_t{3});
    const auto name = bytes.sub(at + 12, name_size), content = bytes.sub(content_at, content_size);
    if (!name || !content) break;
    std::string_view owner = name->view();
    if (owner.ends_with('\0')) owner.remove_suffix(1);
    notes.push_back({owner, type, content->view()});
    const std::uint64_t next = content_at + ((content_size + 3) & ~std::uint64_t{3});
    if (next >= bytes.size()) break;  // the last note's padding may be missing
    at = next;
  }
  return notes;
}

std::vector<Note> File::notes() const {
  std::vector<Note> notes;
  const auto append = [&](std::optional<Bytes> bytes) {
    if (!bytes) return;
    for (auto& note : read_notes(*bytes)) notes.push_back(note);
  };
  for (const auto& segment : segments_)
    if (segment.type == segment_note) append(content(segment));
  if (notes.empty())
    for (const auto& section : sections_)
      if (section.type == section_note) append(content(section));
  return notes;
}

std::string File::build_id() const {
  for (const auto& note : notes())
    if (note.owner == "GNU" && note.type == 3) return hex(note.content);
  return {};
}

std::string_view File::interpreter() const {
  for (const auto& segment : segments_)
    if (segment.type == segment_interpreter)
      if (const auto bytes = content(segment)) return bytes->text(0).value_or(std::string_view{});
  return {};
}

std::vector<Symbol> File::symbols(bool dynamic) const {
  std::vector<Symbol> symbols;
  for (const auto& section : sections_) {
    if (section.type != (dynamic ? section_dynamic_symbols : section_symbols)) continue;
    const auto table = content(section);
    if (!table || section.link >= sections_.size()) continue;
    const Bytes strings = content(sections_[section.link]).value_or(Bytes{});
    const std::uint64_t count = table->size() / symbol_size;
    symbols.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Bytes row = *table->sub(i * symbol_size, symbol_size);
      symbols.push_back({.name = strings.text(*row.number<std::uint32_t>(0)).value_or(std::string_view{}),
                         .info = *row.number<std::uint8_t>(4),
                         .other = *row.number<std::uint8_t>(5),
                         .section = *row.number<std::uint16_t>(6),
                         .value = *row.number<std::uint64_t>(8),
                         .size = *row.number<std::uint64_t>(16),
                         .index = static_cast<std::uint32_t>(i)});
    }
    break;
  }
  return symbols;
}

}  // namespace ff::elf
