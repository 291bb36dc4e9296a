#include "capture/loose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "capture/loose_text.h"
#include "capture/one_machine.h"
#include "capture/recognise.h"
#include "capture/redact.h"

namespace ff::capture {
namespace {

bool is_number(std::string_view s) {
  return !s.empty() && s.size() < 10 && std::ranges::all_of(s, [](unsigned char c) { return std::isdigit(c) != 0; });
}
bool is_card(std::string_view s) { return s.starts_with("card") && is_number(s.substr(4)); }

std::string join_from(const std::vector<std::string_view>& parts, std::size_t first) {
  std::string out;
  for (std::size_t i = first; i < parts.size(); ++i) out += "/" + std::string(parts[i]);
  return out;
}
std::string join_until(const std::vector<std::string_view>& parts, std::size_t end) {
  std::string out;
  for (std::size_t i = 0; i < end; ++i) out += std::string(parts[i]) + "/";
  return out;
}

/// Where a file of a copied tree belongs on the machine, and the directory that the tree was copied to.
struct Place {
  std::string path;  ///< "/sys/class/kfd/kfd/topology/nodes/1/properties"
  std::string base;  ///< "bundle/kfd/"
};

/// The directories of a Linux system in which a copied file can be told by its path alone.
std::optional<Place> absolute_place(const std::vector<std::string_view>& parts) {
  constexpr std::array sys{"class", "bus", "module", "devices", "kernel", "firmware", "block", "fs", "hypervisor"};
  constexpr std::array proc{"cmdline", "version", "modules", "meminfo", "cpuinfo", "sys", "self", "swaps", "uptime", "loadavg", "mounts", "driver"};
  constexpr std::array etc{"os-release", "modprobe.d", "group", "wsl.conf", "ld.so.conf", "ld.so.conf.d", "modules-load.d", "default", "security"};
  const auto has = [](const auto& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string_view next = parts[i + 1];
    if ((parts[i] == "sys" && has(sys, next)) || (parts[i] == "proc" && has(proc, next)) || (parts[i] == "etc" && has(etc, next)))
      return Place{join_from(parts, i), join_until(parts, i)};
  }
  return std::nullopt;
}

/// Bases below which a KFD topology or DRM cards lie.
struct Trees {
  std::vector<std::string> kfd;    ///< directory that holds "nodes"
  std::vector<std::string> cards;  ///< directory that holds "cardN"
};

Trees find_trees(const Members& files) {
  Trees trees;
  const auto add = [](std::vector<std::string>& list, std::string base) {
    if (std::ranges::find(list, base) == list.end()) list.push_back(std::move(base));
  };
  for (const auto& [name, content] : files) {
    const auto parts = split(name, '/');
    if (absolute_place(parts)) continue;
    for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
      if (parts[i] == "nodes" && is_number(parts[i + 1])) {
        const bool node = parts[i + 2] == "properties" && parts.size() == i + 3 && contains(content, "simd_count");
        const bool part = (parts[i + 2] == "io_links" || parts[i + 2] == "p2p_links" || parts[i + 2] == "mem_banks" || parts[i + 2] == "caches") &&
                          parts.back() == "properties";
        if (node || part) add(trees.kfd, join_until(parts, i));
      }
      if (is_card(parts[i]) && parts[i + 1] == "device") add(trees.cards, join_until(parts, i));
    }
  }
  return trees;
}

std::optional<Place> place_of(std::string_view name, const Trees& trees) {
  const auto parts = split(name, '/');
  if (auto place = absolute_place(parts)) return place;
  for (const std::string& base : trees.kfd) {
    if (!name.starts_with(base)) continue;
    const std::string_view rest = name.substr(base.size());
    if (rest.starts_with("nodes/") || rest == "generation_id" || rest == "system_properties")
      return Place{"/sys/class/kfd/kfd/topology/" + std::string(rest), base};
  }
  // A copy of /sys/class/kfd/kfd has more than the topology.
  for (const std::string& base : trees.kfd) {
    constexpr std::string_view topology = "topology/";
    if (!base.ends_with(topology) || !name.starts_with(base.substr(0, base.size() - topology.size()))) continue;
    const std::string_view rest = name.substr(base.size() - topology.size());
    if (rest == "dev" || rest == "uevent" || rest.starts_with("proc/")) return Place{"/sys/class/kfd/kfd/" + std::string(rest), base};
  }
  for (const std::string& base : trees.cards) {
    if (!name.starts_with(base)) continue;
    const std::string_view rest = name.substr(base.size());
    if (is_card(rest.substr(0, rest.find('/'))) && rest.find('/') != std::string_view::npos)
      return Place{"/sys/class/drm/" + std::string(rest), base};
  }
  return std::nullopt;
}

/// sysfs says 4096 for the size of every file, and some copying programs fill up to that with zeros. Text ends at the
/// first of them; binary files (PCI configuration, gpu_metrics) stay as they are.
std::string without_padding(const std::string& content) {
  const auto end = content.find('\0');
  if (end == std::string::npos || content.size() != 4096 || content.find_first_not_of('\0', end) != std::string::npos) return content;
  const bool text =
      std::ranges::all_of(std::string_view(content).substr(0, end), [](unsigned char c) { return c >= 0x20 || c == '\n' || c == '\t'; });
  return text ? content.substr(0, end) : content;
}

void ignore(Capture& capture, std::string_view name, std::string_view why) {
  Value all = capture.about()["ignored"];
  all.push(Value::object({{"name", name}, {"why", why}}));
  capture.about_mut().set("ignored", std::move(all));
}

}  // namespace

std::string tree_prefix(std::string_view directory) {
  const auto parts = split(directory, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const bool sys =
        parts[i] == "sys" && !last && (parts[i + 1] == "class" || parts[i + 1] == "bus" || parts[i + 1] == "devices" || parts[i + 1] == "module");
    const bool node = parts[i] == "nodes" && (last || is_number(parts[i + 1]));
    const bool card = is_card(parts[i]) && (last || parts[i + 1] == "device");
    if (sys || node || card) return join_from(parts, i).substr(1) + "/";
  }
  return {};
}

Result<void> add_loose(const Members& files, Capture& capture) {
  const Trees trees = find_trees(files);
  std::map<std::string, std::string, std::less<>> taken;  // path -> base it came from
  Value::Object sources;                                  // of the trees: too many to note one by one
  for (const auto& [name, content] : files) {
    if (const auto place = place_of(name, trees)) {
      const auto [it, fresh] = taken.emplace(place->path, place->base);
      if (!fresh && it->second != place->base)
        return fail("two machines in one: both " + it->second + " and " + place->base + " hold " + place->path, name,
                    "give the files of one machine at a time");
      capture.add_file(place->path, place->path.starts_with("/sys/") ? without_padding(content) : redact_text(content));
      if (fresh) sources.emplace_back(place->path, Value::object({{"name", name}, {"line", 1}}));
      continue;
    }
    const TextKind kind = recognise(content);
    if (kind == TextKind::binary) {
      ignore(capture, name, "binary");
      continue;
    }
    if (kind == TextKind::transcript) {
      add_transcript(content, name, capture);
      capture.add_text(name, redact_text(content));
      continue;
    }
    if (!add_recognised(kind, content, {name, 1, ""}, capture)) capture.add_text(name, redact_text(content));
  }
  if (!sources.empty()) {
    for (const auto& [item, source] : capture.probe("sources").members()) sources.emplace_back(item, source);
    capture.add_probe("sources", Value(std::move(sources)));
  }
  return check_one_machine(capture);
}

}  // namespace ff::capture
