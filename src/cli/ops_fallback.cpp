#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/progress.h"
#include "cli/given_path.h"
#include "cli/ops_torch.h"
#include "cli/options.h"
#include "compute/fallback.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct FallbackOptions {
  std::string run, output, python, runs;
  double seconds = 120;
  bool json = false, force = false;
};

int fallback(const FallbackOptions& o) {
  if (auto free = free_output(o.output, o.force); !free) return report_error(free.error());
  auto run = load_ops_run(o.runs, o.run);
  if (!run) return report_error(run.error());
  auto interpreter = given_interpreter(o.python);
  if (!interpreter) return report_error(interpreter.error());
  const std::string python = !interpreter->empty() ? *interpreter : !run->python.empty() ? run->python : python_or_default("");
  Progress progress(!o.json);
  auto plan =
      compute::plan_fallback(run->run, python, run->device, o.seconds, [&](std::string_view text) { progress.show("… " + std::string(text)); });
  progress.clear();
  if (!plan) return report_error(plan.error());
  if (!plan->routes.empty())
    if (auto written = write_file(o.output, compute::fallback_module(*plan)); !written) return report_error(written.error());
  if (o.json) {
    Value document = compute::fallback_value(*plan);
    document.set("file", plan->routes.empty() ? Value() : Value(o.output));
    print_document(document);
    return plan->left_out.empty() ? 0 : 1;
  }
  for (const auto& one : plan->routes) {
    std::string cost;
    if (one.plain_ms && one.routed_ms) cost = fmt::format("{:.3f} ms instead of {:.3f} ms", *one.routed_ms, *one.plain_ms);
    std::cout << fmt::format("  {:<28} through {:<16} {}\n", one.name + "." + compute::short_dtype(one.dtype),
                             one.to_device + (one.to_device.empty() || one.to_dtype.empty() ? "" : " in ") + one.to_dtype, cost);
  }
  const auto style = report::Style::for_stdout();
  for (const auto& text : plan->left_out) std::cout << style.yellow("  not rerouted: ") << report::printable(text) << "\n";
  if (plan->routes.empty())
    std::cout << (plan->left_out.empty() ? "No operator of this run failed: nothing to reroute.\n"
                                         : "Nothing could be rerouted, no file was written.\n");
  else
    std::cout << fmt::format("Wrote {}: import it after torch.\n", o.output);
  return plan->left_out.empty() ? 0 : 1;
}

}  // namespace

void add_ops_fallback(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<FallbackOptions>();
  auto* app = ops.add_subcommand("fallback", "Write a Python module that reroutes the operators that failed, so that work goes on");
  app->add_option("RUN", o->run, "A run of ops run --torch (path, id, last) or its document")->required();
  app->add_option("-o,--output", o->output, "The module to write (default fallback.py)")->default_val("fallback.py");
  app->add_flag("--force", o->force, "Replace the module that -o names");
  app->add_option("--python", o->python, "The interpreter that has PyTorch (default: the run's)");
  app->add_option("--seconds", o->seconds, "How long to try other ways at most, all together (default 120)")->check(CLI::Range(1.0, 86400.0));
  app->add_option("--runs", o->runs, "Directory of the runs (default: $FIRSTFAULT_RUNS, else ./firstfault-runs)");
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/ops-fallback/1)");
  app->footer("Exit code 1: a failed operator could not be rerouted.");
  app->callback([o, &exit_code] { exit_code = fallback(*o); });
}

}  // namespace ff::cli
