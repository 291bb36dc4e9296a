#include "base/progress.h"

#include <unistd.h>

#include <cstdio>

namespace ff {

Progress::Progress(bool enabled) : terminal_(enabled && isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::string_view text) {
  if (!terminal_) return;
  const std::string line(text.substr(0, 100));
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace ff
