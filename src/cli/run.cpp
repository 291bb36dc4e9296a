#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/lost_file.h"
#include "cli/command.h"
#include "cli/options.h"

namespace ff::cli {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0u);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)}));
  }
  return row[b.size()];
}

/// A word where a command (or the verb of a command) must stand and none has that name: the error, with the nearest one.
std::optional<Error> unknown_verb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  std::string said = "firstfault";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto verbs = at->get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
    if (verbs.empty() || word.empty() || word.starts_with("-")) return std::nullopt;
    const auto fits = std::find_if(verbs.begin(), verbs.end(), [&](const CLI::App* sub) { return sub->check_name(std::string(word)); });
    if (fits != verbs.end()) {
      at = *fits;
      said += " " + at->get_name();
      continue;
    }
    // `code FILE` beside `code build`: the word is what the command works on.
    if (!at->get_options([](const CLI::Option* option) { return option->get_positional(); }).empty()) return std::nullopt;
    std::string names, nearest;
    std::size_t least = std::max<std::size_t>(3, word.size() / 2 + 1);
    for (const CLI::App* sub : verbs) {
      if (sub->get_group().empty()) continue;  // hidden
      names += (names.empty() ? "" : ", ") + sub->get_name();
      if (const std::size_t distance = edit_distance(word, sub->get_name()); distance < least) {
        least = distance;
        nearest = sub->get_name();
      }
    }
    return Error{"there is no command '" + std::string(word) + "'" + (nearest.empty() ? "" : "; the nearest is '" + nearest + "'"), said,
                 "commands: " + names, 2};
  }
  return std::nullopt;
}

/// The words as the parser wants them. An option that takes several values eats the first "--" behind them as their end, and the
/// words after it would be read as options of ours: behind such an option it stands twice.
std::vector<std::string> command_words(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto end = std::find(words.begin(), words.end(), "--");
  if (end == words.end()) return words;
  const CLI::App* at = &app;
  const CLI::Option* last = nullptr;
  for (auto word = words.begin(); word != end; ++word) {
    if (word->starts_with("-") && word->size() > 1) {
      last = at->get_option_no_throw(word->substr(0, word->find('=')));
      continue;
    }
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); }))
      if (last == nullptr && sub->check_name(*word)) {
        at = sub;
        break;
      }
  }
  if (last != nullptr && last->get_allow_extra_args()) words.insert(end, "--");
  return words;
}

/// A lost answer is no answer: 3, unless there was a reason for another failure already.
int written(int exit_code) {
  std::cout.flush();
  if (std::cout && std::ferror(stdout) == 0) return exit_code;
  std::cerr << "firstfault: the output could not be written\n";
  return exit_code == 0 || exit_code == 1 ? 3 : exit_code;
}

}  // namespace

int run(int argc, char** argv) {
  end_on_signals();
  const LastWords last_words({}, [](int signal) {
    if (signal == SIGBUS) {
      (void)write_all(STDOUT_FILENO, error_document({lost_file_text, "firstfault", "try again when nothing writes to it", 3}));
      return;
    }
    (void)write_all(STDOUT_FILENO, error_document({"was interrupted by " + signal_name(signal), "firstfault", "", interrupted_exit_code(signal)}));
  });
  CLI::App app{"Finds the first thing that is broken between an AMD GPU and a working robot policy, says why, and proves the fix."};
  app.name("firstfault");
  app.set_version_flag("--version", "firstfault 0.1.0");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 nothing wrong, 1 a fault was found, 2 wrong usage, 3 FirstFault could not do its work, 128 + n interrupted by signal n.");
  int exit_code = 0;
  for (const Command& command : commands()) command.add(*app.add_subcommand(std::string(command.name), std::string(command.summary)), exit_code);
  if (auto unknown = unknown_verb(app, argc, argv)) return report_error(*unknown);
  try {
    auto words = command_words(app, argc, argv);
    std::reverse(words.begin(), words.end());  // the parser takes them from the end
    app.parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    if (code == 0) return written(0);
    print_error_document({e.what(), "command line", "firstfault --help, firstfault COMMAND --help", 2});
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "firstfault: " << e.what() << "\n";
    return 3;
  }
  return written(exit_code);
}

}  // namespace ff::cli
