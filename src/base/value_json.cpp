// The only file of base/ that includes the JSON library.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/value.h"

namespace ff {
namespace {

constexpr int max_depth = 256;

/// "line 3, column 7: unexpected '}'; last read: '}'" of "[json.exception.parse_error.101] parse error at line 3, column 7: syntax error
/// while parsing value - unexpected '}'; last read: '}'".
std::string plain_message(std::string_view what) {
  if (what.starts_with('['))
    if (const auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  constexpr std::string_view at = "parse error at ";
  if (!what.starts_with(at)) return std::string(what);
  what.remove_prefix(at.size());
  const auto colon = what.find(": ");
  const auto dash = what.find(" - ");
  if (colon == std::string_view::npos || dash == std::string_view::npos || dash < colon) return std::string(what);
  return std::string(what.substr(0, colon + 2)) + std::string(what.substr(dash + 3));
}

/// Builds a Value from the parser's events; refuses deep nesting so that hostile input cannot exhaust the stack.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Value root;
  std::string message;
  std::size_t position = 0;

  bool null() override { return put(Value()); }
  bool boolean(bool v) override { return put(Value(v)); }
  bool number_integer(number_integer_t v) override { return put(Value(static_cast<long long>(v))); }
  bool number_unsigned(number_unsigned_t v) override { return put(Value(static_cast<unsigned long long>(v))); }
  bool number_float(number_float_t v, const string_t&) override { return put(Value(v)); }
  bool string(string_t& v) override { return put(Value(std::move(v))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Value(Value::Object{})); }
  bool key(string_t& v) override {
    keys_.back() = std::move(v);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Value(Value::List{})); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception& e) override {
    position = at;
    message = plain_message(e.what());
    return false;
  }

 private:
  bool put(Value v) {
    if (stack_.empty()) {
      root = std::move(v);
      return true;
    }
    Value& top = stack_.back();
    if (top.is_list())
      top.items_mut().push_back(std::move(v));
    else
      top.members_mut().emplace_back(keys_.back(), std::move(v));
    return true;
  }
  bool open(Value v) {
    if (stack_.size() >= max_depth) {
      message = "nested deeper than 256 levels";
      return false;
    }
    stack_.push_back(std::move(v));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return put(std::move(done));
  }

  std::vector<Value> stack_;
  std::vector<std::string> keys_;
};

nlohmann::ordered_json convert(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
      return nullptr;
    case Value::Kind::boolean:
      return value.as_bool();
    case Value::Kind::integer:
      return value.as_int();
    case Value::Kind::real:
      if (!std::isfinite(value.as_real())) return nullptr;
      return value.as_real();
    case Value::Kind::text:
      return std::string(value.as_text());
    case Value::Kind::list: {
      auto out = nlohmann::ordered_json::array();
      for (const auto& item : value.items()) out.push_back(convert(item));
      return out;
    }
    case Value::Kind::object: {
      // An object in insertion order; ordered_json's own lookup is linear, so members are appended unchecked.
      auto out = nlohmann::ordered_json::object();
      auto& raw = out.get_ref<nlohmann::ordered_json::object_t&>();
      raw.reserve(value.members().size());
      for (const auto& [name, member] : value.members()) raw.emplace_back(name, convert(member));
      return out;
    }
  }
  return nullptr;
}

}  // namespace

Result<Value> parse_json(std::string_view text, std::string_view where) {
  Builder builder;
  bool ok = false;
  try {
    ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const std::exception& e) {
    builder.message = plain_message(e.what());
  }
  if (!ok)
    return fail("not valid JSON: " + (builder.message.empty() ? std::string("unexpected content") : builder.message),
                std::string(where) + (builder.position != 0 ? ": byte " + std::to_string(builder.position) : ""), "check that the file is complete");
  return std::move(builder.root);
}

std::string to_json(const Value& value, int indent) { return convert(value).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace ff
