#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "capture/redact.h"
#include "cli/check_session.h"
#include "cli/options.h"
#include "knowledge/knowledge.h"
#include "ladder/fill_in.h"
#include "report/style.h"
#include "verdict/again.h"

namespace ff::cli {
namespace {

constexpr std::chrono::seconds verify_limit{120};

bool asked(const std::string& command) {
  if (isatty(STDIN_FILENO) != 1) return false;
  std::cerr << "This proof may change something:\n  $ " << report::printable(command, 2000) << "\nRun it? [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

/// Where this program lies: a proof that calls firstfault finds it there when it is not on the PATH.
std::string own_directory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

/// The proofs come from the earlier result: after the fix the check passes and carries none. What they named of the inputs of
/// then (the dataset that was broken) names those of now (its repaired copy).
Result<std::vector<std::string>> proofs_of(const Value& report, std::string_view fault, const CheckOptions& before, const CheckOptions& now) {
  const auto knowledge = knowledge::Knowledge::with(now.kb);
  if (!knowledge) return std::unexpected(knowledge.error());
  std::vector<std::string> out;
  for (const auto& rung : report["rungs"].items())
    for (const auto& check : rung["checks"].items()) {
      if (check["id"].as_text() != fault) continue;
      const std::string cause(check["causes"].items().empty() ? "" : check["causes"].items().front().as_text());
      const auto* known = (*knowledge)->cause(cause);
      for (const auto& line : check["verify"].items()) {
        std::string proof(line.as_text());
        if (known != nullptr)
          for (const auto& raw : known->verify)
            if (ladder::filled_in_proof(raw, *known, before.inputs) == line.as_text()) proof = ladder::filled_in(raw, cause, now.inputs);
        out.push_back(std::move(proof));
      }
    }
  return out;
}

/// Runs the cause's proofs on this machine; says of each what came out, or why it was not run.
Value run_proofs(const std::vector<std::string>& commands, const CheckOptions& options) {
  Value out = Value::list();
  for (const auto& command : commands) {
    Value item = Value::object({{"command", command}});
    const auto kind = verdict::classify_verify(command);
    if (!options.from.empty()) {
      item.set("outcome", "not run: the capture is of another machine");
    } else if (kind == verdict::VerifyKind::template_) {
      item.set("outcome", "not run: it must be completed by hand");
    } else if (kind == verdict::VerifyKind::changes && !options.yes && !asked(command)) {
      item.set("outcome", "not run: it may change something (--yes runs it)");
    } else {
      // $'…' (a path with control characters) is bash's; the others need no more than sh.
      ChildOptions child{.argv = {contains(command, "$'") ? "/bin/bash" : "/bin/sh", "-c", "PATH=$PATH:$0\n" + command, own_directory()}};
      child.time_limit = verify_limit;
      child.output_limit_bytes = 64U << 10;
      const auto result = run_child(child);
      item.set("outcome", result.describe());
      if (result.exit_status) item.set("exit_status", *result.exit_status);
      item.set("output", capture::redact_text(to_utf8(result.out + result.err)));
    }
    out.push(std::move(item));
  }
  return out;
}

}  // namespace

int check_again(CheckOptions options) {
  const std::string root = run::runs_root(options.runs);
  const auto earlier = run::find_run(root, options.again, options.again == "last" ? "report.json" : "");
  if (!earlier) return report_error(earlier.error());
  const auto text = read_file(*earlier + "/report.json");
  if (!text) return report_error(Error{"did not finish, so there is no fault to try again", *earlier, "firstfault check climbs anew", 2});
  const auto document = parse_json(*text, *earlier + "/report.json");
  if (!document) return report_error(document.error());
  const std::string fault((*document)["first_fault"].as_text());
  if (const auto by = (*document)["interrupted"].as_text(); fault.empty() && !by.empty())
    return report_error(Error{fmt::format("was interrupted by {}, before a fault was found", by), *earlier, "firstfault check climbs anew", 2});
  if (fault.empty()) return report_error(Error{"found no fault, so there is nothing to try again", *earlier, "firstfault check climbs anew", 2});
  const auto record = run::read_run(*earlier);
  if (!record) return report_error(record.error());
  // The earlier run judged a recorded machine: this one would prove nothing about it.
  if (options.from.empty() && !record->manifest["inputs"]["from"].items().empty())
    return report_error(Error{"judged a capture, not this machine", *earlier, "give a newer capture of that machine with --from", 2});
  CheckOptions before;
  inputs_from_value(record->manifest["inputs"], before);
  inputs_from_value(record->manifest["inputs"], options);
  for (const auto& word : options.inputs.workload_command)
    if (contains(word, capture::redacted_mark))
      return report_error(Error{"its command held a secret, which is not stored", *earlier, "give the command again after --", 2});
  options.parent = *earlier;

  auto run = run::Run::create(root, {.command = "check", .argv = capture::redact_arguments(redacted_command_line()), .parent = *earlier});
  if (!run) return report_error(run.error());
  auto session = run_check_session(options, fault, *run);
  if (!session) return report_error(*run, session.error());
  const auto proofs = proofs_of(*document, fault, before, options);
  if (!proofs) return report_error(*run, proofs.error());
  const Value outcomes = run_proofs(*proofs, options);
  const auto outcome = verdict::judge_again(fault, session->climb);
  session->notes.insert(session->notes.begin(), fmt::format("{}: {} ({} in the run before)", verdict::outcome_name(outcome), fault, options.again));
  for (const auto& item : outcomes.items()) {
    // The first words of what it printed, on one line.
    std::string said;
    for (const std::string_view word : words(item["output"].as_text().substr(0, 200))) said += (said.empty() ? ": " : " ") + std::string(word);
    session->notes.push_back(fmt::format("proof $ {}  -> {}{}", item["command"].as_text(), item["outcome"].as_text(), said));
  }
  Value event = Value::object({{"check", fault}, {"outcome", std::string(verdict::outcome_name(outcome))}, {"proofs", outcomes}});
  Value there = event;
  there.set("run", run->path());
  event.set("run", *earlier);
  run->event("again", event);
  if (auto appended = run::append_event(*earlier, "again", there); !appended)
    session->notes.push_back("the outcome could not be written into the run before: " + appended.error().to_string());
  if (auto written = run->write("report.json", to_json(session_document(*session, run->path()), 2) + "\n"); !written)
    return report_error(written.error());
  const int exit_code = outcome == verdict::Outcome::fixed ? 0 : outcome == verdict::Outcome::undecided ? 3 : 1;
  if (auto finished =
          run->finish(exit_code, Value::object({{"first_fault", session->climb.first_fault.empty() ? Value() : Value(session->climb.first_fault)},
                                                {"again", *earlier},
                                                {"outcome", std::string(verdict::outcome_name(outcome))}}));
      !finished)
    return report_error(finished.error());
  print_session(*session, options, run->path());
  return exit_code;
}

}  // namespace ff::cli
