#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "capture/redact.h"
#include "cli/command.h"
#include "cli/ops_runs.h"
#include "cli/ops_torch.h"
#include "cli/options.h"
#include "compute/native_run.h"
#include "compute/native_session.h"
#include "report/style.h"
#include "run/run.h"

namespace ff::cli {
namespace {

struct OpsRunOptions {
  compute::OperatorOptions operators;
  bool native = false, torch = false;
  std::string python;
  bool json = false, all = false;
  std::string runs;
};

/// The names in a list that none of the suite's operators has.
Result<void> known_native(const std::vector<std::string>& given, std::string_view option, std::string compute::NativeOperator::* member) {
  std::vector<std::string> known;
  for (const auto& one : compute::native_operators())
    if (std::ranges::find(known, one.*member) == known.end()) known.push_back(one.*member);
  for (const auto& name : given)
    if (std::ranges::find(known, name) == known.end())
      return usage_error(fmt::format("no native operator has \"{}\"", name), std::string(option), "known: " + join(known, ", "));
  return {};
}

/// `ops run`: one layer a run, because a fault of the layer below would be reported by the one above too.
int ops_run(const OpsRunOptions& o) {
  if (o.operators.plant == "help") {
    std::cout << compute::planted_faults_text(false);
    return 0;
  }
  if (o.native == o.torch)
    return report_error(Error{o.native ? "names two layers" : "names no layer", "ops run",
                              "--native: our kernels and the vendor's libraries, without a framework; --torch: the user's own PyTorch (--python)",
                              2});
  if (o.torch && !o.operators.plant.empty())
    return report_error(Error{"plants faults in the native operators only", "--plant",
                              "ops run --native --plant NAME; of PyTorch's operators a stand-in plants them: tests/planted/sitecustomize.py", 2});
  if (o.torch) return ops_run_torch({.operators = o.operators, .python = o.python, .runs = o.runs, .json = o.json, .all = o.all});
  if (!o.operators.plant.empty())
    if (auto known = compute::known_planted_fault(o.operators.plant, false); !known) return report_error(known.error());
  if (auto known = known_native(o.operators.families, "--family", &compute::NativeOperator::family); !known) return report_error(known.error());
  if (auto known = known_native(o.operators.dtypes, "--dtype", &compute::NativeOperator::dtype); !known) return report_error(known.error());
  auto run = run::Run::create(run::runs_root(o.runs), {.command = "ops", .argv = capture::redact_arguments(redacted_command_line()), .parent = ""});
  if (!run) return report_error(run.error());
  const InterruptRequest interrupt(InterruptRequest::Children::end);
  Progress progress(!o.json);
  auto result = compute::run_native(o.operators, false, [&](std::string_view name) { progress.show("… " + std::string(name)); });
  progress.clear();
  if (!result) return report_error(*run, result.error().error);
  if (result->operators.empty() && result->interrupted.empty())
    return report_error(*run, Error{"no operator fits --family, --dtype and --name together", "ops run --native",
                                    "firstfault ops run --native --device cpu --all lists them", 2});
  Value document = compute::operators_document(*result);
  document.set("run", run->path());
  if (auto written = run->write("ops.json", to_json(document, 1) + "\n"); !written) return report_error(written.error());
  const int code = ops_exit_code(*result);
  if (auto finished = run->finish(code, ops_summary(*result)); !finished) return report_error(finished.error());
  if (o.json)
    print_document(document);
  else
    std::cout << ops_text(*result, o.all, run->path());
  return code;
}

Result<compute::OperatorRun> load(const std::string& root, const std::string& name) {
  const auto path = operators_document_of(root, name, "");
  if (!path) return std::unexpected(path.error());
  return read_operators(*path);
}

struct OpsCompareOptions {
  std::string a, b, runs;
  bool json = false;
};

/// `ops compare`: before against after, one vendor against another.
int ops_compare(const OpsCompareOptions& o) {
  const std::string root = run::runs_root(o.runs);
  auto a = load(root, o.a);
  if (!a) return report_error(a.error());
  auto b = load(root, o.b);
  if (!b) return report_error(b.error());
  const auto comparison = compute::compare_operators(*a, *b);
  const bool torch = a->layer == "torch" && b->layer == "torch";
  bool worse = false;
  for (const auto& change : comparison.changes) worse = worse || change.worse;
  if (o.json) {
    Value changes = Value::list(), families = Value::object();
    if (torch) families = Value::object({{"a", compute::families_value(*a)}, {"b", compute::families_value(*b)}});
    for (const auto& c : comparison.changes)
      changes.push(Value::object({{"name", c.name}, {"kind", c.kind}, {"detail", c.detail}, {"worse", c.worse}}));
    print_document(Value::object({{"schema", "firstfault/ops-compare/1"},
                                  {"a", o.a},
                                  {"b", o.b},
                                  {"device_a", a->device},
                                  {"device_b", b->device},
                                  {"same", static_cast<unsigned long>(comparison.same)},
                                  {"families", std::move(families)},
                                  {"changes", std::move(changes)}}));
  } else {
    std::cout << fmt::format("A: {} ({}), B: {} ({})\n", a->device["name"].to_string(), a->device["target"].to_string(),
                             b->device["name"].to_string(), b->device["target"].to_string());
    for (const auto& c : comparison.changes) std::cout << fmt::format("  {:<10} {:<28} {}\n", c.kind, c.name, report::printable(c.detail));
    if (torch)
      std::cout << fmt::format("\nA: PyTorch {}\n{}\nB: PyTorch {}\n{}\n", a->device["torch"].to_string(), compute::families_text(*a),
                               b->device["torch"].to_string(), compute::families_text(*b));
    std::cout << fmt::format("{} of {} operators did not change\n", comparison.same, b->operators.size());
  }
  return worse ? 1 : 0;
}

void add_run(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<OpsRunOptions>();
  auto* app = ops.add_subcommand("run", "Try every operator against a float64 reference with a bound from error analysis");
  app->add_flag("--native", o->native, "Our own kernels and the vendor's libraries, no framework");
  app->add_flag("--torch", o->torch, "The operators of PyTorch, forward and backward: 147 in six families, and a group that compiles");
  app->add_option("--python", o->python, "With --torch: the interpreter that has PyTorch (default: python3)");
  app->add_option("--family", o->operators.families,
                  "Only these families (comma separated): memory, elementwise, gemm, ...; of PyTorch maths, convolution, reduction, matrix, "
                  "backward, distributed, compile")
      ->delimiter(',');
  app->add_option("--dtype", o->operators.dtypes, "Only these types: f64, f32, f16, bf16, i8, ... (comma separated)")->delimiter(',');
  app->add_option("--name", o->operators.names, "Only operators whose name begins so (comma separated)")->delimiter(',');
  app->add_option("--repeat", o->operators.repeat, "Repeats of each; bitwise differences between them are nondeterminism (default 5)")
      ->check(CLI::Range(1, 1000));
  app->add_option("--device", o->operators.device, "cpu, cuda or hip (default: the first GPU that opens)")
      ->check(CLI::IsMember({"cpu", "cuda", "hip"}));
  app->add_flag("--small", o->operators.small, "Sizes as on the CPU: for emulators and slow devices");
  app->add_option("--wavefront", o->operators.wavefront, "With --device cpu: the wavefront to play, 32 or 64")->check(CLI::IsMember({32u, 64u}));
  app->add_option("--limit", o->operators.time_limit_s, "Seconds that one operator may take (default 20)")->check(CLI::Range(0.1, 3600.0));
  app->add_option("--plant", o->operators.plant, "Plant a fault to see it found (list: --plant help)");
  app->add_flag("--all", o->all, "Show passing operators one by one too");
  app->add_option("--runs", o->runs, "Directory of the runs (default: $FIRSTFAULT_RUNS, else ./firstfault-runs)");
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/ops/1)");
  app->callback([o, &exit_code] { exit_code = ops_run(*o); });
}

void add_compare(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<OpsCompareOptions>();
  auto* app = ops.add_subcommand("compare", "What changed between two runs: verdict, error, speed");
  app->add_option("RUN_A", o->a, "A run (path, id, last) or a firstfault/ops/1 document")->required();
  app->add_option("RUN_B", o->b, "The other one")->required();
  app->add_option("--runs", o->runs, "Directory of the runs (default: $FIRSTFAULT_RUNS, else ./firstfault-runs)");
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/ops-compare/1)");
  app->callback([o, &exit_code] { exit_code = ops_compare(*o); });
}

}  // namespace

void add_ops_compile(CLI::App& ops, int& exit_code);

// Further verbs of `ops` stand in files of their own (cli/ops_<verb>.cpp: add_ops_<verb>) and get one line here.
void add_ops(CLI::App& app, int& exit_code) {
  app.require_subcommand(1);
  add_run(app, exit_code);
  add_compare(app, exit_code);
  add_ops_reduce(app, exit_code);
  add_ops_isolate(app, exit_code);
  add_ops_fallback(app, exit_code);
  add_ops_compile(app, exit_code);
  add_ops_pack(app, exit_code);
}

}  // namespace ff::cli
