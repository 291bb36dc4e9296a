#include "reference/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/value.h"
#include "reference/checkpoint.h"

namespace ff::reference {
namespace {

constexpr const char* config_name = "config.json";
constexpr const char* weights_name = "model.safetensors";
constexpr const char* normalizer_name = "policy_preprocessor_step_0_normalizer_processor.safetensors";
constexpr const char* unnormalizer_name = "policy_postprocessor_step_0_unnormalizer_processor.safetensors";

Value feature(const char* type, std::initializer_list<std::size_t> shape) {
  return Value::object({{"type", type}, {"shape", Value::list_of(std::vector<std::size_t>(shape))}});
}

Value inputs() {
  Value out = Value::object({{"observation.state", feature("STATE", {action_size})}});
  for (const char* camera : camera_names) out.set(camera, feature("VISUAL", {image_channels, image_side, image_side}));
  return out;
}
Value outputs() { return Value::object({{"action", feature("ACTION", {action_size})}}); }
Value modes() { return Value::object({{"VISUAL", "MEAN_STD"}, {"STATE", "MEAN_STD"}, {"ACTION", "MEAN_STD"}}); }

/// The statistics' place in a file of tensors, and in Statistics: read and written by the same table.
template <class S, class Visit>
void each_statistic(S& s, Visit visit) {
  visit("observation.state.mean", std::vector<std::size_t>{action_size}, s.state_mean.data());
  visit("observation.state.std", std::vector<std::size_t>{action_size}, s.state_std.data());
  visit("action.mean", std::vector<std::size_t>{action_size}, s.action_mean.data());
  visit("action.std", std::vector<std::size_t>{action_size}, s.action_std.data());
  for (std::size_t camera = 0; camera < camera_names.size(); ++camera) {
    const std::string name = camera_names[camera];
    visit(name + ".mean", std::vector<std::size_t>{image_channels, 1, 1}, s.image_mean.data() + camera * image_channels);
    visit(name + ".std", std::vector<std::size_t>{image_channels, 1, 1}, s.image_std.data() + camera * image_channels);
  }
}

std::string statistics_bytes(const Statistics& s) {
  std::vector<SavedTensor> tensors;
  each_statistic(s, [&](const std::string& name, std::vector<std::size_t> shape, const double* values) {
    SavedTensor t{name, std::move(shape), {}};
    for (std::size_t i = 0; i < t.shape.front(); ++i) t.values.push_back(static_cast<float>(values[i]));
    tensors.push_back(std::move(t));
  });
  std::ranges::sort(tensors, {}, &SavedTensor::name);
  return safetensors_bytes(tensors);
}

std::string processor(const char* name, const char* step, const Value& features, const char* state_file) {
  const Value config = Value::object({{"eps", 1e-8}, {"features", features}, {"norm_map", modes()}});
  return to_json(Value::object({{"name", name},
                                {"steps", Value::list({Value::object({{"registry_name", step}, {"config", config}, {"state_file", state_file}})})}}),
                 2) +
         "\n";
}

const PolicyFile* named(const std::vector<PolicyFile>& files, std::string_view name) {
  const auto found = std::ranges::find(files, name, &PolicyFile::name);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace

std::vector<PolicyFile> policy_files(const Network& network, const Statistics& statistics) {
  std::vector<SavedTensor> weights;
  for (const auto& p : network.parameters) weights.push_back({p.name, {p.rows, p.columns}, p.value});
  const Value config = Value::object({{"type", "firstfault_reference"},
                                      {"n_obs_steps", 1},
                                      {"input_features", inputs()},
                                      {"output_features", outputs()},
                                      {"chunk_size", chunk_size},
                                      {"n_action_steps", chunk_size},
                                      {"hidden_size", hidden_size},
                                      {"normalization_mapping", modes()}});
  Value both = inputs();
  both.set("action", outputs()["action"]);
  const std::string statistics_file = statistics_bytes(statistics);
  return {{config_name, to_json(config, 2) + "\n"},
          {weights_name, safetensors_bytes(weights)},
          {"policy_preprocessor.json", processor("policy_preprocessor", "normalizer_processor", both, normalizer_name)},
          {normalizer_name, statistics_file},
          {"policy_postprocessor.json", processor("policy_postprocessor", "unnormalizer_processor", outputs(), unnormalizer_name)},
          {unnormalizer_name, statistics_file}};
}

Result<Policy> read_policy(const std::vector<PolicyFile>& files, const std::string& where) {
  const auto at = [&](std::string_view name) { return where.empty() ? std::string(name) : fmt::format("{}/{}", where, name); };
  const auto tensors = [&](std::string_view name) -> Result<std::vector<SavedTensor>> {
    const auto* file = named(files, name);
    if (file == nullptr) return fail("is not there", at(name), "take a whole policy directory");
    return read_safetensors(file->bytes, at(name));
  };
  const auto weights = tensors(weights_name);
  if (!weights) return std::unexpected(weights.error());
  Policy policy;
  for (auto& p : policy.network.parameters) {
    const auto found = std::ranges::find(*weights, p.name, &SavedTensor::name);
    if (found == weights->end()) return fail("has no tensor \"" + p.name + "\"", at(weights_name), "take a policy of the built-in network");
    if (found->values.size() != p.value.size())
      return fail("tensor \"" + p.name + "\" has another shape", at(weights_name), "take a policy of the built-in network");
    p.value = found->values;
  }
  const auto statistics = tensors(normalizer_name);
  if (!statistics) return std::unexpected(statistics.error());
  std::string missing;
  each_statistic(policy.statistics, [&](const std::string& name, const std::vector<std::size_t>& shape, double* values) {
    const auto found = std::ranges::find(*statistics, name, &SavedTensor::name);
    if (found == statistics->end() || found->values.size() != shape.front())
      missing = name;
    else
      std::ranges::copy(found->values, values);
  });
  if (!missing.empty()) return fail("has no \"" + missing + "\" of the right size", at(normalizer_name), "take a policy of the built-in network");
  return policy;
}

const std::vector<PolicyFile>& shipped_policy() {
  static const std::vector<PolicyFile> files = [] {
    std::vector<PolicyFile> out;
    for (const auto& f : embedded_policy()) out.push_back({std::string(f.name), std::string(f.bytes)});
    return out;
  }();
  return files;
}

}  // namespace ff::reference
