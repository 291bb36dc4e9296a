#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/text.h"
#include "model/survey.h"

namespace ff::model {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view check_id = "model.features";

std::vector<std::int64_t> shape_of(const Value& shape) {
  std::vector<std::int64_t> out;
  for (const auto& n : shape.items()) out.push_back(n.as_int(-1));
  return out;
}
std::string text_of(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// ACT: the rows of the action head are the action's dimensions (lerobot policies/act/modeling_act.py).
void judge_action_head(Survey& s) {
  if (s.config["type"].as_text() != "act") return;
  const Tensor* head = s.weight("model.action_head.weight");
  const auto action = shape_of(s.config["output_features"]["action"]["shape"]);
  if (head == nullptr || head->shape.size() != 2 || action.size() != 1) return;
  if (head->shape[0] != static_cast<std::uint64_t>(action[0]))
    s.add(std::string(check_id), true, "model.shape-mismatch",
          fmt::format("config.json gives {} action dimensions, model.action_head.weight has {}", action[0], head->shape[0]), "config.json",
          Value::object({{"config", action[0]}, {"weights", head->shape[0]}}));
  const Tensor* positions = s.weight("model.decoder_pos_embed.weight");
  const auto chunk = s.config["chunk_size"].as_int(-1);
  if (positions != nullptr && !positions->shape.empty() && chunk >= 0 && positions->shape[0] != static_cast<std::uint64_t>(chunk))
    s.add(std::string(check_id), true, "model.shape-mismatch",
          fmt::format("config.json gives a chunk of {} actions, model.decoder_pos_embed.weight has {} rows", chunk, positions->shape[0]),
          "config.json", Value::object({{"config", chunk}, {"weights", positions->shape[0]}}));
}

/// LeRobot refuses a policy that executes more actions than it predicts (the __post_init__ of its configurations).
void judge_horizon(Survey& s) {
  const auto steps = s.config["n_action_steps"].as_int(-1), chunk = s.config["chunk_size"].as_int(-1);
  const auto horizon = s.config["horizon"].as_int(-1), observations = s.config["n_obs_steps"].as_int(1);
  const auto most = chunk > 0 ? chunk : horizon > 0 ? horizon - observations + 1 : -1;
  if (steps <= 0 || most <= 0 || steps <= most) return;
  s.add(std::string(check_id), true, "model.shape-mismatch",
        chunk > 0 ? fmt::format("n_action_steps is {}, and a chunk has {} actions: LeRobot refuses this configuration", steps, chunk)
                  : fmt::format("n_action_steps is {}, and of a horizon of {} with {} observations {} actions can be executed: LeRobot refuses "
                                "this configuration",
                                steps, horizon, observations, most),
        "config.json", Value::object({{"n_action_steps", steps}, {"most", most}}));
}

/// Policies that read an instruction get it from a tokenizer step of the preprocessor (processor/tokenizer_processor.py); from 0.4 on the model
/// itself has no tokenizer any more.
void judge_tokenizer(Survey& s) {
  const auto type = s.config["type"].as_text();
  if (type != "smolvla" && type != "pi0" && type != "pi05" && type != "pi0_fast") return;
  const auto processor = read_json_object((fs::path(s.root) / "policy_preprocessor.json").string());
  if (!processor || !(*processor)["steps"].is_list()) return;  // said by model.normalization
  const Value* tokenizer = nullptr;
  std::ptrdiff_t at = 0, normalizer = -1, state = -1;
  for (const auto& step : (*processor)["steps"].items()) {
    const auto name = step["registry_name"].as_text();
    if (name == "tokenizer_processor") tokenizer = &step["config"];
    if (name == "normalizer_processor") normalizer = at;
    if (name == "pi05_prepare_state_tokenizer_processor_step" || contains(step["class"].as_text(), "PrepareStateTokenizer")) state = at;
    ++at;
  }
  const std::string file = "policy_preprocessor.json";
  if (tokenizer == nullptr) {
    s.add(std::string(check_id), true, "model.config-missing",
          fmt::format("{} has no tokenizer_processor: {} would get no instruction and stops at observation.language.tokens", file, type), file);
    return;
  }
  const auto own = (*tokenizer)["max_length"].as_int(-1), wanted = s.config["tokenizer_max_length"].as_int(-1);
  if (own > 0 && wanted > 0 && own != wanted)
    s.add(std::string(check_id), false, "model.shape-mismatch",
          fmt::format("{}: the tokenizer makes {} tokens, config.json's tokenizer_max_length is {}", file, own, wanted), file,
          Value::object({{"tokenizer", own}, {"config", wanted}}));
  const std::string name((*tokenizer)["tokenizer_name"].as_text());
  std::error_code error;
  if (name.starts_with('/') && !fs::exists(name, error))
    s.add(std::string(check_id), false, "model.config-missing",
          fmt::format("{} takes its tokenizer from {}, which is not on this machine", file, name), file, Value::object({{"tokenizer", name}}));
  // Pi0.5 writes the normalised state into the instruction.
  if (state >= 0 && normalizer > state)
    s.add(std::string(check_id), true, "model.normalization-missing",
          fmt::format("{}: the state is put into the instruction before it is normalised", file), file);
}

/// Dataset name -> policy name, from the preprocessor.
std::map<std::string, std::string> renames(const Survey& s) {
  std::map<std::string, std::string> out;
  const auto processor = read_json_object((fs::path(s.root) / "policy_preprocessor.json").string());
  if (!processor) return out;
  for (const auto& step : (*processor)["steps"].items())
    for (const auto& [from, to] : step["config"]["rename_map"].members()) out.emplace(from, std::string(to.as_text()));
  return out;
}

void judge_feature(Survey& s, const std::string& name, const Value& feature, const Value& there, const std::map<std::string, std::string>& renamed,
                   std::string_view which) {
  std::string source = name;
  for (const auto& [from, to] : renamed)
    if (to == name) source = from;
  const Value& other = there[source];
  if (other.is_null()) {
    // Pi0 and SmolVLA fill cameras that do not exist with black images under this name.
    if (contains(name, "empty_camera")) return;
    std::vector<std::string> kin;
    for (const auto& [key, value] : there.members())
      if (key.substr(0, key.find('.')) == source.substr(0, source.find('.')) &&
          (feature["type"].as_text() == "VISUAL") == (value["dtype"].as_text() == "video" || value["dtype"].as_text() == "image"))
        kin.push_back(key);
    s.add(std::string(check_id), true, "model.key-mismatch",
          fmt::format("the policy's {} {} is not in the dataset{}", which, name, kin.empty() ? "" : " (it has " + join(kin, ", ") + ")"),
          "config.json", Value::object({{"feature", name}}));
    return;
  }
  auto mine = shape_of(feature["shape"]), theirs = shape_of(other["shape"]);
  if (feature["type"].as_text() != "VISUAL") {
    if (mine != theirs)
      s.add(std::string(check_id), true, "model.shape-mismatch",
            fmt::format("{} has shape {} in the policy and {} in the dataset", name, text_of(mine), text_of(theirs)), "config.json",
            Value::object({{"feature", name}, {"policy", Value::list_of(mine)}, {"dataset", Value::list_of(theirs)}}));
    return;
  }
  // Policies state channels first, data sets usually last.
  if (theirs.size() == 3 && (other["names"].items().size() != 3 || other["names"].items()[2].as_text().starts_with("channel")))
    std::rotate(theirs.begin(), theirs.end() - 1, theirs.end());
  if (mine != theirs)
    s.add(std::string(check_id), false, "model.shape-mismatch",
          fmt::format("images of {} have shape {} in the policy and {} in the dataset: a policy that does not resize them sees another picture", name,
                      text_of(mine), text_of(theirs)),
          "config.json", Value::object({{"feature", name}, {"policy", Value::list_of(mine)}, {"dataset", Value::list_of(theirs)}}));
}

}  // namespace

void judge_features(Survey& s, const std::string& dataset) {
  if (!s.is_lerobot) return;
  judge_action_head(s);
  judge_horizon(s);
  // SmolVLA, Pi0 and Pi0.5 pad states and actions to a fixed width and refuse wider ones.
  for (const auto& [limit, features, name] :
       {std::tuple("max_action_dim", "output_features", "action"), std::tuple("max_state_dim", "input_features", "observation.state")}) {
    const auto most = s.config[limit].as_int(-1);
    const auto shape = shape_of(s.config[features][name]["shape"]);
    if (most > 0 && shape.size() == 1 && shape[0] > most)
      s.add(std::string(check_id), true, "model.shape-mismatch",
            fmt::format("{} has {} dimensions, config.json's {} is {}", name, shape[0], limit, most), "config.json",
            Value::object({{"feature", name}, {"width", shape[0]}, {"limit", most}}));
  }
  judge_tokenizer(s);
  if (dataset.empty()) return;
  const auto info = read_json_object((fs::path(dataset) / "meta/info.json").string());
  if (!info || !(*info)["features"].is_object()) {
    s.add(std::string(check_id), false, "model.key-mismatch", "the dataset's meta/info.json cannot be read, so features were not compared",
          "meta/info.json");
    return;
  }
  const auto renamed = renames(s);
  for (const auto& [name, feature] : s.config["input_features"].members()) judge_feature(s, name, feature, (*info)["features"], renamed, "input");
  for (const auto& [name, feature] : s.config["output_features"].members()) judge_feature(s, name, feature, (*info)["features"], {}, "output");
}

}  // namespace ff::model
