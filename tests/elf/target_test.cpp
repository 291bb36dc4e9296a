#include "elf/target.h"

#include <gtest/gtest.h>

#include "elf/elf.h"
#include "elf/known_target.h"
#include "fixture.h"

namespace ff::elf {
namespace {

std::string read(std::string_view text) {
  const auto target = parse_target_id(text);
  return target ? target->to_string() : "none";
}

TEST(Target, ReadsEverySpellingOfATargetId) {
  EXPECT_EQ(read("gfx1100"), "gfx1100");
  EXPECT_EQ(read("gfx90a:sramecc+:xnack-"), "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(read("gfx90a:xnack-:sramecc+"), "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(read("amdgcn-amd-amdhsa--gfx942:xnack-"), "gfx942:xnack-");
  EXPECT_EQ(read("amdgcn-amd-amdhsa-unknown-gfx90a:sramecc+:xnack-"), "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(read("amdgpu9.0a-amd-amdhsa-unknown-gfx90a"), "gfx90a");
  EXPECT_EQ(read("amdgcn-amd-amdhsa-gfx906"), "gfx906") << "bundles of old compilers";
  EXPECT_EQ(read("amdgcn-amd-amdhsa--gfx11-generic"), "gfx11-generic");
  EXPECT_EQ(read("amdgcn-amd-amdhsa--gfx9-4-generic:xnack+"), "gfx9-4-generic:xnack+");
  EXPECT_EQ(read("spirv64-amd-amdhsa--amdgcnspirv"), "amdgcnspirv");
  EXPECT_EQ(read("spirv64-amd-amdhsa-unknown-amdgcnspirv"), "amdgcnspirv");
  EXPECT_EQ(read("gfx906+xnack+sram-ecc"), "gfx906:sramecc+:xnack+") << "code object V3";
}

TEST(Target, RefusesWhatIsNone) {
  for (const auto* text :
       {"", "gfx", "sm_80", "x86_64-unknown-linux-gnu-", "gfx90a:xnack", "gfx90a:tgsplit+", "gfx90a:", "amdgcn-amd", "nvptx64-nvidia-cuda--sm_80"})
    EXPECT_EQ(read(text), "none") << text;
}

TEST(Target, KnowsEveryProcessorOfLlvmsListOnce) {
  EXPECT_EQ(mach(0x4a)->processor, "gfx1151");
  EXPECT_EQ(mach("gfx942")->value, 0x4c);
  EXPECT_EQ(mach(0x40)->processor, "gfx940") << "reserved today, present in files of ROCm 5.5 to 6.2";
  EXPECT_EQ(mach(0x27), nullptr) << "reserved";
  for (const auto& row : machs()) {
    EXPECT_EQ(mach(row.value), &row);
    EXPECT_EQ(mach(row.processor), &row);
  }
}

TEST(Target, KnowsWhatACompilerCanBeAskedFor) {
  for (const auto* id : {"gfx1100", "gfx90a:xnack-", "gfx11-generic", "amdgcnspirv"}) EXPECT_TRUE(known_target(id)) << id;
  for (const auto* id : {"gfx1999", "gfx", "sm_90", "gfx90a:fast+", ""}) EXPECT_FALSE(known_target(id)) << id;
}

TEST(Target, ReadsTheHeaderOfEveryCodeObjectVersion) {
  struct Expectation {
    const char* file;
    const char* target;
    int version;
    int generic;
  };
  // llvm-readelf-19 -h says the same of each (of version 2: the note of its instruction set).
  for (const auto& want : {Expectation{"gfx1100.co", "gfx1100", 5, 0},
                           {"gfx90a.co", "gfx90a:sramecc+:xnack-", 5, 0},
                           {"gfx906-v4.co", "gfx906", 4, 0},
                           {"gfx11-generic.co", "gfx11-generic", 6, 1},
                           {"gfx803-v2.co", "gfx803", 2, 0}}) {
    const std::string bytes = fixture(want.file);
    const auto file = File::parse(bytes);
    ASSERT_TRUE(file) << want.file;
    const auto code = read_code_object_header(file->header());
    ASSERT_TRUE(code) << want.file;
    EXPECT_EQ(code->target.to_string(), want.target);
    EXPECT_EQ(code->code_object_version, want.version);
    EXPECT_EQ(code->target.generic_version, want.generic);
    EXPECT_TRUE(code->known_processor);
  }
}

TEST(Target, ReadsOldAndUnknownHeaders) {
  Header header{.os_abi = 64, .abi_version = 1, .type = type_shared, .machine = machine_amdgpu, .flags = 0x12f, .entry = 0};
  EXPECT_EQ(read_code_object_header(header)->target.to_string(), "gfx906:sramecc-:xnack+") << "V3 knows on and off only";
  header.abi_version = 9;
  header.flags = 0x7e;
  const auto newer = read_code_object_header(header);
  EXPECT_EQ(newer->target.processor, "unknown (mach 0x7e)");
  EXPECT_FALSE(newer->known_processor);
  EXPECT_EQ(newer->code_object_version, 0);
  header.machine = machine_x86_64;
  EXPECT_FALSE(read_code_object_header(header));
}

}  // namespace
}  // namespace ff::elf
