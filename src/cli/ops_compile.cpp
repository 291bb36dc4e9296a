#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/progress.h"
#include "cli/command.h"
#include "cli/options.h"
#include "compute/native_compile.h"
#include "elf/known_target.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct CompileOptions {
  std::vector<std::string> targets;
  std::string keep;
  bool json = false;
};

int ops_compile(const CompileOptions& o) {
  for (const auto& target : o.targets)
    if (!target.starts_with("sm_") && !elf::known_target(target))
      return report_error(Error{"\"" + target + "\" is no target", "--target", "gfx942, gfx90a:sramecc+:xnack-, sm_90", 2});
  std::error_code error;
  if (!o.keep.empty() && !std::filesystem::is_directory(o.keep, error)) return report_error(Error{"is no directory", o.keep, "make it first", 2});
  Progress progress(!o.json);
  const auto results = compute::compile_kernels(o.targets, o.keep, {}, [&](std::string_view what) { progress.show(what); });
  progress.clear();
  bool failed = false, not_run = false;
  for (const auto& r : results) {
    not_run = not_run || r.status == "not-run";
    failed = failed || (r.status != "pass" && r.status != "not-run");
  }
  if (o.json) {
    Value list = Value::list();
    for (const auto& r : results)
      list.push(Value::object({{"target", r.target},
                               {"source", r.source},
                               {"status", r.status},
                               {"code_bytes", static_cast<unsigned long>(r.code_bytes)},
                               {"seconds", r.seconds},
                               {"detail", r.detail}}));
    print_document(Value::object({{"schema", "firstfault/ops-compile/1"}, {"results", std::move(list)}}));
  } else {
    for (const auto& r : results)
      std::cout << fmt::format("  {:<6} {:<24} {:<12} {:>8} bytes {:>6.1f} s  {}\n", r.status, r.target, r.source, r.code_bytes, r.seconds,
                               report::printable(r.detail, 300));
  }
  return failed ? 1 : not_run ? 3 : 0;
}

}  // namespace

void add_ops_compile(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<CompileOptions>();
  auto* app = ops.add_subcommand("compile", "Does the run-time compiler make our kernels for these targets? No device is needed");
  app->add_option("--target", o->targets, "gfx942, gfx90a:sramecc+:xnack-, sm_90, ... (comma separated)")->delimiter(',')->required();
  app->add_option("--keep", o->keep, "Write the code objects into this directory");
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/ops-compile/1)");
  app->footer("Exit code 1: the compiler refuses or dies; 2: no such target; 3: no compiler is at hand.");
  app->callback([o, &exit_code] { exit_code = ops_compile(*o); });
}

}  // namespace ff::cli
