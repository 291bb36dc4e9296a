#include "cli/given_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/program.h"
#include "base/readable.h"
#include "base/text.h"
#include "python/python.h"

namespace ff::cli {
namespace {

/// `--python ls` would start ls with our probe as its arguments. What is named like no Python and is no script that could start one is
/// refused; nothing is executed to find out.
Result<void> check_python(const std::string& given, const std::string& interpreter) {
  struct stat status{};
  if (::stat(interpreter.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  if (::access(interpreter.c_str(), X_OK) != 0)
    return usage_error("is no program that may be executed", given, "--python takes an interpreter, or an environment's directory");
  std::error_code error;
  const auto names_python = [](const std::filesystem::path& path) {
    const std::string name = lower(path.filename().string());
    return contains(name, "python") || contains(name, "pypy") || contains(name, "graalpy");
  };
  if (names_python(interpreter) || names_python(std::filesystem::canonical(interpreter, error))) return {};
  const auto begin = MappedFile::open(interpreter);
  if (begin && begin->bytes().starts_with("#!")) return {};
  return usage_error("is no Python", given, "--python takes an interpreter, by path or by its name in PATH, or an environment's directory");
}

}  // namespace

Result<void> given_path(const std::string& path) {
  if (path.empty()) return usage_error("is empty", "path", "name a file or directory");
  if (auto error = unreadable(path)) return std::unexpected(std::move(*error));
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return {};
  if (errno == ENAMETOOLONG) return usage_error("is no path: " + errno_text(errno), path.substr(0, 80) + "…", "check the quotes");
  if (errno != ENOENT && errno != ENOTDIR) return std::unexpected(unreadable_error(path, errno));
  return usage_error("no such file or directory", path, "check the spelling; quote names with blanks");
}

Result<std::string> given_python(const std::string& python) {
  if (python.empty()) return python;
  if (python.find('/') == std::string::npos) {
    if (std::string found = find_program(python); !found.empty()) {
      if (auto sound = check_python(python, found); !sound) return std::unexpected(sound.error());
      return found;
    }
  }
  if (auto there = given_path(python); !there) {
    Error error = there.error();
    if (error.exit_code == 2) error.remedy = "--python takes an interpreter, by path or by its name in PATH, or an environment's directory";
    return std::unexpected(error);
  }
  // A bare name that is here and not in PATH is a directory or file of this directory.
  std::string path = python.find('/') == std::string::npos ? "./" + python : python;
  if (auto sound = check_python(python, python::interpreter_of(path)); !sound) return std::unexpected(sound.error());
  return path;
}

Result<std::string> given_interpreter(const std::string& python) {
  auto found = given_python(python);
  if (!found || found->empty()) return found;
  std::string interpreter = python::interpreter_of(*found);
  struct stat status{};
  if (::stat(interpreter.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return usage_error("is a directory without bin/python", python, "name an interpreter, or the directory of an environment");
  return interpreter;
}

Result<void> free_output(const std::string& path, bool force) {
  struct stat status{};
  if (path.empty()) return usage_error("is empty", "-o", "name a file");
  if (::stat(path.c_str(), &status) != 0) return {};
  if (S_ISDIR(status.st_mode)) return usage_error("is a directory", path, "name a file with -o");
  // A pipe or a device takes what is written and loses nothing.
  if (force || !S_ISREG(status.st_mode)) return {};
  return usage_error("exists already", path, "choose another name with -o, or replace it with --force");
}

Result<void> given_program(const std::string& program) {
  if (program.empty()) return {};
  if (program.find('/') != std::string::npos) {
    if (auto there = given_path(program); !there) return there;
    struct stat status{};
    if (::stat(program.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
      return usage_error("is a directory", program, "name the program in it, such as bin/python");
    return {};
  }
  if (!find_program(program).empty()) return {};
  return usage_error("no such program in PATH", program, "check the spelling, or name it with its directory");
}

}  // namespace ff::cli
