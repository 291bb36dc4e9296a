#pragma once

#include <string>

#include "base/error.h"

namespace ff::cli {

/// A path that stands on the command line and does not exist is wrong usage (exit code 2); one that may not be read is work
/// that could not be done (3).
Result<void> given_path(const std::string& path);
/// Where a command writes its result (-o): what is there already stays, which is wrong usage (exit code 2), unless `force` replaces it.
Result<void> free_output(const std::string& path, bool force);
/// A Python that the user names, as it is used everywhere: a path of an interpreter or of an environment's directory as it is,
/// a name without a slash (python3) as the program of that name in PATH. "" stays "".
Result<std::string> given_python(const std::string& python);
/// The same for what starts it: of an environment's directory its bin/python.
Result<std::string> given_interpreter(const std::string& python);
/// given_path for a program (the command of isolate), which without a slash is looked for in PATH. Empty: not given, which
/// is right.
Result<void> given_program(const std::string& program);

}  // namespace ff::cli
