#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/check_rung.h"
#include "cli/command.h"

namespace ff::cli {

void add_model(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  auto* check = app.add_subcommand("check", "Is this model complete, valid, finite, safe to load, and normalised?");
  auto options = std::make_shared<CheckRungOptions>();
  auto path = std::make_shared<std::string>();
  check->add_option("path", *path, "A model file (.safetensors, .pt, .pth, .bin, .ckpt), its directory, a checkpoint or a run")->required();
  check->add_option("--dataset", options->inputs.dataset, "Root of a LeRobot dataset: compare features and statistics with it");
  check->add_flag("--json", options->json, "Print one JSON document (firstfault/model-check/1)");
  check->add_flag("--all", options->all, "Show passing and skipped checks too");
  check->callback([options, path, &exit_code] {
    options->rung = Rung::model;
    options->schema = "firstfault/model-check/1";
    options->path = *path;
    options->inputs.policy = *path;
    exit_code = check_rung(*options);
  });
}

}  // namespace ff::cli
