// What moved between two checkpoints of a user's own run, and what its network is given: from the files, without the framework.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "training/checkpoint.h"
#include "training/command.h"
#include "training/series.h"
#include "training/weights_file.h"

namespace ff::training {
namespace {

namespace fs = std::filesystem;

/// Values that a network carries along and no optimiser moves: statistics of normalisation, running means, tables of positions.
bool is_buffer(const std::string& name, const StoredTensor& tensor) {
  if (!tensor.real()) return true;
  static constexpr const char* words[] = {"running_mean", "running_var", "num_batches_tracked", "buffer_",         "position_ids",
                                          "inv_freq",     "normalize_",  "unnormalize_",        "normalizer.stat", "pos_enc.pe"};
  return std::ranges::any_of(words, [&](const char* word) { return contains(name, word); });
}

/// "model.encoder" of "model.encoder.layers.0.linear1.weight".
std::string group_of(const std::string& name) {
  const auto first = name.find('.');
  const auto second = first == std::string::npos ? first : name.find('.', first + 1);
  return second == std::string::npos ? name.substr(0, first) : name.substr(0, second);
}

struct Group {
  std::uint64_t moved = 0, still = 0;  ///< elements of tensors that changed, and of those that did not
  double change = 0, size = 0;         ///< sums of squares, of what is float32 or float64
  std::vector<std::string> unmoved;
  [[nodiscard]] double relative() const { return size > 0 ? std::sqrt(change / size) : unknown; }
};

std::map<std::string, Group> compare(const StoredTensors& before, const StoredTensors& after) {
  std::map<std::string, Group> groups;
  for (const auto& [name, a] : before.all()) {
    const StoredTensor* b = after.find(name);
    if (b == nullptr || b->type != a.type || b->bytes.size() != a.bytes.size() || is_buffer(name, a)) continue;
    Group& group = groups[group_of(name)];
    const bool same = a.bytes == b->bytes;
    (same ? group.still : group.moved) += a.elements;
    if (same) group.unmoved.push_back(name);
    const auto x = a.values(), y = b->values();
    for (std::size_t i = 0; i < x.size(); ++i) {
      group.change += (y[i] - x[i]) * (y[i] - x[i]);
      group.size += std::max(x[i] * x[i], y[i] * y[i]);
    }
  }
  return groups;
}

std::string path_of(const CheckpointState& checkpoint) {
  const StatePart* weights = checkpoint.part("weights");
  if (weights == nullptr || !weights->present || !weights->file.ends_with(".safetensors")) return {};
  return (fs::path(checkpoint.path) / weights->file).string();
}

void judge_groups(const std::map<std::string, Group>& groups, const Log& log, std::int64_t from, std::int64_t to, Work& work) {
  std::uint64_t moved = 0, still = 0;
  std::vector<std::string> standing, unmoved, said;
  Value by_group = Value::object();
  for (const auto& [name, g] : groups) {
    moved += g.moved;
    still += g.still;
    if (g.moved == 0) standing.push_back(name);
    unmoved.insert(unmoved.end(), g.unmoved.begin(), g.unmoved.end());
    if (std::isfinite(g.relative()) && said.size() < 12) said.push_back(fmt::format("{} {:.2g}", name, g.relative()));
    by_group.set(name, Value::object({{"elements_moved", g.moved}, {"elements_still", g.still}, {"relative_change", g.relative()}}));
  }
  const double learnable = log.settings["learnable"].as_real(-1), total = log.settings["total"].as_real(-1);
  Value measured = Value::object({{"from_step", from}, {"to_step", to}, {"elements_moved", moved}, {"elements_still", still}, {"groups", by_group}});
  if (learnable >= 0) measured.set("learnable", learnable);
  const std::string steps = fmt::format("from step {} to {}", from, to), changes = said.empty() ? "" : " (relative change: " + join(said, ", ") + ")";
  const auto named = [](std::vector<std::string> all) {
    const std::size_t more = all.size() > 4 ? all.size() - 4 : 0;
    all.resize(std::min<std::size_t>(all.size(), 4));
    return join(all, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
  };
  auto& answer = work.tried["step.parameters-move"];
  const double missing = learnable - static_cast<double>(moved);
  if (moved == 0) {
    answer =
        CheckResult::fail("training.gradient-zero", "no parameter moved " + steps + ": the checkpoints hold the same weights to the bit", measured)
            .because({"checkpoints", 0, named(unmoved)});
  } else if (learnable > 0 && missing > 0.5 * learnable) {
    answer =
        CheckResult::fail(
            "training.gradient-zero",
            fmt::format("of {:.0f} parameters that are trained only {} moved {}: {} stand still", learnable, moved, steps, named(unmoved)), measured)
            .because({"checkpoints", 0, named(unmoved)});
  } else if (unmoved.empty() || (learnable >= 0 && missing <= 0)) {
    answer = CheckResult::pass(fmt::format("every trained group moves {}{}", steps, changes), measured);
  } else if (learnable > 0) {
    // Modules that a loss does not reach stand still in many published policies; who trains them should know.
    answer =
        CheckResult::warn("training.gradient-zero",
                          fmt::format("{:.0f} of {:.0f} trained parameters did not move {}: {}", missing, learnable, steps, named(unmoved)), measured)
            .because({"checkpoints", 0, named(unmoved)});
  } else {
    answer = CheckResult::pass(fmt::format("{} of {} tensor elements move {}; {}; the log does not say what is trained{}", moved, moved + still,
                                           steps, named(standing.empty() ? unmoved : standing) + " stand still", changes),
                               measured);
  }
  auto& frozen = work.tried["step.frozen-still"];
  if (learnable < 0)
    frozen = CheckResult::skip("the log does not say how many parameters are trained (num_learnable_params=…)");
  else if (static_cast<double>(moved) > learnable)
    frozen =
        CheckResult::fail("training.configuration",
                          fmt::format("{} parameters moved {}, and {:.0f} are trained: something frozen moves", moved, steps, learnable), measured)
            .because({"checkpoints", 0, join(said, ", ")});
  else if (learnable >= total && total > 0)
    frozen = CheckResult::pass("nothing is frozen: all parameters are trained", measured);
  else
    frozen = CheckResult::pass(fmt::format("no more than what is trained moves ({} of {:.0f} parameters {})", moved, learnable, steps), measured);
}

/// Statistics of one feature: of the dataset, or those with which the policy normalises.
struct Range {
  double low = unknown, high = unknown;                ///< raw
  double low_normal = unknown, high_normal = unknown;  ///< (raw - mean) / deviation
  std::string worst;                                   ///< dimension that is farthest out
};

void flatten(const Value& value, std::vector<double>& out) {
  if (value.is_list()) {
    for (const auto& item : value.items()) flatten(item, out);
  } else {
    out.push_back(value.as_real(unknown));
  }
}

std::vector<double> numbers(const Value& value) {
  std::vector<double> out;
  flatten(value, out);
  return out;
}

/// mean and std of a feature as the checkpoint carries them (a processor's file since lerobot 0.4, buffers of the model before).
std::vector<double> of_policy(const std::vector<StoredTensors>& files, const std::string& feature, const std::string& kind) {
  for (const auto& file : files)
    for (const std::string& name : {feature + "." + kind, "normalize_inputs.buffer_" + replace_all(feature, ".", "_") + "." + kind,
                                    "normalize_targets.buffer_" + replace_all(feature, ".", "_") + "." + kind})
      if (const auto* tensor = file.find(name); tensor != nullptr && tensor->type == "F32") return tensor->values();
  return {};
}

void judge_inputs(const CheckContext& context, const CheckpointState& last, Work& work) {
  if (context.inputs.dataset.empty()) return;
  const auto text = read_file(fs::path(context.inputs.dataset) / "meta/stats.json", 64U << 20U);
  const auto stats = text ? parse_json(quote_nonfinite(*text)) : Result<Value>(std::unexpected(text.error()));
  if (!stats) {
    work.tried["step.inputs-range"] = CheckResult::skip("the dataset has no meta/stats.json");
    return;
  }
  std::vector<StoredTensors> files;
  std::error_code error;
  for (auto it = fs::directory_iterator(fs::path(last.path) / "pretrained_model", error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (const std::string name = it->path().filename();
        name.ends_with(".safetensors") && (contains(name, "normalizer") || name == "model.safetensors"))
      if (auto file = StoredTensors::open(it->path().string())) files.push_back(std::move(*file));
  Value measured = Value::object();
  std::vector<std::string> said, wrong;
  for (const auto& [feature, of] : stats->members()) {
    if (!feature.starts_with("observation.") && feature != "action") continue;
    const auto low = numbers(of["min"]), high = numbers(of["max"]);
    if (low.empty() || low.size() != high.size()) continue;
    auto mean = of_policy(files, feature, "mean"), deviation = of_policy(files, feature, "std");
    const bool own = mean.size() == low.size() && deviation.size() == low.size();
    if (!own) continue;
    Range r;
    double farthest = 0;
    for (std::size_t i = 0; i < low.size(); ++i) {
      if (!(low[i] >= r.low)) r.low = low[i];
      if (!(high[i] <= r.high)) r.high = high[i];
      const double d = std::max(deviation[i], 1e-8), a = (low[i] - mean[i]) / d, b = (high[i] - mean[i]) / d;
      // A dimension that never moves has no deviation, and normalises to nothing.
      if (high[i] == low[i] && std::abs(low[i] - mean[i]) <= 1e-4 * std::max(1.0, std::abs(mean[i]))) continue;
      if (!(a >= r.low_normal)) r.low_normal = a;
      if (!(b <= r.high_normal)) r.high_normal = b;
      if (std::max(std::abs(a), std::abs(b)) > farthest) {
        farthest = std::max(std::abs(a), std::abs(b));
        r.worst = fmt::format("{}[{}]", feature, i);
      }
    }
    measured.set(feature,
                 Value::object({{"raw_min", r.low}, {"raw_max", r.high}, {"normalised_min", r.low_normal}, {"normalised_max", r.high_normal}}));
    said.push_back(fmt::format("{} {:.3g}..{:.3g} -> {:.2f}..{:.2f}", feature, r.low, r.high, r.low_normal, r.high_normal));
    if (contains(feature, "image") && (r.low < 0 || r.high > 1.001))
      wrong.push_back(fmt::format("{} has raw pixels {:.3g}..{:.3g} where 0..1 are expected", feature, r.low, r.high));
    else if (farthest > 20)
      wrong.push_back(fmt::format("{} is {:.0f} deviations from the policy's mean", r.worst, farthest));
  }
  if (said.empty()) {
    work.tried["step.inputs-range"] = CheckResult::skip("the checkpoint holds no means and deviations for the dataset's features");
    return;
  }
  auto& answer = work.tried["step.inputs-range"];
  answer = wrong.empty() ? CheckResult::pass("raw -> normalised: " + join(said, "; "), measured)
                         : CheckResult::fail("data.statistics", wrong.front() + "; raw -> normalised: " + join(said, "; "), measured);
  for (const auto& line : wrong) answer.because({"meta/stats.json and the checkpoint's normaliser", 0, line});
}

}  // namespace

void judge_movement(const CheckContext& context, const CheckpointTree& tree, const Log& log, Work& work) {
  if (tree.checkpoints.empty()) return;
  const CheckpointState& last = tree.checkpoints.back();
  judge_inputs(context, last, work);
  if (tree.checkpoints.size() < 2) {
    for (const char* id : {"step.parameters-move", "step.frozen-still"})
      work.tried[id] = CheckResult::skip("one checkpoint shows no movement: two are needed");
    return;
  }
  const CheckpointState& first = tree.checkpoints.front();
  const std::string a = path_of(first), b = path_of(last);
  const auto before = a.empty() ? Result<StoredTensors>(fail("no safetensors file", first.path)) : StoredTensors::open(a),
             after = b.empty() ? Result<StoredTensors>(fail("no safetensors file", last.path)) : StoredTensors::open(b);
  if (!before || !after) {
    for (const char* id : {"step.parameters-move", "step.frozen-still"})
      work.tried[id] = CheckResult::skip("the weights of two checkpoints cannot be compared: " + (before ? after : before).error().to_string());
    return;
  }
  judge_groups(compare(*before, *after), log, first.step(), last.step(), work);
}

}  // namespace ff::training
