#include "capture/capture.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace ff::capture {
namespace {

template <class Map>
auto find(const Map& map, std::string_view key) -> const typename Map::mapped_type* {
  const auto it = map.find(key);
  return it != map.end() ? &it->second : nullptr;
}

/// True when the map holds something below `directory` (which ends in '/').
template <class Map>
bool has_below(const Map& map, std::string_view directory) {
  const auto it = map.lower_bound(directory);
  return it != map.end() && it->first.starts_with(directory);
}

template <class Map>
void collect_names(const Map& map, std::string_view directory, std::set<std::string>& names) {
  for (auto it = map.lower_bound(directory); it != map.end() && it->first.starts_with(directory); ++it) {
    const std::string_view rest = std::string_view(it->first).substr(directory.size());
    const std::string_view name = rest.substr(0, rest.find('/'));
    if (!name.empty()) names.emplace(name);
  }
}

template <class Map>
void erase_tree(Map& map, std::string_view path) {
  std::erase_if(map, [&](const auto& entry) {
    return entry.first == path || (entry.first.size() > path.size() && entry.first.starts_with(path) && entry.first[path.size()] == '/');
  });
}

bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const auto digits = [](std::string_view s) { return std::min(s.find_first_not_of("0123456789"), s.size()); };
    const auto x = digits(a);
    const auto y = digits(b);
    if (x != 0 && y != 0) {
      const auto left = a.substr(std::min(a.find_first_not_of('0'), x), x - std::min(a.find_first_not_of('0'), x));
      const auto right = b.substr(std::min(b.find_first_not_of('0'), y), y - std::min(b.find_first_not_of('0'), y));
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      a.remove_prefix(x);
      b.remove_prefix(y);
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

}  // namespace

std::optional<std::string_view> Capture::file(std::string_view path) const {
  const auto* content = find(files_, path);
  if (content == nullptr) return std::nullopt;
  return *content;
}

std::optional<std::string_view> Capture::value(std::string_view path) const {
  const auto content = file(path);
  if (!content) return std::nullopt;
  return trim(*content);
}

std::optional<std::string_view> Capture::link(std::string_view path) const {
  const auto* target = find(links_, path);
  if (target == nullptr) return std::nullopt;
  return *target;
}

const NodeStat* Capture::stat(std::string_view path) const { return find(stats_, path); }

std::optional<int> Capture::error_of(std::string_view path) const {
  const auto* error = find(errors_, path);
  if (error == nullptr) return std::nullopt;
  return *error;
}

bool Capture::exists(std::string_view path) const {
  if (files_.contains(path) || links_.contains(path) || stats_.contains(path)) return true;
  const std::string below = std::string(path) + "/";
  return has_below(files_, below) || has_below(links_, below) || has_below(stats_, below);
}

std::vector<std::string> Capture::list(std::string_view directory) const {
  std::string prefix(directory);
  if (!prefix.ends_with('/')) prefix += '/';
  std::set<std::string> names;
  collect_names(files_, prefix, names);
  collect_names(links_, prefix, names);
  collect_names(stats_, prefix, names);
  std::vector<std::string> out(names.begin(), names.end());
  std::ranges::sort(out, natural_less);
  return out;
}

const CommandOutput* Capture::command(std::string_view name) const { return find(commands_, name); }

std::vector<std::string> Capture::commands() const {
  std::vector<std::string> out;
  for (const auto& [name, output] : commands_) out.push_back(name);
  return out;
}

bool Capture::known_absent(std::string_view path) const { return error_of(path) == ENOENT && !exists(path); }

const Value& Capture::probe(std::string_view name) const {
  static const Value none;
  const auto* answer = find(probes_, name);
  return answer != nullptr ? *answer : none;
}

void Capture::add_file(std::string_view path, std::string content) { files_[std::string(path)] = std::move(content); }
void Capture::add_link(std::string_view path, std::string target) { links_[std::string(path)] = std::move(target); }
void Capture::add_stat(std::string_view path, NodeStat stat) { stats_[std::string(path)] = std::move(stat); }
void Capture::add_error(std::string_view path, int error_number) { errors_[std::string(path)] = error_number; }
void Capture::add_command(std::string_view name, CommandOutput output) { commands_[std::string(name)] = std::move(output); }
void Capture::add_probe(std::string_view name, Value answer) { probes_[std::string(name)] = std::move(answer); }
void Capture::remove_probe(std::string_view name) {
  std::erase_if(probes_, [&](const auto& entry) { return entry.first == name; });
}
void Capture::add_text(std::string_view name, std::string content) { texts_[std::string(name)] = std::move(content); }

void Capture::remove(std::string_view path) {
  erase_tree(files_, path);
  erase_tree(links_, path);
  erase_tree(stats_, path);
  erase_tree(errors_, path);
}

}  // namespace ff::capture
