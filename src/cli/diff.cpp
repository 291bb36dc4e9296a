#include "capture/diff.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "capture/open.h"
#include "cli/options.h"

namespace ff::cli {
namespace {

struct Options {
  std::string before, after;
  bool json = false;
};

std::string describe(const capture::Capture& capture, std::string_view name) {
  std::string out(name);
  const auto host = capture.about()["hostname"].as_text();
  const auto when = capture.about()["taken_at"].as_text();
  if (!host.empty() || !when.empty()) out += fmt::format(" ({}{}{})", host, host.empty() || when.empty() ? "" : ", ", when);
  return out;
}

void print_change(const capture::Change& change) {
  if (!change.before)
    std::cout << fmt::format("  + {} {}: {}\n", change.what, change.name, *change.after);
  else if (!change.after)
    std::cout << fmt::format("  - {} {}: {}\n", change.what, change.name, *change.before);
  else if (*change.before != *change.after)
    std::cout << fmt::format("  ~ {} {}: {} -> {}\n", change.what, change.name, *change.before, *change.after);
  else
    std::cout << fmt::format("  ~ {} {}\n", change.what, change.name);
  for (const std::string& line : change.removed_lines) std::cout << "      - " << line << "\n";
  for (const std::string& line : change.added_lines) std::cout << "      + " << line << "\n";
}

void print(const capture::Difference& difference, const capture::Capture& before, const capture::Capture& after, const Options& options) {
  std::cout << "before: " << describe(before, options.before) << "\nafter:  " << describe(after, options.after) << "\n";
  const auto groups = difference.groups_changed();
  if (groups.empty()) std::cout << "\nNothing that both captures hold differs.\n";
  for (const std::string& group : groups) {
    std::cout << "\n" << group << "\n";
    for (const capture::Change& change : difference.changes)
      if (change.group == group) print_change(change);
  }
  if (groups.size() > 1) {
    std::cout << fmt::format("\n{} kinds of things changed at once (", groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) std::cout << (i == 0 ? "" : ", ") << groups[i];
    std::cout << "): which one made the difference cannot be told from these two.\n";
  }
  if (!difference.not_compared.empty()) {
    std::cout << "\nNot compared, because only one of the two holds it:\n";
    for (const capture::NotCompared& domain : difference.not_compared)
      std::cout << fmt::format("  {}: {} (missing in {})\n", domain.group, domain.what, domain.missing_in_first ? options.before : options.after);
  }
}

int run_diff(const Options& options) {
  const auto before = capture::open({options.before});
  const auto after = before ? capture::open({options.after}) : before;
  if (!before || !after) return report_error(!before ? before.error() : after.error());
  for (const auto& [capture, name] : {std::pair{&*before, &options.before}, {&*after, &options.after}})
    if (!capture::holds_comparable(*capture))
      return report_error(Error{"says nothing about a machine, so there is nothing to compare", *name,
                                "give captures (firstfault snapshot), or files of a machine; libs diff and model diff compare libraries and models",
                                3});
  const capture::Difference difference = capture::diff(*before, *after);
  if (difference.compared == 0)
    return report_error(Error{"hold nothing in common that could be compared", options.before + ", " + options.after,
                              "give files of the same kind of both machines, or a whole capture of each", 3});
  if (options.json)
    std::cout << to_json(capture::diff_to_value(difference, *before, *after, options.before, options.after), 2) << "\n";
  else
    print(difference, *before, *after, options);
  return 0;
}

}  // namespace

void add_diff(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  app.add_option("before", options->before, "a capture (directory or .tar.zst), or files of a machine")->required();
  app.add_option("after", options->after, "another one")->required();
  app.add_flag("--json", options->json, "print one JSON document (docs/schema/diff.json)");
  app.callback([options, &exit_code] { exit_code = run_diff(*options); });
}

}  // namespace ff::cli
