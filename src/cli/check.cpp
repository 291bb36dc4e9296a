#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "capture/redact.h"
#include "cli/check_session.h"
#include "cli/command.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "report/reference.h"
#include "report/style.h"

namespace ff::cli {
namespace {

int list_checks(bool json) {
  if (json) {
    print_document(report::checks_value(ladder::rungs()));
    return 0;
  }
  const auto style = report::Style::for_stdout();
  for (const auto& entry : ladder::rungs()) {
    std::cout << style.bold(fmt::format("{:<11}", rung_name(entry.rung))) << rung_title(entry.rung)
              << (entry.checks().empty() ? style.dim("  (no checks in this version)") : "") << "\n";
    for (const auto& check : entry.checks()) std::cout << fmt::format("  {:<30} {}\n", check.id, check.question);
  }
  return 0;
}

/// Options that make no sense together: what one of them asks for would silently not be done.
Result<void> validate_together(const CheckOptions& o) {
  const bool recorded = !o.from.empty();
  if (recorded && (o.inputs.device == "cpu" || o.inputs.device == "cuda"))
    return usage_error("is where work is run, and on a recorded machine nothing is run", "--device " + o.inputs.device,
                       "leave --device away to judge the capture, or --from to work on this machine");
  if (recorded && !o.inputs.workload.empty())
    return usage_error("is run, and on a recorded machine nothing can be run", "--workload " + o.inputs.workload,
                       "leave --workload away to judge the capture, or --from to run it on this machine");
  if (recorded && o.wake) return usage_error("wakes the GPUs of this machine, and a recorded one is judged", "--wake", "leave it or --from away");
  if (recorded && !o.inputs.work_root.empty())
    return usage_error("is recorded with a capture of this machine, and a recorded one is judged", "--work-root",
                       "leave it away, or take the capture with firstfault snapshot --work-root");
  if (o.yes && o.again.empty()) return usage_error("runs the proofs of --again, which is not given", "--yes", "firstfault check --again RUN --yes");
  if (!o.again.empty() && (!o.rung.empty() || !o.only.empty() || o.keep_going || !o.parent.empty()))
    return usage_error("climbs to the check that failed in that run, with that run as the parent", "--again",
                       "leave --rung, --only, --keep-going and --parent away, or climb anew without --again");
  if (o.inputs.workload == "lerobot" && o.inputs.python.empty() && o.again.empty())
    return usage_error("needs the environment that LeRobot is installed in", "--workload lerobot", "--python PATH of its interpreter");
  if (o.inputs.workload == "command" && o.inputs.workload_command.empty() && o.again.empty() && o.inputs.results.empty())
    return usage_error("needs the command that is run", "--workload command", "firstfault check --workload command -- python train.py …");
  if (o.rung.empty() || o.only.empty()) return {};
  const auto rung = rung_from_name(o.rung);
  for (const auto& entry : ladder::rungs())
    for (const auto& check : entry.checks())
      if (entry.rung != *rung)
        for (const auto& only : o.only)
          if (only == check.id)
            return usage_error(fmt::format("is a check of rung {}, and only rung {} was asked for", rung_name(entry.rung), rung_name(*rung)),
                               "--only " + only, "leave --rung away: --only alone finds its rung");
  return {};
}

Result<void> validate(CheckOptions& o) {
  if (!o.rung.empty() && !rung_from_name(o.rung))
    return usage_error("there is no rung \"" + o.rung + "\"", "--rung",
                       "device, compute, dataset, model, step, resume, episode or evaluation, or its number 1 to 8");
  if (const auto unknown = ladder::unknown_checks(o.only); !unknown.empty())
    return usage_error("there is no check " + join(unknown, ", "), "--only", "firstfault check --list lists them");
  if (!o.inputs.device.empty() && o.inputs.device != "cpu" && o.inputs.device != "gpu" && o.inputs.device != "hip" && o.inputs.device != "cuda")
    return usage_error("\"" + o.inputs.device + "\" is no device", "--device", "cpu, gpu, hip or cuda");
  if (!o.inputs.workload.empty() && o.inputs.workload != "reference" && o.inputs.workload != "lerobot" && o.inputs.workload != "command")
    return usage_error("\"" + o.inputs.workload + "\" is no workload", "--workload", "reference, lerobot or command");
  // The built-in workload takes settings ("fault=frozen-moves"), the others a command.
  const std::string first = o.inputs.workload_command.empty() ? "" : o.inputs.workload_command.front();
  if (!first.empty() && (o.inputs.workload.empty() || (o.inputs.workload == "reference" && first.find('=') == std::string::npos))) {
    std::error_code error;
    if (std::filesystem::exists(first, error)) return usage_error("is no option of check", first, "did you mean --from " + first + "?");
    return usage_error("is no option of check", first, "a command belongs to --workload command (or lerobot), after --");
  }
  if (auto valid = validate_together(o); !valid) return valid;
  auto python = given_python(o.inputs.python);
  if (!python) return std::unexpected(python.error());
  o.inputs.python = std::move(*python);
  const auto exists = [](const std::string& path, const char* option) -> Result<void> {
    if (path.empty()) return {};
    auto given = given_path(path);
    if (!given && given.error().exit_code == 2) given.error().remedy = option;
    return given;
  };
  if (auto valid = exists(o.inputs.work_root, "--work-root takes the project's directory"); !valid) return valid;
  if (auto valid = exists(o.inputs.dataset, "--dataset takes the root of a dataset"); !valid) return valid;
  if (auto valid = exists(o.inputs.policy, "--policy takes a model file or a checkpoint's directory"); !valid) return valid;
  // A workload's command makes its directory itself.
  if (o.inputs.workload.empty())
    if (auto valid = exists(o.inputs.results, "--results takes the directory or file that an evaluation wrote"); !valid) return valid;
  for (const auto& config : o.configs)
    if (auto valid = exists(config, "--config takes a file"); !valid) return valid;
  return {};
}

/// An empty value is an unset variable of a script: what it stands for would silently not be looked at. --list takes --json only.
Result<void> given_values(const CLI::App& app) {
  const bool listing = app.count("--list") > 0;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    if (listing && name != "--list" && name != "--json")
      return usage_error("says nothing together with --list, which lists every check", name, "firstfault check --list, or the same without --list");
    if (option->get_items_expected_max() == 0 || option->get_positional()) continue;
    for (const auto& value : option->results())
      if (value.empty()) return usage_error("is given an empty value", name, "an unset variable? leave the option away, or give it a value");
  }
  return {};
}

int check(CheckOptions options) {
  if (options.list) return list_checks(options.json);
  if (const auto valid = validate(options); !valid) return report_error(valid.error());
  if (!options.again.empty()) return check_again(std::move(options));
  const std::string root = run::runs_root(options.runs);
  if (!options.parent.empty()) {
    const auto parent = run::find_run(root, options.parent, options.parent == "last" ? "capture" : "");
    if (!parent) return report_error(parent.error());
    options.parent = *parent;
  }
  auto run = run::Run::create(root, {.command = "check", .argv = capture::redact_arguments(redacted_command_line()), .parent = options.parent});
  if (!run) return report_error(run.error());
  const auto session = run_check_session(options, "", *run);
  if (!session) return report_error(*run, session.error());
  // Nothing wrong (0) must not be said of what nothing was said about.
  const int exit_code = session->climb.judged_nothing() && options.only.empty() ? 3 : session->climb.exit_code();
  if (auto finished =
          run->finish(exit_code, Value::object({{"first_fault", session->climb.first_fault.empty() ? Value() : Value(session->climb.first_fault)}}));
      !finished)
    return report_error(finished.error());
  print_session(*session, options, run->path());
  return exit_code;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CheckOptions>();
  app.add_option("--from", o->from, "Judge a capture, a bundle or loose files instead of this machine (may be given several times)");
  app.add_option("--dataset", o->inputs.dataset, "A LeRobot dataset: climbs rung 3 (default with --workload reference: its own demonstrations)");
  app.add_option("--policy", o->inputs.policy,
                 "Weights or a checkpoint directory: climbs rung 4 (default with --workload reference: its own policy)");
  app.add_option("--python", o->inputs.python, "The interpreter or environment to look at (default: the active one)");
  app.add_option("--workload", o->inputs.workload, "reference, lerobot or command: climbs rungs 5 to 8");
  app.add_option("--results", o->inputs.results,
                 "What a run or an evaluation wrote: logs and checkpoints (with --workload command), episodes and results (climbs rungs 7 and 8)");
  app.add_option("command", o->inputs.workload_command,
                 "After --: the workload's command ({out}, {steps}, {save_every}, {resume:…} are filled in), or what is added to lerobot-train");
  app.add_option(
      "--device", o->inputs.device,
      "gpu: the default, the first that opens; hip, cuda: that one (cuda skips rung 1); cpu: rung 1 is skipped and the rest runs on the CPU");
  app.add_option("--work-root", o->inputs.work_root, "The project's directory: its commit and lock files are recorded");
  app.add_option("--config", o->configs, "A configuration file that belongs to the work: copied into the restore point");
  app.add_option("--rung", o->rung, "Only this rung (device … evaluation, or 1 … 8)");
  app.add_option("--only", o->only, "Only this check and what it needs (may be given several times)");
  app.add_flag("--keep-going", o->keep_going, "Climb on after a fault");
  app.add_flag("--wake", o->wake, "Read sleeping GPUs too, which wakes them");
  app.add_option("--again", o->again, "Climb only to the check that failed in this run, run its proof, say fixed or not");
  app.add_flag("--yes", o->yes, "With --again: run proofs that may change something without asking");
  app.add_option("--parent", o->parent, "The run that this one follows: states what changed in between");
  app.add_option("--runs", o->runs, "Directory of the runs (default: $FIRSTFAULT_RUNS, else ./firstfault-runs)");
  app.add_option("--kb", o->kb, "A directory with knowledge of your own (may be given several times)");
  app.add_flag("--list", o->list, "List the rungs and their checks");
  app.add_flag("--all", o->all, "Show passing and skipped checks too");
  app.add_flag("--json", o->json, "Print one JSON document (firstfault/ladder/1)");
  app.callback([o, &app, &exit_code] {
    const auto sound = given_values(app);
    exit_code = sound ? check(*o) : report_error(sound.error());
  });
}

}  // namespace ff::cli
