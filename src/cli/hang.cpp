#include "binary/hang.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/process.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct HangOptions {
  int pid = 0;
  double seconds = 1;
  bool json = false, python = false;
};

int run_hang(const HangOptions& options) {
  const auto view = binary::look_at(options.pid, options.seconds);
  if (!view) return report_error(view.error());
  const auto verdict = binary::judge(*view);
  std::string python;
  if (options.python) {
    ChildOptions child;
    // --nonblocking: py-spy would stop the process otherwise.
    child.argv = {"py-spy", "dump", "--nonblocking", "--pid", std::to_string(options.pid)};
    const auto result = run_child(child);
    python = result.ok() ? result.out : "py-spy: " + result.describe();
  }
  const bool moves = verdict.id == "moving" || verdict.id == "sleep";
  if (options.json) {
    Value document = binary::hang_to_json(*view, verdict);
    if (options.python) document.set("python", python);
    print_document(document);
    return moves ? 0 : 1;
  }
  const auto style = report::Style::for_stdout();
  const auto width = report::terminal_width();
  std::cout << style.bold(fmt::format("{} (pid {})", report::printable(view->program), view->pid)) << "\n"
            << (moves ? style.green(verdict.what) : style.red(report::wrapped(report::printable(verdict.what), 0, width))) << "\n\n";
  constexpr std::size_t shown = 32;
  for (std::size_t i = 0; i < view->threads.size() && i < shown; ++i) {
    const auto& thread = view->threads[i];
    std::cout << fmt::format("  {:>8} {:<16} {} {:>4.0f} %  {}\n", thread.id, report::printable(thread.name, 16), thread.state,
                             thread.cpu_share * 100, report::printable(thread.wait_channel));
  }
  if (view->threads.size() > shown) std::cout << fmt::format("  and {} more threads\n", view->threads.size() - shown);
  if (view->holds_kfd) std::cout << "It has /dev/kfd open: it uses the GPU for computing.\n";
  for (const auto& text : view->unreadable) std::cout << style.yellow("not readable ") << text << "\n";
  if (!python.empty()) std::cout << "\n" << python << "\n";
  if (!verdict.next.empty()) std::cout << "\n" << style.bold("Next") << "\n";
  for (const auto& text : verdict.next) std::cout << "  - " << report::wrapped(report::printable(text, 1000), 4, width) << "\n";
  return moves ? 0 : 1;
}

}  // namespace

void add_hang(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<HangOptions>();
  app.add_option("pid", options->pid, "The process that no longer moves")->required();
  app.add_option("--seconds", options->seconds, "How long to look (default 1)")->check(CLI::Range(0.1, 60.0));
  app.add_flag("--python", options->python, "Add the Python stacks that py-spy tells without stopping the process");
  app.add_flag("--json", options->json, "Print one JSON document (firstfault/hang/1)");
  app.footer(
      "Looks through /proc only: the process is not stopped, attached to or signalled.\nExit code 1: it does not move; 0: it moves or sleeps of its "
      "own will.");
  app.callback([options, &exit_code] { exit_code = run_hang(*options); });
}

}  // namespace ff::cli
