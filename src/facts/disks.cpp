#include "facts/subjects.h"

namespace ff::facts {
namespace {

/// A size column of `df`: plain numbers count in `unit` bytes, "1.8T" in powers of 1024.
std::optional<std::uint64_t> size_of(std::string_view s, std::uint64_t unit) {
  if (s.empty()) return std::nullopt;
  if (const auto number = to_integer<std::uint64_t>(s)) {
    if (*number > (std::uint64_t{1} << 50)) return std::nullopt;
    return *number * unit;
  }
  constexpr std::string_view letters = "KMGTP";
  const auto power = letters.find(s.back());
  const auto number = to_real(s.substr(0, s.size() - 1));
  if (power == std::string_view::npos || !number || *number < 0 || *number > 1e6) return std::nullopt;
  return static_cast<std::uint64_t>(*number * static_cast<double>(std::uint64_t{1} << (10 * (power + 1))));
}

void read_df(Machine& machine, const Evidence& evidence) {
  for (const auto& [source, text] : evidence.outputs("df")) {
    std::uint64_t number = 0;
    std::uint64_t unit = 1024;
    for (const std::string_view line : lines(text)) {
      ++number;
      const auto parts = words(line);
      if (parts.size() >= 2 && parts[0] == "Filesystem") {
        unit = parts[1] == "1M-blocks" ? 1024 * 1024 : parts[1] == "1B-blocks" ? 1 : 1024;
        continue;
      }
      if (parts.size() != 6 || !parts[4].ends_with('%')) continue;
      const auto total = size_of(parts[1], unit);
      const auto free = size_of(parts[3], unit);
      if (!total || !free) continue;
      Disk disk;
      disk.purpose = parts[5] == "/dev/shm" ? "shm" : parts[5] == "/" ? "root" : "mount";
      disk.path = parts[5];
      disk.total_bytes = {*total, evidence.origin(source, number, line)};
      disk.free_bytes = {*free, disk.total_bytes.origin};
      if (disk.purpose == "shm" && !machine.container.shm_bytes) machine.container.shm_bytes = disk.total_bytes;
      machine.disks.push_back(std::move(disk));
    }
  }
}

}  // namespace

void read_disks(Machine& machine, const Evidence& evidence) {
  for (const Value& entry : evidence.capture().probe("disks").items()) {
    Disk disk;
    disk.purpose = entry["purpose"].as_text();
    disk.path = entry["path"].as_text();
    const auto from = [&](std::string_view name) {
      return evidence.origin("probe/disks", 0, disk.path + ": " + std::string(name) + " " + entry[name].to_string());
    };
    const auto bytes = [&](std::string_view name) -> Known<std::uint64_t> {
      if (entry[name].kind() != Value::Kind::integer) return {};
      return {static_cast<std::uint64_t>(entry[name].as_int()), from(name)};
    };
    disk.free_bytes = bytes("free_bytes");
    disk.total_bytes = bytes("total_bytes");
    // File systems that make inodes as needed report none at all.
    if (entry["total_inodes"].as_int(1) != 0) disk.free_inodes = bytes("free_inodes");
    if (entry["writable"].kind() == Value::Kind::boolean) disk.writable = {entry["writable"].as_bool(), from("writable")};
    if (const auto options = entry["options"].as_text(); !options.empty()) disk.options = {std::string(options), from("options")};
    machine.disks.push_back(std::move(disk));
  }
  read_df(machine, evidence);
}

}  // namespace ff::facts
