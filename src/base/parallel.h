#pragma once

#include <chrono>
#include <vector>

#include "base/process.h"

namespace ff {

/// How long a killed child may take to die before it is left behind.
inline constexpr std::chrono::milliseconds time_to_die{200};

/// Runs children at the same time, each with its own time limit, from one thread. Results stand in the order of the
/// tasks. `all_limit` ends all of them. `at_once` limits how many run together; a child's time starts when it does.
std::vector<ChildResult> run_children(const std::vector<ChildOptions>& tasks, std::chrono::milliseconds all_limit = std::chrono::hours(24),
                                      std::size_t at_once = 64);

}  // namespace ff
