// Lines are searched in their form. Nothing may be lost by that: a literal that stands in a line must show in the line's form.
#include "knowledge/form.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "knowledge/impl.h"

namespace ff::knowledge {
namespace {

std::string random_text(std::mt19937& random, std::size_t most) {
  constexpr std::string_view pieces[] = {"0x", "0", "7", "a", "F", "e", "x", "g", "_", " ", "-", "12", "dead", ":", "0xab"};
  std::string out;
  for (std::size_t n = random() % (most + 1); n > 0; --n) out += pieces[random() % std::size(pieces)];
  return out;
}

TEST(Form, a_literal_in_a_line_shows_in_its_form) {
  std::mt19937 random(5);
  const auto& literals = Knowledge::built_in().impl().bundle.literals;
  ASSERT_GT(literals.size(), 3000u);
  std::size_t several = 0;
  std::vector<std::string> all(literals.begin(), literals.end());
  for (const char* more : {"dead", "bad ", "x1f ", "xad", "0xdead", "0xdead ", "c 0xab", "ace_", "10x20", "fa"}) all.emplace_back(more);
  for (const std::string& literal : all) {
    const auto forms = forms_of_literal(literal);
    several += forms.size() > 1 ? 1 : 0;
    for (int i = 0; i < 12; ++i) {
      const std::string before = random_text(random, 4);
      const std::string line = before + literal + random_text(random, 3);
      const std::string form = form_of(line);
      ASSERT_EQ(form.size(), line.size());
      const bool shows = std::any_of(forms.begin(), forms.end(), [&](const std::string& f) { return form.compare(before.size(), f.size(), f) == 0; });
      const std::size_t run = literal.find_first_not_of(literal[0] == 'x' ? "xabcdef" : "abcdef");
      const bool word_in_number = !shows && form[before.size() + (literal[0] == 'x' ? 1 : 0)] == '0' && run != 0 &&
                                  (run == std::string::npos || literal[run] < '0' || literal[run] > '9');
      EXPECT_TRUE(shows || word_in_number) << "'" << literal << "' in '" << line << "', of form '" << form << "'";
    }
    const bool digit = literal.find_first_of("123456789") != std::string::npos;
    if (form_tells(literal)) {
      EXPECT_EQ(forms.size(), 1u) << literal;
      EXPECT_FALSE(digit) << literal;
    } else {
      EXPECT_TRUE(forms.size() > 1 || literal.find_first_of("0123456789") != std::string::npos) << literal;
    }
  }
  EXPECT_GT(several, 1u);
}

TEST(Form, no_literal_of_a_kernel_signal_is_a_number_alone) {
  // It would stand in the form of every line with such a number, and none of those could be answered from its form.
  const auto& bundle = Knowledge::built_in().impl().bundle;
  for (const Signal& signal : bundle.signals)
    for (const Pattern& pattern : signal.match)
      for (std::uint32_t id : pattern.literals)
        if (signal.in_kernel_log) {
          const std::string& text = bundle.literals[id];
          const bool digits = text.find_first_of("0123456789") != std::string::npos;
          EXPECT_TRUE(!digits || text.find_first_not_of("0123456789abcdefx") != std::string::npos || text.size() >= 8)
              << signal.id << ": '" << text << "': write letters or signs beside the number into the pattern";
        }
}

TEST(Form, lines_read_one_by_one_have_the_form_and_key_of_their_kind) {
  std::mt19937 random(9);
  LineForm a, b;
  for (int i = 0; i < 20000; ++i) {
    const std::string line = random_text(random, i % 40);
    std::string other = line;
    for (char& c : other)
      if (c >= '0' && c <= '9' && random() % 2 == 0 && c != '0') c = static_cast<char>('1' + random() % 9);
    ASSERT_TRUE(a.read(line.data(), line.data() + line.size()));
    const std::string block = other + "\nwhat follows 0x12";
    ASSERT_TRUE(b.read(block.data(), block.data() + block.size()));
    EXPECT_EQ(a.length(), line.size());
    EXPECT_EQ(b.length(), other.size());
    EXPECT_EQ(a.key(), b.key()) << line << " | " << other;
    if (stamp_length(form_of(line)) == 0) {
      EXPECT_EQ(a.text(), form_of(line)) << line;
    }
  }
  const auto key = [&](std::string_view line) {
    EXPECT_TRUE(a.read(line.data(), line.data() + line.size()));
    return a.key();
  };
  EXPECT_EQ(key("at 0xffff0 of 12"), key("at 0xab120 of 97"));
  EXPECT_NE(key("at 0xffff0 of 12"), key("at 0xffff of 120"));
  EXPECT_NE(key("0x10 pixels"), key("2x10 pixels")) << "a product is no hexadecimal number";
  EXPECT_NE(key("0xfag"), key("0xbeg")) << "letters of a word";
  EXPECT_NE(key("ring gfx timeout"), key("ring gfx Timeout"));
  const std::string longest(LineForm::max_bytes, 'y');
  EXPECT_TRUE(a.read(longest.data(), longest.data() + longest.size()));
  const std::string too_long(LineForm::max_bytes + 1, 'y');
  EXPECT_FALSE(a.read(too_long.data(), too_long.data() + too_long.size()));
  EXPECT_EQ(stamp_length("[   12.345678] x"), 13u);
  EXPECT_EQ(stamp_length("Nov 30 15:21:10 host"), 15u);
  EXPECT_EQ(stamp_length("plain"), 0u);
}

TEST(Form, both_ways_to_read_a_line_agree) {
  std::mt19937 random(13);
  LineForm a, b;
  for (int i = 0; i < 20000; ++i) {
    std::string block = random_text(random, i % 300);
    for (int n = 0; n < 4 && !block.empty(); ++n) block[random() % block.size()] = static_cast<char>(random() % 256);
    for (const char *at = block.data(), *end = at + block.size(); at < end; ++at) {
      const bool read = a.read(at, end);
      ASSERT_EQ(read, b.read_portable(at, end)) << block;
      if (!read) break;
      ASSERT_EQ(a.length(), b.length()) << block;
      ASSERT_EQ(a.key(), b.key()) << block;
      ASSERT_EQ(a.text(), b.text()) << block;
      at += a.length();
    }
  }
  for (std::size_t size = LineForm::max_bytes - 70; size < LineForm::max_bytes + 70; ++size) {
    const std::string line(size, '7');
    EXPECT_EQ(a.read(line.data(), line.data() + size), size <= LineForm::max_bytes) << size;
    EXPECT_EQ(b.read_portable(line.data(), line.data() + size), size <= LineForm::max_bytes) << size;
    if (size <= LineForm::max_bytes) {
      EXPECT_EQ(a.key(), b.key()) << size;
    }
  }
}

}  // namespace
}  // namespace ff::knowledge
