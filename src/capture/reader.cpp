#include "capture/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "capture/redact.h"

namespace ff::capture {
namespace {

/// A directory with more entries than this is no sysfs directory that we know; the rest is left out.
constexpr std::size_t most_names = 4096;

bool has_wildcard(std::string_view name) { return name.find_first_of("*?[") != std::string_view::npos; }

std::string_view name_of(const std::vector<std::pair<std::uint32_t, std::string>>& names, std::uint32_t id) {
  for (const auto& [number, name] : names)
    if (number == id) return name;
  return {};
}

}  // namespace

std::string below_root(std::string_view root, std::string_view path) {
  if (root.empty() || root == "/") return std::string(path);
  return std::string(root) + std::string(path);
}

std::vector<std::string> directory_names(const std::string& directory, int& error) {
  std::vector<std::string> names;
  error = 0;
  DIR* open = ::opendir(directory.c_str());
  if (open == nullptr) {
    error = errno;
    return names;
  }
  while (const dirent* entry = ::readdir(open)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    if (names.size() >= most_names) break;
  }
  ::closedir(open);
  std::ranges::sort(names);
  return names;
}

std::string acl_text(std::string_view bytes) {
  constexpr std::size_t header = 4, entry = 8;
  const auto u16 = [&](std::size_t at) {
    return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) | static_cast<unsigned char>(bytes[at + 1]) << 8);
  };
  const auto u32 = [&](std::size_t at) { return static_cast<std::uint32_t>(u16(at)) | static_cast<std::uint32_t>(u16(at + 2)) << 16; };
  if (bytes.size() < header || u32(0) != 2 || (bytes.size() - header) % entry != 0) return {};
  std::vector<std::string> parts;
  for (std::size_t at = header; at < bytes.size(); at += entry) {
    const auto permission = u16(at + 2);
    std::string text;
    switch (u16(at)) {
      case 0x01:
        text = "user::";
        break;
      case 0x02:
        text = "user:" + std::to_string(u32(at + 4)) + ":";
        break;
      case 0x04:
        text = "group::";
        break;
      case 0x08:
        text = "group:" + std::to_string(u32(at + 4)) + ":";
        break;
      case 0x10:
        text = "mask::";
        break;
      case 0x20:
        text = "other::";
        break;
      default:
        return {};
    }
    text += (permission & 4) != 0 ? 'r' : '-';
    text += (permission & 2) != 0 ? 'w' : '-';
    text += (permission & 1) != 0 ? 'x' : '-';
    parts.push_back(std::move(text));
  }
  return join(parts, ",");
}

int stat_of(const std::string& path, NodeStat& out) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return errno;
  switch (status.st_mode & S_IFMT) {
    case S_IFREG:
      out.type = 'f';
      break;
    case S_IFDIR:
      out.type = 'd';
      break;
    case S_IFCHR:
      out.type = 'c';
      break;
    case S_IFBLK:
      out.type = 'b';
      break;
    case S_IFLNK:
      out.type = 'l';
      break;
    case S_IFSOCK:
      out.type = 's';
      break;
    case S_IFIFO:
      out.type = 'p';
      break;
    default:
      out.type = '?';
  }
  out.mode = status.st_mode & 07777;
  out.uid = status.st_uid;
  out.gid = status.st_gid;
  if (out.type == 'f') out.size_bytes = static_cast<std::uint64_t>(status.st_size);
  if (out.type == 'c' || out.type == 'b') {
    out.major = major(status.st_rdev);
    out.minor = minor(status.st_rdev);
  }
  std::array<char, 4096> acl{};
  const ssize_t size = ::lgetxattr(path.c_str(), "system.posix_acl_access", acl.data(), acl.size());
  if (size > 0) out.acl = acl_text({acl.data(), static_cast<std::size_t>(size)});
  return 0;
}

std::vector<std::pair<std::uint32_t, std::string>> parse_id_database(std::string_view text) {
  std::vector<std::pair<std::uint32_t, std::string>> out;
  for (const std::string_view line : lines(text)) {
    const auto fields = split(line, ':');
    if (fields.size() < 3 || fields[0].empty()) continue;
    if (const auto number = to_integer<std::uint32_t>(fields[2])) out.emplace_back(*number, fields[0]);
  }
  return out;
}

Reader::Reader(std::string root, Emitter& emitter) : root_(std::move(root)), emitter_(emitter) {
  if (root_.size() > 1 && root_.ends_with('/')) root_.pop_back();
}

void Reader::read(const Item& item, std::string_view prefix) {
  std::string_view rest = item.pattern;
  std::string directory(prefix);
  if (rest.starts_with('/')) {
    rest.remove_prefix(1);
    directory.clear();
  }
  expand(directory, rest, item, false);
}

void Reader::leave_asleep(const Item& item, std::string_view prefix) {
  if (!has_wildcard(item.pattern)) emitter_.error(std::string(prefix) + "/" + std::string(item.pattern), EBUSY);
}

void Reader::read_all(std::span<const Item> items, std::string_view prefix, bool asleep) {
  for (const Item& item : items) {
    if (item.asks_hardware && asleep)
      leave_asleep(item, prefix);
    else
      read(item, prefix);
  }
}

void Reader::expand(const std::string& directory, std::string_view rest, const Item& item, bool by_pattern) {
  const auto slash = rest.find('/');
  const std::string_view name = rest.substr(0, slash);
  const std::string_view below = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  if (!has_wildcard(name)) {
    const std::string path = directory + "/" + std::string(name);
    return below.empty() ? take(path, item, by_pattern) : expand(path, below, item, by_pattern);
  }
  if (!emitter_.begin(directory + "/")) return;  // an earlier worker hung in this very listing
  int error = 0;
  const std::vector<std::string> names = directory_names(below_root(root_, directory), error);
  if (error != 0 && (error != ENOENT || !by_pattern) && error != ENOTDIR) emitter_.error(directory, error);
  const std::string pattern(name);
  for (const std::string& candidate : names) {
    if (::fnmatch(pattern.c_str(), candidate.c_str(), 0) != 0) continue;
    const std::string path = directory + "/" + candidate;
    if (below.empty())
      take(path, item, true);
    else
      expand(path, below, item, by_pattern);
  }
}

void Reader::take(const std::string& path, const Item& item, bool by_pattern) {
  if (!emitter_.begin(path)) return;
  switch (item.kind) {
    case ItemKind::file:
      return take_file(path, item, by_pattern);
    case ItemKind::link:
      return take_link(path);
    case ItemKind::stat:
      return take_stat(path);
    case ItemKind::names:
      return take_names(path);
  }
}

void Reader::take_file(const std::string& path, const Item& item, bool by_pattern) {
  const int descriptor = ::open(below_root(root_, path).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) {
    emitter_.error(path, errno);
    return;
  }
  std::string content;
  std::array<char, 16384> buffer;
  int error = 0;
  bool more = false;
  while (true) {
    const ssize_t size = ::read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) error = errno;
    if (size <= 0) break;
    const std::size_t room = item.limit_bytes - content.size();
    more = static_cast<std::size_t>(size) > room;
    content.append(buffer.data(), std::min(room, static_cast<std::size_t>(size)));
    if (more) break;
  }
  struct stat status{};
  const bool sized = more && ::fstat(descriptor, &status) == 0;
  ::close(descriptor);
  if (error == EISDIR && by_pattern) return;
  if (error != 0) {
    emitter_.error(path, error);
    return;
  }
  if (more) {
    const auto size = sized && status.st_size > static_cast<off_t>(item.limit_bytes) ? static_cast<std::uint64_t>(status.st_size) : 0;
    emitter_.truncated(path, path.starts_with("/sys/") ? 0 : size);
  }
  if (path == "/proc/cmdline") {
    std::vector<std::string> arguments;
    for (const std::string_view word : words(trim(content))) arguments.emplace_back(word);
    content = join(redact_arguments(arguments), " ") + "\n";
  } else if (!path.starts_with("/sys/")) {
    content = redact_text(content);
  }
  emitter_.file(path, content);
}

void Reader::take_link(const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t size = ::readlink(below_root(root_, path).c_str(), target.data(), target.size());
  if (size >= 0)
    emitter_.link(path, {target.data(), static_cast<std::size_t>(size)});
  else if (errno != EINVAL)  // EINVAL: it is no link
    emitter_.error(path, errno);
}

void Reader::load_names() {
  if (std::exchange(names_loaded_, true)) return;
  if (const auto text = read_file(below_root(root_, "/etc/passwd"), 16u << 20)) users_ = parse_id_database(*text);
  if (const auto text = read_file(below_root(root_, "/etc/group"), 16u << 20)) groups_ = parse_id_database(*text);
}

void Reader::take_stat(const std::string& path) {
  NodeStat stat;
  if (const int error = stat_of(below_root(root_, path), stat); error != 0) {
    emitter_.error(path, error);
    return;
  }
  load_names();
  stat.user = name_of(users_, stat.uid);
  stat.group = name_of(groups_, stat.gid);
  emitter_.stat(path, stat);
}

void Reader::take_names(const std::string& path) {
  int error = 0;
  for (const std::string& name : directory_names(below_root(root_, path), error)) take_stat(path + "/" + name);
  if (error != 0) emitter_.error(path, error);
}

}  // namespace ff::capture
