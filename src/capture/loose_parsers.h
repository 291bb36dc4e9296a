#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/value.h"
#include "capture/capture.h"

namespace ff::capture {

/// An id that a text does not give: `ls -l` shows names, not numbers.
inline constexpr std::uint32_t unknown_id = 0xFFFFFFFF;

/// `pip list` (table, JSON, freeze, or rows without heading): [{"name", "version", "path", "line", "editable"}].
[[nodiscard]] Value parse_pip_list(std::string_view text, std::string_view source, std::uint64_t first_line);

/// `python -m torch.utils.collect_env`: one entry for the probe "pythons".
[[nodiscard]] Value parse_collect_env(std::string_view text, std::string_view source, std::uint64_t first_line);

/// `env`, `export -p`: name -> value, secrets redacted, quotes removed.
[[nodiscard]] Value parse_environment(std::string_view text);

/// `id`: the probe "user" as far as it goes; null when it is none.
[[nodiscard]] Value parse_id(std::string_view text);

/// `ls -l` of device nodes. Paths without directory belong to the last heading ("/dev/dri:"), else to /dev/dri or /dev.
struct ListedNode {
  std::string path;
  NodeStat stat;
  int error = 0;  ///< errno that ls reported instead
};
[[nodiscard]] std::vector<ListedNode> parse_ls_nodes(std::string_view text);

/// "path:value" lines, "==> path <==" blocks, "# path" blocks: path -> content.
struct FileValue {
  std::string path;
  std::string content;
  std::uint64_t line = 0;  ///< 1-based within the text
};
[[nodiscard]] std::vector<FileValue> parse_file_values(std::string_view text);

/// `lsmod` in the form of /proc/modules; empty when the heading is missing (then it was filtered and absence means nothing).
[[nodiscard]] std::string lsmod_to_proc_modules(std::string_view text);

}  // namespace ff::capture
