#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::run {

/// Where runs go: `option` when given, else $FIRSTFAULT_RUNS, else ./firstfault-runs.
[[nodiscard]] std::string runs_root(std::string_view option);

/// One directory that holds everything of one invocation. Results are appended to events.jsonl one line at a time and
/// flushed, so that a run which is killed at any moment can still be read.
///
///     manifest.json   what was run, when, with which tool and knowledge; rewritten atomically at the end
///     events.jsonl    one JSON object a line: {"time":…, "event":"start|check|rung|note|end", …}
///     capture/        the frozen picture of the machine
///     artifacts/      files that checks leave
///     report.md, report.json
///
/// An interrupt (base/interrupt.h) that ends the program before finish() leaves status "interrupted", an end event, and what
/// on_interrupt() adds. Every member that writes stands still once the interrupt has come.
class Run {
 public:
  struct Options {
    std::string command;            ///< "check"
    std::vector<std::string> argv;  ///< the command line as typed, secrets redacted by the caller
    std::string parent;             ///< path of the run that this one follows; may be empty
  };
  /// Makes <root>/<UTC time>-<command>[-N]. Fails when the root cannot be written (remedy: --runs DIR).
  static Result<Run> create(const std::string& root, const Options& options);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::string file(std::string_view name) const { return path() + "/" + std::string(name); }

  /// Appends one event with the current time and flushes it. A failed write is remembered and reported by finish().
  void event(std::string_view kind, Value fields = Value::object());
  /// Writes a file of the run whole or not at all (temporary name, then rename).
  Result<void> write(std::string_view name, std::string_view content) const;
  /// Adds members to manifest.json at once.
  Result<void> describe(Value members);
  /// What an interrupt writes and prints beside that; called on another thread (LastWords). Lives until finish().
  void on_interrupt(std::function<void(int signal)> record, std::function<void(int signal)> print);
  /// Marks the run as complete, or, when the summary has "interrupted_by", as interrupted. After that it is only appended to (see append_event).
  Result<void> finish(int exit_code, Value summary = Value::object());
  /// Ends a run whose work could not be done: finish() with the error in the summary. After a wrong usage (exit code 2)
  /// nothing was looked at: the directory is removed, so that "last" stays what it was.
  Result<void> fail_with(const Error& error);

  struct State;

 private:
  Run();
  std::shared_ptr<State> state_;
};

/// What can be read of a run, finished or not.
struct RunRecord {
  std::string path;
  Value manifest;              ///< null when it is missing or damaged
  std::vector<Value> events;   ///< the whole lines; a torn last line is left out
  bool torn = false;           ///< the last line of events.jsonl was incomplete
  bool complete = false;       ///< finish() was reached
  std::string interrupted_by;  ///< "SIGTERM": it was told to end before its work was done
  [[nodiscard]] std::string id() const;
};

/// Reads a run directory. Fails when it is none (neither manifest.json nor events.jsonl).
Result<RunRecord> read_run(const std::string& path);
/// Only the manifests of all runs below the root, newest last. An absent root is an empty list.
std::vector<RunRecord> list_runs(const std::string& root);
/// A run by path, by id below the root, or "last". `holds`: a file that a run of the wanted kind has ("ops.json"); "last" is
/// the newest that has it. Any run will do without.
Result<std::string> find_run(const std::string& root, std::string_view name, std::string_view holds = {});
/// Appends an event to a run that exists (what a later run found out about it).
Result<void> append_event(const std::string& run_path, std::string_view kind, Value fields);

/// "2026-11-30T15:21:04.123Z".
[[nodiscard]] std::string utc_now();

}  // namespace ff::run
