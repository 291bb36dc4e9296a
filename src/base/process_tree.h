#pragma once

#include <sys/types.h>

#include <vector>

namespace ff {

/// The processes that `root` started, and those that they started: children before grandchildren, `root` left out. Read from
/// /proc at this moment; one whose parent has ended is no longer found.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t root);

/// Sends a signal to the process group that `leader` leads and to its descendants that have left that group (setsid: what a
/// launcher such as torchrun does to its workers).
void signal_tree(pid_t leader, int signal);

}  // namespace ff
