#include "capture/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "capture/emitter.h"

namespace ff::capture {
namespace {

/// A name that can stand as it is: no odd parts, nothing that a file system or a reader would change, UTF-8.
bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() > 1024 || path.find('\0') != std::string_view::npos || path.find('\\') != std::string_view::npos)
    return false;
  if (to_utf8(path) != path) return false;
  for (const std::string_view part : split(path.substr(1), '/'))
    if (part.empty() || part == "." || part == ".." || part.size() > 200) return false;
  return true;
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > 100 || name.starts_with('.')) return false;
  for (const char c : name)
    if (std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.#").find(c) == std::string_view::npos) return false;
  return true;
}

/// True when the files hold something below `path` as well: then it cannot be a file on disk.
bool is_also_directory(const Capture& capture, const std::string& path) {
  const auto it = capture.files().lower_bound(path + "/");
  return it != capture.files().end() && it->first.starts_with(path + "/");
}

Value status_of(const CommandOutput& output) {
  Value out = Value::object();
  out.set("exit_status", output.exit_status ? Value(*output.exit_status) : Value());
  if (output.signal) out.set("signal", *output.signal);
  if (output.timed_out) out.set("timed_out", true);
  if (output.start_errno != 0) {
    out.set("start_errno", output.start_errno);
    out.set("start_error", errno_name(output.start_errno));
  }
  return out;
}

int to_int(const Value& value) {
  const std::int64_t number = value.as_int();
  return number >= -2147483647 && number <= 2147483647 ? static_cast<int>(number) : 0;
}

const std::string* find(const Members& members, const std::string& name) {
  const auto it = members.find(name);
  return it != members.end() ? &it->second : nullptr;
}

Result<Value> member_json(const Members& members, const std::string& member, std::string_view name) {
  const std::string* text = find(members, member);
  if (text == nullptr) return fail("is missing", std::string(name) + ": " + member);
  return parse_json(*text, std::string(name) + ": " + member);
}

}  // namespace

Members to_members(const Capture& capture) {
  Members members;
  Value renamed = Value::object();  // member -> path or name, where they differ
  std::size_t odd = 0;
  const auto place = [&](std::string wanted, bool plain, std::string_view path) {
    if (plain) return wanted;
    std::string member = "odd/" + std::to_string(odd++);
    renamed.set(member, path);
    return member;
  };
  for (const auto& [path, content] : capture.files())
    members[place("fs" + path, is_plain_path(path) && !is_also_directory(capture, path), path)] = content;

  Value command_names = Value::object();
  std::size_t number = 0;
  for (const auto& [name, output] : capture.all_commands()) {
    const std::string directory = "cmd/" + (is_plain_name(name) ? name : "odd-" + std::to_string(number++));
    command_names.set(directory, name);
    members[directory + "/argv.json"] = to_json(Value::list_of(output.argv)) + "\n";
    members[directory + "/status.json"] = to_json(status_of(output)) + "\n";
    members[directory + "/stdout"] = output.out;
    if (!output.err.empty()) members[directory + "/stderr"] = output.err;
  }
  Value text_names = Value::object();
  number = 0;
  for (const auto& [name, content] : capture.texts()) {
    const std::string member = "text/" + (is_plain_name(name) ? name : "odd-" + std::to_string(number++));
    text_names.set(member, name);
    members[member] = content;
  }

  Value links = Value::object(), stats = Value::object(), errors = Value::object(), probes = Value::object();
  for (const auto& [path, target] : capture.links()) links.set(path, target);
  for (const auto& [path, stat] : capture.stats()) stats.set(path, stat_to_value(stat));
  for (const auto& [path, error] : capture.errors()) errors.set(path, Value::object({{"errno", error}, {"name", errno_name(error)}}));
  for (const auto& [name, answer] : capture.probes()) probes.set(name, answer);
  Value manifest = Value::object({{"schema", manifest_schema}, {"kind", capture.kind()}, {"about", capture.about()}});
  manifest.set("commands", command_names);
  if (!text_names.members().empty()) manifest.set("texts", text_names);
  if (!renamed.members().empty()) manifest.set("members", renamed);
  manifest.set("errors", errors);
  manifest.set("links", links);
  manifest.set("stats", stats);
  manifest.set("probes", probes);
  members["manifest.json"] = to_json(manifest, 1) + "\n";
  return members;
}

Result<Capture> from_members(const Members& members, std::string_view name) {
  const auto manifest = member_json(members, "manifest.json", name);
  if (!manifest) return std::unexpected(manifest.error());
  const std::string where = std::string(name) + ": manifest.json";
  if ((*manifest)["schema"].as_text() != manifest_schema)
    return fail("its schema is not " + std::string(manifest_schema), where, "take the capture again with this version of firstfault");

  Capture capture;
  capture.set_kind((*manifest)["kind"].as_text() == "loose" ? "loose" : "bundle");
  capture.about_mut() = (*manifest)["about"];
  for (const auto& [path, target] : (*manifest)["links"].members()) capture.add_link(path, std::string(target.as_text()));
  for (const auto& [path, stat] : (*manifest)["stats"].members()) capture.add_stat(path, stat_from_value(stat));
  for (const auto& [path, error] : (*manifest)["errors"].members()) capture.add_error(path, to_int(error["errno"]));
  for (const auto& [probe, answer] : (*manifest)["probes"].members()) capture.add_probe(probe, answer);

  const Value& renamed = (*manifest)["members"];
  for (const auto& [member, content] : members) {
    if (const Value* path = renamed.find(member); path != nullptr)
      capture.add_file(path->as_text(), content);
    else if (member.starts_with("fs/"))
      capture.add_file(std::string_view(member).substr(2), content);
  }
  for (const auto& [directory, command] : (*manifest)["commands"].members()) {
    const auto status = member_json(members, directory + "/status.json", name);
    if (!status) return std::unexpected(status.error());
    const auto argv = member_json(members, directory + "/argv.json", name);
    if (!argv) return std::unexpected(argv.error());
    CommandOutput output;
    for (const Value& argument : argv->items()) output.argv.emplace_back(argument.as_text());
    if ((*status)["exit_status"].is_number()) output.exit_status = to_int((*status)["exit_status"]);
    if ((*status)["signal"].is_number()) output.signal = to_int((*status)["signal"]);
    output.timed_out = (*status)["timed_out"].as_bool();
    output.start_errno = to_int((*status)["start_errno"]);
    if (const std::string* out = find(members, directory + "/stdout")) output.out = *out;
    if (const std::string* err = find(members, directory + "/stderr")) output.err = *err;
    capture.add_command(command.as_text(), std::move(output));
  }
  for (const auto& [member, text] : (*manifest)["texts"].members())
    if (const std::string* content = find(members, member)) capture.add_text(text.as_text(), *content);
  return capture;
}

namespace {

Result<void> store_directory(const Members& members, const std::filesystem::path& target) {
  std::error_code error;
  if (std::filesystem::exists(target, error) && !(std::filesystem::is_directory(target, error) && std::filesystem::is_empty(target, error)))
    return usage_error("exists already", target.string(), "choose a new directory with -o");
  const std::filesystem::path temporary = temporary_beside(target);
  const RemovedOnInterrupt unfinished(temporary);
  {
    const auto hold = hold_interrupts();
    std::filesystem::create_directories(temporary, error);
  }
  if (error) return fail("cannot create the directory: " + error.message(), target.string(), "choose another place with -o");
  std::string last_directory, problem;
  for (const auto& [member, content] : members) {
    const auto hold = hold_interrupts();  // an interrupt takes away what was written, and nothing is written after it
    const std::filesystem::path path = temporary / member;
    if (const std::string directory = path.parent_path().string(); directory != last_directory) {
      std::filesystem::create_directories(directory, error);
      last_directory = directory;
    }
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    int number = descriptor < 0 ? errno : write_all(descriptor, content);
    if (descriptor >= 0 && ::close(descriptor) != 0 && number == 0) number = errno;
    if (number != 0) {
      problem = member + ": " + errno_text(number);
      break;
    }
  }
  if (problem.empty()) {
    const auto hold = hold_interrupts();                // no half of it gets the name
    std::filesystem::rename(temporary, target, error);  // replaces an empty directory
    if (error) problem = error.message();
  }
  if (!problem.empty()) {
    std::filesystem::remove_all(temporary, error);
    return fail("cannot be written: " + problem, target.string());
  }
  return {};
}

}  // namespace

Result<void> store(const Capture& capture, const std::filesystem::path& target) {
  std::filesystem::path cleaned = target.lexically_normal();
  if (cleaned.filename().empty()) cleaned = cleaned.parent_path();
  const std::string name = cleaned.filename().string();
  const Members members = to_members(capture);
  if (name.ends_with(".tar.zst")) return write_archive(cleaned, members);
  for (const std::string_view other : {".tar", ".tar.gz", ".tgz", ".zip", ".tar.xz", ".zst"})
    if (name.ends_with(other))
      return usage_error("captures are written as a directory or as .tar.zst", cleaned.string(), "use a name that ends in .tar.zst");
  return store_directory(members, cleaned);
}

}  // namespace ff::capture
