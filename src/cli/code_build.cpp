#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "binary/build.h"
#include "cli/code_kernels.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "elf/known_target.h"

namespace ff::cli {
namespace {

struct BuildCommand {
  binary::BuildOptions build;
  KernelOptions kernel;
  bool json = false;
};

int build(BuildCommand& command) {
  auto& options = command.build;
  std::vector<std::string> targets;
  for (const auto& text : options.targets)
    for (const auto piece : split(text, ',')) {
      if (!elf::known_target(piece))
        return report_error(Error{fmt::format("\"{}\" is no gfx target", piece), "--target", "give names as gfx1100 or gfx90a:xnack-", 2});
      targets.emplace_back(piece);
    }
  options.targets = std::move(targets);
  if (const auto valid = check_kernel_options(command.kernel); !valid) return report_error(valid.error());
  if (const auto given = given_path(options.source); !given) return report_error(given.error());
  options.lines = command.kernel.disassemble;
  const auto answer = binary::build_kernels(options);
  if (!answer) return report_error(answer.error());
  FoundKernels found;
  std::vector<std::string> damage;
  bool refused = false;
  for (const auto& built : answer->built) {
    refused = refused || built.code.empty();
    for (auto& problem : find_kernels(built.code, options.source, command.kernel, found))
      damage.push_back(fmt::format("{}: {}", built.target, problem));
  }
  const int exit_code = refused || found.fault() || !not_found(found, command.kernel).empty() ? 1 : !damage.empty() || !found.no_code.empty() ? 3 : 0;
  if (command.json) {
    Value list = Value::list();
    for (const auto& built : answer->built)
      list.push(Value::object(
          {{"target", built.target}, {"compiled", !built.code.empty()}, {"size_bytes", built.code.size()}, {"diagnostics", built.diagnostics}}));
    Value document = Value::object({{"schema", "firstfault/code-build/1"},
                                    {"source", options.source},
                                    {"compiler", answer->compiler},
                                    {"stand_in_headers", answer->stand_in},
                                    {"tried", Value::list_of(answer->tried)},
                                    {"targets", std::move(list)}});
    kernels_to_json(found, command.kernel, document);
    for (const auto& text : found.no_code) damage.push_back(text);
    document.set("errors", Value::list_of(damage));
    print_document(document);
    return exit_code;
  }
  const auto style = report::Style::for_stdout();
  std::cout << fmt::format("{} compiled by {}\n", report::printable(options.source), report::printable(answer->compiler));
  if (answer->stand_in)
    std::cout << style.dim("with a short stand-in for HIP's headers and without ROCm's device libraries, as none is installed or usable here")
              << "\n";
  for (const auto& text : answer->tried) std::cout << style.yellow("not usable ") << report::printable(text, 1000) << "\n";
  std::string_view told;
  for (const auto& built : answer->built) {
    if (built.code.empty()) std::cout << style.red(built.target + " was not compiled") << "\n";
    if (!trim(built.diagnostics).empty() && built.diagnostics != told) {
      for (const auto line : lines(built.diagnostics)) std::cout << "  " << report::printable(line, 1000) << "\n";
      told = built.diagnostics;
    }
  }
  if (!refused || !found.kernels.empty()) print_kernels(found, command.kernel, style);
  for (const auto& text : damage) report_error(Error{text, options.source, {}, 3});
  for (const auto& text : found.no_code) report_error(Error{text, {}, found.remedies.empty() ? std::string() : found.remedies.front(), 3});
  return exit_code;
}

}  // namespace

void add_code_build(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<BuildCommand>();
  app.add_option("source", command->build.source, "A HIP source file with kernels")->required();
  app.add_option("--target", command->build.targets, "Compile for these targets: gfx1100,gfx942")->required()->allow_extra_args(false);
  app.add_option("--compiler", command->build.compiler, "A clang++ or libhiprtc (default: hipRTC, else the newest clang at hand)");
  app.add_option("--flag", command->build.extra, "Hand this on to the compiler, for example --flag=-DTILE=32")->allow_extra_args(false);
  app.add_option("--seconds", command->build.seconds, "Time limit of each compilation (default 120)")->check(CLI::Range(1, 3600));
  add_kernel_options(app, command->kernel);
  app.add_flag("--json", command->json, "Print one JSON document (firstfault/code-build/1)");
  app.footer(
      "Compiles in a child process and runs nothing of it.\nExit code 1: the compiler refuses the source, a launch must fail, or there is no such "
      "kernel; 3: no "
      "compiler is at hand.");
  app.callback([command, &exit_code] { exit_code = build(*command); });
}

}  // namespace ff::cli
