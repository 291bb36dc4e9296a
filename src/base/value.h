#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace ff {

/// A JSON-like value: null, boolean, integer, real, text, list or object (in insertion order).
/// The one type in which facts, measurements and documents travel, so that no header needs a JSON library.
class Value {
 public:
  using List = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Object = std::vector<Member>;
  enum class Kind { null, boolean, integer, real, text, list, object };

  Value() = default;
  Value(std::nullptr_t) {}                                     // NOLINT: literals are values
  Value(bool v) : data_(v) {}                                  // NOLINT
  Value(int v) : data_(static_cast<std::int64_t>(v)) {}        // NOLINT
  Value(unsigned v) : data_(static_cast<std::int64_t>(v)) {}   // NOLINT
  Value(long v) : data_(static_cast<std::int64_t>(v)) {}       // NOLINT
  Value(long long v) : data_(static_cast<std::int64_t>(v)) {}  // NOLINT
  /// Values above INT64_MAX become their decimal text, so that no identifier is rounded.
  Value(unsigned long v);                               // NOLINT
  Value(unsigned long long v);                          // NOLINT
  Value(double v) : data_(v) {}                         // NOLINT
  Value(const char* v) : data_(std::string(v)) {}       // NOLINT
  Value(std::string v) : data_(std::move(v)) {}         // NOLINT
  Value(std::string_view v) : data_(std::string(v)) {}  // NOLINT
  Value(List v) : data_(std::move(v)) {}                // NOLINT
  Value(Object v) : data_(std::move(v)) {}              // NOLINT

  static Value object(std::initializer_list<Member> members = {}) { return Value(Object(members)); }
  static Value list(std::initializer_list<Value> items = {}) { return Value(List(items)); }
  template <class Range>
  static Value list_of(const Range& range) {
    List out;
    for (const auto& item : range) out.emplace_back(item);
    return Value(std::move(out));
  }

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(data_.index()); }
  [[nodiscard]] bool is_null() const { return kind() == Kind::null; }
  [[nodiscard]] bool is_text() const { return kind() == Kind::text; }
  [[nodiscard]] bool is_list() const { return kind() == Kind::list; }
  [[nodiscard]] bool is_object() const { return kind() == Kind::object; }
  [[nodiscard]] bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }

  /// The content, or the fallback when the value is of another kind. Integers read as reals.
  [[nodiscard]] bool as_bool(bool fallback = false) const;
  [[nodiscard]] std::int64_t as_int(std::int64_t fallback = 0) const;
  [[nodiscard]] double as_real(double fallback = 0) const;
  [[nodiscard]] std::string_view as_text(std::string_view fallback = {}) const;
  [[nodiscard]] const List& items() const;      ///< empty when not a list
  [[nodiscard]] const Object& members() const;  ///< empty when not an object
  [[nodiscard]] List& items_mut();              ///< turns the value into a list when it is not one
  [[nodiscard]] Object& members_mut();

  /// A member by name; a null value when absent or when this is no object.
  [[nodiscard]] const Value& operator[](std::string_view name) const;
  [[nodiscard]] const Value* find(std::string_view name) const;
  /// Sets (replaces or appends) a member; turns a null value into an object.
  Value& set(std::string_view name, Value value);
  Value& push(Value value);  ///< appends; turns a null value into a list

  /// One line without quotes around text: for messages.
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Object> data_;
};

/// Reads one JSON document. Depth is limited to 256; of duplicate keys all members are kept and [] finds the first;
/// `where` names the input in errors.
/// Numbers beyond int64 become text (unsigned) or reals.
Result<Value> parse_json(std::string_view text, std::string_view where = "JSON");
/// Writes JSON; invalid UTF-8 is replaced by U+FFFD; NaN and infinities become null. indent < 0: one line.
std::string to_json(const Value& value, int indent = -1);

}  // namespace ff
