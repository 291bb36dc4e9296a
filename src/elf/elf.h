#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "elf/bytes.h"

namespace ff::elf {

inline constexpr std::string_view elf_magic{
    "\x7f"
    "ELF",
    4};
inline constexpr std::uint16_t machine_x86_64 = 62, machine_amdgpu = 224;
inline constexpr std::uint16_t type_relocatable = 1, type_executable = 2, type_shared = 3, type_core = 4;
inline constexpr std::uint32_t segment_load = 1, segment_dynamic = 2, segment_interpreter = 3, segment_note = 4;
inline constexpr std::uint32_t section_symbols = 2, section_rela = 4, section_note = 7, section_no_bits = 8, section_dynamic_symbols = 11;

struct Header {
  std::uint8_t os_abi = 0, abi_version = 0;
  std::uint16_t type = 0, machine = 0;
  std::uint32_t flags = 0;
  std::uint64_t entry = 0;
};

struct Section {
  std::string_view name;
  std::uint32_t type = 0, link = 0, info = 0;
  std::uint64_t flags = 0, address = 0, offset = 0, size = 0, entry_size = 0;
};

struct Segment {
  std::uint32_t type = 0, flags = 0;
  std::uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0;
};

struct Note {
  std::string_view owner;  ///< without the NUL
  std::uint32_t type = 0;
  std::string_view content;
};

struct Symbol {
  std::string_view name;
  std::uint8_t info = 0, other = 0;
  std::uint16_t section = 0;  ///< 0: undefined
  std::uint64_t value = 0, size = 0;
  std::uint32_t index = 0;
  [[nodiscard]] int type() const { return info & 0xf; }    ///< 1 object, 2 function
  [[nodiscard]] int binding() const { return info >> 4; }  ///< 0 local, 1 global, 2 weak
};

/// A 64-bit little-endian ELF file over bytes that must outlive it. Headers are read once; a table that lies outside
/// the file is left empty and said in problems(), so that a file that was cut short still tells what it can.
class File {
 public:
  /// Errors: no ELF, 32 bit, big-endian, shorter than its own header.
  static Result<File> parse(std::string_view bytes);

  [[nodiscard]] const Header& header() const { return header_; }
  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  [[nodiscard]] const Section* section(std::string_view name) const;
  /// The section's bytes in the file; nothing when they lie outside it. Empty for SHT_NOBITS.
  [[nodiscard]] std::optional<Bytes> content(const Section& section) const;
  [[nodiscard]] std::optional<Bytes> content(const Segment& segment) const;
  /// Bytes from a virtual address to the end of what the file holds of its segment.
  [[nodiscard]] std::optional<Bytes> at_address(std::uint64_t address) const;
  /// All notes of PT_NOTE segments; of SHT_NOTE sections when there is no such segment.
  [[nodiscard]] std::vector<Note> notes() const;
  /// Hexadecimal GNU build id, empty when there is none.
  [[nodiscard]] std::string build_id() const;
  [[nodiscard]] std::string_view interpreter() const;
  /// Symbols of .symtab, or of .dynsym when `dynamic`.
  [[nodiscard]] std::vector<Symbol> symbols(bool dynamic) const;

 private:
  Bytes bytes_;
  Header header_;
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
  std::vector<std::string> problems_;
  bool read_sections(std::uint64_t offset, std::uint64_t count, std::uint64_t entry_size, std::uint64_t names);
};

/// Notes in a row: u32 name size, u32 content size, u32 type, name and content each padded to 4 bytes (the padding that
/// Linux, LLVM and ROCr write, whatever p_align says). Stops at the first note that does not fit.
std::vector<Note> read_notes(Bytes bytes);
/// Lower-case hexadecimal.
std::string hex(std::string_view bytes);

}  // namespace ff::elf
