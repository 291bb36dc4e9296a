#include "base/clock.h"

#include <ctime>

namespace ff {

std::int64_t milliseconds_since(Monotonic start) { return std::chrono::duration_cast<std::chrono::milliseconds>(monotonic_now() - start).count(); }

std::string utc_text(std::chrono::system_clock::time_point when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, size};
}

std::string utc_now_text() { return utc_text(std::chrono::system_clock::now()); }

}  // namespace ff
