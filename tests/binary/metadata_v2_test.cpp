#include "binary/metadata_v2.h"

#include "binary/kernels.h"
#include "elf/elf.h"
#include "support.h"

namespace ff::binary {
namespace {

TEST(Version2, KernelsHaveTheNamesThatLaterVersionsUse) {
  const std::string bytes = read_file(fixture_path("gfx803-v2.co"));
  const auto kernels = read_kernels(bytes, {}, {});
  ASSERT_TRUE(kernels) << kernels.error().what;
  ASSERT_EQ(kernels->size(), 2U);
  // llvm-readelf-14 -n of the same file.
  const Kernel& tile = (*kernels)[1];
  EXPECT_EQ(tile.name, "tile");
  EXPECT_EQ(tile.metadata["vgpr_count"].as_int(), 20);
  EXPECT_EQ(tile.metadata["sgpr_count"].as_int(), 34);
  EXPECT_EQ(tile.metadata["group_segment_fixed_size"].as_int(), 4096);
  EXPECT_EQ(tile.metadata["private_segment_fixed_size"].as_int(), 164);
  EXPECT_EQ(tile.metadata["wavefront_size"].as_int(), 64);
  EXPECT_EQ(tile.metadata["max_flat_workgroup_size"].as_int(), 256);
  EXPECT_EQ(tile.metadata["reqd_workgroup_size"].items().size(), 3U);
  const auto& args = tile.metadata["args"].items();
  ASSERT_EQ(args.size(), 3U);
  EXPECT_EQ(args[0]["value_kind"].as_text(), "global_buffer");
  EXPECT_EQ(args[2]["value_kind"].as_text(), "dynamic_shared_pointer");
  EXPECT_EQ(args[2]["offset"].as_int(), 16);
  EXPECT_TRUE(args[1]["is_const"].as_bool());
  // The header before the code is another statement of the same.
  ASSERT_TRUE(tile.descriptor);
  EXPECT_EQ(tile.descriptor->lds_bytes, 4096U);
  EXPECT_EQ(tile.descriptor->scratch_bytes, 164U);
  EXPECT_EQ(tile.descriptor->kernarg_bytes, 20U);
  EXPECT_EQ(tile.descriptor->vgprs_allocated(8, false), 20U);
  for (const auto& kernel : *kernels) EXPECT_EQ(kernel.faults, std::vector<std::string>{});
}

TEST(Version2, ALaunchIsCheckedAgainstTheRequiredWorkgroup) {
  const auto kernels = read_kernels(read_file(fixture_path("gfx803-v2.co")), {}, {.x = 64});
  ASSERT_TRUE(kernels);
  ASSERT_EQ((*kernels)[1].faults.size(), 1U);
  EXPECT_NE((*kernels)[1].faults[0].find("256 x 1 x 1"), std::string::npos);
}

TEST(Version2, DamagedMetadataIsAnErrorOrLess) {
  EXPECT_FALSE(read_version_2_kernels("Kernels: [ {Name: a"));
  EXPECT_FALSE(read_version_2_kernels("a: &x 1\nb: *x\n"));
  EXPECT_TRUE(read_version_2_kernels("")->items().empty());
  const auto odd = read_version_2_kernels("Kernels:\n  - Name: k\n    Args:\n      - { Size: -4, Align: 3 }\n      - { Size: 8, Align: 8 }\n");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->items()[0]["args"].items()[0].find("offset"), nullptr);
  const std::string whole = read_file(fixture_path("gfx906-v2.co"));
  for (std::size_t size = 0; size < whole.size(); size += 11) (void)read_kernels(std::string(whole, 0, size), {}, {});
}

TEST(Metadata, EveryNoteOfALinkedCodeObjectIsRead) {
  const auto kernels = read_kernels(read_file(fixture_path("two-notes.co")), {}, {});
  ASSERT_TRUE(kernels) << kernels.error().what;
  ASSERT_EQ(kernels->size(), 2U);
  EXPECT_EQ((*kernels)[0].name, "first");
  EXPECT_EQ((*kernels)[1].name, "second");
  for (const auto& kernel : *kernels) EXPECT_TRUE(kernel.descriptor && kernel.faults.empty());
}

}  // namespace
}  // namespace ff::binary
