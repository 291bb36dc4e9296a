#include "elf/elf.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "elf/msgpack.h"
#include "fixture.h"

namespace ff::elf {
namespace {

TEST(Bytes, RefuseEverythingThatEndsOutside) {
  const Bytes bytes(std::string_view("12345678"));
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_TRUE(bytes.sub(8, 0));
  EXPECT_FALSE(bytes.sub(9, 0));
  EXPECT_FALSE(bytes.sub(1, huge)) << "offset + size overflows";
  EXPECT_FALSE(bytes.sub(huge, 1));
  EXPECT_FALSE(bytes.table(0, std::uint64_t{1} << 63, 2)) << "count * size overflows to 0";
  EXPECT_TRUE(bytes.number<std::uint64_t>(0));
  EXPECT_FALSE(bytes.number<std::uint64_t>(1));
  EXPECT_FALSE(bytes.text(0)) << "no NUL";
  EXPECT_FALSE(add(huge, 1));
  EXPECT_FALSE(align_up(huge, 4096));
}

TEST(Elf, ReadsSectionsSegmentsNotesAndSymbols) {
  const std::string bytes = fixture("gfx1100.co");
  const auto file = File::parse(bytes);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->problems().empty());
  ASSERT_NE(file->section(".rodata"), nullptr);
  const auto notes = file->notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].owner, "AMDGPU");
  EXPECT_EQ(notes[0].type, 32U);
  const auto symbols = file->symbols(true);
  const auto found = std::ranges::find(symbols, std::string_view("add.kd"), &Symbol::name);
  ASSERT_NE(found, symbols.end());
  EXPECT_EQ(found->size, 64U);
  EXPECT_EQ(found->type(), 1);
}

TEST(Elf, ReadsTheBuildIdOfALibrary) {
  const std::string bytes = fixture("library.so");
  EXPECT_EQ(File::parse(bytes)->build_id(), "b12d900441e427d6f4995acbc65fb72e53284bf1") << "as llvm-readelf says";
}

TEST(Elf, SaysWhatItDoesNotRead) {
  std::string bytes = fixture("gfx1100.co");
  bytes[4] = 1;
  EXPECT_NE(File::parse(bytes).error().what.find("64-bit"), std::string::npos);
  bytes[4] = 2;
  bytes[5] = 2;
  EXPECT_NE(File::parse(bytes).error().what.find("little-endian"), std::string::npos);
  EXPECT_FALSE(
      File::parse("\x7f"
                  "ELF"));
}

TEST(Elf, NotesThatDoNotFitEndTheList) {
  std::string notes;
  const auto note = [&](std::uint32_t name, std::uint32_t content, std::string_view body) {
    append(notes, name);
    append(notes, content);
    append<std::uint32_t>(notes, 7);
    notes += body;
  };
  note(4, 4, std::string_view("GNU\0abcd", 8));
  note(0xffffffff, 4, "x");
  ASSERT_EQ(read_notes(notes).size(), 1U);
  EXPECT_EQ(read_notes(notes)[0].content, "abcd");
  notes.resize(20);
  note(4, 0xfffffff0, std::string_view("GNU\0", 4));
  EXPECT_EQ(read_notes(notes).size(), 1U);
}

TEST(Msgpack, ReadsTheMetadataOfACodeObject) {
  const std::string bytes = fixture("gfx90a.co");
  const auto value = read_msgpack(File::parse(bytes)->notes().at(0).content);
  ASSERT_TRUE(value) << value.error().what;
  EXPECT_EQ((*value)["amdhsa.target"].as_text(), "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-");
  EXPECT_EQ((*value)["amdhsa.kernels"].items().size(), 2U);
}

TEST(Msgpack, AllocatesForWhatIsThereAndNotForWhatIsClaimed) {
  EXPECT_FALSE(read_msgpack(std::string("\xdd\xff\xff\xff\xff\x01", 6))) << "an array of 4 billion";
  EXPECT_FALSE(read_msgpack(std::string("\xdf\xff\xff\xff\xff", 5)));
  EXPECT_FALSE(
      read_msgpack(std::string("\xdb\xff\xff\xff\xff"
                               "abc",
                               8)));
  EXPECT_FALSE(read_msgpack(std::string(100000, '\x91'))) << "arrays nested 100000 deep";
  std::string deep(msgpack_depth_limit, '\x91');
  deep += '\x01';
  EXPECT_TRUE(read_msgpack(deep));
  EXPECT_FALSE(read_msgpack('\x91' + deep));
  EXPECT_FALSE(read_msgpack(std::string("\x81\x90\x01", 3))) << "a container as key";
  EXPECT_FALSE(read_msgpack(std::string()));
  EXPECT_FALSE(read_msgpack(std::string("\xc1", 1))) << "a byte that msgpack never uses";
}

}  // namespace
}  // namespace ff::elf
