#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "capture/capture.h"
#include "capture/recognise.h"

namespace ff::capture {

/// Which handed-over file a text comes from.
struct TextSource {
  std::string name;
  std::uint64_t first_line = 1;
  std::string command;  ///< as typed, when it is a piece of a transcript
};

/// Records a recognised text as the command, file or probe that it is, and where it came from. False: it is of no kind
/// that has a place in a capture.
bool add_recognised(TextKind kind, std::string_view text, const TextSource& source, Capture& capture);

/// Every piece of a shell transcript, by what was typed and what came out.
void add_transcript(std::string_view text, const std::string& name, Capture& capture);

/// Notes in the probe "sources" where an item ("/etc/os-release", "cmd/dmesg/stdout", "probe/env") came from.
void note_source(Capture& capture, std::string_view item, const TextSource& source);

}  // namespace ff::capture
