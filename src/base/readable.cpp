#include "base/readable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace ff {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view not_opened = "cannot be opened: ", not_read = "cannot be read: ";

bool may(const fs::path& path, int mode) { return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0; }

/// The topmost directory above a path that this account may not enter; empty: it may enter all.
std::string closed_directory(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  fs::path at;
  for (const auto& part : whole.parent_path()) {
    at /= part;
    if (!may(at, X_OK)) return errno == EACCES ? at.string() : std::string();
  }
  return {};
}

std::optional<Error> below(const fs::path& directory, const std::function<bool(const fs::path&)>& wanted, int depth) {
  if (auto error = unreadable(directory)) return error;
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) entries.push_back(*it);
  if (error) return unreadable_error(directory, error.value(), true);
  std::ranges::sort(entries);
  for (const auto& entry : entries) {
    std::error_code own;
    if (entry.is_directory(own)) {
      if (depth <= 0 || (entry.is_symlink(own) && leads_up(entry.path()))) continue;
      if (auto found = below(entry.path(), wanted, depth - 1)) return found;
    } else if (!wanted || wanted(entry.path())) {
      // A link into a directory that may not be entered looks like one to nowhere: opening tells which it is.
      if (auto found = unreadable(entry.path())) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

bool leads_up(const fs::path& link) {
  std::error_code error;
  const auto target = fs::canonical(link, error), from = fs::canonical(link.parent_path(), error);
  return std::mismatch(target.begin(), target.end(), from.begin(), from.end()).first == target.end();
}

Error unreadable_error(const fs::path& path, int error_number, bool opened) {
  std::string remedy;
  if (error_number == EACCES || error_number == EPERM) {
    const auto closed = closed_directory(path);
    remedy = closed.empty() ? "give this account read access to it (chmod, setfacl), or run as its owner"
                            : "this account may not enter " + closed + ": give it search access (x) there, or run as its owner";
  } else if (error_number == EIO || error_number == ESTALE || error_number == EREMOTEIO || error_number == ENOTCONN) {
    remedy = "the disk or the mount does not give it: look at dmesg, mount it again, or copy the file from where it is whole";
  } else if (error_number == EMFILE || error_number == ENFILE) {
    remedy = "raise the limit of open files: ulimit -n";
  }
  return {std::string(opened ? not_read : not_opened) + errno_text(error_number), path.string(), std::move(remedy), 3};
}

std::optional<Error> unreadable(const fs::path& path) {
  // Asked before it is opened: opening a pipe or a device may have an effect.
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG) return std::nullopt;
    return unreadable_error(path, errno);
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return std::nullopt;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return errno == ENOENT ? std::nullopt : std::optional(unreadable_error(path, errno));
  std::optional<Error> out;
  char byte = 0;
  if (S_ISREG(status.st_mode) && ::pread(descriptor, &byte, 1, 0) < 0) out = unreadable_error(path, errno, true);
  ::close(descriptor);
  if (!out && S_ISDIR(status.st_mode) && !may(path, X_OK)) out = unreadable_error(path / ".", errno);
  return out;
}

std::optional<Error> unreadable_below(const fs::path& root, const std::function<bool(const fs::path&)>& wanted, int depth) {
  std::error_code error;
  if (fs::is_directory(root, error)) return below(root, wanted, depth);
  return unreadable(root);
}

bool is_unreadable(const Error& error) { return error.what.starts_with(not_opened) || error.what.starts_with(not_read); }

}  // namespace ff
