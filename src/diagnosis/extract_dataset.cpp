// Metadata of a LeRobot dataset: meta/info.json, meta/stats.json, meta/episodes.jsonl, openpi's norm_stats.json.
//
//   dataset.info.{codebase_version,fps,robot_type,total_episodes,total_frames,total_tasks,last_episode,last_index,
//                 splits_end,action_dim,state_dim,cameras[i]}
//   dataset.stats.<feature>.{min,max,mean,std,count}     of features with one value
//   dataset.stats.<feature>.{dim,zero_std,nonfinite,max_abs,outlier,inverted,zero_range,narrow}   of vectors (states, actions)
//   dataset.stats.action.still_where_state_moves   a dimension whose action never changes and whose state does
//   dataset.stats.{features,nonfinite}                    over all features
//   dataset.episodes.{count,frames,out_of_order,duplicates,first,last}
//
// last_episode and last_index (totals minus one) exist so that a rule can compare them with statistics.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

void read_info(const Document& document, FactSink& sink) {
  const Value& info = document.value;
  const std::uint64_t line = document.line;
  const auto copy = [&](std::string_view key) {
    if (const auto number = scalar(info[key])) sink.number("dataset.info." + std::string(key), *number, line);
  };
  sink.add("dataset.info.codebase_version", info["codebase_version"].to_string(), line);
  for (std::string_view key : {"fps", "total_episodes", "total_frames", "total_tasks", "total_videos", "chunks_size"}) copy(key);
  if (info["robot_type"].is_text()) sink.add("dataset.info.robot_type", info["robot_type"], line);
  if (const auto episodes = scalar(info["total_episodes"])) sink.number("dataset.info.last_episode", *episodes - 1, line);
  if (const auto frames = scalar(info["total_frames"])) sink.number("dataset.info.last_index", *frames - 1, line);
  std::optional<double> end;
  for (const auto& [name, range] : info["splits"].members())
    if (const auto colon = range.as_text().find(':'); colon != std::string_view::npos)
      if (const auto value = to_real(range.as_text().substr(colon + 1))) end = std::max(end.value_or(0), *value);
  if (end) sink.number("dataset.info.splits_end", *end, line);
  int camera = 0;
  for (const auto& [name, feature] : info["features"].members()) {
    const auto shape = flat_numbers(feature["shape"]);
    const std::string_view type = feature["dtype"].as_text();
    if ((type == "video" || type == "image") && camera < 32) sink.add("dataset.info.cameras[" + std::to_string(camera++) + "]", name, line);
    if (shape.size() == 1 && name == "action") sink.number("dataset.info.action_dim", shape[0], line);
    if (shape.size() == 1 && name == "observation.state") sink.number("dataset.info.state_dim", shape[0], line);
    if (name == "actions") sink.add("dataset.info.action_named_actions", true, line);
  }
}

bool is_statistics(const Value& feature) {
  const auto has = [&](std::string_view low, std::string_view high) { return feature.find(low) != nullptr && feature.find(high) != nullptr; };
  return feature.is_object() && (has("mean", "std") || has("min", "max") || has("q01", "q99"));
}

void read_statistics(const Document& document, const Value& features, std::string_view prefix, FactSink& sink) {
  double nonfinite_all = 0;
  int count = 0;
  for (const auto& [name, feature] : features.members()) {
    if (!is_statistics(feature) || count >= 256) continue;
    ++count;
    const std::string base = std::string(prefix) + name + ".";
    double nonfinite = 0;
    double max_abs = 0;
    std::size_t dim = 0;
    for (const auto& [stat, value] : feature.members()) {
      const auto numbers = flat_numbers(value);
      if (stat != "count") dim = std::max(dim, numbers.size());
      for (double x : numbers) {
        if (!std::isfinite(x)) ++nonfinite;
        if (std::isfinite(x) && (stat == "min" || stat == "max" || stat == "q01" || stat == "q99")) max_abs = std::max(max_abs, std::abs(x));
      }
      if (numbers.size() == 1 && stat.size() <= 8) sink.number(base + stat, numbers[0], document.line);
    }
    nonfinite_all += nonfinite;
    if (dim > 1) {
      const auto low = flat_numbers(feature["min"]), high = flat_numbers(feature["max"]), spread = flat_numbers(feature["std"]);
      double zero = 0, inverted = 0;
      // Below a millionth the normaliser divides by its epsilon: a constant dimension.
      for (double x : spread) zero += std::abs(x) < 1e-6 ? 1 : 0;
      for (std::size_t i = 0; i < std::min(low.size(), high.size()); ++i) inverted += low[i] > high[i] ? 1 : 0;
      // The range that a normaliser divides by: of the quantiles when they are there. "narrow": a hundredth of the usual.
      const auto q_low = flat_numbers(feature["q01"]), q_high = flat_numbers(feature["q99"]);
      std::vector<double> ranges;
      const auto& bottom = q_low.empty() ? low : q_low;
      const auto& top = q_high.empty() ? high : q_high;
      for (std::size_t i = 0; i < std::min(bottom.size(), top.size()); ++i) ranges.push_back(top[i] - bottom[i]);
      if (!ranges.empty()) {
        std::vector<double> sorted = ranges;
        std::sort(sorted.begin(), sorted.end());
        const double usual = sorted[sorted.size() / 2];
        sink.number(base + "zero_range", static_cast<double>(std::count(ranges.begin(), ranges.end(), 0.0)), document.line);
        sink.number(base + "narrow",
                    static_cast<double>(std::count_if(ranges.begin(), ranges.end(), [&](double r) { return r > 0 && r < 0.01 * usual; })),
                    document.line);
      }
      sink.number(base + "dim", static_cast<double>(dim), document.line);
      if (!spread.empty()) sink.number(base + "zero_std", zero, document.line);
      sink.number(base + "inverted", inverted, document.line);
      if (max_abs > 0) sink.number(base + "max_abs", max_abs, document.line);
      // How many standard deviations the farthest value lies from the mean of its dimension.
      const auto middle = flat_numbers(feature["mean"]);
      double outlier = 0;
      for (std::size_t i = 0; i < std::min({low.size(), high.size(), spread.size(), middle.size()}); ++i)
        if (spread[i] > 1e-6) outlier = std::max({outlier, (high[i] - middle[i]) / spread[i], (middle[i] - low[i]) / spread[i]});
      if (std::isfinite(outlier) && outlier > 0) sink.number(base + "outlier", outlier, document.line);
    }
    sink.number(base + "nonfinite", nonfinite, document.line);
  }
  const auto action = flat_numbers(features["action"]["std"]), state = flat_numbers(features["observation.state"]["std"]);
  for (std::size_t i = 0; action.size() == state.size() && i < action.size(); ++i)
    if (std::abs(action[i]) < 1e-6 && state[i] > 0.01)
      sink.number(std::string(prefix) + "action.still_where_state_moves", static_cast<double>(i), document.line);
  if (count == 0) return;
  sink.number(std::string(prefix) + "features", count, document.line);
  sink.number(std::string(prefix) + "nonfinite", nonfinite_all, document.line);
}

}  // namespace

void extract_dataset(std::string_view text, std::string_view source, Facts& out) {
  const bool has_info = text.find("codebase_version") != std::string_view::npos;
  const bool has_stats = text.find("\"mean\"") != std::string_view::npos || text.find("\"q01\"") != std::string_view::npos ||
                         (text.find("\"min\"") != std::string_view::npos && text.find("\"max\"") != std::string_view::npos);
  const bool has_episodes = text.find("\"episode_index\"") != std::string_view::npos && text.find("\"length\"") != std::string_view::npos;
  if (!has_info && !has_stats && !has_episodes) return;
  FactSink sink(source, out);
  double count = 0, frames = 0, disorder = 0, duplicates = 0;
  std::optional<double> first, previous;
  std::set<double> seen;
  for (const Document& document : json_documents(text)) {
    const Value& value = document.value;
    if (value["codebase_version"].is_text()) read_info(document, sink);
    if (value["norm_stats"].is_object()) {
      read_statistics(document, value["norm_stats"], "norm_stats.", sink);
    } else if (has_stats && !value["stats"].is_object()) {
      read_statistics(document, value, "dataset.stats.", sink);
      // OpenVLA's dataset_statistics.json: the features stand below the name of the data set.
      for (const auto& [name, part] : value.members())
        if (is_statistics(part["action"])) read_statistics(document, part, "dataset.stats.", sink);
    }
    const auto index = scalar(value["episode_index"]);
    const auto length = scalar(value["length"]);
    if (!index || !length) continue;
    ++count;
    frames += *length;
    if (!first) first = *index;
    if (previous && *index <= *previous) ++disorder;
    if (!seen.insert(*index).second) ++duplicates;
    previous = *index;
  }
  if (count < 1) return;
  sink.number("dataset.episodes.count", count);
  sink.number("dataset.episodes.frames", frames);
  sink.number("dataset.episodes.out_of_order", disorder);
  sink.number("dataset.episodes.duplicates", duplicates);
  sink.number("dataset.episodes.first", *first);
  sink.number("dataset.episodes.last", *previous);
}

}  // namespace ff::diagnosis
