#pragma once

#include <array>
#include <optional>

#include "base/value.h"

namespace ff::rollout {

/// CIE L*a*b* (D65) of an sRGB colour, each channel 0 to 1.
std::array<double, 3> lab_of(std::array<double, 3> srgb);

/// How unlike two pictures look, given as grids of [red, green, blue] (rows of cells, 0 to 1): the mean and the largest CIE76
/// colour difference of their cells. About 2.3 is the least that an eye sees (Mahy 1994). Nothing: not two grids of one size.
struct LookDistance {
  double mean = 0, largest = 0;
};
std::optional<LookDistance> look_distance(const Value& a, const Value& b);

}  // namespace ff::rollout
