#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "capture/probes.h"

namespace ff::capture {
namespace {

/// "name:x:gid:member,member" lines in which the user is a member.
std::vector<std::string> groups_with_member(std::string_view text, std::string_view user) {
  std::vector<std::string> out;
  for (const std::string_view line : lines(text)) {
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const auto members = split(fields[3], ',');
    if (std::ranges::find(members, user) != members.end()) out.emplace_back(fields[0]);
  }
  return out;
}

std::string hexadecimal_field(std::string_view status, std::string_view name) {
  for (const std::string_view line : lines(status))
    if (line.starts_with(name)) return std::string(trim(line.substr(name.size())));
  return {};
}

}  // namespace

/// The group database is the machine's files first and the name services after that: a directory service may not answer,
/// and then the local part has already been sent.
void probe_user(ProbeContext& context) {
  const auto user_text = read_file(context.path("/etc/passwd"), 16u << 20);
  const auto group = read_file(context.path("/etc/group"), 16u << 20);
  const auto users = parse_id_database(user_text ? *user_text : std::string());
  std::map<std::uint32_t, std::string> group_names;
  for (const auto& [id, name] : parse_id_database(group ? *group : std::string())) group_names.emplace(id, name);

  std::string name;
  for (const auto& [id, user] : users)
    if (id == ::geteuid()) name = user;

  if (context.emitter.begin("user: own")) {
    Value user = Value::object({{"uid", static_cast<unsigned>(::getuid())},
                                {"euid", static_cast<unsigned>(::geteuid())},
                                {"gid", static_cast<unsigned>(::getegid())},
                                {"name", name}});
    std::vector<gid_t> ids(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
    const int count = ::getgroups(static_cast<int>(ids.size()), ids.data());
    ids.resize(static_cast<std::size_t>(std::max(count, 0)));
    if (std::ranges::find(ids, ::getegid()) == ids.end()) ids.insert(ids.begin(), ::getegid());
    Value::List groups;
    for (const gid_t id : ids) {
      const auto it = group_names.find(id);
      groups.push_back(Value::object({{"gid", static_cast<unsigned>(id)}, {"name", it != group_names.end() ? it->second : std::string()}}));
    }
    user.set("groups", Value(std::move(groups)));
    Value::List database;
    if (!name.empty() && group)
      for (const std::string& in : groups_with_member(*group, name)) database.emplace_back(in);
    user.set("database_groups", Value(std::move(database)));
    if (const auto status = read_file("/proc/self/status", 65536)) user.set("capabilities", hexadecimal_field(*status, "CapEff:"));
    context.emitter.probe("user", user);
    context.emitter.flush();
  }

  // A user or groups that only a directory service knows.
  if (!context.live() || !context.emitter.begin("user: name services")) return;
  const struct passwd* entry = ::getpwuid(::geteuid());
  if (entry == nullptr) return;
  const std::string known = entry->pw_name;
  if (name.empty()) context.emitter.probe("user", Value::object({{"name", known}}));
  std::vector<gid_t> ids(256);
  int count = static_cast<int>(ids.size());
  if (::getgrouplist(known.c_str(), entry->pw_gid, ids.data(), &count) < 0) count = static_cast<int>(ids.size());
  ids.resize(static_cast<std::size_t>(std::max(count, 0)));
  const std::vector<std::string> local = group ? groups_with_member(*group, known) : std::vector<std::string>{};
  Value::List more;
  for (const gid_t id : ids) {
    auto it = group_names.find(id);
    if (it == group_names.end())
      if (const struct group* found = ::getgrgid(id)) it = group_names.emplace(id, found->gr_name).first;
    if (it != group_names.end() && std::ranges::find(local, it->second) == local.end()) more.emplace_back(it->second);
  }
  if (!more.empty()) context.emitter.probe("user", Value::object({{"database_groups", Value(std::move(more))}}));
}

}  // namespace ff::capture
