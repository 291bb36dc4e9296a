#include <CLI/CLI.hpp>
#include <memory>

#include "base/value.h"
#include "cli/check_table.h"
#include "cli/command.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "rollout/checks.h"

namespace ff::cli {
namespace {

/// Refuses at the start what the checks could only fail with later.
Result<void> given_words(std::string& python, const std::string& environment, const std::string& arguments) {
  auto found = given_interpreter(python);
  if (!found) return std::unexpected(found.error());
  python = std::move(*found);
  if (!environment.empty() && (environment.find(':') == std::string::npos || environment.front() == ':' || environment.back() == ':'))
    return usage_error("\"" + environment + "\" names no module and id", "--env", "MODULE:ID, for example gym_aloha:gym_aloha/AlohaInsertion-v0");
  if (arguments.empty()) return {};
  if (environment.empty()) return usage_error("belongs to an environment", "--env-args", "name it with --env MODULE:ID");
  const auto parsed = parse_json(arguments, "--env-args");
  if (!parsed) return usage_error(parsed.error().what, parsed.error().where, "a JSON object, for example '{\"obs_type\": \"pixels\"}'");
  if (!parsed->is_object()) return usage_error("is no JSON object", "--env-args", "for example '{\"obs_type\": \"pixels\"}'");
  return {};
}

}  // namespace

void add_render(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  auto* check = app.add_subcommand("check", "Can this machine draw pictures for a simulator, with what, and are they right?");
  auto options = std::make_shared<CheckTableOptions>();
  auto environment = std::make_shared<std::string>();
  auto arguments = std::make_shared<std::string>();
  check->add_option("--python", options->inputs.python, "The interpreter of the user's environment: MuJoCo is tried with it");
  check->add_option("--env", *environment, "A gymnasium environment, MODULE:ID (gym_aloha:gym_aloha/AlohaInsertion-v0): its cameras are tried");
  check->add_option("--env-args", *arguments, "Arguments of gymnasium.make as a JSON object (default: {\"render_mode\": \"rgb_array\"})");
  check->add_flag("--json", options->json, "Print one JSON document (firstfault/render-check/1)");
  check->add_flag("--all", options->all, "Show passing and skipped checks too");
  check->callback([=, &exit_code] {
    if (auto given = given_words(options->inputs.python, *environment, *arguments); !given) {
      exit_code = report_error(given.error());
      return;
    }
    options->schema = "firstfault/render-check/1";
    options->subject = "this machine";
    options->inputs.config = environment->empty() ? "" : *environment + "\n" + *arguments;
    options->checks = &rollout::render_checks;
    exit_code = check_table(*options);
  });
}

}  // namespace ff::cli
