#include "binary/disassemble.h"

#include "binary/source_lines.h"
#include "support.h"

namespace ff::binary {
namespace {

std::vector<DeviceFunction> functions_of(const std::string& bytes) {
  const auto file = elf::File::parse(bytes);
  return file ? device_functions(*file) : std::vector<DeviceFunction>{};
}

TEST(DeviceFunctions, AreTheKernelsWithTheirCodeAndWavefront) {
  const std::string bytes = read_file(fixture_path("gfx1100.co"));
  const auto functions = functions_of(bytes);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].name, "add");
  EXPECT_EQ(functions[1].name, "tile");
  for (const auto& function : functions) {
    EXPECT_EQ(function.code.size(), function.size);
    EXPECT_EQ(function.size % 4, 0U);
    EXPECT_TRUE(function.wave32);
    EXPECT_NE(function.code.find(std::string("\x00\x00\xb0\xbf", 4)), std::string::npos) << "s_endpgm of gfx11";
  }
  EXPECT_LT(functions[0].address + functions[0].size, functions[1].address + 1);
  const std::string cdna = read_file(fixture_path("gfx90a.co"));
  for (const auto& function : functions_of(cdna)) EXPECT_FALSE(function.wave32);
}

TEST(DeviceFunctions, OfVersion2BeginAfterTheirHeader) {
  const std::string bytes = read_file(fixture_path("gfx803-v2.co"));
  const auto functions = functions_of(bytes);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].name, "add");
  EXPECT_EQ(functions[0].address, 0x1d00U) << "256 bytes after the symbol";
  EXPECT_NE(functions[0].code.find(std::string("\x00\x00\x81\xbf", 4)), std::string::npos) << "s_endpgm of gfx8";
}

TEST(DeviceFunctions, OfAFileThatWasCutShortLieInsideIt) {
  for (const auto* name : {"gfx1100.co", "gfx906-v2.co"}) {
    const std::string whole = read_file(fixture_path(name));
    for (std::size_t size = 0; size < whole.size(); size += 37) {
      const std::string part = whole.substr(0, size);
      for (const auto& function : functions_of(part)) {
        EXPECT_GE(function.code.data(), part.data());
        EXPECT_LE(function.code.data() + function.code.size(), part.data() + part.size());
      }
    }
  }
}

TEST(SourceLines, NameTheLineOfAnAddress) {
  const std::string bytes = read_file(fixture_path("lines.co"));
  const auto lines = SourceLines::read(bytes);
  ASSERT_FALSE(lines.empty());
  const auto functions = functions_of(bytes);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(lines.at(functions[0].address), "./kernels.hip:15") << "the first line of add()";
  EXPECT_EQ(lines.at(functions[0].address + functions[0].size + (1U << 20)), "");
  EXPECT_EQ(lines.at(0), "");
  EXPECT_TRUE(SourceLines::read(read_file(fixture_path("gfx1100.co"))).empty());
  EXPECT_TRUE(SourceLines::read("no ELF file").empty());
}

TEST(Disassemble, SaysWhatToInstallWhenTheLibraryIsAbsent) {
  const std::string bytes = read_file(fixture_path("gfx1100.co"));
  DisassembleOptions options;
  options.library = "/absent/libLLVM.so.19";
  const auto answer = disassemble(bytes, *elf::parse_target_id("gfx1100"), functions_of(bytes), options);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("/absent/libLLVM.so.19"), std::string::npos) << answer.error().what;
  EXPECT_NE(answer.error().remedy.find("libllvm19"), std::string::npos) << answer.error().remedy;
}

TEST(Disassemble, AnyOtherLibraryIsNoDisassembler) {
  const std::string bytes = read_file(fixture_path("gfx1100.co"));
  DisassembleOptions options;
  options.library = "libm.so.6";
  const auto answer = disassemble(bytes, *elf::parse_target_id("gfx1100"), functions_of(bytes), options);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("AMDGPU"), std::string::npos) << answer.error().what;
}

class WithLlvm : public testing::Test {
 protected:
  void SetUp() override {
    if (disassembler_libraries().empty()) GTEST_SKIP() << "no libLLVM or comgr on this machine";
  }
};

TEST_F(WithLlvm, EveryKernelEndsWithItsLastInstructionAndBranchesStayInside) {
  for (const auto* name : {"gfx1100.co", "gfx90a.co", "gfx906-v4.co", "gfx11-generic.co"}) {
    const std::string bytes = read_file(fixture_path(name));
    const auto file = elf::File::parse(bytes);
    const auto head = elf::read_code_object_header(file->header());
    const auto answer = disassemble(bytes, head->target, device_functions(*file), {});
    ASSERT_TRUE(answer) << answer.error().to_string();
    ASSERT_EQ(answer->functions.size(), 2U) << name;
    for (const auto& function : answer->functions) {
      ASSERT_FALSE(function.instructions.empty());
      EXPECT_EQ(function.instructions.front().address, function.address);
      std::size_t ends = 0, branches = 0;
      std::uint64_t next = function.address;
      for (const auto& row : function.instructions) {
        EXPECT_EQ(row.address, next) << name << " " << row.text;
        next = row.address + (row.bytes.size() + 1) / 9 * 4;
        ends += row.text == "s_endpgm" ? 1 : 0;
        if (!row.target) continue;
        ++branches;
        EXPECT_GE(*row.target, function.address);
        EXPECT_LE(*row.target, function.address + function.size);
      }
      EXPECT_EQ(next, function.address + function.size) << "no byte is left out";
      EXPECT_GE(ends, 1U);
      EXPECT_GE(branches, 1U) << function.function;
    }
  }
}

TEST_F(WithLlvm, AroundAnAddressOnlyThatFunctionAndThoseLines) {
  const std::string bytes = read_file(fixture_path("lines.co"));
  const auto functions = functions_of(bytes);
  DisassembleOptions options;
  options.at = 16;
  options.at_is_offset = true;
  options.around = 2;
  const auto answer = disassemble(bytes, *elf::parse_target_id("gfx1100"), {functions[1]}, options);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->source_lines);
  ASSERT_EQ(answer->functions.size(), 1U);
  const auto& rows = answer->functions[0].instructions;
  ASSERT_LE(rows.size(), 5U);
  EXPECT_TRUE(answer->functions[0].cut);
  bool holds = false;
  for (const auto& row : rows) {
    holds = holds || (row.address <= functions[1].address + 16 && row.address + (row.bytes.size() + 1) / 9 * 4 > functions[1].address + 16);
    EXPECT_TRUE(row.source.starts_with("./kernels.hip:")) << row.source;
  }
  EXPECT_TRUE(holds);
  options.at = functions[0].address;
  options.at_is_offset = false;
  const auto other = disassemble(bytes, *elf::parse_target_id("gfx1100"), functions, options);
  ASSERT_TRUE(other);
  ASSERT_EQ(other->functions.size(), 1U);
  EXPECT_EQ(other->functions[0].function, "add");
}

TEST_F(WithLlvm, BytesThatAreNoInstructionAreShownAsData) {
  const std::string noise(64, '\xff');
  const DeviceFunction function{"noise", 0x1000, noise.size(), noise, true};
  const auto answer = disassemble(noise, *elf::parse_target_id("gfx1100"), {function}, {});
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->functions.at(0).instructions.at(0).text.starts_with(".long 0x")) << answer->functions[0].instructions[0].text;
}

TEST_F(WithLlvm, AnUnknownProcessorIsRefused) {
  const std::string noise(64, '\0');
  const auto answer = disassemble(noise, elf::TargetId{.processor = "gfx9999"}, {{"x", 0, noise.size(), noise, false}}, {});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("gfx9999"), std::string::npos);
}

}  // namespace
}  // namespace ff::binary
