#include "base/text.h"

#include <gtest/gtest.h>

namespace ff {
namespace {

TEST(Text, SplitsLinesOfEveryKind) {
  EXPECT_EQ(lines("a\r\nb\n\nc"), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(lines("a\n"), (std::vector<std::string_view>{"a"}));
  EXPECT_TRUE(lines("").empty());
}

TEST(Text, ReadsWholeNumbersOnly) {
  EXPECT_EQ(to_integer(" 42 \n"), 42);
  EXPECT_EQ(to_integer("0x1F", 16), 31);
  EXPECT_FALSE(to_integer("42 GiB"));
  EXPECT_FALSE(to_integer(""));
  EXPECT_FALSE(to_integer("99999999999999999999"));
  EXPECT_EQ(to_real("16.0"), 16.0);
}

TEST(Text, ComparesVersionsByNumber) {
  EXPECT_LT(compare_versions("6.4.1", "6.10"), 0);
  EXPECT_EQ(compare_versions("7.0", "7.0.0"), 0);
  EXPECT_GT(compare_versions("2.9.1+rocm7.1.1", "2.9.0"), 0);
  EXPECT_EQ(compare_versions("2.9.1+rocm7.1.1", "2.9.1"), 0);
  EXPECT_LT(compare_versions("6.8.0-31-generic", "6.8.0-45-generic"), 0);
}

TEST(Text, RepairsUtf8) {
  EXPECT_EQ(to_utf8("gr\xC3\xBCn"), "gr\xC3\xBCn");
  EXPECT_EQ(to_utf8("\xff"
                    "a\xC3"),
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
  EXPECT_EQ(to_utf8("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "overlong NUL";
}

TEST(Text, PrintsSizes) {
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{24} << 30), "24 GiB");
}

}  // namespace
}  // namespace ff
