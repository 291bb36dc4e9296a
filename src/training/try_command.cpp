// Rungs 5 and 6 with a user's command, or with lerobot-train in the user's own environment.
//
// Words in the command that are filled in: {out} a directory for the run, {steps} how many to train, {save_every} after how
// many to save, {resume:…} what is added to go on from the checkpoint (left out otherwise).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/largest_child.h"
#include "base/seconds.h"
#include "base/text.h"
#include "check/workload_words.h"
#include "python/python.h"
#include "training/command.h"
#include "training/judge.h"
#include "training/performance.h"
#include "training/resume_difference.h"
#include "training/statistics.h"

namespace ff::training {
namespace {

namespace fs = std::filesystem;

Result<Plan> plan_of(const CheckContext& context, const Work& work) {
  Plan plan;
  const auto& inputs = context.inputs;
  if (work.kind == "lerobot") {
    if (inputs.python.empty() || inputs.dataset.empty())
      return usage_error(
          "needs the environment and a dataset", "--workload lerobot",
          "--python PATH of the environment's interpreter and --dataset DIR; what stands behind -- is added to lerobot-train's arguments");
    std::error_code error;
    const fs::path program = fs::absolute(python::interpreter_of(inputs.python), error).parent_path() / "lerobot-train";
    if (!fs::exists(program, error))
      return usage_error("there is no lerobot-train beside this interpreter", program.string(), "pip install lerobot in that environment");
    plan.steps = 8;
    plan.save_every = 4;
    plan.argv = {program.string(),
                 "--dataset.repo_id=local/firstfault",
                 "--dataset.root=" + fs::absolute(inputs.dataset, error).string(),
                 "--output_dir={out}",
                 "--steps={steps}",
                 "--save_freq={save_every}",
                 "--log_freq=1",
                 "--batch_size=4",
                 "--num_workers=0",
                 "--wandb.enable=false",
                 "--policy.push_to_hub=false"};
    const auto train = lerobot_words(inputs.workload_command).train;
    const auto given = [&](const char* option) { return std::ranges::any_of(train, [&](const std::string& w) { return w.starts_with(option); }); };
    if (!given("--policy.type") && !given("--policy.path")) plan.argv.emplace_back("--policy.type=act");
    if (!given("--policy.device")) plan.argv.push_back("--policy.device=" + std::string(inputs.device == "cpu" ? "cpu" : "cuda"));
    plan.argv.insert(plan.argv.end(), train.begin(), train.end());
    plan.argv.emplace_back("{resume:--resume=true --config_path={out}/checkpoints/last/pretrained_model/train_config.json}");
  } else {
    plan.argv = inputs.workload_command;
  }
  for (const auto& word : plan.argv) {
    plan.fills_out = plan.fills_out || contains(word, "{out}");
    plan.resumes = plan.resumes || contains(word, "{resume:");
  }
  return plan;
}

/// Where a program keeps its checkpoints within its directory.
fs::path checkpoints_of(const fs::path& out) { return fs::exists(out / "checkpoints") ? out / "checkpoints" : out; }

/// The command inside a shell that holds it back; its own words are "$@".
std::vector<std::string> hindered(std::vector<std::string> argv, const fs::path& out, const Hindrance& h) {
  const std::string root = checkpoints_of(out).string();
  std::string script;
  if (h.file_bytes > 0) script = fmt::format("ulimit -f {} || {{ echo '{}' >&2; exit 125; }}; exec \"$@\"", h.file_bytes / 512, hindrance_failed);
  if (h.killed_at_save)
    // The group is killed, this shell with it: a program may have children that write.
    script =
        "root=$1; shift; before=$(ls -A \"$root\" | wc -l); \"$@\" & one=$!; "
        "while kill -0 $one 2>/dev/null; do [ \"$(ls -A \"$root\" | wc -l)\" -le \"$before\" ] || kill -9 0; sleep 0.01; done; wait $one";
  if (h.read_only)
    // Rights do not count for root: then a mount of its own, which needs the right to mount.
    script = ::geteuid() == 0 ? fmt::format(
                                    "root=$1; shift; mount --bind \"$root\" \"$root\" && mount -o remount,ro,bind \"$root\" || {{ echo '{}' >&2; "
                                    "exit 125; }}; exec \"$@\"",
                                    hindrance_failed)
                              : std::string("root=$1; shift; chmod a-w \"$root\"; \"$@\"; status=$?; chmod u+w \"$root\"; exit $status");
  if (script.empty()) return argv;
  std::vector<std::string> out_argv;
  if (h.read_only && ::geteuid() == 0) out_argv = {"unshare", "-m"};
  for (const char* word : {"/bin/sh", "-c"}) out_argv.emplace_back(word);
  out_argv.push_back(script);
  out_argv.emplace_back("sh");
  if (h.killed_at_save || h.read_only) out_argv.push_back(root);
  out_argv.insert(out_argv.end(), argv.begin(), argv.end());
  return out_argv;
}

CheckResult judge_end(const Attempt& a, const Plan& plan, const std::string& what) {
  Value measured = Value::object({{"command", join(filled(plan, a.out, false), " ")},
                                  {"ended", a.child.describe()},
                                  {"records", a.log.records.size()},
                                  {"duration_s", seconds_of(a.child.duration)}});
  if (a.child.ok())
    return CheckResult::pass(fmt::format("{} ended regularly after {} records, {:.1f} s", what, a.log.records.size(), seconds_of(a.child.duration)),
                             measured);
  if (a.child.start_errno != 0)
    return CheckResult::error(Error{"cannot be started: " + errno_text(a.child.start_errno), plan.argv.empty() ? "" : plan.argv.front(),
                                    "the command stands behind --", 3});
  auto said = judge_interruption(a.log);
  std::string cause = a.child.timed_out ? "training.stall" : a.child.signal ? "training.killed" : "training.configuration";
  if (said.status == Status::fail && !said.causes.empty()) cause = said.causes.front();
  std::string summary = fmt::format("{} ended with {}", what, a.child.describe());
  if (said.status == Status::fail) summary += ": " + said.summary;
  auto result = CheckResult::fail(cause, std::move(summary), measured);
  result.evidence = std::move(said.evidence);
  const std::string& err = a.child.err.empty() ? a.child.out : a.child.err;
  return result.because(
      {"last output", 0, std::string(trim(err.size() > 600 ? std::string_view(err).substr(err.size() - 600) : std::string_view(err)))});
}

/// Losses by step; the first step at which they differ by more than `bound` (relative), or nothing.
struct Difference {
  std::optional<double> step;
  std::string what;
  std::size_t compared = 0;
  double largest = 0;
};

Difference compare(const Log& a, const Log& b, Quantity q, double bound) {
  Difference out;
  std::map<double, double> of_a;
  for (const auto& r : a.records)
    if (r.holds(q) && std::isfinite(place_of(r))) of_a[place_of(r)] = r.of(q);
  for (const auto& r : b.records) {
    const auto found = r.holds(q) ? of_a.find(place_of(r)) : of_a.end();
    if (found == of_a.end()) continue;
    ++out.compared;
    const double x = found->second, y = r.of(q);
    const double off = relative_difference(x, y);
    out.largest = std::max(out.largest, off);
    if (!out.step && !(off <= bound)) {
      out.step = place_of(r);
      out.what = fmt::format("{} at {} {:.6g}: {:.6g} and {:.6g}", quantity_name(q), std::isfinite(r.step) ? "step" : "epoch", place_of(r), x, y);
    }
  }
  return out;
}

/// Never fails: a record.
CheckResult performance(const CheckContext& context, const Plan& plan, const Attempt& a, bool resume, const Work& work) {
  const bool tree = work.checkpoints && *work.checkpoints;
  const Performance p = performance_of(context, filled(plan, a.out, resume), a, tree ? &**work.checkpoints : nullptr);
  Value measured = p.to_value();
  measured.set("process_s", seconds_of(a.child.duration)).set("settings", a.log.settings);
  std::string text = p.text();
  if (resume) text += fmt::format("; the whole process, from its start over the restore to its end, {:.3g} s", seconds_of(a.child.duration));
  return CheckResult::pass(std::move(text), std::move(measured));
}

std::shared_ptr<CommandRuns> kept(const CheckContext& context) {
  if (context.scratch == nullptr) return nullptr;
  return std::static_pointer_cast<CommandRuns>((*context.scratch)["training-command"]);
}

}  // namespace

std::vector<std::string> filled(const Plan& plan, const fs::path& out, bool resume) {
  std::vector<std::string> argv;
  for (std::string word : plan.argv) {
    const auto begin = word.find("{resume:");
    std::vector<std::string> extra;
    if (begin != std::string::npos) {
      const auto end = word.rfind('}');
      const std::string inside = end == std::string::npos || end < begin ? "" : word.substr(begin + 8, end - begin - 8);
      word = word.substr(0, begin);
      if (resume)
        for (const auto piece : words(inside)) extra.emplace_back(piece);
      if (word.empty() && extra.empty()) continue;
    }
    const auto fill = [&](std::string s) {
      s = replace_all(std::move(s), "{out}", out.string());
      s = replace_all(std::move(s), "{steps}", std::to_string(plan.steps));
      return replace_all(std::move(s), "{save_every}", std::to_string(plan.save_every));
    };
    if (!word.empty()) argv.push_back(fill(word));
    for (auto& piece : extra) argv.push_back(fill(piece));
  }
  return argv;
}

double place_of(const Record& r) { return std::isfinite(r.step) ? r.step : r.of(Quantity::epoch); }

double relative_difference(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  return std::abs(x - y) / std::max({std::abs(x), std::abs(y), 1e-12});
}

Attempt attempt(const Plan& plan, const fs::path& out, bool resume, const std::string& name, const Hindrance& hindrance) {
  Attempt a;
  a.out = out;
  ChildOptions child;
  child.argv = hindered(filled(plan, out, resume), out, hindrance);
  child.time_limit = std::chrono::minutes(30);
  child.output_limit_bytes = 64U << 20U;
  const double before = largest_child_bytes();
  a.child = run_child(child);
  if (const double after = largest_child_bytes(); after > before) a.peak_process_bytes = after;
  a.log.sources.push_back(name);
  // Programs print records on either stream; the streams are read one after the other.
  read_text(a.child.out, 0, a.log);
  a.log.sources.push_back(name + ", standard error");
  Log errors;
  errors.sources = a.log.sources;
  read_text(a.child.err, 1, errors);
  if (a.log.records.empty()) {
    a.log.records = std::move(errors.records);
    for (auto& f : errors.formats) a.log.formats.push_back(std::move(f));
    for (const auto& e : a.log.events) errors.events.push_back(e);
    a.log.events = std::move(errors.events);
    for (const auto& [key, value] : errors.settings.members()) a.log.settings.set(key, value);
  } else {
    for (auto e : errors.events) {
      e.after_record = a.log.records.size();
      a.log.events.push_back(std::move(e));
    }
  }
  finish(a.log);
  return a;
}

Result<void> copy_up_to(const fs::path& from, const fs::path& to, std::int64_t keep) {
  std::error_code error;
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  if (error) return fail("cannot be copied: " + error.message(), from.string());
  const fs::path root = checkpoints_of(to);
  std::string kept;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    std::string_view digits = name;
    if (digits.starts_with("checkpoint-")) digits.remove_prefix(11);
    const auto step = to_integer<std::int64_t>(digits);
    if (!step) continue;
    if (*step == keep)
      kept = name;
    else
      fs::remove_all(entry.path(), error);
  }
  if (kept.empty()) return fail(fmt::format("has no checkpoint of step {}", keep), root.string());
  if (fs::is_symlink(root / "last", error)) {
    fs::remove(root / "last", error);
    fs::create_symlink(kept, root / "last", error);
  }
  return {};
}

void try_command_step(const CheckContext& context, Work& work) {
  auto plan = plan_of(context, work);
  if (!plan) {
    work.log = std::unexpected(plan.error());
    work.tried["step.runs"] = CheckResult::error(plan.error());
    return;
  }
  if (plan->argv.empty()) {
    if (context.inputs.results.empty()) {
      const Error none{"no command and no results were given", "--workload command",
                       "-- CMD … (with {out}, {steps}, {save_every}, {resume:…} where it takes them), or --results DIR", 2};
      work.log = std::unexpected(none);
      work.tried["step.runs"] = CheckResult::error(none);
      return;
    }
    work.log = read_log({context.inputs.results});
    work.tried["step.runs"] = CheckResult::skip("no command was given: the logs and checkpoints of --results are judged");
    if (auto tree = read_checkpoints(context.inputs.results); tree) work.checkpoints = std::move(tree);
    work.resume_done = true;
    return;
  }
  auto state = std::make_shared<CommandRuns>();
  state->plan = std::move(*plan);
  auto place = TemporaryDirectory::make("firstfault-train");
  if (!place) {
    work.tried["step.runs"] = CheckResult::error(place.error());
    return;
  }
  state->plan.root = place->path();
  state->place = std::move(*place);
  if (context.scratch != nullptr) (*context.scratch)["training-command"] = state;
  context.progress("… running the workload: " + state->plan.argv.front());
  state->straight = attempt(state->plan, state->plan.root / "straight", false, "output of the workload");
  Attempt& a = state->straight;
  if (!context.artifacts.empty()) {
    std::error_code error;
    fs::create_directories(context.artifacts, error);
    (void)write_file(fs::path(context.artifacts) / "train.log", a.child.out + a.child.err);
  }
  work.tried["step.runs"] = judge_end(a, state->plan, "the workload");
  const fs::path results = state->plan.fills_out ? a.out : fs::path(context.inputs.results);
  if (a.log.records.empty() && !results.empty())
    if (auto files = read_log({results.string()}); files) a.log = std::move(*files);
  work.log = a.log;
  if (!results.empty())
    if (auto tree = read_checkpoints(results.string()); tree) work.checkpoints = std::move(tree);
  if (!a.child.ok()) return;
  if (const fs::path policy = a.out / "checkpoints/last/pretrained_model"; context.scratch != nullptr && fs::exists(policy))
    (*context.scratch)[trained_policy_key] = std::make_shared<std::string>(policy);
  work.tried["step.performance"] = performance(context, state->plan, a, false, work);
  if (work.checkpoints && *work.checkpoints) judge_movement(context, **work.checkpoints, a.log, work);
  if (!state->plan.fills_out) return;
  context.progress("… running it again from the same seed");
  const Attempt again = attempt(state->plan, state->plan.root / "again", false, "second run");
  const auto loss = compare(a.log, again.log, Quantity::loss, 0);
  Value measured = Value::object({{"compared", loss.compared}, {"largest_relative_difference", loss.largest}});
  if (!again.child.ok())
    work.tried["step.reproducible"] = judge_end(again, state->plan, "the second run");
  else if (loss.compared == 0)
    work.tried["step.reproducible"] = CheckResult::skip("the two runs have no losses at the same steps");
  else if (!loss.step)
    work.tried["step.reproducible"] = CheckResult::pass(fmt::format("two runs print the same loss in all {} records", loss.compared), measured);
  // Libraries may differ in the last bits from run to run: named, and a fault only when it is more than that.
  else if (loss.largest < 0.01)
    work.tried["step.reproducible"] =
        CheckResult::warn("precision.nondeterministic", "two runs from the same seed differ slightly; first: " + loss.what, measured);
  else
    work.tried["step.reproducible"] =
        CheckResult::fail("precision.nondeterministic", "two runs from the same seed differ; first: " + loss.what, measured)
            .because({"two runs", 0, loss.what});
}

void try_command_resume(const CheckContext& context, Work& work) {
  const auto state = kept(context);
  if (state == nullptr) return;
  if (!state->straight.child.ok()) {
    // Alone this rung would otherwise say nothing about a workload that does not run.
    const Error dead{"the workload does not run: " + state->straight.child.describe(), join(state->plan.argv, " "),
                     "firstfault check --rung step says why", 3};
    work.tried["resume.continues"] = CheckResult::error(dead);
    work.log = std::unexpected(dead);
    return;
  }
  const Plan& plan = state->plan;
  if (!plan.fills_out || !plan.resumes) {
    work.tried["resume.continues"] = CheckResult::skip("the command has no {out} and {resume:…}: it cannot be stopped and continued from here");
    return;
  }
  const fs::path out = plan.root / "resumed";
  auto& answer = work.tried["resume.continues"];
  if (auto copied = copy_up_to(state->straight.out, out, static_cast<std::int64_t>(plan.save_every)); !copied) {
    answer = CheckResult::fail("training.checkpoint-write-failed", "there is nothing to go on from: " + copied.error().to_string(),
                               Value::object({{"save_every", plan.save_every}}));
    return;
  }
  context.progress("… continuing the workload from its checkpoint");
  const Attempt resumed = attempt(plan, out, true, "continued run");
  work.log = resumed.log;
  if (!resumed.child.ok()) {
    answer = judge_end(resumed, plan, "the continued run");
    if (answer.causes.size() == 1 && answer.causes[0] == "training.configuration")
      answer.causes = {"training.resume-state-missing", "training.configuration"};
    return;
  }
  if (auto tree = read_checkpoints(out.string()); tree) work.checkpoints = std::move(tree);
  work.tried["resume.performance"] = performance(context, plan, resumed, true, work);
  try_command_saves(context, *state, resumed, work);
  Value measured = Value::object({{"steps", plan.steps}, {"interrupted_at", plan.save_every}});
  const double first = resumed.log.records.empty() ? unknown : resumed.log.records.front().step;
  measured.set("first_step", first);
  if (std::isfinite(first) && first <= static_cast<double>(plan.save_every)) {
    answer = CheckResult::fail("training.resume-reset",
                               fmt::format("the continued run begins with step {:.0f}, and step {} was saved", first, plan.save_every), measured)
                 .because(evidence_of(resumed.log, resumed.log.records.front()));
    return;
  }
  const auto rate = compare(state->straight.log, resumed.log, Quantity::learning_rate, 0.02),
             loss = compare(state->straight.log, resumed.log, Quantity::loss, 0);
  measured.set("losses_compared", loss.compared).set("largest_loss_difference", loss.largest);
  if (rate.step) {
    answer = CheckResult::fail("training.resume-state-missing", "the continued run is another one: " + rate.what, measured)
                 .because({"straight and continued run", 0, rate.what});
    return;
  }
  // The last checkpoints of both, byte for byte.
  std::string same;
  const auto a = read_checkpoints(state->straight.out.string()), b = read_checkpoints(out.string());
  if (a && b && !a->checkpoints.empty() && !b->checkpoints.empty() && a->checkpoints.back().named_step == b->checkpoints.back().named_step) {
    same = "weights";
    for (const char* name : {"pretrained_model/model.safetensors", "model.safetensors"}) {
      const auto x = read_file(a->checkpoints.back().path + "/" + name, 8ULL << 30U),
                 y = read_file(b->checkpoints.back().path + "/" + name, 8ULL << 30U);
      if (!x || !y) continue;
      same = *x == *y ? "equal" : "different";
      break;
    }
    measured.set("final_weights", same);
  }
  // Nothing was compared: neither do the logs share a step, nor can the weights be told.
  if (loss.compared == 0 && same != "equal" && same != "different") {
    answer =
        CheckResult::skip("the straight and the continued run print no losses at the same steps, and their last weights are no safetensors files");
    return;
  }
  if (!loss.step && same != "different") {
    if (loss.compared == 0) {
      answer = CheckResult::pass(
          fmt::format("{} steps straight, and {} + save + another process + {}: the same weights to the bit (no losses at the same steps)",
                      plan.steps, plan.save_every, plan.steps - plan.save_every),
          measured);
      return;
    }
    answer = CheckResult::pass(fmt::format("{} steps straight, and {} + save + another process + {}: the same losses{}", plan.steps, plan.save_every,
                                           plan.steps - plan.save_every, same == "equal" ? " and the same weights to the bit" : ""),
                               measured);
    return;
  }
  const std::string what = loss.step ? loss.what : "weights after the last step";
  const bool has_checkpoint = work.checkpoints && *work.checkpoints && !(*work.checkpoints)->checkpoints.empty();
  const auto again = work.tried.find("step.reproducible");
  const auto difference =
      resume_difference(has_checkpoint ? &(*work.checkpoints)->checkpoints.back() : nullptr,
                        again == work.tried.end() || (again->second.status != Status::warn && again->second.status != Status::fail));
  if (!difference.why.empty()) measured.set("why", difference.why);
  const std::string because = difference.why.empty() ? "" : "; " + difference.why;
  if (loss.largest < difference.allowed) {
    answer = CheckResult::pass(fmt::format("it goes on at the same level, not to the bit; the first difference is in {}{}", what, because), measured);
    return;
  }
  answer =
      CheckResult::fail("training.resume-state-missing", "the continued run is another one; the first difference is in " + what + because, measured)
          .because({"straight and continued run", 0, what});
}

}  // namespace ff::training
