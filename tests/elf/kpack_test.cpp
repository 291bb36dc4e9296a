// .kpack archives and the libraries that were emptied for them; make_kpack.py says how the fixtures were made.
#include "elf/kpack.h"

#include "elf/code_objects.h"
#include "fixture.h"

namespace ff::elf {
namespace {

using Strings = std::vector<std::string>;

/// (place, code) of everything that can be had, and the problems on the way.
std::vector<std::pair<std::string, std::string>> contents(const std::string& bytes, Strings* problems = nullptr) {
  std::vector<std::pair<std::string, std::string>> out;
  auto told = visit_code(bytes, list_code_objects(bytes), [&](const CodeObject& object, std::string_view code) {
    out.emplace_back(object.id + " " + object.target.to_string(), code);
  });
  if (problems != nullptr) *problems = std::move(told);
  return out;
}

/// The archive with one text of its table replaced by another of the same length.
std::string with(std::string bytes, std::string_view what, std::string_view by) {
  EXPECT_EQ(what.size(), by.size());
  const auto at = bytes.rfind(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? bytes : bytes.replace(at, what.size(), by);
}

TEST(Kpack, StoredCodeIsReadInPlace) {
  const std::string bytes = fixture("stored.kpack"), wanted = fixture("gfx1100.co");
  const Listing listing = list_code_objects(bytes);
  EXPECT_EQ(listing.kind, "kpack");
  EXPECT_EQ(listing.problems, Strings{});
  ASSERT_EQ(listing.objects.size(), 2U);
  EXPECT_EQ(listing.objects[0].id, "lib/libkernels.so.1#0");
  EXPECT_EQ(listing.objects[0].code_object_version, 5);
  EXPECT_EQ(listing.objects[0].size, wanted.size());
  const auto found = contents(bytes);
  ASSERT_EQ(found.size(), 2U);
  for (const auto& [place, code] : found) EXPECT_TRUE(code == wanted) << place;
}

TEST(Kpack, PackedCodeIsUnpackedOneByOne) {
  const std::string bytes = fixture("packed.kpack"), wanted = fixture("gfx90a.co");
  EXPECT_EQ(list_code_objects(bytes).problems, Strings{});
  const auto found = contents(bytes);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].first, "lib/libkernels.so.1#1 gfx90a:sramecc+:xnack-");
  for (const auto& [place, code] : found) EXPECT_TRUE(code == wanted) << place;
}

TEST(Kpack, AnEmptiedLibrarySaysWhereItsCodeIs) {
  const Listing listing = list_code_objects(fixture("split.so"));
  EXPECT_TRUE(listing.kpack_split);
  EXPECT_EQ(listing.objects.size(), 0U);
  EXPECT_EQ(listing.kpack_binary, "lib/libkernels.so.1");
  EXPECT_EQ(listing.kpack_paths, (Strings{"../.kpack/kernels_@GFXARCH@.kpack"}));
  EXPECT_EQ(listing.problems, Strings{});
}

TEST(Kpack, WhatDoesNotFitIsNamed) {
  const std::string stored = fixture("stored.kpack"), packed = fixture("packed.kpack");
  const auto problem = [](const std::string& bytes) {
    const auto problems = list_code_objects(bytes).problems;
    return problems.empty() ? std::string("none") : problems.front();
  };
  // The runtime asks the list first, so code that it does not name is never found.
  EXPECT_EQ(problem(with(stored, "gfx_arches", "gfx_archez")),
            "gfx1100 is not in the archive's list of targets (gfx_arches): the runtime does not look for it here");
  EXPECT_EQ(problem(with(stored, "\xa4none", "\xa4lzma")), "a kpack archive packed as \"lzma\", which is not read (none and zstd-per-kernel are)");
  EXPECT_EQ(problem(with(stored, std::string("ordinal\x01", 8), std::string("ordinal\x09", 8))),
            "lib/libother.so#0 for gfx1100: its ordinal 9 is none of the archive's 2 code objects");
  const auto elsewhere = problem(with(packed, std::string("zstd_offset\x40", 12), std::string("zstd_offset\x7f", 12)));
  EXPECT_NE(elsewhere.find("of a kpack archive lies outside its"), std::string::npos) << elsewhere;
  // An archive that calls gfx1100 code gfx1101.
  std::string renamed = stored;
  for (std::size_t at = stored.find("KPAK"); (at = renamed.find("gfx1100", at)) != std::string::npos; ++at)
    if (at > stored.size() - 600) renamed[at + 6] = '1';
  EXPECT_EQ(problem(renamed), "the kpack archive calls the code object at 0x40 gfx1101, its own header says gfx1100");
}

TEST(Kpack, AFrameThatIsDamagedOrOfAnotherSizeIsNamed) {
  std::string bytes = fixture("packed.kpack");
  bytes[64 + 4 + 4] ^= 0x55;  // the magic of the first frame, after the two counts
  Strings problems;
  (void)contents(bytes, &problems);
  ASSERT_FALSE(problems.empty());
  EXPECT_TRUE(problems[0].starts_with("lib/libkernels.so.1#0 for gfx90a:sramecc+:xnack-: ")) << problems[0];
  const std::string size = "original_size\xce";
  std::string wrong = fixture("packed.kpack");
  wrong[wrong.rfind(size) + size.size() + 3] ^= 1;
  (void)contents(wrong, &problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("its table says"), std::string::npos) << problems[0];
}

TEST(Kpack, NoTruncationAndNoFlippedByteLeadsOutside) {
  for (const auto* name : {"stored.kpack", "packed.kpack"}) {
    const std::string whole = fixture(name);
    for (std::size_t size = 4; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      EXPECT_FALSE(list_code_objects(cut).problems.empty()) << name << " cut at " << size;
    }
    for (std::size_t at = 0; at < whole.size(); at += at < whole.size() - 700 ? 13 : 1) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(~flipped[at]);
      Strings problems;
      for (const auto& [place, code] : contents(flipped, &problems)) EXPECT_LE(code.size(), std::size_t{1} << 24) << place;
    }
  }
  const std::string library = fixture("split.so");
  const auto at = library.find("kernel_name") - 2;
  for (std::size_t i = 0; i < 88; ++i) {
    std::string flipped = library;
    flipped[at + i] = static_cast<char>(~flipped[at + i]);
    EXPECT_TRUE(list_code_objects(flipped).kpack_split);
  }
}

}  // namespace
}  // namespace ff::elf
