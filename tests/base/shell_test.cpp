#include "base/shell.h"

#include <gtest/gtest.h>

#include "base/process.h"

namespace ff {
namespace {

TEST(ShellWord, StaysPlainOrIsQuoted) {
  EXPECT_EQ(shell_word("/data/a_b-c.d"), "/data/a_b-c.d");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("Größe"), "'Größe'");
}

TEST(ShellWord, IsPrintableWhateverTheNameHolds) {
  EXPECT_EQ(shell_word("a\nb"), R"($'a\nb')");
  EXPECT_EQ(shell_word("\x1b[31m7"), R"($'\033[31m7')");
  EXPECT_EQ(shell_word("it's\t\\"), R"($'it\'s\t\\')");
  EXPECT_EQ(shell_word("\xff"), R"($'\377')");
}

TEST(ShellWord, IsTheSameWordToAShell) {
  for (const std::string name : {"a\nb", "\x1b[31m7", "it's\t\\", "\xff", "$(x) `y`", "-n",
                                 "Gr\xc3\xb6\xc3\x9f"
                                 "e\x01",
                                 "\r1"}) {
    const auto printed = run_child({.argv = {"bash", "-c", "printf %s " + shell_word(name)}});
    EXPECT_EQ(printed.out, name) << shell_word(name) << printed.err;
  }
}

}  // namespace
}  // namespace ff
