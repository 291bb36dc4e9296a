#include "base/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ff {
namespace {
const Value null_value;
const Value::List empty_list;
const Value::Object empty_object;
}  // namespace

Value::Value(unsigned long v) : Value(static_cast<unsigned long long>(v)) {}

Value::Value(unsigned long long v) {
  if (v <= static_cast<unsigned long long>(std::numeric_limits<std::int64_t>::max()))
    data_ = static_cast<std::int64_t>(v);
  else
    data_ = std::to_string(v);
}

bool Value::as_bool(bool fallback) const {
  const auto* v = std::get_if<bool>(&data_);
  return v != nullptr ? *v : fallback;
}

std::int64_t Value::as_int(std::int64_t fallback) const {
  const auto* v = std::get_if<std::int64_t>(&data_);
  return v != nullptr ? *v : fallback;
}

double Value::as_real(double fallback) const {
  if (const auto* real = std::get_if<double>(&data_)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*integer);
  return fallback;
}

std::string_view Value::as_text(std::string_view fallback) const {
  const auto* v = std::get_if<std::string>(&data_);
  return v != nullptr ? std::string_view(*v) : fallback;
}

const Value::List& Value::items() const {
  const auto* v = std::get_if<List>(&data_);
  return v != nullptr ? *v : empty_list;
}

const Value::Object& Value::members() const {
  const auto* v = std::get_if<Object>(&data_);
  return v != nullptr ? *v : empty_object;
}

Value::List& Value::items_mut() {
  if (!is_list()) data_ = List{};
  return std::get<List>(data_);
}

Value::Object& Value::members_mut() {
  if (!is_object()) data_ = Object{};
  return std::get<Object>(data_);
}

const Value* Value::find(std::string_view name) const {
  for (const auto& member : members())
    if (member.first == name) return &member.second;
  return nullptr;
}

const Value& Value::operator[](std::string_view name) const {
  const Value* found = find(name);
  return found != nullptr ? *found : null_value;
}

Value& Value::set(std::string_view name, Value value) {
  for (auto& member : members_mut())
    if (member.first == name) {
      member.second = std::move(value);
      return *this;
    }
  members_mut().emplace_back(std::string(name), std::move(value));
  return *this;
}

Value& Value::push(Value value) {
  items_mut().push_back(std::move(value));
  return *this;
}

std::string Value::to_string() const {
  switch (kind()) {
    case Kind::null:
      return "unknown";
    case Kind::boolean:
      return as_bool() ? "yes" : "no";
    case Kind::integer:
      return std::to_string(as_int());
    case Kind::real:
      return fmt::format("{:.6g}", as_real());
    case Kind::text:
      return std::string(as_text());
    case Kind::list: {
      std::string out;
      for (const auto& item : items()) out += (out.empty() ? "" : ", ") + item.to_string();
      return out;
    }
    case Kind::object: {
      std::string out;
      for (const auto& [name, value] : members()) out += (out.empty() ? "" : ", ") + name + " " + value.to_string();
      return out;
    }
  }
  return {};
}

}  // namespace ff
