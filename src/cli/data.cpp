#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/check_rung.h"
#include "cli/command.h"

namespace ff::cli {

void add_data(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  auto* check = app.add_subcommand("check", "Is this LeRobot dataset readable, complete and ordered?");
  auto options = std::make_shared<CheckRungOptions>();
  auto path = std::make_shared<std::string>();
  check->add_option("path", *path, "Root of the dataset (the directory with meta/, data/ and videos/)")->required();
  check->add_flag("--json", options->json, "Print one JSON document (firstfault/data-check/1)");
  check->add_flag("--all", options->all, "Show passing and skipped checks too");
  check->callback([options, path, &exit_code] {
    options->rung = Rung::dataset;
    options->schema = "firstfault/data-check/1";
    options->path = *path;
    options->inputs.dataset = *path;
    exit_code = check_rung(*options);
  });
}

}  // namespace ff::cli
