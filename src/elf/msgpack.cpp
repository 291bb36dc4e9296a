#include "elf/msgpack.h"

#include <msgpack.hpp>
#include <string>
#include <vector>

namespace ff::elf {
namespace {

/// msgpack-cxx's own objects reserve memory for the length that an array claims; this visitor appends what arrives.
class Builder : public msgpack::null_visitor {
 public:
  Value root;
  std::string problem;

  bool visit_nil() { return put(Value()); }
  bool visit_boolean(bool v) { return put(v); }
  bool visit_positive_integer(std::uint64_t v) { return put(v); }
  bool visit_negative_integer(std::int64_t v) { return put(v); }
  bool visit_float32(float v) { return put(static_cast<double>(v)); }
  bool visit_float64(double v) { return put(v); }
  bool visit_str(const char* v, std::uint32_t size) { return put(std::string(v, size)); }
  bool visit_bin(const char* v, std::uint32_t size) { return put(std::string(v, size)); }
  bool visit_ext(const char*, std::uint32_t) { return put(Value()); }
  bool start_array(std::uint32_t) { return open(Value::list()); }
  bool end_array() { return close(); }
  bool start_map(std::uint32_t) { return open(Value::object()); }
  bool end_map() { return close(); }
  bool start_map_key() {
    in_key_ = true;
    return true;
  }
  bool end_map_key() {
    in_key_ = false;
    return true;
  }
  void parse_error(std::size_t, std::size_t at) { problem = "no msgpack at byte " + std::to_string(at); }
  void insufficient_bytes(std::size_t, std::size_t) { problem = "msgpack cut short"; }

 private:
  bool open(Value container) {
    if (in_key_) return refuse("a msgpack map whose key is a container");
    if (stack_.size() >= msgpack_depth_limit) return refuse("msgpack nested too deep");
    stack_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return put(std::move(done));
  }
  bool put(Value value) {
    if (in_key_) {
      keys_.back() = value.is_text() ? std::string(value.as_text()) : value.to_string();
      return true;
    }
    if (stack_.empty())
      root = std::move(value);
    else if (stack_.back().is_list())
      stack_.back().items_mut().push_back(std::move(value));
    // Appended unchecked: a lookup per member would be quadratic; find() returns the first of two equal keys.
    else
      stack_.back().members_mut().emplace_back(std::move(keys_.back()), std::move(value));
    return true;
  }
  bool refuse(const char* why) {
    problem = why;
    return false;
  }

  std::vector<Value> stack_;
  std::vector<std::string> keys_;
  bool in_key_ = false;
};

}  // namespace

Result<Value> read_msgpack(Bytes bytes) {
  Builder builder;
  bool complete = false;
  std::size_t at = 0;
  try {
    complete = msgpack::parse(bytes.view().data(), bytes.view().size(), at, builder);
  } catch (const std::exception& e) {
    builder.problem = e.what();
  }
  if (!complete || !builder.problem.empty()) return fail(builder.problem.empty() ? "msgpack cut short" : builder.problem);
  return std::move(builder.root);
}

}  // namespace ff::elf
