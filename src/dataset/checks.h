#pragma once

#include <span>

#include "check/check.h"

namespace ff::dataset {

/// The checks of rung 3 in climbing order.
std::span<const Check> checks();

}  // namespace ff::dataset
