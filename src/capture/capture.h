#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::capture {

/// Type, owner and mode of a path on the captured machine (what lstat said), plus its ACL when one was read.
struct NodeStat {
  char type = '?';         ///< 'f' file, 'd' directory, 'c' character device, 'b' block device, 'l' link, 's' socket, 'p' pipe
  std::uint32_t mode = 0;  ///< permission bits, e.g. 0660
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string user;   ///< name of uid in the machine's own database, empty when it has none
  std::string group;  ///< name of gid in the machine's own database, empty when it has none
  std::uint64_t size_bytes = 0;
  std::uint32_t major = 0;  ///< device numbers
  std::uint32_t minor = 0;
  std::string acl;  ///< "user:1000:rw-,group::rw-" as getfacl would say; empty: none or not read
};

/// One command that was run on the captured machine (or whose output somebody handed over).
struct CommandOutput {
  std::vector<std::string> argv;
  std::optional<int> exit_status;  ///< nothing: not known, not started or killed
  std::optional<int> signal;
  bool timed_out = false;
  int start_errno = 0;  ///< why it could not be started (ENOENT: not installed)
  std::string out;
  std::string err;
};

/// A frozen picture of a machine, held in memory and read-only. Paths are absolute paths of the captured machine.
/// Every reader of machine state reads from here and from nothing else.
class Capture {
 public:
  /// Content of a captured file. Nothing when it was not captured; then error_of() may say why.
  [[nodiscard]] std::optional<std::string_view> file(std::string_view path) const;
  /// The same, without blanks around it: for one-value sysfs files.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view path) const;
  /// Target of a symbolic link, as stored.
  [[nodiscard]] std::optional<std::string_view> link(std::string_view path) const;
  [[nodiscard]] const NodeStat* stat(std::string_view path) const;
  /// errno with which reading (or opening, for device nodes) failed; nothing: not tried or it worked.
  [[nodiscard]] std::optional<int> error_of(std::string_view path) const;
  /// True when anything is known to exist at the path: a file, a link, a stat, or something below it.
  [[nodiscard]] bool exists(std::string_view path) const;
  /// Names directly below a directory, sorted ("10" after "9": digits compare as numbers).
  [[nodiscard]] std::vector<std::string> list(std::string_view directory) const;
  [[nodiscard]] const CommandOutput* command(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> commands() const;
  /// Paths that were looked for and are known to be absent (ENOENT), so that "absent" differs from "not looked at".
  [[nodiscard]] bool known_absent(std::string_view path) const;

  /// Answers of the collector that are no file and no command: "access" (open() results), "limits", "disk", ...
  /// The names and shapes are listed in docs/capture.md.
  [[nodiscard]] const Value& probe(std::string_view name) const;
  /// Pieces of evidence that are text and no file of the machine: handed-over logs and the like, by name.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& texts() const { return texts_; }
  /// "live", "bundle", "loose" (files that somebody handed over; then absence means nothing).
  [[nodiscard]] std::string_view kind() const { return kind_; }
  /// Everything else: when, host name, tool version, what was asleep, notes.
  [[nodiscard]] const Value& about() const { return about_; }

  // Building; the collector, the openers and tests use these.
  void set_kind(std::string_view kind) { kind_ = kind; }
  void add_file(std::string_view path, std::string content);
  void add_link(std::string_view path, std::string target);
  void add_stat(std::string_view path, NodeStat stat);
  void add_error(std::string_view path, int error_number);
  void add_command(std::string_view name, CommandOutput output);
  void add_probe(std::string_view name, Value answer);
  void remove_probe(std::string_view name);
  void add_text(std::string_view name, std::string content);
  void remove(std::string_view path);  ///< the path and everything below: for variants of recorded machines
  Value& about_mut() { return about_; }

  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& files() const { return files_; }
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& links() const { return links_; }
  [[nodiscard]] const std::map<std::string, NodeStat, std::less<>>& stats() const { return stats_; }
  [[nodiscard]] const std::map<std::string, int, std::less<>>& errors() const { return errors_; }
  [[nodiscard]] const std::map<std::string, CommandOutput, std::less<>>& all_commands() const { return commands_; }
  [[nodiscard]] const std::map<std::string, Value, std::less<>>& probes() const { return probes_; }

 private:
  std::string kind_ = "loose";
  std::map<std::string, std::string, std::less<>> files_;
  std::map<std::string, std::string, std::less<>> links_;
  std::map<std::string, NodeStat, std::less<>> stats_;
  std::map<std::string, int, std::less<>> errors_;
  std::map<std::string, CommandOutput, std::less<>> commands_;
  std::map<std::string, Value, std::less<>> probes_;
  std::map<std::string, std::string, std::less<>> texts_;
  Value about_;
};

}  // namespace ff::capture
