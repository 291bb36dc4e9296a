#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "base/error.h"

// What may not or cannot be read (rights, an I/O error, a stale mount) is no fault of the thing that was to be judged: it is work
// that could not be done (exit code 3), and nothing may be said about the content. One place says so, in one sentence.

namespace ff {

/// Why the file or directory at a path cannot be read here: "cannot be opened: Permission denied" or "cannot be read:
/// Input/output error" (its first byte does not come), with what to do. Nothing: it can; or there is none; or it is a pipe, device
/// or socket, which are not touched.
[[nodiscard]] std::optional<Error> unreadable(const std::filesystem::path& path);

/// The first file or directory at or below a path that cannot be read, in the order of the names. Directories that links lead to
/// are looked into, except back up. `wanted` is asked about files only; empty: all. Deeper than `depth` directories nothing is
/// looked at.
[[nodiscard]] std::optional<Error> unreadable_below(const std::filesystem::path& root,
                                                    const std::function<bool(const std::filesystem::path&)>& wanted = {}, int depth = 8);

/// Does this link lead to a directory that it lies in? Links are followed, as loaders do (large disks, caches), but not back up.
[[nodiscard]] bool leads_up(const std::filesystem::path& link);

/// Is this an error of opening or reading, of `unreadable`, read_file or MappedFile? Then it tells nothing about the content. What
/// was listed and is gone when it is opened is such an error, too.
[[nodiscard]] bool is_unreadable(const Error& error);

/// The error of a file that could not be opened or read with this errno, with the remedy that belongs to it: which directory
/// above keeps this account out, or what an I/O error means.
[[nodiscard]] Error unreadable_error(const std::filesystem::path& path, int error_number, bool opened = false);

}  // namespace ff
