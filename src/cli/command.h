#pragma once

#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace ff::cli {

/// One verb of the program. `add` declares its options on `app` and returns what runs it (an exit code: 0 nothing wrong,
/// 1 a fault was found, 2 wrong usage, 3 could not do its work). One file per command; the table is in commands.cpp.
struct Command {
  std::string_view name;
  std::string_view summary;
  void (*add)(CLI::App& app, int& exit_code);
};

/// All commands in the order in which help lists them.
std::span<const Command> commands();

/// The program: parses arguments, runs one command, returns its exit code.
int run(int argc, char** argv);

}  // namespace ff::cli
