#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "capture/emitter.h"
#include "capture/items.h"

namespace ff::capture {

/// Reads files of one machine below `root` ("/" for this one) and reports them under the machine's own paths. Runs in a
/// worker: every step that may hang is announced first.
class Reader {
 public:
  Reader(std::string root, Emitter& emitter);

  /// What the pattern of an item names; `prefix` (a directory, no trailing slash) stands before relative patterns.
  /// Paths without "*" that are not there are reported as ENOENT.
  void read(const Item& item, std::string_view prefix = {});
  /// Announces nothing was read in order not to wake the device: EBUSY for each path of the pattern without "*".
  void leave_asleep(const Item& item, std::string_view prefix);
  void read_all(std::span<const Item> items, std::string_view prefix = {}, bool asleep = false);
  [[nodiscard]] Emitter& emitter() { return emitter_; }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  void expand(const std::string& directory, std::string_view rest, const Item& item, bool by_pattern);
  void take(const std::string& path, const Item& item, bool by_pattern);
  void take_file(const std::string& path, const Item& item, bool by_pattern);
  void take_link(const std::string& path);
  void take_names(const std::string& path);
  void take_stat(const std::string& path);
  void load_names();

  std::string root_;
  Emitter& emitter_;
  bool names_loaded_ = false;
  std::vector<std::pair<std::uint32_t, std::string>> users_, groups_;
};

/// "root" + "/sys/x"; "/" as root changes nothing.
[[nodiscard]] std::string below_root(std::string_view root, std::string_view path);
/// Names in a directory, sorted; errno in `error` when it cannot be listed.
[[nodiscard]] std::vector<std::string> directory_names(const std::string& directory, int& error);
/// What lstat says, without names. 0 or errno.
int stat_of(const std::string& path, NodeStat& out);
/// A POSIX access list in its kernel form (attribute system.posix_acl_access) as "user::rw-,user:1000:rw-,…"; empty when
/// the bytes are none.
[[nodiscard]] std::string acl_text(std::string_view bytes);
/// "name:x:number:…" lines of /etc/passwd or /etc/group as (number, name).
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::string>> parse_id_database(std::string_view text);

}  // namespace ff::capture
