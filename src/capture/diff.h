#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"
#include "capture/capture.h"

namespace ff::capture {

/// One thing that differs between two captures.
struct Change {
  std::string group;                  ///< "packages", "environment", "driver", "hardware", "configuration", "command-line", "access"
  std::string what;                   ///< what kind of thing: "Python package in /opt/venv", "module parameter", "kernel argument"
  std::string name;                   ///< which one: "torch", "noretry", "iommu"
  std::optional<std::string> before;  ///< nothing: not there before
  std::optional<std::string> after;
  std::vector<std::string> removed_lines;  ///< of a text file, the first few
  std::vector<std::string> added_lines;
};

/// What only one of the two captures looked at, so that nothing can be said.
struct NotCompared {
  std::string group;
  std::string what;
  bool missing_in_first = false;
};

struct Difference {
  std::vector<Change> changes;  ///< in the order of the groups
  std::vector<NotCompared> not_compared;
  std::size_t compared = 0;  ///< kinds of things that both hold
  [[nodiscard]] std::vector<std::string> groups_changed() const;
};

/// All groups in the order in which they are shown.
[[nodiscard]] const std::vector<std::string>& diff_groups();

/// Compares what people change: packages, variables, driver, hardware, configuration, kernel arguments, access. What
/// changes by itself (temperatures, clocks, counters, free space, time) is left out.
[[nodiscard]] Difference diff(const Capture& before, const Capture& after);

/// Whether a capture holds anything at all that diff() compares.
[[nodiscard]] bool holds_comparable(const Capture& capture);

/// "firstfault/diff/1" (docs/schema/diff.json).
[[nodiscard]] Value diff_to_value(const Difference& difference, const Capture& before, const Capture& after, std::string_view before_name,
                                  std::string_view after_name);

}  // namespace ff::capture
