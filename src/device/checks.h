#pragma once

#include <span>

#include "check/check.h"

namespace ff::device {

/// The checks of rung 1 in climbing order.
std::span<const Check> checks();

}  // namespace ff::device
