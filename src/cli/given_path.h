#pragma once

#include <string>

#include "base/error.h"

namespace ff::cli {

/// A path that stands on the command line and does not exist is wrong usage (exit code 2); one that may not be read is work
/// that could not be done (3).
Result<void> given_path(const std::string& path);
/// The same for a program (--python, the command of isolate), which without a slash is looked for in PATH. Empty: not given, which
/// is right.
Result<void> given_program(const std::string& program);

}  // namespace ff::cli
