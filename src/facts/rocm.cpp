#include <algorithm>

#include "facts/subjects.h"

namespace ff::facts {
namespace {

/// "7.0.2-56" or "7.0.2.70002": the release is the first three numbers.
std::string release_of(std::string_view text) {
  const auto word = text.substr(0, text.find_first_of(" \n-"));
  const auto parts = split(word, '.');
  std::vector<std::string> out;
  for (const auto part : parts) {
    if (out.size() == 3 || part.empty() || part.find_first_not_of("0123456789") != std::string_view::npos) break;
    out.emplace_back(part);
  }
  return out.size() >= 2 ? join(out, ".") : std::string();
}

void read_probe(Machine& machine, const Evidence& evidence) {
  for (const Value& entry : evidence.capture().probe("rocm").items()) {
    RocmInstall install;
    install.root = entry["root"].as_text();
    install.kind = entry["kind"].as_text();
    install.link_to = entry["is_link_to"].as_text();
    const auto file = entry["version_file"].as_text();
    if (const auto version = entry["version"].as_text(); !version.empty())
      install.version = {std::string(version), evidence.origin(file.empty() ? std::string_view("probe/rocm") : file, file.empty() ? 0 : 1, version)};
    for (const auto& [soname, path] : entry["libraries"].members())
      install.libraries[soname] = {std::string(path.as_text()), evidence.origin("probe/rocm", 0, path.as_text())};
    for (const auto& [library, targets] : entry["kernel_targets"].members())
      for (const Value& target : targets.items()) install.kernel_targets[library].emplace_back(target.as_text());
    machine.rocm.push_back(std::move(install));
  }
}

}  // namespace

void read_rocm(Machine& machine, const Evidence& evidence) {
  read_probe(machine, evidence);
  const auto known = [&](std::string_view root) {
    return std::ranges::any_of(machine.rocm, [&](const auto& install) { return install.root == root; });
  };
  for (const std::string& name : evidence.capture().list("/opt")) {
    if (!name.starts_with("rocm")) continue;
    const std::string root = "/opt/" + name;
    if (known(root)) continue;
    RocmInstall install;
    install.root = root;
    install.kind = "system";
    if (const auto target = evidence.capture().link(root)) install.link_to = *target;
    // Another name of an installation that is listed already is no second one.
    if (known(install.link_to) || known("/opt/" + install.link_to)) continue;
    for (const char* file : {"/.info/version", "/.info/version-rocm"}) {
      const auto text = evidence.value(root + file);
      if (!text || install.version) continue;
      if (std::string release = release_of(*text); !release.empty()) install.version = {std::move(release), evidence.origin(root + file, 1, *text)};
    }
    if (install.version || !install.link_to.empty()) machine.rocm.push_back(std::move(install));
  }
  if (!machine.rocm.empty()) return;
  // Handed-over package lists name the release as well. Debian and Ubuntu have no rocm-core: their runtime counts.
  for (const char* package : {"rocm-core", "rocm-libs", "rocm-dev", "rocm", "libamdhip64-6", "libamdhip64-5", "libhsa-runtime64-1"}) {
    const auto it = machine.packages.find(package);
    if (it == machine.packages.end()) continue;
    const std::string release = release_of(*it->second);
    if (release.empty()) continue;
    RocmInstall install;
    const bool amd = std::string_view(package).starts_with("rocm");
    install.kind = amd ? "system" : "distribution";
    install.version = {release, it->second.origin};
    machine.rocm.push_back(std::move(install));
    return;
  }
}

}  // namespace ff::facts
