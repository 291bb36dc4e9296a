#pragma once

#include <span>

#include "check/check.h"

namespace ff::device {

/// The checks of rung 1 in climbing order: what must hold first comes first, because the first failure is what the
/// user reads.
std::span<const Check> checks();

}  // namespace ff::device
