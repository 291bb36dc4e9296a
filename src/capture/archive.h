#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "capture/limits.h"

namespace ff::capture {

/// Files of an archive or a directory: relative path -> content. Only plain files.
using Members = std::map<std::string, std::string, std::less<>>;

/// True when the bytes begin like an archive or compressed file that read_archive() knows.
[[nodiscard]] bool looks_like_archive(std::string_view first_bytes);

/// Unpacks a .tar, .tar.zst, .tar.gz, .tar.xz or .zip into memory. A single compressed file (log.txt.gz) becomes one member
/// named after the archive. Refused: absolute paths, "..", links, devices, too much of anything, broken archives.
Result<Members> read_archive(std::string_view bytes, std::string_view name, const Limits& limits = {});

/// All plain files below a directory. Links are not followed and count as absent; devices, pipes and sockets are not
/// opened.
Result<Members> read_directory(const std::filesystem::path& directory, const Limits& limits = {});

/// Writes a .tar.zst in one step.
Result<void> write_archive(const std::filesystem::path& target, const Members& members);

}  // namespace ff::capture
