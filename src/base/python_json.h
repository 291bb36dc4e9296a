#pragma once

#include <string>
#include <string_view>

namespace ff {

/// What stands in place of a number that JSON has no word for.
enum class Nonfinite {
  quoted,  ///< "NaN", "Infinity", "-Infinity": the reader can tell them apart
  null,    ///< a missing value
};

/// JSON as Python writes it made into JSON: bare NaN, Infinity and -Infinity outside of texts, and numbers beyond a double's
/// range (1e400), which Python reads as infinite.
std::string without_nonfinite(std::string_view json, Nonfinite as);

}  // namespace ff
