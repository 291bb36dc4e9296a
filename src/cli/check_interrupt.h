#pragma once

#include <memory>
#include <string>

#include "base/progress.h"
#include "cli/check_session.h"

namespace ff::cli {

/// What is known of a climb while it runs: recorded result by result, and made into the run's report when an interrupt ends it.
class ClimbRecord {
 public:
  ClimbRecord(const CheckOptions& options, run::Run& run);
  /// What is done now, as a sentence goes on after "while": "this machine was frozen".
  void begin(std::string doing);
  void describe(std::string subject, std::string summary);
  /// The observer of the climb: events of the run, the progress line, and this.
  [[nodiscard]] ladder::Observer observer(Progress& progress);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ff::cli
