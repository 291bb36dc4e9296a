#include "capture/emitter.h"

#include <cstring>

#include "base/file.h"
#include "base/text.h"

namespace ff::capture {
namespace {

constexpr std::size_t header_bytes = 1 + 4 + 4;
constexpr std::size_t flush_above_bytes = 32768;

void append_u32(std::string& out, std::size_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  char bytes[4];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

std::size_t read_u32(std::string_view s) {
  std::uint32_t number = 0;
  std::memcpy(&number, s.data(), sizeof number);
  return number;
}

}  // namespace

void Emitter::message(char kind, std::string_view name, std::string_view data) {
  buffer_ += kind;
  append_u32(buffer_, name.size());
  append_u32(buffer_, data.size());
  buffer_ += name;
  buffer_ += data;
  if (buffer_.size() > flush_above_bytes) flush();
}

void Emitter::flush() {
  if (!buffer_.empty()) write_all(descriptor_, buffer_);
  buffer_.clear();
}

bool Emitter::begin(std::string_view path) {
  if (done_.contains(path)) return false;
  if (!path.ends_with('/') && !begun_.emplace(path).second) return false;
  message('b', path, {});
  flush();  // the parent must know where we are before we may stop answering
  return true;
}

void Emitter::file(std::string_view path, std::string_view content) { message('f', path, content); }
void Emitter::link(std::string_view path, std::string_view target) { message('l', path, target); }
void Emitter::stat(std::string_view path, const NodeStat& stat) { message('s', path, to_json(stat_to_value(stat))); }
void Emitter::error(std::string_view path, int error_number) { message('e', path, std::to_string(error_number)); }
void Emitter::truncated(std::string_view path, std::uint64_t size_bytes) { message('t', path, std::to_string(size_bytes)); }
void Emitter::probe(std::string_view name, const Value& answer) { message('p', name, to_json(answer)); }
void Emitter::command_output(std::string_view name, std::string_view out) { message('o', name, out); }
void Emitter::command_error(std::string_view name, int error_number) { message('x', name, std::to_string(error_number)); }

void join_values(Value& into, const Value& newer) {
  if (into.is_object() && newer.is_object()) {
    for (const auto& [name, value] : newer.members()) {
      Value* existing = nullptr;
      for (auto& [key, old] : into.members_mut())
        if (key == name) existing = &old;
      if (existing != nullptr)
        join_values(*existing, value);
      else
        into.set(name, value);
    }
  } else if (into.is_list() && newer.is_list()) {
    for (const Value& item : newer.items()) into.push(item);
  } else {
    into = newer;
  }
}

Received receive(std::string_view stream, bool ended_well, Capture& capture) {
  Received received;
  const auto number = [](std::string_view text) { return to_integer<int>(text).value_or(0); };
  while (stream.size() >= header_bytes) {
    const char kind = stream[0];
    const std::size_t name_size = read_u32(stream.substr(1));
    const std::size_t data_size = read_u32(stream.substr(5));
    if (stream.size() - header_bytes < name_size || stream.size() - header_bytes - name_size < data_size) break;
    const std::string_view name = stream.substr(header_bytes, name_size);
    const std::string_view data = stream.substr(header_bytes + name_size, data_size);
    stream.remove_prefix(header_bytes + name_size + data_size);
    switch (kind) {
      case 'b':
        received.begun.emplace(name);
        received.last_begun = std::string(name);
        break;
      case 'f':
        capture.add_file(name, std::string(data));
        break;
      case 'l':
        capture.add_link(name, std::string(data));
        break;
      case 's':
        if (const auto value = parse_json(data)) capture.add_stat(name, stat_from_value(*value));
        break;
      case 'e':
        capture.add_error(name, number(data));
        break;
      case 't': {
        Value all = capture.probe("truncated");
        all.set(name, to_integer<std::int64_t>(data).value_or(0));
        capture.add_probe("truncated", std::move(all));
        break;
      }
      case 'p':
        if (const auto value = parse_json(data)) {
          Value all = capture.probe(name);
          if (all.is_null())
            all = *value;
          else
            join_values(all, *value);
          capture.add_probe(name, std::move(all));
        }
        break;
      case 'o': {
        CommandOutput output;
        if (const CommandOutput* old = capture.command(name)) output = *old;
        output.out = data;
        output.exit_status = 0;
        capture.add_command(name, std::move(output));
        break;
      }
      case 'x': {
        CommandOutput output;
        if (const CommandOutput* old = capture.command(name)) output = *old;
        output.start_errno = number(data);
        capture.add_command(name, std::move(output));
        break;
      }
      default:
        break;
    }
  }
  if (ended_well) received.last_begun.reset();
  return received;
}

Value stat_to_value(const NodeStat& stat) {
  Value value = Value::object({{"type", std::string(1, stat.type)}, {"mode", stat.mode}, {"uid", stat.uid}, {"gid", stat.gid}});
  if (!stat.user.empty()) value.set("user", stat.user);
  if (!stat.group.empty()) value.set("group", stat.group);
  if (stat.size_bytes != 0) value.set("size_bytes", stat.size_bytes);
  if (stat.type == 'c' || stat.type == 'b') {
    value.set("major", stat.major);
    value.set("minor", stat.minor);
  }
  if (!stat.acl.empty()) value.set("acl", stat.acl);
  return value;
}

NodeStat stat_from_value(const Value& value) {
  const auto number = [&](std::string_view name) {
    const std::int64_t v = value[name].as_int();
    return v >= 0 && v <= 0xFFFFFFFFLL ? static_cast<std::uint32_t>(v) : 0;
  };
  NodeStat stat;
  if (const auto type = value["type"].as_text(); type.size() == 1) stat.type = type[0];
  stat.mode = number("mode");
  stat.uid = number("uid");
  stat.gid = number("gid");
  stat.user = value["user"].as_text();
  stat.group = value["group"].as_text();
  if (value["size_bytes"].is_text())  // above INT64_MAX
    stat.size_bytes = to_integer<std::uint64_t>(value["size_bytes"].as_text()).value_or(0);
  else
    stat.size_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(value["size_bytes"].as_int(), 0));
  stat.major = number("major");
  stat.minor = number("minor");
  stat.acl = value["acl"].as_text();
  return stat;
}

}  // namespace ff::capture
