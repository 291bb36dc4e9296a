#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "knowledge/knowledge.h"
#include "report/reference.h"

namespace ff::cli {

/// Hidden: prints the generated reference pages (./dev docs).
void add_docs(CLI::App& app, int& exit_code) {
  auto page = std::make_shared<std::string>();
  app.group("");
  app.add_option("page", *page, "checks or causes")->required()->check(CLI::IsMember({"checks", "causes"}));
  app.callback([page, &exit_code] {
    std::cout << (*page == "checks" ? report::checks_markdown(ladder::rungs()) : report::causes_markdown(knowledge::Knowledge::built_in()));
    exit_code = 0;
  });
}

}  // namespace ff::cli
