#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "cli/command.h"
#include "cli/options.h"

namespace ff::cli {

int run(int argc, char** argv) {
  CLI::App app{"Finds the first thing that is broken between an AMD GPU and a working robot policy, says why, and proves the fix."};
  app.name("firstfault");
  app.set_version_flag("--version", "firstfault 0.1.0");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 nothing wrong, 1 a fault was found, 2 wrong usage, 3 FirstFault could not do its work.");
  int exit_code = 0;
  for (const Command& command : commands()) command.add(*app.add_subcommand(std::string(command.name), std::string(command.summary)), exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    if (code == 0) return 0;
    print_error_document({e.what(), "command line", "firstfault --help, firstfault COMMAND --help", 2});
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "firstfault: " << e.what() << "\n";
    return 3;
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "firstfault: the output could not be written\n";
    return 3;
  }
  return exit_code;
}

}  // namespace ff::cli
