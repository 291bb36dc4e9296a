#include "knowledge/predicate.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace ff::knowledge {

namespace {

struct Spelling {
  std::string_view text;
  Op op;
};
// Longer spellings first: "!=" before "=", "<=" before "<".
constexpr std::array<Spelling, 13> spellings = {{{"not in ", Op::not_in},
                                                 {"contains ", Op::contains},
                                                 {"present", Op::present},
                                                 {"in ", Op::in},
                                                 {"!=", Op::not_equal},
                                                 {"!~", Op::not_match},
                                                 {"<=", Op::less_equal},
                                                 {">=", Op::greater_equal},
                                                 {"==", Op::equal},
                                                 {"=", Op::equal},
                                                 {"<", Op::less},
                                                 {">", Op::greater},
                                                 {"~", Op::match}}};

bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

const Spelling* spelling_of(std::string_view text) {
  for (const Spelling& s : spellings) {
    if (!starts_with(text, s.text)) continue;
    if (s.op == Op::present && text.size() > s.text.size() && text[s.text.size()] != ' ') continue;
    return &s;
  }
  return nullptr;
}

/// Where the next " and " stands that is followed by an operator; so a pattern may hold the word "and".
std::size_t next_joint(std::string_view text) {
  for (std::size_t at = text.find(" and "); at != std::string_view::npos; at = text.find(" and ", at + 1))
    if (spelling_of(trim(text.substr(at + 5))) != nullptr) return at;
  return std::string_view::npos;
}

Result<Comparison> parse_one(std::string_view text) {
  Comparison c;
  const Spelling* spelling = spelling_of(text);
  c.op = spelling != nullptr ? spelling->op : Op::equal;
  std::string_view right = trim(spelling != nullptr ? text.substr(spelling->text.size()) : text);
  if (c.op == Op::present) {
    if (!right.empty()) return fail(fmt::format("'present' takes no value, but '{}' follows", right));
    return c;
  }
  if (right.empty()) return fail(fmt::format("'{}' has nothing to compare with", text));
  if (c.op == Op::in || c.op == Op::not_in) {
    for (std::string_view word : split(right, ','))
      if (!trim(word).empty()) c.words.emplace_back(trim(word));
  } else {
    c.words.emplace_back(right);
  }
  if (c.op == Op::match || c.op == Op::not_match) {
    RE2 re(c.words[0], RE2::Quiet);
    if (!re.ok()) return fail(fmt::format("the pattern '{}' is not valid RE2: {}", c.words[0], re.error()));
  }
  return c;
}

std::optional<double> number_of(std::string_view s) {
  s = trim(s);
  if (s.size() > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
    if (auto integer = to_integer<std::uint64_t>(s, 16)) return static_cast<double>(*integer);
    return std::nullopt;
  }
  if (s.empty() || s.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  return to_real(s);
}

bool version_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> marks = {"version", "packages", "release", "rocm", "hip", "torch", "kernel", "driver"};
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return contains(name, mark); });
}

/// "v6.4.1-2" and "linux-6.8" count from their first digit.
std::string_view version_part(std::string_view s) {
  const auto digit = s.find_first_of("0123456789");
  return digit == std::string_view::npos ? s : s.substr(digit);
}

std::optional<int> order(std::string_view name, std::string_view left, std::string_view right) {
  const auto a = number_of(left);
  const auto b = number_of(right);
  const bool dotted = contains(left, ".") && contains(right, ".");
  if (a && b && !(dotted && version_name(name))) return *a < *b ? -1 : *a > *b ? 1 : 0;
  const std::string_view va = version_part(left);
  const std::string_view vb = version_part(right);
  const auto is_digit = [](std::string_view s) { return !s.empty() && s[0] >= '0' && s[0] <= '9'; };
  if (!is_digit(va) || !is_digit(vb)) return std::nullopt;
  return compare_versions(va, vb);
}

bool equal(std::string_view left, std::string_view right) {
  if (left == right) return true;
  const auto a = number_of(left);
  const auto b = number_of(right);
  if (a && b) return *a == *b && contains(left, ".") == contains(right, ".");
  return left.size() == right.size() && lower(left) == lower(right);
}

bool fits(const Comparison& c, std::string_view name, std::string_view value, const std::vector<std::string>& right) {
  switch (c.op) {
    case Op::present:
      return true;
    case Op::equal:
    case Op::in:
      return std::any_of(right.begin(), right.end(), [&](const std::string& r) { return equal(value, r); });
    case Op::not_equal:
    case Op::not_in:
      return std::none_of(right.begin(), right.end(), [&](const std::string& r) { return equal(value, r); });
    case Op::contains:
      return std::any_of(right.begin(), right.end(), [&](const std::string& r) { return contains(lower(value), lower(r)); });
    case Op::match:
    case Op::not_match: {
      RE2 re(right.front(), RE2::Quiet);
      return re.ok() && RE2::PartialMatch(re2::StringPiece(value.data(), value.size()), re) == (c.op == Op::match);
    }
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
      return std::any_of(right.begin(), right.end(), [&](const std::string& r) {
        const auto o = order(name, value, r);
        if (!o) return false;
        if (c.op == Op::less) return *o < 0;
        if (c.op == Op::less_equal) return *o <= 0;
        if (c.op == Op::greater) return *o > 0;
        return *o >= 0;
      });
  }
  return false;
}

}  // namespace

Result<Predicate> parse_predicate(std::string_view text) {
  Predicate out;
  std::string_view rest = trim(text);
  if (rest.empty()) return fail("the predicate is empty");
  while (true) {
    const std::size_t joint = next_joint(rest);
    auto one = parse_one(trim(rest.substr(0, joint)));
    if (!one) return std::unexpected(one.error());
    out.push_back(std::move(*one));
    if (joint == std::string_view::npos) return out;
    rest = trim(rest.substr(joint + 5));
  }
}

bool holds(const Predicate& predicate, std::string_view name, std::string_view value, const Lookup& lookup) {
  for (const Comparison& c : predicate) {
    std::vector<std::string> right;
    for (const std::string& word : c.words) {
      if (starts_with(word, "$fact:") || starts_with(word, "$signal:")) {
        std::vector<std::string> values = lookup ? lookup(word) : std::vector<std::string>{};
        right.insert(right.end(), std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
      } else {
        right.push_back(word);
      }
    }
    if (right.empty() && c.op != Op::present) return false;
    if (!fits(c, name, value, right)) return false;
  }
  return true;
}

}  // namespace ff::knowledge
