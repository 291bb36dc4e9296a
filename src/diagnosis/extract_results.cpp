// Results and settings as structured text: evaluations in JSON, learning-rate schedules, the gripper's dimension.
//
//   eval.{seed_won,seed_lost}   "weights/task/seed" of every episode of a list of episodes that names a seed, by outcome; one that stands in
//                               both was run twice with different results
//   eval.rises_with_steps       true: in a list of results by checkpoint the success rises to the last one
//   config.{warmup_steps,train_steps,lr_tenth}   of a schedule; lr_tenth: a tenth of the rate that the schedule shall reach
//   config.loop_hz              a rate at the top of an evaluation's or a robot's settings
//   config.crop_share           share of the picture that a policy's crop leaves
//   dataset.stats.action.as_state   true: by the statistics the actions are where the state is, so they are absolute
//   actions.printed_max_abs     of actions in a document of a rollout; series.first_ratio of a list of times, as of a printed series
//   series.setting_ratio        fastest over slowest of speeds that stand beside values of one variable
//   smi.{links_down,pcie_width,pcie_max_width}   of amd-smi's JSON
//   gripper.data_unit           true: the last of seven action dimensions runs from 0 to 1 while others go below 0

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

constexpr std::size_t max_line = 4096;
constexpr int max_depth = 6;
constexpr std::size_t max_episodes = 4096;

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

/// A number, true or false, or the digits of "step_020000".
std::optional<double> number_of(const Value& value) {
  if (value.kind() == Value::Kind::boolean) return value.as_bool() ? 1 : 0;
  if (const auto number = scalar(value)) return std::isfinite(*number) ? number : std::nullopt;
  if (!value.is_text()) return std::nullopt;
  static const RE2 digits(R"((?:^|[^\d.])0*(\d{2,9})(?:k)?/?$)");
  double number = 0;
  if (RE2::PartialMatch(piece(value.as_text()), digits, &number)) return number;
  return std::nullopt;
}

std::optional<double> first_of(const Value& object, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (const Value* found = object.find(key)) return number_of(*found);
  return std::nullopt;
}

std::optional<double> success_of(const Value& object) {
  auto rate = first_of(object, {"pc_success", "success_percent"});
  if (rate) return *rate / 100;
  rate = first_of(object, {"success_rate", "success", "is_success", "sr", "successes"});
  if (!rate || *rate < 0) return std::nullopt;
  return *rate > 1 ? *rate / 100 : *rate;
}

struct Reader {
  FactSink& sink;
  std::uint64_t line;
  std::string weights;  ///< the policy or checkpoint that the document names
  std::size_t episodes = 0;

  void episode(const Value& object, const std::string& where) {
    const auto seed = first_of(object, {"seed"});
    const auto success = success_of(object);
    if (!seed || !success || (*success != 0 && *success != 1) || episodes >= max_episodes) return;
    ++episodes;
    std::string key = weights + "/" + where;
    for (std::string_view name : {"task_id", "task", "task_group", "suite", "init_state_id"})
      if (const Value* found = object.find(name)) key += "/" + (found->is_text() ? std::string(found->as_text()) : found->to_string());
    key += "/" + number_value(*seed).to_string();
    sink.add(*success == 1 ? "eval.seed_won" : "eval.seed_lost", key, line);
  }

  void curve(const std::vector<Value>& list) {
    std::vector<std::pair<double, double>> points;
    for (const Value& entry : list) {
      const auto step = first_of(entry, {"checkpoint", "step", "steps", "global_step", "ckpt"});
      const auto success = success_of(entry);
      if (!step || !success) return;
      points.emplace_back(*step, *success);
    }
    if (points.size() < 3) return;
    std::sort(points.begin(), points.end());
    bool rises = true;
    for (std::size_t i = 1; i < points.size(); ++i)
      rises = rises && points[i].first > points[i - 1].first && points[i].second >= points[i - 1].second;
    // A curve that has become level is no sign: the last step up must still be a tenth of the way.
    const double way = points.back().second - points.front().second;
    const double last = points.back().second - points[points.size() - 2].second;
    if (rises && way > 0.1 && last >= 0.1 * way && points.back().second < 0.9) sink.add("eval.rises_with_steps", true, line);
  }

  void walk(const Value& value, const std::string& where, int depth) {
    if (depth > max_depth) return;
    if (value.is_list()) {
      if (!value.items().empty() && value.items().front().is_object()) curve(value.items());
      for (const Value& entry : value.items()) {
        if (entry.is_object()) episode(entry, where);
        walk(entry, where, depth + 1);
      }
      return;
    }
    for (const auto& [name, member] : value.members())
      if (member.is_list() || member.is_object()) walk(member, where.empty() ? name : where + "/" + name, depth + 1);
  }
};

/// What a document says of the policy, its settings and its code: two that differ in it explain different results.
std::string weights_named(const Value& value, int depth) {
  std::string out;
  for (const auto& [name, member] : value.members()) {
    const std::string key = lower(name);
    if (depth < 3 && (key == "policy" || key == "config" || key == "args" || key == "env" || key == "eval") && member.is_object())
      out += weights_named(member, depth + 1);
    else if (!member.is_list() && !member.is_object() &&
             mentions_any(key, {"checkpoint", "path", "ckpt", "policy", "step", "model", "commit", "version", "device", "chunk", "label", "name"}))
      out += " " + (member.is_text() ? std::string(member.as_text()) : member.to_string());
  }
  return out;
}

/// JSON whose outermost value is a list: json_documents() gives its objects only when each begins a line.
std::vector<Document> documents_of(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '[')
    if (auto value = parse_json(text); value && value->is_list()) {
      std::vector<Document> out;
      out.push_back({std::move(*value), 1});
      return out;
    }
  return json_documents(text);
}

void evaluations(std::string_view text, FactSink& sink) {
  std::vector<Value> rows;
  const auto documents = documents_of(text);
  for (const Document& document : documents) {
    Reader reader{sink, document.line, weights_named(document.value, 0)};
    reader.walk(document.value, "", 0);
    if (document.value.is_object()) {
      reader.episode(document.value, "");
      rows.push_back(document.value);
    }
  }
  if (rows.size() >= 3) Reader{sink, documents.front().line, {}}.curve(rows);
}

void schedule(std::string_view text, FactSink& sink) {
  static const RE2 warmup(R"((?i)(?:^|[\s"'{,.-])(?:num_|scheduler_|lr_)?warm_?up_(?:steps|iters|iterations)["']?\s*[:= ]\s*(\d[\d_]*)\b)");
  static const RE2 total(
      R"((?i)(?:^|[\s"'{,-])(?:num_train_steps|num_training_steps|train_steps|total_steps|max_steps|max_iters|training_steps|steps)["']?\s*[:= ]\s*(\d[\d_]*)\b)");
  static const RE2 peak(R"((?i)(?:^|[\s"'{,.-])(?:peak_lr|optimizer_lr|learning_rate|max_lr|lr)["']?\s*[:= ]\s*(\d[\d.]*(?:e-?\d+)?)\s*(?:[,}]|$))");
  const auto plain = [](std::string word) {
    std::erase(word, '_');
    return to_real(word);
  };
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_line || mentions(line, "loss")) return;
    std::string word;
    if (RE2::PartialMatch(piece(line), warmup, &word))
      if (const auto value = plain(word); value && *value > 0) sink.number("config.warmup_steps", *value, number, line);
    if (RE2::PartialMatch(piece(line), total, &word))
      if (const auto value = plain(word); value && *value > 0) sink.number("config.train_steps", *value, number, line);
    if (RE2::PartialMatch(piece(line), peak, &word))
      if (const auto value = to_real(word); value && *value > 0 && *value < 1) sink.number("config.lr_tenth", *value / 10, number, line);
  });
}

/// "fps: 10" at the left margin of settings that also name a policy, a robot or an environment.
void loop_rate(std::string_view text, FactSink& sink) {
  static const RE2 rate(R"(^(?:fps|hz|rate|control_rate|loop_rate|frequency)\s*[:=]\s*(\d{1,4}(?:\.\d+)?)\s*(?:#.*)?$)");
  if (!mentions_any(text, {"policy", "robot", "env"}) || text.find("codebase_version") != std::string_view::npos) return;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    double hz = 0;
    if (line.size() <= max_line && RE2::PartialMatch(piece(line), rate, &hz) && hz > 0) sink.number("config.loop_hz", hz, number, line);
  });
}

void gripper_unit(std::string_view text, FactSink& sink) {
  for (const Document& document : json_documents(text)) {
    const Value& whole = document.value;
    const Value& features = whole["norm_stats"].is_object() ? whole["norm_stats"] : whole;
    for (std::string_view name : {"action", "actions"}) {
      const auto low = flat_numbers(features[name]["min"]), high = flat_numbers(features[name]["max"]);
      if (low.size() != 7 || high.size() != 7) continue;
      const bool signed_others = std::count_if(low.begin(), low.end() - 1, [](double x) { return x < 0; }) >= 3;
      if (signed_others && low.back() >= 0 && low.back() < 0.2 && high.back() > 0.8 && high.back() <= 1)
        sink.add("gripper.data_unit", true, document.line);
    }
  }
}

/// crop_shape beside the shape of the pictures.
void crop(const Value& config, std::uint64_t line, FactSink& sink) {
  const auto cut = flat_numbers(config["crop_shape"]);
  if (cut.size() != 2) return;
  for (const auto& [name, feature] : config["input_features"].members()) {
    const auto shape = flat_numbers(feature["shape"]);
    if (shape.size() != 3 || name.find("image") == std::string::npos || shape[1] * shape[2] <= 0) continue;
    sink.number("config.crop_share", cut[0] * cut[1] / (shape[1] * shape[2]), line);
    return;
  }
}

void actions_as_state(const Value& features, std::uint64_t line, FactSink& sink) {
  const auto mean = flat_numbers(features["action"]["mean"]), state = flat_numbers(features["observation.state"]["mean"]);
  const auto spread = flat_numbers(features["observation.state"]["std"]);
  const std::size_t size = std::min({mean.size(), state.size(), spread.size()});
  if (size < 6) return;
  std::size_t near = 0, away = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    near += std::abs(mean[i] - state[i]) < 0.3 * spread[i] ? 1 : 0;
    away += std::abs(state[i]) > 2 * spread[i] ? 1 : 0;  // so that two means near zero do not count
  }
  if (near >= 5 && away >= 2) sink.add("dataset.stats.action.as_state", true, line);
}

void first_of_list(const Value& list, std::uint64_t line, FactSink& sink) {
  const auto times = flat_numbers(list);
  if (times.size() < 3 || times.size() != list.items().size() || times.front() < 1) return;
  std::vector<double> rest(times.begin() + 1, times.end());
  std::nth_element(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2), rest.end());
  if (const double median = rest[rest.size() / 2]; median > 0) sink.number("series.first_ratio", times.front() / median, line);
}

/// "VLLM_ROCM_USE_AITER unset: 412 tok/s" and "VLLM_ROCM_USE_AITER=1: 701 tok/s".
void speeds_by_setting(std::string_view text, FactSink& sink) {
  static const RE2 speed(
      R"(\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=\S+| unset| set| off| on)?\s*[:|]\s*(\d+(?:\.\d+)?) ?(?:tok/s|tokens/s|it/s|img/s|TFLOPS|TFLOP/s|steps/s|samples/s)\b)");
  std::map<std::string, std::pair<double, double>> ranges;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::string name;
    double value = 0;
    if (line.size() > max_line || !RE2::PartialMatch(piece(line), speed, &name, &value) || value <= 0) return;
    const auto [at, fresh] = ranges.try_emplace(name, value, value);
    if (fresh) return;
    auto& [low, high] = at->second;
    low = std::min(low, value);
    high = std::max(high, value);
    sink.number("series.setting_ratio", high / low, number, line);
  });
}

/// Members of documents that are known by their names, at any depth.
void named_members(const Value& value, std::uint64_t line, int depth, FactSink& sink) {
  if (depth > max_depth) return;
  if (value.is_list()) {
    std::size_t seen = 0;
    for (const Value& entry : value.items())
      if (++seen <= 256) named_members(entry, line, depth + 1, sink);
    return;
  }
  if (value.find("crop_shape") != nullptr) crop(value, line, sink);
  actions_as_state(value, line, sink);
  if (const auto middle = scalar(value["p50"]), high = scalar(value["p99"]); middle && high && *middle > 0 && std::isfinite(*high))
    sink.number("series.tail_ratio", *high / *middle, line);
  for (const auto& [name, member] : value.members()) {
    const std::string key = lower(name);
    if (key == "link_status" && member.is_list()) {
      const auto down = std::count_if(member.items().begin(), member.items().end(), [](const Value& v) { return v.as_text() == "D"; });
      sink.number("smi.links_down", static_cast<double>(down), line);
    } else if (key == "pcie" && member.is_object()) {
      if (const auto width = scalar(member["width"])) sink.number("smi.pcie_width", *width, line);
    } else if (key == "max_pcie_width") {
      if (const auto width = scalar(member)) sink.number("smi.pcie_max_width", *width, line);
    } else if (member.is_list() && (mentions_any(key, {"latency", "seconds", "time", "duration"}) || key.ends_with("_ms") || key.ends_with("_s")) &&
               !mentions(key, "stamp")) {
      first_of_list(member, line, sink);
    } else if (member.is_list() && mentions(key, "action") && !mentions_any(key, {"min", "max", "range", "limit", "shape", "name"})) {
      const auto numbers = flat_numbers(member);
      double largest = 0;
      for (double x : numbers) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
      if (numbers.size() >= 6 && largest > 0) sink.number("actions.printed_max_abs", largest, line);
    }
    if (member.is_list() || member.is_object()) named_members(member, line, depth + 1, sink);
  }
}

}  // namespace

void extract_results(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (text.find('"') != std::string_view::npos && text.find("succe") != std::string_view::npos) evaluations(text, sink);
  if (text.find('"') != std::string_view::npos &&
      mentions_any(text, {"crop_shape", "link_status", "pcie", "p99", "latency", "seconds", "_time", "_ms\"", "_s\"", "\"action"}))
    for (const Document& document : documents_of(text)) named_members(document.value, document.line, 0, sink);
  if (text.find("/s") != std::string_view::npos || text.find("FLOP") != std::string_view::npos) speeds_by_setting(text, sink);
  if (mentions(text, "warm")) schedule(text, sink);
  if (mentions_any(text, {"fps", "hz", "rate", "frequency"})) loop_rate(text, sink);
  if (text.find("\"min\"") != std::string_view::npos && text.find("\"action") != std::string_view::npos) gripper_unit(text, sink);
}

}  // namespace ff::diagnosis
