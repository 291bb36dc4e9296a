#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ff::model {

/// Walks the JSON of a safetensors header once, as strictly as the reference reader's parser does (serde_json): no
/// comments, no leading zeros, nesting up to 127, integers told apart from reals, surrogates in pairs. `ff::Value` would
/// lose what the rules need: byte positions, repeated names, the kind of a number; and a tree of a hostile 100 MB header
/// would take gigabytes.
///
/// Every function returns false after the first violation; `problem` and `position` then say what and where.
class HeaderScanner {
 public:
  explicit HeaderScanner(std::string_view json) : json_(json) {}

  std::string problem;
  std::size_t position = 0;  ///< byte of the JSON at which the violation stands

  [[nodiscard]] std::size_t at() const { return at_; }
  /// Skips blanks; the next byte, or '\0' at the end.
  char peek();
  bool expect(char c, std::string_view what);
  /// An element boundary of a list or object that ends with `close`: sets `more` when another element follows.
  bool next(char close, bool first, bool& more);
  bool text(std::string& out);
  /// A non-negative integer below 2^64 without fraction or exponent.
  bool natural(std::uint64_t& out, std::string_view what);
  /// Any value; its content is not kept.
  bool skip(int depth);
  bool end();  ///< nothing but blanks may follow
  bool violation(std::string what) { return violation_at(at_, std::move(what)); }
  bool violation_at(std::size_t at, std::string what);

 private:
  bool number(std::optional<std::uint64_t>& natural);
  bool hex4(unsigned& out);
  std::string_view json_;
  std::size_t at_ = 0;
};

inline constexpr int header_max_depth = 127;

}  // namespace ff::model
