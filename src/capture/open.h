#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "capture/archive.h"
#include "capture/capture.h"

namespace ff::capture {

/// Reads what somebody handed over: a capture (directory or archive), or loose files, directories and archives of them,
/// recognised by content (docs/capture.md, "Loose files"). A capture and loose files together: the files are added to it.
/// "-" is standard input. Nothing in them is executed, extracted to disk, or believed about its own size.
Result<Capture> open(const std::vector<std::string>& paths, const Limits& limits = {});

/// The same from bytes that are already in memory: an archive, or one file of that name.
Result<Capture> open_bytes(std::string_view bytes, std::string_view name, const Limits& limits = {});

}  // namespace ff::capture
