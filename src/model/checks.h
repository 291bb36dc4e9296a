#pragma once

#include <span>

#include "check/check.h"

namespace ff::model {

/// The checks of rung 4 in climbing order.
std::span<const Check> checks();

}  // namespace ff::model
