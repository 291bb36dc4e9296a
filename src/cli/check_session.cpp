#include "cli/check_session.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "base/file.h"
#include "base/progress.h"
#include "base/shell.h"
#include "base/text.h"
#include "capture/collect.h"
#include "capture/diff.h"
#include "capture/open.h"
#include "capture/redact.h"
#include "capture/same_machine.h"
#include "capture/store.h"
#include "cli/check_interrupt.h"
#include "cli/options.h"
#include "diagnosis/explain.h"
#include "knowledge/knowledge.h"
#include "ladder/built_in_inputs.h"
#include "report/ladder_report.h"
#include "report/machine_summary.h"

namespace ff::cli {
namespace {

Result<capture::Capture> take_capture(const CheckOptions& options) {
  if (!options.from.empty()) return capture::open(options.from);
  capture::CollectOptions collect;
  if (!options.inputs.python.empty()) collect.pythons = {options.inputs.python};
  collect.work_root = options.inputs.work_root;
  collect.wake = options.wake;
  collect.environment = capture::current_environment();
  return capture::collect(collect);
}

/// Puts what was asked, and the configuration files that belong to it, into the capture, where two runs can be compared.
/// Which rung or check was asked for is no variable of the answer.
Result<void> add_inputs(capture::Capture& capture, const CheckOptions& o) {
  Value asked = Value::object(), configs = Value::object();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) asked.set(name, value);
  };
  add("--dataset", o.inputs.dataset);
  add("--policy", o.inputs.policy);
  add("--python", o.inputs.python);
  add("--workload", o.inputs.workload);
  add("--results", o.inputs.results);
  add("--device", o.inputs.device);
  add("--work-root", o.inputs.work_root);
  add("--kb", join(o.kb, " "));
  add("-- command", join(capture::redact_arguments(o.inputs.workload_command), " "));
  for (const auto& path : o.configs) {
    const auto content = read_file(path, max_config_bytes);
    if (!content) return std::unexpected(content.error());
    configs.set(path, to_utf8(capture::redact_text(*content)));
  }
  capture.add_probe("check", Value::object({{"options", std::move(asked)}, {"configs", std::move(configs)}}));
  return {};
}

/// What another machine shows proves nothing about the fault of the first.
Result<void> check_same_machine(const CheckOptions& options, const capture::Capture& before, const capture::Capture& now) {
  const std::string why = capture::different_machines(before, now);
  if (why.empty()) return {};
  return usage_error(fmt::format("{} another machine than that run judged: {}", options.from.empty() ? "this is" : "is", why),
                     options.from.empty() ? options.again : join(options.from, ", "),
                     options.from.empty() ? "repeat it where that run was made, or judge this machine anew: firstfault check"
                                          : "give a newer capture of that machine, or judge this one by itself: firstfault check --from …");
}

/// States which variables changed since the parent's capture, and warns when more than one layer did.
void compare_with_parent(const Result<capture::Capture>& before, const std::string& parent, CheckSession& session) {
  if (!before) {
    session.notes.push_back("the capture of the run before cannot be read, so nothing is said about what changed: " + before.error().to_string());
    return;
  }
  if (const std::string other = capture::different_machines(*before, session.capture); !other.empty()) {
    session.notes.push_back("the run before judged another machine, so what differs is no change and is not listed: " + other +
                            "; firstfault diff compares any two captures");
    return;
  }
  const auto difference = capture::diff(*before, session.capture);
  session.changed = capture::diff_to_value(difference, *before, session.capture, parent, "this run");
  const auto groups = difference.groups_changed();
  if (groups.empty()) {
    session.notes.emplace_back("nothing that this tool compares has changed since the run before");
    return;
  }
  std::vector<std::string> names;
  constexpr std::size_t shown = 6;
  for (const auto& change : difference.changes) {
    if (names.size() == shown) break;
    names.push_back(fmt::format("{} {} -> {}", change.name, change.before.value_or("absent"), change.after.value_or("absent")));
  }
  session.notes.push_back(fmt::format("changed since the run before ({}): {}{}", join(groups, ", "), join(names, "; "),
                                      difference.changes.size() > shown ? fmt::format("; and {} more", difference.changes.size() - shown) : ""));
  if (groups.size() > 1)
    session.notes.push_back(
        fmt::format("{} layers changed at once; change one at a time, or the result proves nothing about any of them", groups.size()));
}

/// Rung 1 judges a machine; what logs say beside it is told by another command.
void point_to_explain(const CheckOptions& options, CheckSession& session) {
  std::vector<std::string> named;
  // Who asks for the CPU or another vendor's GPU does not miss an AMD GPU.
  const bool other_device = !options.inputs.device.empty() && options.inputs.device != "hip";
  for (const auto& diagnosis : session.diagnoses.items())
    if (!diagnosis["benign"].as_bool() && !(other_device && diagnosis["cause"].as_text().starts_with("device.")) &&
        diagnosis["confidence"].as_text() != "possible" && named.size() < 3)
      named.push_back(fmt::format("{} ({})", diagnosis["cause"].as_text(), diagnosis["confidence"].as_text()));
  if (named.empty() && (options.from.empty() || session.capture.kind() != "loose")) return;
  std::string command = "firstfault explain";
  if (options.from.empty()) command += " --here";
  for (const auto& path : options.from) command += " " + shell_word(path);
  session.notes.push_back(named.empty() ? "logs and tracebacks are no facts of a machine: " + command + " reads them"
                                        : fmt::format("the logs show {}: {} says why and what to do", join(named, ", "), command));
}

report::LadderContext report_context(const CheckSession& session, const CheckOptions& options, const std::string& run_path) {
  report::LadderContext context;
  context.subject = session.subject;
  context.machine = session.summary;
  context.run_path = run_path;
  context.diagnoses = session.diagnoses;
  context.notes = session.notes;
  context.show_all = options.all;
  return context;
}

}  // namespace

Value inputs_value(const CheckOptions& o) {
  return Value::object({{"from", Value::list_of(o.from)},
                        {"dataset", o.inputs.dataset},
                        {"policy", o.inputs.policy},
                        {"python", o.inputs.python},
                        {"workload", o.inputs.workload},
                        {"results", o.inputs.results},
                        {"workload_command", Value::list_of(capture::redact_arguments(o.inputs.workload_command))},
                        {"device", o.inputs.device},
                        {"work_root", o.inputs.work_root},
                        {"configs", Value::list_of(o.configs)},
                        {"rung", o.rung},
                        {"only", Value::list_of(o.only)},
                        {"kb", Value::list_of(o.kb)}});
}

void inputs_from_value(const Value& value, CheckOptions& o) {
  const auto keep = [&](std::string& own, const char* name) {
    if (own.empty()) own = value[name].as_text();
  };
  keep(o.inputs.dataset, "dataset");
  keep(o.inputs.policy, "policy");
  keep(o.inputs.python, "python");
  keep(o.inputs.workload, "workload");
  keep(o.inputs.results, "results");
  keep(o.inputs.device, "device");
  if (o.inputs.workload_command.empty())
    for (const auto& word : value["workload_command"].items()) o.inputs.workload_command.emplace_back(word.as_text());
  keep(o.inputs.work_root, "work_root");
  keep(o.rung, "rung");
  if (o.only.empty())
    for (const auto& check : value["only"].items()) o.only.emplace_back(check.as_text());
  if (o.kb.empty())
    for (const auto& directory : value["kb"].items()) o.kb.emplace_back(directory.as_text());
  if (o.configs.empty())
    for (const auto& config : value["configs"].items()) o.configs.emplace_back(config.as_text());
}

Result<CheckSession> run_check_session(const CheckOptions& options, const std::string& up_to_check, run::Run& run) {
  const auto knowledge = knowledge::Knowledge::with(options.kb);
  if (!knowledge) return std::unexpected(knowledge.error());
  Progress progress(!options.json);
  CheckSession session;
  ClimbRecord record(options, run);
  record.begin(options.from.empty() ? "this machine was being frozen" : "the capture was being read");
  progress.show(options.from.empty() ? "… freezing this machine" : "… reading the capture");
  auto capture = take_capture(options);
  if (!capture) return std::unexpected(capture.error());
  session.capture = std::move(*capture);
  std::optional<Result<capture::Capture>> parent;
  if (!options.parent.empty()) parent = capture::open({options.parent + "/capture"});
  if (!up_to_check.empty() && parent && *parent)
    if (auto same = check_same_machine(options, **parent, session.capture); !same) return std::unexpected(same.error());
  if (auto added = add_inputs(session.capture, options); !added) return std::unexpected(added.error());
  if (auto stored = capture::store(session.capture, run.file("capture")); !stored) return std::unexpected(stored.error());
  session.machine = facts::read_machine(session.capture, **knowledge);
  session.summary = report::machine_summary(session.machine);
  const std::string host = session.machine.host.hostname.value_or("");
  session.subject = options.from.empty() ? "this machine" + (host.empty() ? "" : " (" + host + ")") : join(options.from, ", ");
  record.describe(session.subject, session.summary);
  if (auto described = run.describe(Value::object({{"inputs", inputs_value(options)},
                                                   {"subject", session.subject},
                                                   {"machine", session.summary},
                                                   {"knowledge", std::string((*knowledge)->date())}}));
      !described)
    return std::unexpected(described.error());

  CheckInputs inputs = options.inputs;
  inputs.live = options.from.empty();
  inputs.allow_probes = inputs.live;
  ladder::Options climb;
  if (!options.rung.empty()) climb.only_rung = rung_from_name(options.rung);
  record.begin("the demonstrations of the built-in workload were being recorded");
  if (inputs.workload == "reference") progress.show("… recording the demonstrations of the built-in workload");
  if (auto added = ladder::add_built_in_inputs(inputs, climb.only_rung, run.file("artifacts")); !added) return std::unexpected(added.error());
  std::map<std::string, std::shared_ptr<void>> scratch;
  CheckContext context{session.capture, session.machine,       **knowledge,
                       inputs,          run.file("artifacts"), [&progress](std::string_view text) { progress.show(text); }};
  context.scratch = &scratch;
  climb.only_checks = options.only;
  climb.keep_going = options.keep_going;
  climb.up_to_check = up_to_check;
  session.climb = ladder::climb(context, climb, record.observer(progress));

  // What was handed over is about rung 1; where only others were asked for, it says nothing about them and need not.
  bool judged = false, device_asked = false;
  for (const auto& rung : session.climb.rungs) {
    device_asked = device_asked || (rung.rung == Rung::device && !rung.checks.empty());
    for (const auto& check : rung.checks) judged = judged || check.status != Status::skip;
  }
  progress.show("… reading the logs");
  record.begin("the logs were being read");
  if (const auto explanation = diagnosis::explain_capture(session.capture, **knowledge)) {
    session.diagnoses = diagnosis::to_document(*explanation, **knowledge)["diagnoses"];
    for (const auto& diagnosis : session.diagnoses.items()) run.event("diagnosis", diagnosis);
  } else {
    session.notes.push_back("the logs could not be read: " + explanation.error().to_string());
  }
  if (!judged && device_asked && !options.from.empty()) {
    std::string remedy = "firstfault explain reads logs and tracebacks";
    for (const auto& diagnosis : session.diagnoses.items())
      if (!diagnosis["benign"].as_bool()) {
        remedy += fmt::format("; here it finds {} ({})", diagnosis["cause"].as_text(), diagnosis["confidence"].as_text());
        break;
      }
    // A part of a tree that was recognised does say something.
    for (const auto& [path, content] : session.capture.files())
      if (path.starts_with("/sys/class/kfd/") || path.starts_with("/sys/class/drm/") || path.starts_with("/sys/bus/pci/"))
        return std::unexpected(Error{fmt::format("holds too little to judge anything ({} was recognised)", path), join(options.from, ", "),
                                     "give the whole tree, for example /sys/class/kfd/kfd/topology or /sys/class/drm/card0/device; " + remedy, 3});
    return std::unexpected(Error{"says nothing about a machine, so nothing could be judged", join(options.from, ", "), std::move(remedy), 3});
  }
  if (session.climb.first_fault.empty()) point_to_explain(options, session);
  if (parent) compare_with_parent(*parent, options.parent, session);

  if (auto written = run.write("report.json", to_json(session_document(session, run.path()), 2) + "\n"); !written)
    return std::unexpected(written.error());
  std::error_code error;
  for (const auto& drawing : report::drawings(session.climb)) {
    std::filesystem::create_directories(std::filesystem::path(run.file(drawing.name)).parent_path(), error);
    if (auto written = run.write(drawing.name, drawing.svg); !written) return std::unexpected(written.error());
  }
  if (auto written = run.write("report.md", report::ladder_markdown(session.climb, report_context(session, options, run.path()))); !written)
    return std::unexpected(written.error());
  if (auto restored = write_restore_point(session, options, run); !restored)
    session.notes.push_back("no restore point: " + restored.error().to_string());
  record.begin("what follows the climb was being done");
  return session;
}

Value session_document(const CheckSession& session, const std::string& run_path) {
  Value document = report::ladder_value(session.climb, session.diagnoses, run_path);
  document.set("subject", session.subject).set("machine", session.summary).set("notes", Value::list_of(session.notes));
  if (!session.changed.is_null()) document.set("changed", session.changed);
  return document;
}

void print_session(const CheckSession& session, const CheckOptions& options, const std::string& run_path) {
  if (options.json)
    print_document(session_document(session, run_path));
  else
    std::cout << report::ladder_text(session.climb, report_context(session, options, run_path), report::Style::for_stdout(),
                                     report::terminal_width());
}

}  // namespace ff::cli
