#pragma once

#include <string_view>

namespace ff::elf {

/// A target id whose processor is in LLVM's list ("gfx90a:xnack-"); SPIR-V counts. What a compiler can be asked for.
bool known_target(std::string_view id);

}  // namespace ff::elf
