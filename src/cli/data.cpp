#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/check_rung.h"
#include "cli/command.h"
#include "cli/data_bench.h"
#include "cli/data_show.h"
#include "cli/data_write.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "cli/positive.h"
#include "dataset/checks.h"

namespace ff::cli {
namespace {

void check_command(CLI::App& app, int& exit_code) {
  auto* check = app.add_subcommand("check", "Is this LeRobot dataset readable, complete and ordered? With --fix: write a corrected copy");
  auto options = std::make_shared<CheckRungOptions>();
  auto fix = std::make_shared<DataFixOptions>();
  auto wanted = std::make_shared<bool>(false);
  check->add_option("path", fix->path, "Root of the dataset (the directory with meta/, data/ and videos/)")->required();
  check->add_flag("--json", options->json, "Print one JSON document (firstfault/data-check/1; with --fix firstfault/data-fix/1)");
  check->add_flag("--all", options->all, "Show passing and skipped checks too");
  auto urdf = std::make_shared<std::string>();
  check->add_option("--urdf", *urdf, "Description of the robot: compare actions and states with its joint limits");
  check->add_option("--python", options->inputs.python, "The Python that trains: decode videos with its torchcodec and av too");
  auto* flag = check->add_flag("--fix", *wanted, "Write a corrected copy to -o; the dataset itself is never changed");
  auto* output = check->add_option("-o,--output", fix->output, "With --fix: the directory to write, which must not exist yet")->needs(flag);
  flag->needs(output);
  check->add_option("--fps", fix->repair.fps, "With --fix: the true frame rate, where time stamps and info.json contradict each other")
      ->needs(flag)
      ->check(positive());
  check->add_flag("--drop-episodes", fix->repair.drop_episodes, "With --fix: leave out episodes that cannot be repaired")->needs(flag);
  check->add_flag("--link", fix->repair.link_videos, "With --fix: videos as hard links instead of copies")->needs(flag);
  check->callback([options, fix, wanted, urdf, &exit_code] {
    if (!urdf->empty())
      if (const auto given = given_path(*urdf); !given) {
        exit_code = report_error(given.error());
        return;
      }
    if (*wanted) {
      fix->json = options->json;
      exit_code = data_fix(*fix);
      return;
    }
    options->rung = Rung::dataset;
    options->schema = "firstfault/data-check/1";
    options->path = fix->path;
    options->inputs.dataset = fix->path;
    options->scratch[dataset::options_key] = std::make_shared<dataset::CheckOptions>(dataset::CheckOptions{*urdf});
    exit_code = check_rung(*options);
  });
}

void merge_command(CLI::App& app, int& exit_code) {
  auto* merge =
      app.add_subcommand("merge", "Put datasets together: episodes, index, tasks, files and statistics made anew, refused where they do not fit");
  auto options = std::make_shared<DataMergeOptions>();
  merge->add_option("paths", options->paths, "Roots of the datasets, in the order in which their episodes shall stand")->required();
  merge->add_option("-o,--output", options->output, "The directory to write, which must not exist yet")->required();
  merge->add_flag("--link", options->link_videos, "Videos as hard links instead of copies");
  merge->add_flag("--json", options->json, "Print one JSON document (firstfault/data-merge/1)");
  merge->callback([options, &exit_code] { exit_code = data_merge(*options); });
}

void show_command(CLI::App& app, int& exit_code) {
  auto* show = app.add_subcommand("show", "What does this dataset hold? Tasks, features, episodes, with small plots");
  auto options = std::make_shared<DataShowOptions>();
  show->add_option("path", options->path, "Root of the dataset")->required();
  show->add_option("--episode", options->episode, "Also the curve of every dimension of action and state in this episode");
  show->add_option("--markdown", options->markdown, "Write the same as a Markdown report to this file");
  show->add_flag("--all", options->all, "Every episode and task, not the first 20");
  show->add_flag("--json", options->json, "Print one JSON document (firstfault/data-show/1)");
  show->callback([options, &exit_code] { exit_code = data_show(*options); });
}

void bench_command(CLI::App& app, int& exit_code) {
  auto* bench = app.add_subcommand("bench", "How many samples a second does it give your Python, and which loader setting feeds your step?");
  auto options = std::make_shared<dataset::BenchOptions>();
  auto json = std::make_shared<bool>(false);
  bench->add_option("path", options->path, "Root of the dataset")->required();
  bench->add_option("--python", options->python, "The Python that trains; its LeRobot is used where it can read the dataset")->required();
  bench->add_option("--workers", options->workers, "Numbers of loader workers to try (default 0,1,2,4)")->delimiter(',')->check(CLI::Range(0, 256));
  bench->add_option("--prefetch", options->prefetch, "Batches that each worker prepares ahead (default 2)")->delimiter(',')->check(CLI::Range(1, 64));
  bench->add_option("--batch", options->batch, "Batch sizes to try (default 8)")->delimiter(',')->check(CLI::Range(1, 65536));
  bench->add_option("--seconds", options->seconds, "Time for each setting (default 3)")->check(CLI::Range(0.1, 600.0));
  bench->add_option("--chunk", options->chunk, "Rows of an action chunk (default 16)")->check(CLI::Range(1, 10000));
  bench->add_option("--step-time", options->step_time_s, "Seconds of your training step: is the loader fast enough?")->check(positive());
  bench->add_option("--reader", options->reader, "auto, lerobot or rows")->check(CLI::IsMember({"auto", "lerobot", "rows"}));
  bench->add_flag("--json", *json, "Print one JSON document (firstfault/data-bench/1)");
  bench->callback([options, json, &exit_code] {
    if (const auto given = given_path(options->path); !given) {
      exit_code = report_error(given.error());
      return;
    }
    auto python = given_interpreter(options->python);
    if (python) options->python = std::move(*python);
    exit_code = python ? data_bench(*options, *json) : report_error(python.error());
  });
}

}  // namespace

void add_data(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  check_command(app, exit_code);
  show_command(app, exit_code);
  merge_command(app, exit_code);
  bench_command(app, exit_code);
}

}  // namespace ff::cli
