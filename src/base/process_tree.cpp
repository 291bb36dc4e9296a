#include "base/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace ff {
namespace {

/// /proc/<pid>/stat: "12 (name that may hold blanks and brackets) S <parent> ...". 0: it is gone.
pid_t parent_of(const std::string& pid) {
  const auto text = read_file("/proc/" + pid + "/stat", 4096);
  if (!text) return 0;
  const auto end = text->rfind(')');
  if (end == std::string::npos) return 0;
  const auto fields = words(std::string_view(*text).substr(end + 1));
  return fields.size() < 2 ? 0 : to_integer<pid_t>(fields[1]).value_or(0);
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  if (DIR* proc = ::opendir("/proc"); proc != nullptr) {
    while (const dirent* entry = ::readdir(proc)) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
      const auto pid = to_integer<pid_t>(entry->d_name);
      if (!pid) continue;
      if (const pid_t parent = parent_of(entry->d_name); parent > 0) children.emplace(parent, *pid);
    }
    ::closedir(proc);
  }
  std::vector<pid_t> out;
  const auto add_children = [&](pid_t parent) {
    for (auto [at, end] = children.equal_range(parent); at != end; ++at) out.push_back(at->second);
  };
  add_children(root);
  for (std::size_t i = 0; i < out.size(); ++i) add_children(out[i]);
  return out;
}

void signal_tree(pid_t leader, int signal) {
  const auto started = descendants_of(leader);
  ::kill(-leader, signal);
  for (const pid_t pid : started)
    if (::getpgid(pid) != leader) ::kill(pid, signal);
}

}  // namespace ff
