#pragma once

#include <optional>
#include <string_view>

#include "diagnosis/evidence.h"

namespace ff::diagnosis {

/// The time stamp in a line's first 80 characters: "[  12.345678]", "[Mon Nov 30 15:21:10 2026]", ISO 8601 with or
/// without zone, "Nov 30 15:21:10", "2026/11/30 15:21:10", "11/30/2026 15:21:10", "I1130 15:21:10.123456",
/// "1764516070.123456", "15:21:10,123". A date without a year, or a time without a date, is of clock `day`.
[[nodiscard]] std::optional<Moment> moment_of(std::string_view line);

}  // namespace ff::diagnosis
