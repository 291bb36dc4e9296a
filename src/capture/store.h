#pragma once

#include <filesystem>

#include "base/error.h"
#include "capture/archive.h"
#include "capture/capture.h"

namespace ff::capture {

inline constexpr std::string_view manifest_schema = "firstfault/capture/1";

/// The files of a stored capture: manifest.json, fs/…, cmd/…, text/…
[[nodiscard]] Members to_members(const Capture& capture);
/// The capture in such files; kind "bundle" unless the manifest says "loose". Errors name the member.
Result<Capture> from_members(const Members& members, std::string_view name);

/// Stores a capture in a new directory, or in an archive when the name ends in ".tar.zst". Complete or not at all: written
/// under a temporary name beside the target, then renamed. An existing target is refused, except an archive or an empty
/// directory.
Result<void> store(const Capture& capture, const std::filesystem::path& target);

}  // namespace ff::capture
