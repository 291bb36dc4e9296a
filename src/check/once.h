#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "check/check.h"

namespace ff {

/// What several checks of one climb want and costs a child process: made the first time, kept under `key` in the climb's scratch.
template <class Make>
auto once(const CheckContext& context, const std::string& key, Make&& make) {
  using Made = std::decay_t<decltype(make())>;
  if (context.scratch == nullptr) return make();
  auto& slot = (*context.scratch)[key];
  if (slot == nullptr) slot = std::make_shared<Made>(make());
  return *std::static_pointer_cast<Made>(slot);
}

}  // namespace ff
