#include "capture/loose.h"

namespace ff::capture {

Result<void> add_loose(const Members& files, Capture& capture) {
  for (const auto& [name, content] : files) capture.add_text(name, content);
  return {};
}

}  // namespace ff::capture
