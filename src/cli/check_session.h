#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "capture/capture.h"
#include "check/check.h"
#include "facts/machine.h"
#include "ladder/ladder.h"
#include "run/run.h"

namespace ff::cli {

/// What `firstfault check` was asked for.
struct CheckOptions {
  std::vector<std::string> from;  ///< captures or loose files; empty: this machine
  CheckInputs inputs;
  std::vector<std::string> configs;  ///< configuration files that belong to the work: copied into the restore point
  std::vector<std::string> kb;
  std::string rung;
  std::vector<std::string> only;
  bool keep_going = false;
  bool wake = false;
  bool yes = false;
  std::string again, parent, runs;
  bool list = false, json = false, all = false;
};

/// The most that is kept of a configuration file given with --config.
inline constexpr std::uint64_t max_config_bytes = 4ULL << 20;

/// One climb with everything that belongs to it.
struct CheckSession {
  capture::Capture capture;
  facts::Machine machine;
  ladder::Climb climb;
  Value diagnoses = Value::list();
  Value changed;  ///< firstfault/diff/1 against the parent; null without one
  std::vector<std::string> notes;
  std::string subject, summary;
};

/// Takes or opens the capture, makes the run directory, climbs, explains the logs, writes the reports.
/// `up_to_check`: for --again. The run is finished by the caller, who knows the exit code.
Result<CheckSession> run_check_session(const CheckOptions& options, const std::string& up_to_check, run::Run& run);

/// The document and the screen of a session.
Value session_document(const CheckSession& session, const std::string& run_path);
void print_session(const CheckSession& session, const CheckOptions& options, const std::string& run_path);

/// --again: climbs to the check that failed in an earlier run, runs the proof, writes the outcome into both runs.
int check_again(CheckOptions options);

/// What is needed to come back to this state: package lists, environment, commit and uncommitted diff, configuration
/// copies. Written under restore/ of the run when at least one rung held.
Result<void> write_restore_point(const CheckSession& session, const CheckOptions& options, const run::Run& run);

/// The inputs as they stand in manifest.json, and back.
Value inputs_value(const CheckOptions& options);
void inputs_from_value(const Value& value, CheckOptions& options);

}  // namespace ff::cli
