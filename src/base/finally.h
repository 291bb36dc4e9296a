#pragma once

#include <functional>

namespace ff {

/// Does something when its scope is left, whichever way.
struct Finally {
  std::function<void()> action;
  ~Finally() { action(); }
};

}  // namespace ff
