// Checkpoint directories as lerobot (common/train_utils.py), HF Trainer (trainer.py), accelerate (checkpointing.py) and
// openpi (scripts/train_pytorch.py) write them.
#include "training/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/readable.h"
#include "base/text.h"
#include "training/series.h"

namespace ff::training {
namespace {

namespace fs = std::filesystem;

bool there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::optional<std::int64_t> step_of_name(const std::string& name) {
  for (const std::string_view prefix : {"checkpoint-", "checkpoint_", "step_", "step-", ""}) {
    if (!name.starts_with(prefix)) continue;
    const auto n = to_integer<std::int64_t>(std::string_view(name).substr(prefix.size()));
    if (n && *n >= 0) return n;
  }
  return std::nullopt;
}

std::string first_there(const fs::path& root, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (there(root / name)) return name;
  return {};
}

/// Weights in one file, or an index with all its shards.
StatePart weights(const fs::path& root, CheckpointState& state) {
  StatePart part{"weights", false, true, "model.safetensors", ""};
  const std::string index = first_there(root, {"model.safetensors.index.json", "pytorch_model.bin.index.json"});
  if (!index.empty()) {
    part.file = index;
    part.present = true;
    std::set<std::string> shards;
    const Value document = json_of(root / index);
    for (const auto& [tensor, file] : document["weight_map"].members()) shards.emplace(file.as_text());
    for (const auto& shard : shards)
      if (shard.empty() || contains(shard, "/") || !there(root / shard)) {
        part.present = false;
        state.problems.push_back(
            {(root / index).string(), "names the shard \"" + shard.substr(0, 100) + "\", which is not there", "training.checkpoint-write-failed"});
      }
    return part;
  }
  const std::string file = first_there(root, {"model.safetensors", "pytorch_model.bin", "adapter_model.safetensors", "adapter_model.bin", "model.pt",
                                              "diffusion_pytorch_model.safetensors"});
  part.present = !file.empty();
  if (part.present) part.file = file;
  return part;
}

void lerobot(const fs::path& root, CheckpointState& s) {
  s.kind = "lerobot";
  const fs::path model = root / "pretrained_model", state = root / "training_state";
  StatePart w = weights(model, s);
  w.file = "pretrained_model/" + w.file;
  s.parts.push_back(w);
  const auto part = [&](const char* name, std::initializer_list<const char*> files) {
    StatePart p{name, false, true, fmt::format("training_state/{}", *files.begin()), ""};
    const std::string found = first_there(state, files);
    p.present = !found.empty();
    if (p.present) p.file = "training_state/" + found;
    return p;
  };
  const Value config = json_of(model / "train_config.json");
  s.parts.push_back(part("optimizer", {"optimizer_state.safetensors"}));
  if (s.parts.back().present && !there(state / "optimizer_param_groups.json"))
    s.parts.back() = {"optimizer", false, true, "training_state/optimizer_param_groups.json", ""};
  // Newer versions keep one directory for each of several optimisers.
  std::error_code error;
  for (auto it = fs::directory_iterator(state, error); !error && it != fs::directory_iterator(); it.increment(error))
    if (it->is_directory(error) && there(it->path() / "optimizer_state.safetensors")) s.parts.back().present = true;
  StatePart scheduler = part("scheduler", {"scheduler_state.json"});
  if (!scheduler.present && config.find("scheduler") != nullptr && config["scheduler"].is_null()) {
    scheduler.needed = false;
    scheduler.note = "the run has no scheduler (train_config.json)";
  }
  s.scheduler_step = json_of(state / "scheduler_state.json")["last_epoch"].as_int(-1);
  s.parts.push_back(scheduler);
  s.parts.push_back(part("random state", {"rng_state.safetensors", "rng_state.json"}));
  StatePart sampler = part("sampler", {"sampler_state.json", "dataloader_state.json", "data_state.json"});
  if (!sampler.present && json_of(state / "training_step.json")["batch_size"].as_int(0) > 0) {
    // lerobot 0.6.1 computes the position: the order is a function of the seed and the epoch.
    sampler = {"sampler", true, true, "training_state/training_step.json", "the position follows from the step, the batch size and the seed"};
  } else if (!sampler.present && config["type"].as_text() != "reference") {
    sampler.needed = false;
    sampler.note = "this lerobot saves no sampler position (0.6.1 does): samples are drawn in a new order after a resumption";
  }
  s.parts.push_back(sampler);
  StatePart step = part("step", {"training_step.json"});
  s.recorded_step = json_of(state / "training_step.json")["step"].as_int(-1);
  if (step.present && s.recorded_step < 0) step.present = false;
  s.parts.push_back(step);
}

void trainer(const fs::path& root, CheckpointState& s) {
  s.kind = "HF Trainer";
  s.parts.push_back(weights(root, s));
  const auto part = [&](const char* name, std::initializer_list<const char*> files) {
    const std::string found = first_there(root, files);
    return StatePart{name, !found.empty(), true, found.empty() ? *files.begin() : found, ""};
  };
  s.parts.push_back(part("optimizer", {"optimizer.pt", "optimizer.bin"}));
  s.parts.push_back(part("scheduler", {"scheduler.pt"}));
  s.parts.push_back(part("random state", {"rng_state.pth", "rng_state_0.pth"}));
  s.parts.push_back({"sampler", true, true, "trainer_state.json", "the order follows from the seed; the batches that are done are skipped"});
  s.parts.push_back(part("step", {"trainer_state.json"}));
  s.recorded_step = json_of(root / "trainer_state.json")["global_step"].as_int(-1);
  s.parts[4].present = s.parts[5].present && s.recorded_step >= 0;
  if (s.recorded_step < 0) s.parts[5].present = false;
}

void accelerate(const fs::path& root, CheckpointState& s) {
  s.kind = "accelerate";
  s.parts.push_back(weights(root, s));
  const auto part = [&](const char* name, std::initializer_list<const char*> files, bool needed = true) {
    const std::string found = first_there(root, files);
    return StatePart{name, !found.empty(), needed, found.empty() ? *files.begin() : found, ""};
  };
  s.parts.push_back(part("optimizer", {"optimizer.bin", "optimizer.pt"}));
  StatePart scheduler = part("scheduler", {"scheduler.bin"}, false);
  scheduler.note = scheduler.present ? "" : "saved when one was handed to prepare()";
  s.parts.push_back(scheduler);
  s.parts.push_back(part("random state", {"random_states_0.pkl"}));
  StatePart sampler = part("sampler", {"sampler.bin", "sampler_0.bin", "dl_state_dict.bin"}, false);
  sampler.note = sampler.present ? "" : "saved when the loader was handed to prepare()";
  s.parts.push_back(sampler);
  s.parts.push_back({"step", s.named_step >= 0, false, root.filename().string(), "accelerate saves no step: the directory's name tells it"});
}

void openpi(const fs::path& root, CheckpointState& s) {
  s.kind = "openpi";
  s.parts.push_back(weights(root, s));
  s.parts.push_back({"optimizer", there(root / "optimizer.pt"), true, "optimizer.pt", ""});
  s.parts.push_back({"scheduler", true, false, "", "follows from the step"});
  s.parts.push_back({"random state", false, false, "", "openpi saves none"});
  s.parts.push_back({"sampler", false, false, "", "openpi saves none: samples are drawn in a new order after a resumption"});
  s.parts.push_back({"step", there(root / "metadata.pt"), true, "metadata.pt", ""});
}

bool is_checkpoint(const fs::path& root) {
  return there(root / "pretrained_model") || there(root / "training_state") || there(root / "trainer_state.json") || there(root / "optimizer.pt") ||
         there(root / "optimizer.bin") || (there(root / "model.safetensors") && step_of_name(root.filename()));
}

/// Nothing is judged of a checkpoint of which a file cannot be read: it would seem to lack it.
Result<CheckpointState> read_one(const fs::path& root) {
  if (auto unread = unreadable_below(root, {}, 4)) return std::unexpected(std::move(*unread));
  CheckpointState s;
  s.path = root.string();
  std::error_code error;
  const fs::path real = fs::canonical(root, error);
  s.named_step = step_of_name((error ? root : real).filename()).value_or(-1);
  if (there(root / "pretrained_model") || there(root / "training_state"))
    lerobot(root, s);
  else if (there(root / "metadata.pt"))
    openpi(root, s);
  else if (there(root / "optimizer.bin") || there(root / "random_states_0.pkl"))
    accelerate(root, s);
  else
    trainer(root, s);
  std::size_t seen = 0;
  for (auto it = fs::recursive_directory_iterator(root, error); !error && it != fs::recursive_directory_iterator() && ++seen < 10'000;
       it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    const auto looked = file_problem(it->path().string());
    if (!looked) return std::unexpected(looked.error());
    if (const std::string& problem = *looked; !problem.empty())
      s.problems.push_back({it->path().string(), problem, contains(problem, "LFS") ? "model.lfs-pointer" : "training.checkpoint-write-failed"});
  }
  return s;
}

std::string counted(std::size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

}  // namespace

Value json_of(const fs::path& path) {
  const auto text = read_file(path, 64U << 20U);
  if (!text) return {};
  auto value = parse_json(quote_nonfinite(*text), path.string());
  return value ? std::move(*value) : Value();
}

const StatePart* CheckpointState::part(std::string_view name) const {
  const auto found = std::ranges::find(parts, name, &StatePart::name);
  return found == parts.end() ? nullptr : &*found;
}

Result<CheckpointTree> read_checkpoints(const std::string& directory) {
  fs::path root(directory);
  std::error_code error;
  if (auto unread = unreadable(root)) return std::unexpected(std::move(*unread));
  if (!fs::is_directory(root, error))
    return usage_error(there(root) ? "is no directory" : "does not exist", directory, "name a run, its checkpoints/ or one checkpoint");
  CheckpointTree tree;
  const auto take = [&](const fs::path& checkpoint) -> Result<void> {
    auto read = read_one(checkpoint);
    std::error_code gone;
    // A run that goes on removes its oldest checkpoint.
    if (!read) return fs::exists(checkpoint, gone) ? Result<void>(std::unexpected(read.error())) : Result<void>();
    tree.checkpoints.push_back(std::move(*read));
    return {};
  };
  if (is_checkpoint(root)) {
    tree.root = directory;
    // A run of HF Trainer holds the final model beside its checkpoints: then it is a run.
    bool run = false;
    for (auto it = fs::directory_iterator(root, error); !error && it != fs::directory_iterator(); it.increment(error))
      run = run || (it->is_directory(error) && step_of_name(it->path().filename()) && is_checkpoint(it->path()));
    if (!run) {
      if (auto taken = take(root); !taken) return std::unexpected(taken.error());
      return tree;
    }
  }
  if (there(root / "checkpoints")) root /= "checkpoints";
  tree.root = root.string();
  if (auto unread = unreadable(root)) return std::unexpected(std::move(*unread));
  for (auto it = fs::directory_iterator(root, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename();
    if (name == "last") {
      tree.has_last = true;
      std::error_code ignored;
      tree.last_target = it->is_symlink(ignored) ? fs::read_symlink(it->path(), ignored).string() : "";
      tree.last_dangling = !fs::exists(it->path(), ignored);
      continue;
    }
    if (!it->is_directory(error)) continue;
    if (contains(name, ".tmp") || name.starts_with("tmp-") || name.ends_with("-tmp") || contains(name, ".incomplete")) {
      tree.leftovers.push_back(it->path().string());
      continue;
    }
    if (!step_of_name(name)) continue;
    if (auto taken = take(it->path()); !taken) return std::unexpected(taken.error());
  }
  if (error) return fail("cannot be listed: " + error.message(), root.string());
  if (tree.checkpoints.empty() && !tree.has_last)
    return fail("holds no checkpoint", directory, "looked for checkpoints/<step>/{pretrained_model,training_state}, checkpoint-<step>/, <step>/");
  std::ranges::sort(tree.checkpoints, {}, [](const CheckpointState& s) { return std::pair(s.named_step, s.path); });
  return tree;
}

CheckResult judge_checkpoint_whole(const CheckpointTree& tree) {
  if (tree.checkpoints.empty())
    return CheckResult::fail("training.resume-state-missing", "there is no checkpoint: the link \"last\" is all that is left");
  const CheckpointState* torn = nullptr;
  std::size_t count = 0;
  for (const auto& c : tree.checkpoints)
    if (!c.whole()) {
      torn = &c;  // the newest speaks
      ++count;
    }
  Value measured = Value::object({{"checkpoints", tree.checkpoints.size()}, {"torn", count}, {"unfinished_saves", Value::list_of(tree.leftovers)}});
  if (torn == nullptr) {
    std::string summary = counted(tree.checkpoints.size(), "checkpoint") + ", every file complete";
    if (!tree.leftovers.empty()) summary += fmt::format("; {} was stopped and left a temporary directory", counted(tree.leftovers.size(), "save"));
    return CheckResult::pass(std::move(summary), std::move(measured));
  }
  const bool newest = torn == &tree.checkpoints.back();
  const FileProblem& first = torn->problems.front();
  std::string summary = fmt::format("the checkpoint of step {} is torn: {} {}", torn->named_step,
                                    fs::path(first.file).lexically_relative(torn->path).string(), first.what);
  if (torn->problems.size() > 1) summary += fmt::format(" (and {} more files)", torn->problems.size() - 1);
  std::int64_t good = -1;
  for (const auto& c : tree.checkpoints)
    if (c.whole()) good = c.step();
  if (newest) summary += good >= 0 ? fmt::format("; the newest whole one is of step {}", good) : "; there is no whole one";
  auto result = newest ? CheckResult::fail(first.cause, std::move(summary), std::move(measured))
                       : CheckResult::warn(first.cause, std::move(summary), std::move(measured));
  for (const auto& c : tree.checkpoints)
    for (const auto& p : c.problems)
      if (result.evidence.size() < 20) result.because({p.file, 0, p.what});
  return result;
}

CheckResult judge_checkpoint_state(const CheckpointTree& tree) {
  if (tree.checkpoints.empty()) return CheckResult::skip("there is no checkpoint");
  const CheckpointState& c = tree.checkpoints.back();
  Value parts = Value::object();
  std::vector<std::string> missing, notes;
  for (const auto& p : c.parts) {
    parts.set(p.name, Value::object({{"present", p.present}, {"needed", p.needed}, {"file", p.file}, {"note", p.note}}));
    if (!p.present && p.needed) missing.push_back(p.name + " (" + p.file + ")");
    if (!p.present && !p.needed && !p.note.empty()) notes.push_back("no " + p.name + ": " + p.note);
  }
  Value measured = Value::object({{"checkpoint", c.path}, {"kind", c.kind}, {"parts", std::move(parts)}});
  if (!missing.empty()) {
    auto result = CheckResult::fail(
        "training.resume-state-missing",
        fmt::format("the newest checkpoint (step {}) lacks {}: a resumed run would not go on as it was", c.step(), join(missing, ", ")),
        std::move(measured));
    for (const auto& p : c.parts)
      if (!p.present && p.needed) result.because({c.path + "/" + p.file, 0, "is not there"});
    return result;
  }
  std::string summary = fmt::format("the newest checkpoint ({}, step {}) has everything that a resumption needs", c.kind, c.step());
  if (!notes.empty()) summary += "; " + join(notes, "; ");
  return CheckResult::pass(std::move(summary), std::move(measured));
}

CheckResult judge_checkpoint_step(const CheckpointTree& tree) {
  if (tree.checkpoints.empty()) return CheckResult::skip("there is no checkpoint");
  const CheckpointState& newest = tree.checkpoints.back();
  for (auto it = tree.checkpoints.rbegin(); it != tree.checkpoints.rend(); ++it) {
    const CheckpointState& c = *it;
    const bool wrong_name = c.named_step >= 0 && c.recorded_step >= 0 && c.named_step != c.recorded_step;
    const bool wrong_schedule = c.recorded_step >= 0 && c.scheduler_step >= 0 && c.scheduler_step != c.recorded_step;
    if (!wrong_name && !wrong_schedule) continue;
    std::string summary = wrong_name ? fmt::format("the directory says step {}, its own record says {}", c.named_step, c.recorded_step)
                                     : fmt::format("the record says step {}, the scheduler was saved at {}", c.recorded_step, c.scheduler_step);
    Value measured = Value::object({{"named_step", c.named_step}, {"recorded_step", c.recorded_step}, {"scheduler_step", c.scheduler_step}});
    auto result = &c == &newest ? CheckResult::fail("training.resume-reset", summary + ": parts of two moments are together", std::move(measured))
                                : CheckResult::warn("training.resume-reset", summary, std::move(measured));
    return result.because({c.path, 0, summary});
  }
  if (newest.step() < 0)
    return CheckResult::warn("training.resume-state-missing", "no file and no name tells the step", Value::object({{"checkpoint", newest.path}}));
  return CheckResult::pass(fmt::format("the next step would be {}", newest.step() + 1), Value::object({{"recorded_step", newest.recorded_step},
                                                                                                       {"named_step", newest.named_step},
                                                                                                       {"scheduler_step", newest.scheduler_step},
                                                                                                       {"next_step", newest.step() + 1}}));
}

CheckResult judge_checkpoint_last(const CheckpointTree& tree) {
  if (!tree.has_last) {
    for (const auto& c : tree.checkpoints)
      if (c.kind == "lerobot" && fs::path(tree.root).filename() == "checkpoints")
        return CheckResult::warn("training.resume-reset",
                                 "there is no link checkpoints/last, which lerobot-train --resume follows: copied without links, or the save was "
                                 "stopped before it was set");
    return CheckResult::skip("this layout has no link to the newest checkpoint");
  }
  Value measured = Value::object({{"target", tree.last_target}});
  if (tree.last_dangling)
    return CheckResult::fail("training.resume-state-missing", "the link \"last\" points to \"" + tree.last_target + "\", which is not there",
                             std::move(measured))
        .because({tree.root + "/last", 0, tree.last_target});
  if (tree.last_target.empty())
    return CheckResult::warn("training.resume-reset", "\"last\" is a copy and no link: it does not move on with the run", std::move(measured));
  const auto step = step_of_name(fs::path(tree.last_target).filename());
  if (tree.checkpoints.empty() || !step) return CheckResult::skip("nothing to compare the link with");
  const auto newest = tree.checkpoints.back().named_step;
  measured.set("newest_step", newest);
  if (*step != newest)
    return CheckResult::fail("training.resume-reset",
                             fmt::format("the link \"last\" points to step {} and the newest checkpoint is of step {}: a resumption repeats {} steps",
                                         *step, newest, newest - *step),
                             std::move(measured))
        .because({tree.root + "/last", 0, tree.last_target});
  return CheckResult::pass(fmt::format("the link \"last\" points to the newest checkpoint, step {}", newest), std::move(measured));
}

}  // namespace ff::training
