#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ff {

/// Seconds since an arbitrary start, never going backwards: for durations and deadlines.
using Monotonic = std::chrono::steady_clock::time_point;
[[nodiscard]] inline Monotonic monotonic_now() { return std::chrono::steady_clock::now(); }
[[nodiscard]] std::int64_t milliseconds_since(Monotonic start);

/// "2026-11-30T15:21:09Z".
[[nodiscard]] std::string utc_text(std::chrono::system_clock::time_point when);
[[nodiscard]] std::string utc_now_text();

}  // namespace ff
