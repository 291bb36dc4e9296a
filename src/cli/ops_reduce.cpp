#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/given_path.h"
#include "cli/isolate.h"
#include "cli/ops_torch.h"
#include "cli/options.h"
#include "compute/torch_reduce.h"
#include "python/python.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct OneOperator {
  std::string op, dtype, device, python, runs, output = ".";
  int repeat = 5;
  double limit_s = 30, seconds = 300;
  bool json = false;
  compute::IsolateOptions isolate;
};

/// What OP, --dtype and the last run name together: "exp.f32", "exp --dtype float32", or "exp" and the type in which it failed.
Result<compute::TorchCase> case_of(OneOperator& o) {
  auto interpreter = given_interpreter(o.python);
  if (!interpreter) return std::unexpected(interpreter.error());
  o.python = std::move(*interpreter);
  compute::TorchCase out{o.op, "", ""};
  if (const auto dot = o.op.rfind('.'); dot != std::string::npos)
    if (const auto dtype = compute::torch_dtype(o.op.substr(dot + 1))) {
      out.name = o.op.substr(0, dot);
      out.dtype = *dtype;
    }
  if (!o.dtype.empty()) {
    const auto dtype = compute::torch_dtype(o.dtype);
    if (!dtype) return usage_error(fmt::format("is not tried: {}", o.dtype), "--dtype", "float32, float16, bfloat16 or float64");
    out.dtype = *dtype;
  }
  const auto last = load_ops_run(o.runs, "last");
  if (last) {
    if (o.python.empty()) o.python = last->python;
    if (o.device.empty()) o.device = last->device;
    if (out.dtype.empty())
      for (const auto& one : last->run.operators)
        if (compute::is_fault(one.status) && one.name == out.name + "." + one.dtype) {
          out.dtype = *compute::torch_dtype(one.dtype);
          break;
        }
  }
  if (out.dtype.empty()) out.dtype = "float32";
  if (o.device.empty()) o.device = "cpu";
  if (o.device != "cpu") o.device = "cuda";
  o.python = python_or_default(o.python);
  auto catalogue = compute::torch_catalogue(o.python);
  if (!catalogue) return std::unexpected(catalogue.error());
  for (const auto& one : *catalogue)
    if (one.name == out.name && one.probe == "ops.py") {
      out.family = one.family;
      return out;
    }
  return usage_error("no operator of one process has this name", o.op, "firstfault ops run --torch --all lists them");
}

int reduce(OneOperator& o) {
  auto which = case_of(o);
  if (!which) return report_error(which.error());
  Progress progress(!o.json);
  progress.show(fmt::format("… shrinking {} in {}", which->name, which->dtype));
  compute::ReduceOptions options{o.python, o.device, which->name, which->dtype, o.repeat, o.limit_s, o.seconds, {}};
  auto reduced = compute::reduce_operator(options);
  progress.clear();
  if (!reduced) return report_error(reduced.error());
  if (!reduced->failed) {
    if (o.json)
      print_document(Value::object(
          {{"schema", "firstfault/ops-reduce/1"}, {"name", which->name}, {"dtype", compute::short_dtype(which->dtype)}, {"failed", false}}));
    else
      std::cout << fmt::format("{} in {} does not fail here ({} trials).\n", which->name, which->dtype, reduced->trials);
    return 0;
  }
  std::error_code none;
  std::filesystem::create_directories(o.output, none);
  const std::string stem = fmt::format("{}/{}_{}", o.output, which->name, compute::short_dtype(which->dtype));
  const std::string script = stem + ".py", test = fmt::format("{}/test_{}_{}.py", o.output, which->name, compute::short_dtype(which->dtype));
  if (!reduced->script.empty()) {
    if (auto written = write_file(script, reduced->script); !written) return report_error(written.error());
    if (auto written = write_file(test, reduced->pytest); !written) return report_error(written.error());
    compute::verify_script(*reduced, o.python, script, o.limit_s);
  }
  if (o.json) {
    Value document = compute::reduced_value(*reduced);
    document.set("name", which->name);
    document.set("dtype", compute::short_dtype(which->dtype));
    document.set("files", reduced->script.empty() ? Value::list() : Value::list({script, test}));
    print_document(document);
    return 1;
  }
  const auto style = report::Style::for_stdout();
  std::cout << style.red(fmt::format("{} in {}: {}", which->name, which->dtype, reduced->status)) << "  " << report::printable(reduced->detail)
            << "\n"
            << fmt::format("  smallest failing input: {} ({} trials)\n", reduced->shapes.to_string(), reduced->trials);
  if (reduced->script.empty()) {
    std::cout << "  its inputs have no short form; firstfault ops isolate repeats it as it is\n";
    return 1;
  }
  std::cout << "\n" << reduced->script << "\n";
  if (!reduced->bench.empty()) std::cout << "The library alone: " << reduced->bench << "\n";
  std::cout << fmt::format("Wrote {} and {}. ", script, test)
            << (reduced->script_fails
                    ? fmt::format("Run by itself it fails too: {}.\n", reduced->script_ended)
                    : style.yellow(fmt::format("Run by itself it does not fail ({}): it needs what was called before it.", reduced->script_ended)) +
                          "\n");
  return 1;
}

int isolate_operator(OneOperator& o) {
  auto which = case_of(o);
  if (!which) return report_error(which.error());
  auto folder = TemporaryDirectory::make("firstfault-isolate");
  if (!folder) return report_error(folder.error());
  for (const auto& probe : python::probes())
    if (auto written = write_file(folder->path() / probe.name, probe.source); !written) return report_error(written.error());
  auto options = o.isolate;
  options.repeat = o.repeat;
  options.time_limit_s = o.limit_s + 120;
  options.command = {o.python, "-B", (folder->path() / "ops_once.py").string(), which->name, which->dtype, o.device, "5"};
  if (options.api.empty()) options.api = o.device == "cpu" ? "" : api_of_machine();
  return isolate_and_print(options, o.json);
}

CLI::App* common(CLI::App& ops, const std::shared_ptr<OneOperator>& o, const std::string& name, const std::string& what) {
  auto* app = ops.add_subcommand(name, what);
  app->add_option("OP", o->op, "An operator, alone or with its type: exp, exp.f32")->required();
  app->add_option("--python", o->python, "The interpreter that has PyTorch (default: the last run's, else python3)");
  app->add_option("--device", o->device, "cpu, cuda or hip (default: the last run's, else cpu)")->check(CLI::IsMember({"cpu", "cuda", "hip"}));
  app->add_option("--dtype", o->dtype, "float32, float16, bfloat16 or float64 (default: the one in which it failed last)");
  app->add_option("--limit", o->limit_s, "Seconds that one call may take (default 30)")->check(CLI::Range(0.1, 3600.0));
  app->add_option("--runs", o->runs, "Directory of the runs (default: $FIRSTFAULT_RUNS, else ./firstfault-runs)");
  return app;
}

}  // namespace

void add_ops_reduce(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<OneOperator>();
  auto* app = common(ops, o, "reduce", "Shrink a failing operator to the smallest input that still fails, and write a script that shows it");
  app->add_option("-o,--output", o->output, "Directory for the scripts (default: here)");
  app->add_option("--repeat", o->repeat, "Calls that are compared with each other (default 5)")->check(CLI::Range(2, 1000));
  app->add_option("--seconds", o->seconds, "How long to shrink at most (default 300)")->check(CLI::Range(1.0, 86400.0));
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/ops-reduce/1)");
  app->footer("Exit code 1: it fails, and was shrunk; 0: it does not fail here.");
  app->callback([o, &exit_code] { exit_code = reduce(*o); });
}

void add_ops_isolate(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<OneOperator>();
  auto* app = common(ops, o, "isolate", "Repeat a failing operator under one known switch at a time: which changes the outcome?");
  app->add_option("--repeat", o->repeat, "Runs under each switch (default 5)")->check(CLI::Range(1, 1000));
  app->add_option("--only", o->isolate.only, "Only these switches (comma separated; firstfault isolate --list names them)")->delimiter(',');
  app->add_option("--api", o->isolate.api, "Switches of hip or cuda (default: by this machine's devices)")->check(CLI::IsMember({"hip", "cuda"}));
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/isolate/1)");
  app->callback([o, &exit_code] { exit_code = isolate_operator(*o); });
}

}  // namespace ff::cli
