#include "cli/isolate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct IsolateCommand {
  compute::IsolateOptions options;
  std::string expect = "exit";
  bool json = false, list = false;
};

std::string sensors_text(const compute::SwitchOutcome& outcome) {
  double temperature = 0, clock = 0;
  for (const auto& run : outcome.runs)
    for (const auto& gpu : run.sensors.items()) {
      temperature = std::max(temperature, gpu["temperature_c"].as_real());
      clock = std::max(clock, gpu["clock_mhz"].as_real());
    }
  std::string out;
  if (temperature > 0) out += fmt::format("  {:.0f} °C", temperature);
  if (clock > 0) out += fmt::format("  {:.0f} MHz", clock);
  return out;
}

int list_switches(bool json) {
  Value list = Value::list();
  for (const auto& one : compute::switches()) {
    if (json) {
      list.push(Value::object({{"switch", one.id},
                               {"set", Value::list_of(one.set)},
                               {"what", one.what},
                               {"proves", one.proves_cured},
                               {"apis", Value::list_of(one.for_api)}}));
      continue;
    }
    std::string set;
    for (const auto entry : one.set) set += std::string(set.empty() ? "" : " ") + std::string(entry);
    std::cout << fmt::format("{:<24} {}\n{:<24} {}; cured: {}\n", one.id, set, "", one.what, one.proves_cured);
  }
  if (json) print_document(Value::object({{"schema", "firstfault/isolate-switches/1"}, {"switches", std::move(list)}}));
  return 0;
}

int run_isolate(IsolateCommand& command) {
  if (command.list) return list_switches(command.json);
  auto& options = command.options;
  if (options.command.empty()) return report_error(Error{"names no command", "isolate", "firstfault isolate -- python train.py", 2});
  if (auto there = given_program(options.command.front()); !there) return report_error(there.error());
  options.expect = *compute::expect_from_name(command.expect);
  if (options.expect == compute::Expect::text && options.text.empty())
    return report_error(Error{"needs the text of a failing run", "--expect text", "--text \"Memory access fault\"", 2});
  if (options.expect == compute::Expect::slow && options.slow_s <= 0)
    return report_error(Error{"needs the time above which a run is slow", "--expect slow", "--slow-over SECONDS", 2});
  for (const auto& id : options.only) {
    bool known = false;
    for (const auto& one : compute::switches()) known = known || one.id == id;
    if (!known) return report_error(Error{fmt::format("is no switch: {}", id), "--only", "firstfault isolate --list names them", 2});
  }
  if (options.api.empty()) options.api = api_of_machine();
  return isolate_and_print(options, command.json);
}

}  // namespace

std::string api_of_machine() {
  std::error_code error;
  const bool amd = std::filesystem::exists("/dev/kfd", error), nvidia = std::filesystem::exists("/dev/nvidiactl", error);
  return amd && !nvidia ? "hip" : nvidia && !amd ? "cuda" : "";
}

int isolate_and_print(const compute::IsolateOptions& options, bool json) {
  const InterruptRequest interrupt(InterruptRequest::Children::end);
  Progress progress(!json);
  const auto isolation = compute::isolate(options, [&](std::string_view name) { progress.show(fmt::format("… {}", name)); });
  progress.clear();
  if (!isolation) return report_error(isolation.error());
  const bool fault = isolation->outcomes.front().rate.failed > 0 || !isolation->late.empty();
  const int code = !isolation->interrupted.empty() ? interrupted_exit_code(interrupt.signal()) : fault ? 1 : 0;
  if (json) {
    print_document(compute::isolation_value(*isolation));
    return code;
  }
  const auto style = report::Style::for_stdout();
  const auto width = report::terminal_width();
  for (const auto& one : isolation->outcomes) {
    const std::string rate = fmt::format("{}/{} failed", one.rate.failed, one.rate.runs);
    const std::string line = fmt::format("  {:<24} {:<13} {:>3.0f} to {:>3.0f} %  {:>7.2f} s{}", one.id, rate, one.rate.low() * 100,
                                         one.rate.high() * 100, one.median_s, sensors_text(one));
    using Effect = compute::SwitchOutcome::Effect;
    std::cout << (one.effect == Effect::cured     ? style.green(line + "  changes the outcome")
                  : one.effect == Effect::caused  ? style.red(line + "  fails more often")
                  : one.effect == Effect::unclear ? line + "  too few runs to tell"
                                                  : line)
              << "\n";
  }
  const auto& first = isolation->outcomes.front();
  if (first.rate.failed > 0)
    for (const auto& run : first.runs)
      if (run.failed) {
        std::cout << "  unchanged: " << report::printable(run.how) << "\n";
        break;
      }
  std::cout << "\n" << report::wrapped(isolation->conclusion, 0, width) << "\n";
  for (const auto& one : isolation->late)
    std::cout << style.yellow(report::wrapped(
                     fmt::format("{}:{} sets {} after line {} has imported {}: it is read when the library is loaded, so it has no effect "
                                 "(runtime.environment-late).",
                                 isolation->script, one.line, report::printable(one.name), one.import_line, one.import_of),
                     0, width))
              << "\n";
  if (!isolation->debug_agent.empty()) std::cout << "\nROCr debug agent:\n" << report::printable(isolation->debug_agent, 4000) << "\n";
  return code;
}

void add_isolate(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<IsolateCommand>();
  auto& o = command->options;
  app.add_option("command", o.command, "The command and its arguments, after --");
  app.add_option("--repeat", o.repeat, "Runs under each switch (default 5)")->check(CLI::Range(1, 1000));
  app.add_option("--expect", command->expect, "What a failing run is: exit (status not 0), signal, text, nan, slow (default exit)")
      ->check(CLI::IsMember({"exit", "signal", "text", "nan", "slow"}));
  app.add_option("--text", o.text, "With --expect text: what the output of a failing run holds");
  app.add_option("--slow-over", o.slow_s, "With --expect slow: seconds above which a run counts as slow");
  app.add_option("--limit", o.time_limit_s, "Seconds that one run may take (default 600)")->check(CLI::Range(0.1, 86400.0));
  app.add_option("--only", o.only, "Only these switches (comma separated; --list names them)")->delimiter(',');
  app.add_option("--api", o.api, "Switches of hip or cuda (default: by this machine's devices)")->check(CLI::IsMember({"hip", "cuda"}));
  app.add_flag("--list", command->list, "List the switches, what they change and what they prove");
  app.add_flag("--json", command->json, "Print one JSON document (firstfault/isolate/1)");
  app.footer("Runs the command unchanged, then under one known switch at a time.\nExit code 1: it failed at least once; 0: it never did.");
  app.callback([command, &exit_code] { exit_code = run_isolate(*command); });
}

}  // namespace ff::cli
