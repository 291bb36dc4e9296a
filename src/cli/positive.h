#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>

#include "base/text.h"

namespace ff::cli {

/// Of an option: a number above zero. CLI11's own check lets NaN pass and prints the largest double when it refuses.
inline CLI::Validator positive() {
  return {[](std::string& word) {
            const auto number = to_real(word);
            return number && std::isfinite(*number) && *number > 0 ? std::string() : word + " is no number above zero";
          },
          "ABOVE ZERO"};
}

}  // namespace ff::cli
