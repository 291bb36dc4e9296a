#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "capture/capture.h"
#include "cli/command.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "cli/positive.h"
#include "facts/machine.h"
#include "knowledge/knowledge.h"
#include "ladder/ladder.h"
#include "report/ladder_report.h"
#include "training/checks.h"
#include "training/judge.h"
#include "training/plot.h"
#include "training/reference_run.h"
#include "training/watch.h"
#include "training/workload.h"

namespace ff::cli {
namespace {

struct TrainOptions {
  std::vector<std::string> paths;
  std::string plots;
  bool json = false, all = false;
};

std::string nothing_missing(const CheckInputs&) { return ""; }

/// Rungs 5 and 6 over files, shown as one list.
ladder::Climb climb_files(const CheckContext& context, const ladder::Observer& observer) {
  static constexpr std::array<ladder::RungEntry, 2> rungs{
      {{Rung::step, &training::step_checks, &nothing_missing}, {Rung::resume, &training::resume_checks, &nothing_missing}}};
  ladder::Options options;
  options.keep_going = true;
  auto climbed = ladder::climb(context, options, observer, rungs);
  ladder::Climb out;
  out.first_fault = climbed.first_fault;
  out.rungs.resize(rung_count);
  for (std::size_t i = 0; i < rung_count; ++i) out.rungs[i].rung = static_cast<Rung>(i);
  auto& all = out.rungs[static_cast<std::size_t>(Rung::step)];
  all.status = ladder::RungStatus::skip;
  // fail outranks error, which outranks warn, pass and skip; the enumeration has error behind skip.
  const auto rank = [](ladder::RungStatus s) {
    constexpr std::array order{ladder::RungStatus::skip, ladder::RungStatus::pass, ladder::RungStatus::warn, ladder::RungStatus::error,
                               ladder::RungStatus::fail};
    return std::ranges::find(order, s) - order.begin();
  };
  for (auto& rung : climbed.rungs) {
    if (rank(rung.status) > rank(all.status)) all.status = rung.status;
    for (auto& check : rung.checks)
      if (training::answered_by_files(check.id, context.inputs.workload == "checkpoint")) all.checks.push_back(std::move(check));
  }
  return out;
}

void print_plots(const ladder::RungResult& rung, bool all) {
  bool heading = false;
  for (const auto& check : rung.checks) {
    const bool notable = check.status == Status::fail || check.status == Status::warn;
    if (!notable && !(all && check.id == "step.metrics")) continue;
    const std::string plot = training::plot_text(check.measured["plot"], report::terminal_width() - 4);
    if (plot.empty()) continue;
    std::cout << (heading ? "" : "\nThe course of it\n") << "\n  " << check.id << ": " << replace_all(plot, "\n", "\n  ") << "\n";
    heading = true;
  }
}

Value train_document(const ladder::Climb& climb, const std::string& schema, const std::string& path) {
  const auto& rung = climb.rungs[static_cast<std::size_t>(Rung::step)];
  Value checks = Value::list();
  for (const auto& check : rung.checks) checks.push(report::check_value(check));
  return Value::object({{"schema", schema},
                        {"path", path},
                        {"status", std::string(ladder::status_name(rung.status))},
                        {"first_fault", climb.first_fault.empty() ? Value() : Value(climb.first_fault)},
                        {"checks", std::move(checks)}});
}

/// Judges `log` when one is given, else what the paths name.
ladder::Climb judge_files(const std::string& workload, const std::vector<std::string>& paths, const training::Log* log,
                          const ladder::Observer& observer) {
  const capture::Capture capture;
  const facts::Machine machine;
  std::map<std::string, std::shared_ptr<void>> scratch;
  CheckInputs inputs;
  inputs.workload = workload;
  inputs.workload_command = paths;
  CheckContext context{capture, machine, knowledge::Knowledge::built_in(), inputs, "", [](std::string_view) {}};
  context.scratch = &scratch;
  if (log != nullptr) {
    auto work = std::make_shared<training::Work>();
    work->kind = "log";
    work->log = *log;
    work->step_done = work->resume_done = true;
    scratch["training"] = work;
  }
  return climb_files(context, observer);
}

int train_files(const TrainOptions& options, const std::string& workload, const std::string& schema) {
  for (const auto& path : options.paths)
    if (const auto given = given_path(path); !given) return report_error(given.error());
  if (std::error_code error; workload == "checkpoint" && !std::filesystem::is_directory(options.paths.front(), error))
    return report_error(Error{"is no directory", options.paths.front(), "name a run, its checkpoints/ or one checkpoint", 2});
  Progress progress(!options.json);
  ladder::Observer observer;
  observer.check_begins = [&](const Check& check) { progress.show("… " + std::string(check.question)); };
  const auto climb = judge_files(workload, options.paths, nullptr, observer);
  progress.clear();
  const auto& rung = climb.rungs[static_cast<std::size_t>(Rung::step)];
  const std::string subject = join(options.paths, ", ");
  // A file that is none of ours is an error of the command, not a finding.
  if (rung.status == ladder::RungStatus::error && !options.json)
    for (const auto& check : rung.checks)
      if (check.status == Status::error) return report_error(Error{check.summary, "", "", 3});
  if (!options.plots.empty())
    for (const auto& check : rung.checks)
      if (const std::string svg = training::plot_svg(check.measured["plot"]); !svg.empty())
        if (auto written = write_file(options.plots + "/" + check.id + ".svg", svg); !written) return report_error(written.error());
  if (options.json) {
    print_document(train_document(climb, schema, subject));
    return climb.exit_code();
  }
  std::cout << report::checks_text(climb, Rung::step, subject, options.all, report::Style::for_stdout(), report::terminal_width());
  print_plots(rung, options.all);
  return climb.exit_code();
}

constexpr const char* no_metrics = "The command printed no metrics that are known here, so nothing was judged (docs/training.md lists them).";

ladder::Climb nothing_to_judge() {
  ladder::Climb out;
  out.rungs.resize(rung_count);
  auto& rung = out.rungs[static_cast<std::size_t>(Rung::step)];
  rung.rung = Rung::step;
  rung.status = ladder::RungStatus::skip;
  rung.checks.push_back(CheckResult::skip(no_metrics));
  rung.checks.back().id = "step.metrics";
  return out;
}

int train_watch(const TrainOptions& options, double quiet_s) {
  std::set<std::string> told;
  const ladder::Observer silent;
  training::WatchOptions watch;
  watch.argv = options.paths;
  watch.output_to_stderr = options.json;
  watch.quiet_s = quiet_s;
  // While it runs only what is bad now is told, once each; that it has not ended is no news.
  watch.look = [&](const training::Log& log) {
    const auto climb = judge_files("log", {}, &log, silent);
    for (const auto& check : climb.rungs[static_cast<std::size_t>(Rung::step)].checks) {
      if (check.status != Status::fail || check.id == "step.interruption" || !told.insert(check.id).second) continue;
      std::cerr << "firstfault: " << check.id << ": " << check.summary << "\n";
    }
  };
  watch.stands_still = [](double seconds, int pid) {
    std::cerr << "firstfault: nothing was printed for " << static_cast<int>(seconds) << " s (firstfault hang " << pid
              << " says why it stands still)\n";
  };
  watch.goes_on = [](int signal) {
    std::cerr << "firstfault: " << signal_name(signal) << " was passed on to the command, and it goes on; another signal kills it\n";
  };
  const auto watched = training::watch(watch);
  if (!watched) return report_error(watched.error());
  const bool judged = !watched->log.records.empty() || !watched->log.events.empty();
  const auto climb = judged ? judge_files("log", {join(options.paths, " ")}, &watched->log, silent) : nothing_to_judge();
  const int child = watched->exit_status ? *watched->exit_status : 128 + watched->signal.value_or(0);
  // The command's own status is kept; where it says that all is well and the log does not, the log decides.
  const int interrupted = watched->interrupted_by;
  const int code = child != 0 ? child : interrupted != 0 ? interrupted_exit_code(interrupted) : climb.exit_code() == 1 ? 1 : 0;
  if (options.json) {
    Value document = train_document(climb, "firstfault/train-watch/1", join(options.paths, " "));
    document.set("command_exit_status", watched->exit_status ? Value(*watched->exit_status) : Value())
        .set("command_signal", watched->signal ? Value(*watched->signal) : Value())
        .set("exit_code", code);
    if (interrupted != 0) document.set("interrupted_by", signal_name(interrupted));
    print_document(document);
    return code;
  }
  std::cout.flush();
  if (interrupted != 0) std::cout << "\nInterrupted by " << signal_name(interrupted) << ", which was passed on to the command.\n";
  if (!judged) {
    std::cout << "\n" << no_metrics << "\n";
    if (child != 0) std::cout << "The command ended with status " << child << ", which is kept.\n";
    return code;
  }
  std::cout << "\n"
            << report::checks_text(climb, Rung::step, join(options.paths, " "), options.all, report::Style::for_stdout(), report::terminal_width());
  print_plots(climb.rungs[static_cast<std::size_t>(Rung::step)], options.all);
  if (watched->signal)
    std::cout << "\nThe command was killed by signal " << *watched->signal << "; exit code " << code << ".\n";
  else if (child != 0)
    std::cout << "\nThe command ended with status " << child << ", which is kept.\n";
  else if (interrupted != 0)
    std::cout << "\nThe command ended with status 0 after that; exit code " << code << ".\n";
  else if (code != 0)
    std::cout << "\nThe command ended with status 0; its log does not bear that out: exit code 1.\n";
  return code;
}

/// A run's directory belongs to one run: checkpoints of two would stand beside each other, and the newest decide.
Result<void> free_run(const training::ReferenceRun& run, bool force) {
  namespace fs = std::filesystem;
  const fs::path checkpoints = fs::path(run.out) / "checkpoints";
  std::error_code error;
  if (run.out.empty() || run.resume || !fs::exists(checkpoints, error)) return {};
  if (!force) return usage_error("holds a run already", run.out, "--resume goes on from it, --force removes its checkpoints first");
  fs::remove_all(checkpoints, error);
  if (error) return fail("cannot be removed: " + error.message(), checkpoints.string());
  return {};
}

int train_reference(training::ReferenceRun run, const std::string& fault, bool force) {
  if (auto free = free_run(run, force); !free) return report_error(free.error());
  const auto known = reference::fault_from_name(fault);
  if (!known) return report_error(Error{"the built-in workload knows no fault \"" + fault + "\"", "--fault", "docs/training.md lists them", 2});
  run.trainer.fault = *known;
  const auto done = training::run_reference(run, [](const std::string& line) {
    std::fputs((line + "\n").c_str(), stdout);
    std::fflush(stdout);
  });
  return done ? 0 : report_error(done.error());
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  auto options = std::make_shared<TrainOptions>();
  auto* check =
      app.add_subcommand("check", "What does this training log say: NaN, gradients, memory, loading, stalls, schedule, interruptions, resumption?");
  check
      ->add_option("log", options->paths,
                   "Logs, or a directory with them: lerobot-train, HF Trainer, openpi, LingBot-VLA, TensorBoard, wandb offline, JSON lines")
      ->required();
  check->add_option("--plots", options->plots, "Write the plot of each finding as SVG into this directory");
  check->add_flag("--json", options->json, "Print one JSON document (firstfault/train-check/1)");
  check->add_flag("--all", options->all, "Show passing and skipped checks too");
  check->callback([options, &exit_code] { exit_code = train_files(*options, "log", "firstfault/train-check/1"); });

  auto resume_options = std::make_shared<TrainOptions>();
  auto* resume = app.add_subcommand("resume", "Could this run go on? What is in its checkpoints, what is missing, which step comes next?");
  resume->add_option("directory", resume_options->paths, "A run, its checkpoints/ or one checkpoint")->required()->expected(1);
  resume->add_flag("--json", resume_options->json, "Print one JSON document (firstfault/train-resume/1)");
  resume->add_flag("--all", resume_options->all, "Show passing and skipped checks too");
  resume->callback([resume_options, &exit_code] { exit_code = train_files(*resume_options, "checkpoint", "firstfault/train-resume/1"); });

  auto watch_options = std::make_shared<TrainOptions>();
  auto quiet = std::make_shared<double>(300);
  auto* watch = app.add_subcommand("watch", "Run a training command and judge its output while it runs; its exit status is kept");
  watch->add_option("command", watch_options->paths, "The command, after --")->required();
  watch->add_option("--quiet", *quiet, "Seconds without output that count as a standstill")->check(positive());
  watch->add_flag("--json", watch_options->json,
                  "At the end print one JSON document (firstfault/train-watch/1); the command's output goes to standard error");
  watch->add_flag("--all", watch_options->all, "Show passing and skipped checks too");
  watch->callback([watch_options, quiet, &exit_code] { exit_code = train_watch(*watch_options, *quiet); });

  auto run = std::make_shared<training::ReferenceRun>();
  auto fault = std::make_shared<std::string>("none");
  auto* reference =
      app.add_subcommand("reference", "Train the built-in workload: a small pick-and-place policy on the CPU, to try the other commands on");
  reference->add_option("--out", run->out, "Directory of the run; nothing is saved without it");
  reference->add_option("--steps", run->trainer.steps, "Length of the run")->check(CLI::Range(1, 1'000'000));
  reference->add_option("--stop-at", run->stop_at, "Stop after this step, though the schedule is longer");
  reference->add_option("--save-freq", run->trainer.save_freq, "Save every so many steps");
  reference->add_option("--log-freq", run->log_freq, "Print every so many steps");
  reference->add_option("--seed", run->trainer.seed, "Seed of weights, order and noise");
  reference->add_option("--episodes", run->episodes, "Demonstrations to train on")->check(CLI::Range(1, 10'000));
  reference->add_flag("--resume", run->resume, "Go on from <out>/checkpoints/last");
  reference->add_option("--fault", *fault, "Make a known mistake (docs/training.md lists them)");
  auto force = std::make_shared<bool>(false);
  reference->add_flag("--force", *force, "Remove the checkpoints of a run that <out> holds already");
  reference->callback([run, fault, force, &exit_code] { exit_code = train_reference(*run, *fault, *force); });
}

}  // namespace ff::cli
