// Where the dynamic loader looks beside the variables: /etc/ld.so.conf, from which ldconfig makes its cache.
#include <fnmatch.h>

#include <set>

#include "base/text.h"
#include "facts/subjects.h"

namespace ff::facts {
namespace {

/// `seen`: a file that includes itself is read once.
void read_configuration(Machine& machine, const Evidence& evidence, const std::string& path, std::set<std::string>& seen) {
  const auto text = evidence.text(path);
  if (!text || !seen.insert(path).second) return;
  std::uint64_t number = 0;
  for (std::string_view line : lines(*text)) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty() || line.starts_with("hwcap")) continue;
    if (const auto fields = words(line); fields.size() > 1 && fields[0] == "include") {
      // ldconfig includes what the patterns match, in the order of the names.
      for (std::size_t i = 1; i < fields.size(); ++i) {
        const auto slash = fields[i].rfind('/');
        if (slash == std::string_view::npos) continue;
        const std::string directory(fields[i].substr(0, slash));
        for (const auto& name : evidence.capture().list(directory))
          if (::fnmatch(std::string(fields[i].substr(slash + 1)).c_str(), name.c_str(), 0) == 0)
            read_configuration(machine, evidence, directory + "/" + name, seen);
      }
      continue;
    }
    machine.loader_directories.push_back({std::string(line.substr(0, line.find('='))), evidence.origin(path, number, line)});
  }
}

}  // namespace

void read_loader(Machine& machine, const Evidence& evidence) {
  std::set<std::string> seen;
  read_configuration(machine, evidence, "/etc/ld.so.conf", seen);
}

}  // namespace ff::facts
