#pragma once

#include <chrono>
#include <cstdint>

namespace ff {

/// Time limits of children are milliseconds, what people say is seconds.
[[nodiscard]] inline std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}
[[nodiscard]] inline double seconds_of(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

}  // namespace ff
