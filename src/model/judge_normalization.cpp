#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "model/survey.h"

// LeRobot's normalisation (processor/normalize_processor.py; before 0.4 policies/normalize.py): each feature with a mode
// other than IDENTITY needs that mode's statistics. A feature without them passes through unchanged, silently.

namespace ff::model {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view check_id = "model.normalization", cause_missing = "model.normalization-missing";

struct Wanted {
  std::string feature, type;  ///< "observation.state", "STATE"
  std::vector<std::string> statistics;
  std::int64_t width = -1;  ///< of a vector
};

std::vector<std::string> statistics_of(std::string_view mode) {
  if (mode == "MEAN_STD") return {"mean", "std"};
  if (mode == "MIN_MAX") return {"min", "max"};
  if (mode == "QUANTILES") return {"q01", "q99"};
  if (mode == "QUANTILE10") return {"q10", "q90"};
  return {};
}

std::vector<Wanted> wanted(const Value& features, const Value& modes) {
  std::vector<Wanted> out;
  for (const auto& [name, feature] : features.members()) {
    Wanted w{name, std::string(feature["type"].as_text()), statistics_of(modes[feature["type"].as_text()].as_text()), -1};
    if (feature["shape"].items().size() == 1) w.width = feature["shape"].items()[0].as_int(-1);
    if (!w.statistics.empty()) out.push_back(std::move(w));
  }
  return out;
}

/// A tensor's values as numbers; empty for types that statistics are not stored in.
std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  if (t.dtype != Dtype::f32 && t.dtype != Dtype::f64) return out;
  if (t.elements > 10'000'000) return out;
  out.reserve(t.elements);
  for (std::uint64_t i = 0; i < t.elements; ++i) {
    if (t.dtype == Dtype::f32) {
      float v = 0;
      std::memcpy(&v, t.bytes.data() + i * 4, 4);
      out.push_back(static_cast<double>(v));
    } else {
      double v = 0;
      std::memcpy(&v, t.bytes.data() + i * 8, 8);
      out.push_back(v);
    }
  }
  return out;
}

/// One statistic's values: finite, not a negative deviation, as wide as the feature.
void judge_statistic(Survey& s, const std::string& file, const Wanted& w, const std::string& statistic, const Tensor& t) {
  const auto values = values_of(t);
  const auto bad = std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  Value measured = Value::object({{"file", file}, {"feature", w.feature}, {"statistic", statistic}});
  if (bad != values.end()) {
    const bool all = std::all_of(values.begin(), values.end(), [](double v) { return std::isinf(v); });
    s.add(std::string(check_id), true, std::string(cause_missing),
          all ? fmt::format("{}: {} of {} was never set (infinite)", file, statistic, w.feature)
              : fmt::format("{}: {} of {} holds NaN or Inf, first in dimension {}", file, statistic, w.feature, bad - values.begin()),
          file, std::move(measured));
    return;
  }
  if (w.width >= 0 && w.type != "VISUAL" && static_cast<std::uint64_t>(w.width) != t.elements) {
    s.add(std::string(check_id), true, "model.shape-mismatch",
          fmt::format("{}: {} of {} has {} values, the feature has {}", file, statistic, w.feature, t.elements, w.width), file, std::move(measured));
    return;
  }
  if (statistic != "std") return;
  if (const auto negative = std::find_if(values.begin(), values.end(), [](double v) { return v < 0; }); negative != values.end()) {
    s.add(std::string(check_id), true, std::string(cause_missing),
          fmt::format("{}: std of {} is negative in dimension {}", file, w.feature, negative - values.begin()), file, std::move(measured));
    return;
  }
  if (w.type == "VISUAL") return;
  const auto zero = std::find(values.begin(), values.end(), 0.0);
  if (zero != values.end())
    s.add(std::string(check_id), false, std::string(cause_missing),
          fmt::format("{}: std of {} is 0 in dimension {}: any other value than the training set's is divided by 1e-8", file, w.feature,
                      zero - values.begin()),
          file, std::move(measured));
}

/// Compares mean and std with those of the data set that is given.
void compare_with_dataset(Survey& s, const std::string& file, const Wanted& w, const std::string& statistic, const Tensor& t, const Value& stats) {
  const auto& other = stats[w.feature][statistic].items();
  const auto values = values_of(t);
  if (w.type == "VISUAL" || other.empty() || other.size() != values.size()) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double there = other[i].as_real(), scale = std::max({std::fabs(there), std::fabs(values[i]), 1e-6});
    if (std::fabs(values[i] - there) <= 1e-3 * scale) continue;
    s.add(std::string(check_id), false, std::string(cause_missing),
          fmt::format("{}: {} of {} is {:.5g} in dimension {}, the dataset's is {:.5g}: the policy was normalised with other data", file, statistic,
                      w.feature, values[i], i, there),
          file,
          Value::object(
              {{"file", file}, {"feature", w.feature}, {"statistic", statistic}, {"dimension", i}, {"policy", values[i]}, {"dataset", there}}));
    return;
  }
}

/// Statistics of a whole dataset: meta/stats.json, or in v2.1 those of its episodes put together (mean and std by count, minimum and maximum).
Value dataset_statistics(const std::string& dataset) {
  const fs::path meta = fs::path(dataset) / "meta";
  if (auto read = read_json_object((meta / "stats.json").string())) return std::move(*read);
  const auto content = read_file(meta / "episodes_stats.jsonl", max_config_bytes);
  if (!content) return {};
  struct Sums {
    double count = 0;
    std::vector<double> mean, square, min, max;
  };
  std::map<std::string, Sums> sums;
  for (const auto line : lines(*content)) {
    const auto entry = parse_json(line, "meta/episodes_stats.jsonl");
    if (!entry) continue;
    for (const auto& [name, stats] : (*entry)["stats"].members()) {
      const auto &mean = stats["mean"].items(), &std = stats["std"].items(), &low = stats["min"].items(), &high = stats["max"].items();
      const auto& counts = stats["count"].items();
      const double n = counts.empty() ? 0 : counts.front().as_real();
      if (!(n > 0) || mean.empty() || !mean.front().is_number() || std.size() != mean.size() || low.size() != mean.size() ||
          high.size() != mean.size())
        continue;
      Sums& s = sums[name];
      if (s.mean.empty()) {
        s.mean.assign(mean.size(), 0);
        s.square.assign(mean.size(), 0);
        s.min.assign(mean.size(), HUGE_VAL);
        s.max.assign(mean.size(), -HUGE_VAL);
      }
      if (s.mean.size() != mean.size()) continue;
      s.count += n;
      for (std::size_t d = 0; d < mean.size(); ++d) {
        const double m = mean[d].as_real(), deviation = std[d].as_real();
        s.mean[d] += n * m;
        s.square[d] += n * (deviation * deviation + m * m);
        s.min[d] = std::min(s.min[d], low[d].as_real());
        s.max[d] = std::max(s.max[d], high[d].as_real());
      }
    }
  }
  Value out = Value::object();
  for (auto& [name, s] : sums) {
    std::vector<double> std(s.mean.size());
    for (std::size_t d = 0; d < s.mean.size(); ++d) {
      s.mean[d] /= s.count;
      std[d] = std::sqrt(std::max(0.0, s.square[d] / s.count - s.mean[d] * s.mean[d]));
    }
    out.set(name,
            Value::object(
                {{"mean", Value::list_of(s.mean)}, {"std", Value::list_of(std)}, {"min", Value::list_of(s.min)}, {"max", Value::list_of(s.max)}}));
  }
  return out;
}

/// One processor (policy_preprocessor.json or policy_postprocessor.json).
void judge_processor(Survey& s, const std::string& name, std::string_view step_name, const std::vector<Wanted>& features,
                     const Value& dataset_stats) {
  const auto processor = read_json_object((fs::path(s.root) / name).string());
  if (!processor || !(*processor)["steps"].is_list()) {
    s.add(std::string(check_id), true, std::string(cause_missing), name + " is no JSON object with steps", name);
    return;
  }
  const Value* step = nullptr;
  for (const auto& candidate : (*processor)["steps"].items())
    if (candidate["registry_name"].as_text() == step_name ||
        contains(candidate["class"].as_text(), step_name == "normalizer_processor" ? ".NormalizerProcessor" : ".UnnormalizerProcessor"))
      step = &candidate;
  if (step == nullptr) {
    if (!features.empty())
      s.add(std::string(check_id), true, std::string(cause_missing),
            fmt::format("{} has no {}: {} would pass through unchanged", name, step_name, features.front().feature), name);
    return;
  }
  // The step's own modes decide; config.json's are those of the training.
  const auto own = (*step)["config"]["features"].is_object() && (*step)["config"]["norm_map"].is_object()
                       ? wanted((*step)["config"]["features"], (*step)["config"]["norm_map"])
                       : features;
  std::vector<Wanted> needed;
  for (const auto& w : own)
    if (std::any_of(features.begin(), features.end(), [&](const Wanted& f) { return f.feature == w.feature; })) needed.push_back(w);
  if (needed.empty()) return;
  const std::string state((*step)["state_file"].as_text());
  if (state.empty()) {
    // A base model that waits for its data has none; a trained policy must.
    s.add(std::string(check_id), s.has("train_config.json"), std::string(cause_missing),
          fmt::format("the {} in {} has no statistics: {} would pass through unchanged", step_name, name, needed.front().feature), name);
    return;
  }
  const auto file = std::find_if(s.files.begin(), s.files.end(), [&](const ModelFile& f) { return f.name == state; });
  if (file == s.files.end()) {
    s.add(std::string(check_id), true, std::string(cause_missing), fmt::format("{} is missing; {} takes its statistics from it", state, name), state);
    return;
  }
  if (!file->safetensors) return;  // said by model.files-whole or model.header
  for (const auto& w : needed)
    for (const auto& statistic : w.statistics) {
      const Tensor* t = file->safetensors->find(w.feature + "." + statistic);
      if (t == nullptr) {
        s.add(std::string(check_id), w.type != "VISUAL", std::string(cause_missing),
              fmt::format("{} has no {}.{}: {} passes through unchanged, and nothing says so", state, w.feature, statistic, w.feature), state,
              Value::object({{"file", state}, {"feature", w.feature}, {"statistic", statistic}}));
        break;
      }
      judge_statistic(s, state, w, statistic, *t);
      compare_with_dataset(s, state, w, statistic, *t, dataset_stats);
    }
}

/// What the preprocessor normalises actions with in training, the postprocessor has to undo: the same numbers in both state files.
void compare_both_ways(Survey& s) {
  const auto state_file = [&](const std::string& name) -> const ModelFile* {
    const auto processor = read_json_object((fs::path(s.root) / name).string());
    if (!processor) return nullptr;
    for (const auto& step : (*processor)["steps"].items()) {
      const auto file = std::find_if(s.files.begin(), s.files.end(), [&](const ModelFile& f) { return f.name == step["state_file"].as_text(); });
      if (file != s.files.end() && contains(step["registry_name"].as_text(), "normalizer_processor")) return &*file;
    }
    return nullptr;
  };
  const auto *before = state_file("policy_preprocessor.json"), *after = state_file("policy_postprocessor.json");
  if (before == nullptr || after == nullptr || !before->safetensors || !after->safetensors) return;
  for (const auto& [name, feature] : s.config["output_features"].members())
    for (const auto* statistic : {"mean", "std", "min", "max", "q01", "q99"}) {
      const auto key = name + "." + statistic;
      const Tensor *a = before->safetensors->find(key), *b = after->safetensors->find(key);
      if (a == nullptr || b == nullptr) continue;
      const auto x = values_of(*a), y = values_of(*b);
      if (x == y) continue;
      s.add(std::string(check_id), true, std::string(cause_missing),
            fmt::format("{} of {} is not the same in {} and {}: actions leave the policy in another scale than it learnt", statistic, name,
                        before->name, after->name),
            after->name, Value::object({{"feature", name}, {"statistic", std::string(statistic)}}));
      return;
    }
}

/// Statistics in the weights: normalize_inputs.buffer_observation_state.mean.
bool judge_buffers(Survey& s, std::string_view prefix, const std::vector<Wanted>& features, const Value& dataset_stats) {
  const bool any = std::any_of(s.files.begin(), s.files.end(), [&](const ModelFile& f) {
    return f.role == Role::weights && f.safetensors &&
           std::any_of(f.safetensors->tensors.begin(), f.safetensors->tensors.end(), [&](const Tensor& t) { return t.name.starts_with(prefix); });
  });
  if (!any) return false;
  for (const auto& w : features)
    for (const auto& statistic : w.statistics) {
      const std::string name = fmt::format("{}buffer_{}.{}", prefix, replace_all(w.feature, ".", "_"), statistic);
      const Tensor* t = s.weight(name);
      if (t == nullptr) {
        s.add(std::string(check_id), true, std::string(cause_missing), fmt::format("the weights have no {}", name), {},
              Value::object({{"tensor", name}}));
        break;
      }
      judge_statistic(s, "the weights", w, statistic, *t);
      compare_with_dataset(s, "the weights", w, statistic, *t, dataset_stats);
    }
  return true;
}

}  // namespace

void judge_normalization(Survey& s, const std::string& dataset) {
  if (!s.is_lerobot) return;
  const Value& modes = s.config["normalization_mapping"];
  const auto inputs = wanted(s.config["input_features"], modes), outputs = wanted(s.config["output_features"], modes);
  if (inputs.empty() && outputs.empty()) return;
  Value stats;
  if (!dataset.empty()) stats = dataset_statistics(dataset);
  const bool before = s.has("policy_preprocessor.json"), after = s.has("policy_postprocessor.json");
  if (before || after) {
    if (before)
      judge_processor(s, "policy_preprocessor.json", "normalizer_processor", inputs, stats);
    else
      s.add(std::string(check_id), true, std::string(cause_missing), "policy_preprocessor.json is missing: states would reach the model as they are",
            "policy_preprocessor.json");
    if (after)
      judge_processor(s, "policy_postprocessor.json", "unnormalizer_processor", outputs, stats);
    else
      s.add(std::string(check_id), true, std::string(cause_missing),
            "policy_postprocessor.json is missing: actions would leave the model in normalised units", "policy_postprocessor.json");
    if (std::none_of(s.findings.begin(), s.findings.end(), [](const Finding& f) { return f.check == check_id; })) compare_both_ways(s);
    return;
  }
  const bool in = judge_buffers(s, "normalize_inputs.", inputs, stats), out = judge_buffers(s, "unnormalize_outputs.", outputs, stats);
  if (in || out) {
    s.add(std::string(check_id), false, std::string(cause_missing),
          "the statistics stand in the weights (LeRobot before 0.4): newer versions ignore them and run without; migrate the checkpoint");
    return;
  }
  s.add(std::string(check_id), true, std::string(cause_missing),
        fmt::format("no statistics: {} needs {}, and there are neither processor files nor buffers in the weights",
                    inputs.empty() ? outputs.front().feature : inputs.front().feature,
                    join(inputs.empty() ? outputs.front().statistics : inputs.front().statistics, " and ")));
}

}  // namespace ff::model
