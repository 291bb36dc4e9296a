#include <algorithm>
#include <set>

#include "facts/subjects.h"

namespace ff::facts {
namespace {

void read_user(Access& access, const Evidence& evidence) {
  const Value& user = evidence.capture().probe("user");
  if (!user.is_object()) return;
  access.user = known_member(evidence, "user", "name");
  access.uid = known_number<std::uint32_t>(evidence, "user", user["euid"].is_null() ? user["uid"] : user["euid"], "uid");
  access.gid = known_number<std::uint32_t>(evidence, "user", user["gid"], "gid");
  if (const Value* groups = user.find("groups")) {
    std::vector<std::string> text;
    for (const Value& group : groups->items()) {
      const auto gid = group["gid"].as_int(-1);
      if (gid < 0) continue;
      access.groups[static_cast<std::uint32_t>(gid)] = group["name"].as_text();
      text.push_back(group["gid"].to_string() + "(" + std::string(group["name"].as_text()) + ")");
    }
    access.groups_known = {true, evidence.origin("probe/user", 0, "groups: " + join(text, ", "))};
  }
  for (const Value& name : user["database_groups"].items()) access.database_groups.emplace_back(name.as_text());
  if (!access.database_groups.empty() || !access.user) return;
  // /etc/group: "render:x:992:ann,bob".
  for (const std::string_view line : lines(evidence.text("/etc/group").value_or(""))) {
    const auto fields = split(line, ':');
    if (fields.size() != 4) continue;
    const auto members = split(trim(fields[3]), ',');
    if (std::ranges::find(members, std::string_view(*access.user)) != members.end()) access.database_groups.emplace_back(fields[0]);
  }
}

DeviceNode read_node(const Evidence& evidence, const std::string& path) {
  const auto& capture = evidence.capture();
  DeviceNode node;
  node.path = path;
  node.absent_known = capture.known_absent(path);
  if (const auto* stat = capture.stat(path)) {
    node.exists = true;
    const auto from = [&](std::string text) { return evidence.origin(path, 0, text); };
    node.mode = {stat->mode, from("mode")};
    node.uid = {stat->uid, from("owner " + (stat->user.empty() ? std::to_string(stat->uid) : stat->user))};
    node.gid = {stat->gid, from("group " + (stat->group.empty() ? std::to_string(stat->gid) : stat->group))};
    if (!stat->group.empty()) node.group = {stat->group, node.gid.origin};
    node.acl = stat->acl;
  }
  const Value& answer = capture.probe("access")[path];
  if (answer["errno"].kind() == Value::Kind::integer) {
    const int number = static_cast<int>(answer["errno"].as_int());
    node.open_errno = {number, evidence.origin("probe/access", 0, path + ": " + (number == 0 ? "opens" : errno_text(number)))};
  } else if (const auto error = capture.error_of(path); error && !node.absent_known) {
    node.open_errno = {*error, evidence.origin(path, 0, errno_text(*error))};
    node.exists = true;
  }
  return node;
}

}  // namespace

void read_access(Machine& machine, const Evidence& evidence) {
  Access& access = machine.access;
  read_user(access, evidence);
  const auto& capture = evidence.capture();
  std::set<std::string> seen;
  std::vector<std::string> paths{"/dev/kfd"};
  for (const std::string& name : capture.list("/dev/dri"))
    if (number_after(name, "card") || number_after(name, "renderD")) paths.push_back("/dev/dri/" + name);
  for (const auto& [path, answer] : capture.probe("access").members()) paths.push_back(path);
  for (const auto& [path, error] : capture.errors())
    if (path.starts_with("/dev/dri/")) paths.push_back(path);
  for (const std::string& path : paths) {
    if (!seen.insert(path).second) continue;
    DeviceNode node = read_node(evidence, path);
    if (node.exists || node.absent_known) access.nodes.push_back(std::move(node));
  }
  const Value& mapped = capture.probe("user_namespace")["mapped"];
  if (mapped.kind() == Value::Kind::boolean) {
    access.user_namespace = {mapped.as_bool(), evidence.origin("probe/user_namespace", 0, "mapped: " + mapped.to_string())};
  } else if (const auto map = evidence.value("/proc/self/uid_map")) {
    // "0 0 4294967295": the whole range one to one.
    const auto parts = words(lines(*map).front());
    const bool whole = parts.size() == 3 && parts[0] == "0" && parts[1] == "0" && parts[2] == "4294967295";
    access.user_namespace = {!whole, evidence.origin("/proc/self/uid_map", 1, lines(*map).front())};
  }
}

}  // namespace ff::facts
