#include "model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace ff::model {
namespace {

constexpr double max_size = 1e12;    ///< of one dimension or count in a configuration
constexpr double max_feature = 1e6;  ///< of one dimension of a feature

/// A member by its path: "text_config.hidden_size", "down_dims.1".
const Value& at_path(const Value& config, std::string_view path) {
  static const Value nothing;
  const Value* value = &config;
  for (const auto part : split(path, '.')) {
    if (!value->is_list()) {
      value = &(*value)[part];
      continue;
    }
    const auto at = to_integer<std::size_t>(part);
    value = at && *at < value->items().size() ? &value->items()[*at] : &nothing;
  }
  return *value;
}

/// What LeRobot's features say: widths of state and action, cameras and their size.
void add_features(Variables& out, const Value& config) {
  double cameras = 0, height = 0, width = 0, pixels = 0;
  const auto size = [](const Value& v) { return std::clamp(v.as_real(), 0.0, max_feature); };
  for (const auto& [name, feature] : config["input_features"].members()) {
    const auto& shape = feature["shape"].items();
    const auto type = feature["type"].as_text();
    if (type == "VISUAL" && shape.size() == 3) {
      ++cameras;
      height = size(shape[1]);
      width = size(shape[2]);
      pixels += height * width;
    } else if (type == "STATE" && shape.size() == 1 && name == "observation.state") {
      out["state"] = size(shape[0]);
    } else if (type == "ENV" && shape.size() == 1) {
      out["environment_state"] = size(shape[0]);
    }
  }
  for (const auto& [name, feature] : config["output_features"].members())
    if (feature["shape"].items().size() == 1) out["action"] = size(feature["shape"].items()[0]);
  out.try_emplace("state", 0);
  out.try_emplace("action", 0);
  out.try_emplace("environment_state", 0);
  out["cameras"] = cameras;
  out["image_height"] = height;
  out["image_width"] = width;
  out["camera_pixels"] = pixels;
}

Result<double> value_of(const std::string& name, const Value& rule, const Value& config, const Variables& known) {
  if (rule["config"].is_text()) {
    for (const auto path : split(rule["config"].as_text(), '|')) {
      const Value& given = at_path(config, trim(path));
      if (given.is_null()) continue;
      if (rule["length"].as_bool(false)) {
        if (!given.is_list()) return fail(fmt::format("{} is no list", trim(path)), "config.json");
        return static_cast<double>(given.items().size());
      }
      if (given.kind() == Value::Kind::boolean) return given.as_bool() ? 1.0 : 0.0;
      if (given.is_text() && rule["words"].is_object()) {
        const Value& word = rule["words"][given.as_text()];
        if (word.is_number()) return word.as_real();
        if (rule["words"]["_"].is_number()) return rule["words"]["_"].as_real();
        return fail(fmt::format("\"{}\" is no known {}", given.as_text(), trim(path)), "config.json");
      }
      // image_size of some vision models is a pair.
      const Value& number = given.is_list() && !given.items().empty() ? given.items()[0] : given;
      if (rule["signed"].as_bool(false) && number.is_number() && number.as_real() < 0) return 0.0;
      if (!number.is_number() || !std::isfinite(number.as_real()) || number.as_real() < 0 || number.as_real() > max_size)
        return fail(fmt::format("{} is no number that a size can have", trim(path)), "config.json");
      return number.as_real();
    }
  }
  if (rule["formula"].is_text()) return evaluate(rule["formula"].as_text(), known);
  if (rule["default"].is_number()) return rule["default"].as_real();
  return fail(fmt::format("{} is missing ({})", rule["config"].as_text(), name), "config.json",
              "give the config.json that was saved beside the weights");
}

Result<bool> holds(const Value& condition, const Variables& values) {
  if (condition.is_null()) return true;
  const auto value = evaluate(condition.as_text(), values);
  if (!value) return std::unexpected(value.error());
  return *value != 0;
}

/// A number of the table: as it stands, or the value of a formula.
Result<double> number(const Value& rule, const Variables& values) {
  return rule.is_number() ? Result<double>(rule.as_real()) : evaluate(rule.as_text(), values);
}

constexpr int deepest_part = 8;

/// Adds what one rule calls for: a tensor, or a part (tensors that several families share, under a prefix and with numbers of its own),
/// as often as it says.
class Adder {
 public:
  Adder(Architecture& out, const Value& parts) : out_(out), parts_(parts) {}

  Result<void> add(const Value& rule, const std::string& prefix, const Variables& outer, int depth = 0) {
    if (depth > deepest_part) return fail("the table's parts contain themselves", std::string(rule["part"].as_text()));
    Variables values = outer;
    double count = 1;
    if (!rule["for"].is_null()) {
      const auto n = number(rule["for"], values);
      if (!n) return std::unexpected(n.error());
      count = *n;
    }
    if (count < 0 || count + static_cast<double>(out_.tensors.size()) > static_cast<double>(max_expected_tensors))
      return fail(fmt::format("calls for more than {} tensors", max_expected_tensors), "config.json");
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
      if (!rule["for"].is_null()) values["i"] = static_cast<double>(i);
      const auto wanted = holds(rule["if"], values);
      if (!wanted) return std::unexpected(wanted.error());
      if (!*wanted) continue;
      const auto numbered = [&](std::string_view text) { return replace_all(std::string(text), "{i}", std::to_string(i)); };
      auto added = rule["part"].is_text() ? part(rule, prefix + numbered(rule["prefix"].as_text()), values, depth)
                                          : tensor(rule, prefix, numbered(rule["name"].as_text()), values);
      if (!added) return added;
    }
    return {};
  }

 private:
  Result<void> part(const Value& rule, const std::string& prefix, Variables values, int depth) {
    const Value& tensors = parts_[rule["part"].as_text()];
    if (!tensors.is_list()) return fail("the table has no such part", std::string(rule["part"].as_text()));
    Variables own;
    for (const auto& [name, formula] : rule["with"].members()) {
      const auto value = number(formula, values);
      if (!value) return std::unexpected(value.error());
      own[name] = *value;
    }
    for (const auto& [name, value] : own) values[name] = value;
    for (const auto& inner : tensors.items())
      if (auto added = add(inner, prefix, values, depth + 1); !added) return added;
    return {};
  }

  Result<void> tensor(const Value& rule, const std::string& prefix, const std::string& name, const Variables& values) {
    if (out_.tensors.size() >= max_expected_tensors) return fail(fmt::format("calls for more than {} tensors", max_expected_tensors), "config.json");
    ExpectedTensor t;
    t.name = prefix + name;
    if (rule["tied"].is_text()) t.tied = prefix + std::string(rule["tied"].as_text());
    for (const auto& dimension : rule["shape"].items()) {
      const auto n = number(dimension, values);
      if (!n) return std::unexpected(n.error());
      if (*n < 0 || *n > max_size || *n != std::floor(*n))
        return fail(fmt::format("gives {} a size of {:g} ({})", t.name, *n, dimension.to_string()), "config.json");
      t.shape.push_back(static_cast<std::uint64_t>(*n));
    }
    const auto yes = [&](std::string_view word) {
      return rule[word].is_text() ? holds(rule[word], values) : Result<bool>(rule[word].as_bool(false));
    };
    const auto optional = yes("optional"), buffer = yes("buffer");
    if (!optional) return std::unexpected(optional.error());
    if (!buffer) return std::unexpected(buffer.error());
    t.optional = *optional;
    t.buffer = *buffer;
    t.lookup = rule["lookup"].as_bool(false);
    out_.tensors.push_back(std::move(t));
    return {};
  }

  Architecture& out_;
  const Value& parts_;
};

bool matches(const Value& entry, const Value& config) {
  for (const auto& type : entry["model_types"].items())
    if (config["model_type"].as_text() == type.as_text()) return true;
  for (const auto& type : entry["policy_types"].items())
    if (config["type"].as_text() == type.as_text()) return true;
  return false;
}

}  // namespace

std::uint64_t ExpectedTensor::elements() const {
  std::uint64_t out = 1;
  for (const auto n : shape) out *= n;
  return out;
}
std::string ExpectedTensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::uint64_t Architecture::parameters() const {
  if (entry != nullptr && (*entry)["parameters"].is_text()) {
    const auto n = evaluate((*entry)["parameters"].as_text(), values);
    return n && *n > 0 ? static_cast<std::uint64_t>(*n) : 0;
  }
  std::uint64_t out = 0;
  for (const auto& t : tensors)
    if (!t.buffer && !t.optional && (t.tied.empty() || t.name < t.tied)) out += t.elements();
  return out;
}

std::uint64_t Architecture::lookups() const {
  std::uint64_t out = 0;
  for (const auto& t : tensors)
    if (t.lookup && !t.buffer && !t.optional) out += t.elements();
  return out;
}

Result<std::optional<Architecture>> architecture_of(const Value& config, const knowledge::Knowledge& knowledge) {
  const Value& table = knowledge.table("architectures");
  for (const auto& entry : table["families"].items()) {
    if (!matches(entry, config)) continue;
    Architecture out;
    out.entry = &entry;
    out.family = entry["name"].as_text();
    out.title = entry["title"].as_text();
    out.complete = entry["complete"].as_bool(false);
    for (const auto& prefix : entry["prefixes"].items()) out.prefixes.emplace_back(prefix.as_text());
    if (config["input_features"].is_object() || config["output_features"].is_object()) add_features(out.values, config);
    for (const auto& [name, rule] : entry["values"].members()) {
      const auto value = value_of(name, rule, config, out.values);
      if (!value) return std::unexpected(value.error());
      out.values[name] = *value;
    }
    Adder adder(out, table["parts"]);
    for (const auto& rule : entry["tensors"].items())
      if (auto added = adder.add(rule, "", out.values); !added) return std::unexpected(added.error());
    return out;
  }
  return std::nullopt;
}

std::vector<std::string> known_families(const knowledge::Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const auto& entry : knowledge.table("architectures")["families"].items()) out.emplace_back(entry["name"].as_text());
  return out;
}

}  // namespace ff::model
