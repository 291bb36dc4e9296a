#include "model/header_scanner.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace ff::model {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  }
}

std::string shown(char c) {
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c))
                                                                                      : fmt::format("'{}'", c);
}

}  // namespace

bool HeaderScanner::violation_at(std::size_t at, std::string what) {
  problem = std::move(what);
  position = at;
  return false;
}

char HeaderScanner::peek() {
  while (at_ < json_.size() && (json_[at_] == ' ' || json_[at_] == '\n' || json_[at_] == '\r' || json_[at_] == '\t')) ++at_;
  return at_ < json_.size() ? json_[at_] : '\0';
}

bool HeaderScanner::expect(char c, std::string_view what) {
  const char seen = peek();
  if (at_ >= json_.size()) return violation(fmt::format("the header ends where {} should stand", what));
  if (seen != c) return violation(fmt::format("{} stands where {} should stand", shown(seen), what));
  ++at_;
  return true;
}

bool HeaderScanner::next(char close, bool first, bool& more) {
  const char seen = peek();
  if (at_ < json_.size() && seen == close) {
    ++at_;
    more = false;
    return true;
  }
  more = true;
  if (first) return true;
  return expect(',', close == '}' ? "',' or '}'" : "',' or ']'");
}

bool HeaderScanner::hex4(unsigned& out) {
  out = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ >= json_.size()) return violation("the header ends inside an escape");
    const char c = json_[at_];
    const int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return violation("\\u is not followed by four hexadecimal digits");
    out = out << 4 | static_cast<unsigned>(digit);
  }
  return true;
}

bool HeaderScanner::text(std::string& out) {
  out.clear();
  const std::size_t start = at_;
  if (!expect('"', "a text in quotes")) return false;
  while (true) {
    const std::size_t run = at_;
    while (at_ < json_.size() && json_[at_] != '"' && json_[at_] != '\\' && static_cast<unsigned char>(json_[at_]) >= 0x20) ++at_;
    out.append(json_.substr(run, at_ - run));
    if (at_ >= json_.size()) return violation_at(start, "the header ends inside a text");
    const char c = json_[at_];
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c != '\\') return violation("a control character stands inside a text");
    if (++at_ >= json_.size()) return violation("the header ends inside an escape");
    switch (json_[at_++]) {
      case '"':
        out += '"';
        break;
      case '\\':
        out += '\\';
        break;
      case '/':
        out += '/';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        unsigned code = 0;
        if (!hex4(code)) return false;
        if (code >= 0xdc00 && code <= 0xdfff) return violation("half of a surrogate pair stands alone");
        if (code >= 0xd800 && code <= 0xdbff) {
          unsigned low = 0;
          if (json_.substr(at_, 2) != "\\u") return violation("half of a surrogate pair stands alone");
          at_ += 2;
          if (!hex4(low)) return false;
          if (low < 0xdc00 || low > 0xdfff) return violation("half of a surrogate pair stands alone");
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        append_utf8(out, code);
        break;
      }
      default:
        --at_;
        return violation("unknown escape in a text");
    }
  }
}

bool HeaderScanner::number(std::optional<std::uint64_t>& natural) {
  const std::size_t start = at_;
  const auto here = [&] { return at_ < json_.size() ? json_[at_] : '\0'; };
  bool whole = true;
  if (here() == '-') {
    ++at_;
    whole = false;
  }
  if (!is_digit(here())) return violation("a number without digits");
  if (here() == '0') {
    ++at_;
    if (is_digit(here())) return violation("a number with a leading zero");
  }
  while (is_digit(here())) ++at_;
  if (here() == '.') {
    whole = false;
    ++at_;
    if (!is_digit(here())) return violation("a number without digits behind its point");
    while (is_digit(here())) ++at_;
  }
  if (here() == 'e' || here() == 'E') {
    whole = false;
    ++at_;
    if (here() == '+' || here() == '-') ++at_;
    if (!is_digit(here())) return violation("a number without digits in its exponent");
    while (is_digit(here())) ++at_;
  }
  const std::string_view digits = json_.substr(start, at_ - start);
  natural.reset();
  if (whole) {
    std::uint64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc()) natural = value;
  }
  if (!natural) {
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    // from_chars reports both ends of the range; only the upper one is an error for the reference reader.
    if (read.ec == std::errc::result_out_of_range) {
      const auto exponent = digits.find_first_of("eE");
      const bool tiny = exponent != std::string_view::npos && exponent + 1 < digits.size() && digits[exponent + 1] == '-';
      if (!tiny) return violation_at(start, "a number out of range");
    }
  }
  return true;
}

bool HeaderScanner::natural(std::uint64_t& out, std::string_view what) {
  const char seen = peek();
  const std::size_t start = at_;
  if (at_ >= json_.size()) return violation(fmt::format("the header ends where {} should stand", what));
  if (seen != '-' && !is_digit(seen)) return violation(fmt::format("{} is no number", what));
  std::optional<std::uint64_t> value;
  if (!number(value)) return false;
  const std::string_view digits = json_.substr(start, std::min<std::size_t>(at_ - start, 40));
  if (seen == '-') return violation_at(start, fmt::format("{} is negative ({})", what, digits));
  if (!value) return violation_at(start, fmt::format("{} is no whole number below 2^64 ({})", what, digits));
  out = *value;
  return true;
}

bool HeaderScanner::skip(int depth) {
  const char seen = peek();
  if (at_ >= json_.size()) return violation("the header ends where a value should stand");
  std::string ignored;
  if (seen == '"') return text(ignored);
  if (seen == '-' || is_digit(seen)) {
    std::optional<std::uint64_t> number_value;
    return number(number_value);
  }
  if (seen == '{' || seen == '[') {
    if (depth >= header_max_depth) return violation("nested deeper than 127 levels");
    ++at_;
    const char close = seen == '{' ? '}' : ']';
    for (bool first = true, more = true;; first = false) {
      if (!next(close, first, more)) return false;
      if (!more) return true;
      if (close == '}' && (!text(ignored) || !expect(':', "':'"))) return false;
      if (!skip(depth + 1)) return false;
    }
  }
  for (const std::string_view word : {"true", "false", "null"})
    if (json_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return true;
    }
  return violation(fmt::format("{} begins no JSON value", shown(seen)));
}

bool HeaderScanner::end() {
  (void)peek();
  return at_ >= json_.size() || violation(fmt::format("{} stands behind the end of the JSON object", shown(json_[at_])));
}

}  // namespace ff::model
