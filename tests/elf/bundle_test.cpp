#include "elf/bundle.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "fixture.h"

namespace ff::elf {
namespace {

std::vector<std::string> ids(const Bundle& bundle) {
  std::vector<std::string> out;
  for (const auto& entry : bundle.entries) out.push_back(entry.id);
  return out;
}
const std::vector<std::string> all_ids{"host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx1100",
                                       "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"};

/// A compressed bundle of every version over the same content.
std::string compressed(int version, int method) {
  const std::string plain = fixture("plain.hipfb");
  std::string body;
  if (method == 1)
    body = fixture("zstd.hipfb").substr(24);
  else {
    uLongf size = compressBound(plain.size());
    body.resize(size);
    EXPECT_EQ(compress(reinterpret_cast<Bytef*>(body.data()), &size, reinterpret_cast<const Bytef*>(plain.data()), plain.size()), Z_OK);
    body.resize(size);
  }
  std::string out = "CCOB";
  append<std::uint16_t>(out, static_cast<std::uint16_t>(version));
  append<std::uint16_t>(out, static_cast<std::uint16_t>(method));
  const std::uint64_t header = version == 1 ? 20 : version == 2 ? 24 : 32;
  if (version == 2) append<std::uint32_t>(out, static_cast<std::uint32_t>(header + body.size()));
  if (version == 3) append<std::uint64_t>(out, header + body.size());
  if (version == 3)
    append<std::uint64_t>(out, plain.size());
  else
    append<std::uint32_t>(out, static_cast<std::uint32_t>(plain.size()));
  append<std::uint64_t>(out, 0x1234);
  return out + body;
}

TEST(Bundle, ListsWhatClangsBundlerWrote) {
  const auto bundle = read_bundle(fixture("plain.hipfb"));
  ASSERT_TRUE(bundle) << bundle.error().what;
  EXPECT_EQ(ids(*bundle), all_ids);
  EXPECT_EQ(bundle->entries[0].kind, "host");
  EXPECT_FALSE(bundle->entries[0].target);
  EXPECT_EQ(bundle->entries[1].offset, 4096U);
  EXPECT_EQ(bundle->entries[1].size, fixture("gfx1100.co").size());
  EXPECT_EQ(bundle->entries[2].target->to_string(), "gfx90a:sramecc+:xnack-");
}

TEST(Bundle, ReadsEveryCompressedVersionAndMethod) {
  const std::string plain = fixture("plain.hipfb");
  EXPECT_EQ(compressed(2, 1).substr(24), fixture("zstd.hipfb").substr(24));
  for (const int version : {1, 2, 3})
    for (const int method : {0, 1}) {
      const std::string bytes = compressed(version, method) + std::string(100, '\0');
      const auto header = read_compressed_header(bytes);
      ASSERT_TRUE(header);
      EXPECT_EQ(header->version, version);
      EXPECT_EQ(header->uncompressed_size, plain.size());
      EXPECT_EQ(header->file_size.value_or(bytes.size() - 100), bytes.size() - 100);
      const auto bundle = read_compressed_bundle(bytes, *header);
      ASSERT_TRUE(bundle) << version << method << bundle.error().what;
      EXPECT_EQ(ids(*bundle), all_ids);
      const auto whole = decompress(bytes, decompressed_limit_bytes);
      ASSERT_TRUE(whole) << whole.error().what;
      EXPECT_TRUE(whole->content == plain);
      EXPECT_EQ(whole->consumed, bytes.size() - 100);
    }
}

TEST(Bundle, StopsAtTheLimit) {
  const std::string bytes = fixture("zstd.hipfb");
  const auto part = decompress(bytes, 1000);
  ASSERT_TRUE(part);
  EXPECT_FALSE(part->complete);
  EXPECT_EQ(part->content.size(), 1000U);
  const auto exact = decompress(bytes, fixture("plain.hipfb").size());
  ASSERT_TRUE(exact);
  EXPECT_TRUE(exact->complete);
}

TEST(Bundle, RefusesWhatItsHeaderCannotMean) {
  std::string bytes = fixture("plain.hipfb");
  put<std::uint64_t>(bytes, 24, std::uint64_t{1} << 63);
  EXPECT_NE(read_bundle(bytes).error().what.find("9223372036854775808 entries"), std::string::npos);
  bytes = fixture("plain.hipfb");
  put<std::uint64_t>(bytes, 32 + 16, std::uint64_t{1} << 63);  // id length of entry 0
  EXPECT_FALSE(read_bundle(bytes));
  bytes = fixture("plain.hipfb");
  put<std::uint64_t>(bytes, 32, ~std::uint64_t{0});  // offset of entry 0
  put<std::uint64_t>(bytes, 40, 2);
  EXPECT_FALSE(read_bundle(bytes)) << "offset + size overflows";
  bytes = compressed(2, 1);
  put<std::uint16_t>(bytes, 4, 4);
  EXPECT_NE(read_compressed_header(bytes).error().what.find("newer"), std::string::npos);
  bytes = compressed(3, 1);
  put<std::uint64_t>(bytes, 16, 5);  // another uncompressed size than is there
  EXPECT_FALSE(decompress(bytes, decompressed_limit_bytes));
}

TEST(Bundle, EntryCountIsReadUpToTheLimitAndRefusedAbove) {
  const auto with = [](std::uint64_t count) {
    std::string bytes(bundle_magic);
    append(bytes, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      append<std::uint64_t>(bytes, 0);
      append<std::uint64_t>(bytes, 0);
      append<std::uint64_t>(bytes, 4);
      bytes += "host";
    }
    return bytes;
  };
  EXPECT_TRUE(read_bundle(with(bundle_entry_limit)));
  EXPECT_FALSE(read_bundle(with(bundle_entry_limit + 1)));
}

TEST(Bundle, ReadsAnOffloadBinary) {
  const auto binary = read_offload_binary(fixture("packed.bin"));
  ASSERT_TRUE(binary) << binary.error().what;
  ASSERT_EQ(binary->images.size(), 1U);
  EXPECT_EQ(binary->images[0].arch, "gfx1100");
  EXPECT_EQ(binary->images[0].triple, "amdgcn-amd-amdhsa");
  EXPECT_EQ(binary->images[0].offload_kind, 3) << "HIP as LLVM 19 numbers it";
  EXPECT_EQ(binary->images[0].size, fixture("gfx1100.co").size());
}

TEST(Bundle, EveryTruncationIsAnError) {
  const std::string plain = fixture("plain.hipfb");
  const auto header = read_bundle(plain)->header_size;
  for (std::size_t size = 0; size < plain.size(); ++size) EXPECT_FALSE(read_bundle(Bytes(plain).sub(0, size)->view())) << size;
  for (std::size_t size = 0; size < header; ++size) EXPECT_FALSE(read_bundle(Bytes(plain).sub(0, size)->view(), plain.size())) << size;
  EXPECT_TRUE(read_bundle(Bytes(plain).sub(0, header)->view(), plain.size())) << "the header alone is enough";
  for (const int method : {0, 1}) {
    const std::string packed = compressed(1, method);
    for (std::size_t size = 0; size < packed.size(); ++size)
      EXPECT_FALSE(decompress(Bytes(packed).sub(0, size)->view(), decompressed_limit_bytes)) << size;
  }
}

}  // namespace
}  // namespace ff::elf
