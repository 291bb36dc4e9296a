#pragma once

#include <span>
#include <vector>

#include "check/check.h"

namespace ff {

/// A layer's table of checks, made on first use: `std::span<const Check> checks() { return made_once<table>(); }`.
template <auto make>
std::span<const Check> made_once() {
  static const std::vector<Check> all = make();
  return all;
}

}  // namespace ff
