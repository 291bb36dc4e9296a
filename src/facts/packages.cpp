#include "facts/subjects.h"

namespace ff::facts {
namespace {

/// "libhsa:amd64" without its architecture.
std::string_view package_name(std::string_view s) { return s.substr(0, s.find(':')); }

void add(Machine& machine, std::string_view name, std::string_view version, Origin origin) {
  if (name.empty() || version.empty()) return;
  machine.packages[std::string(package_name(name))] = {std::string(version), std::move(origin)};
}

template <class Line>
void each_line(const Evidence& evidence, std::string_view command, const Line& line_function) {
  for (const auto& [source, text] : evidence.outputs(command)) {
    std::uint64_t number = 0;
    for (const std::string_view line : lines(text)) {
      ++number;
      if (!trim(line).empty()) line_function(line, evidence.origin(source, number, line));
    }
  }
}

/// "rocm-core-7.0.2.70002-1.el9.x86_64": name, version-release, architecture.
void add_rpm_name(Machine& machine, std::string_view line, Origin origin) {
  std::string_view s = trim(line);
  constexpr std::string_view architectures[] = {".x86_64", ".noarch", ".aarch64", ".i686"};
  for (const auto architecture : architectures)
    if (s.ends_with(architecture)) s.remove_suffix(architecture.size());
  const auto release = s.rfind('-');
  if (release == std::string_view::npos || release == 0) return;
  const auto version = s.rfind('-', release - 1);
  if (version == std::string_view::npos) return;
  add(machine, s.substr(0, version), s.substr(version + 1), std::move(origin));
}

}  // namespace

void read_packages(Machine& machine, const Evidence& evidence) {
  // A third column, when there, is dpkg's state: "ii " installed, "rc " removed with its configuration left.
  each_line(evidence, "dpkg", [&](std::string_view line, Origin origin) {
    const auto fields = split(line, '\t');
    if (fields.size() < 2 || (fields.size() > 2 && !trim(fields[2]).starts_with("ii"))) return;
    add(machine, trim(fields[0]), trim(fields[1]), std::move(origin));
  });
  each_line(evidence, "dpkg-l", [&](std::string_view line, Origin origin) {
    const auto fields = words(line);
    if (fields.size() >= 3 && fields[0] == "ii") add(machine, fields[1], fields[2], std::move(origin));
  });
  each_line(evidence, "rpm", [&](std::string_view line, Origin origin) {
    const auto fields = split(line, '\t');
    if (fields.size() >= 2) add(machine, trim(fields[0]), trim(fields[1]), std::move(origin));
  });
  each_line(evidence, "rpm-qa", [&](std::string_view line, Origin origin) { add_rpm_name(machine, line, std::move(origin)); });
}

}  // namespace ff::facts
