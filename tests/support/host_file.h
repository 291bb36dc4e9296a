#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "capture/capture.h"

namespace ff::test {

/// Reads a recorded machine from its one-file form (tests/hosts/*.host), which can be read, diffed and varied by hand.
///
/// Lines before the first section are a comment: how the recording was made. A section starts with "== " and holds the
/// lines up to the next one; blank lines at its end do not count; a content line that starts with "== " is written
/// "\== ". Paths hold no blanks.
///
///     == kind live|bundle|loose
///     == base other.host                           everything of that file (beside this one) first
///     == file PATH                                 content follows
///     == value PATH one line of content            a file with this one line; nothing after PATH: an empty file
///     == values DIR                                then lines "name: content", one file below DIR each
///     == hex PATH                                  bytes in hexadecimal, blanks and line breaks ignored
///     == link PATH -> TARGET
///     == links DIR                                 then lines "name -> target"
///     == stat PATH TYPE MODE UID GID [USER GROUP] [MAJOR:MINOR] [size=N] [acl=TEXT]     "-": no name
///     == error PATH EACCES                         reading or opening failed; ENOENT: known to be absent
///     == absent PATH...                            short for ENOENT
///     == cmd NAME [exit=N] [signal=N] [timeout] [errno=NAME] [-- ARGV...]               stdout follows
///     == err NAME                                  stderr of that command follows
///     == probe NAME                                JSON follows
///     == text NAME                                 handed-over text (a log, a list) follows
///     == about                                     JSON object; its members are set
///     == copy FROM TO                              the tree FROM as it stands so far, again under TO
///     == remove PATH...                            and everything below
///     == remove-cmd NAME..., == remove-probe NAME...
///
/// Sections act in order, so later ones override earlier ones. Errors name file and line.
Result<capture::Capture> load_host(const std::filesystem::path& file);

/// The same from text; `directory` is where "== base" is looked for.
Result<capture::Capture> parse_host(std::string_view text, std::string_view name, const std::filesystem::path& directory = {});

/// The recorded machine tests/hosts/<name>.host, with the sections of `variant` (text in the same form) on top.
/// A machine that cannot be read ends the test program with the reason: a wrong fixture must not look like a fact.
capture::Capture host(std::string_view name, std::string_view variant = {});

}  // namespace ff::test
