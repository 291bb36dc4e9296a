#include <array>

#include "base/text.h"
#include "compute/torch_run.h"

namespace ff::compute {
namespace {

constexpr std::array<std::string_view, 7> families{"maths", "convolution", "reduction", "matrix", "backward", "distributed", "compile"};

struct TypeName {
  std::string_view torch, brief;
};
constexpr std::array<TypeName, 4> types{{{"float32", "f32"}, {"float16", "f16"}, {"bfloat16", "bf16"}, {"float64", "f64"}}};

std::optional<double> number(const Value& value) { return value.is_number() ? std::optional(value.as_real()) : std::nullopt; }

TorchCase case_of(const Value& record) {
  return {std::string(record["name"].as_text()), std::string(record["family"].as_text()), std::string(record["dtype"].as_text()),
          std::string(record["route"].as_text())};
}

std::optional<OperatorResult> result_of(const Value& record) {
  const auto status = operator_status_from_name(record["status"].as_text());
  if (!status || record["name"].as_text().empty()) return std::nullopt;
  OperatorResult out;
  out.dtype = short_dtype(record["dtype"].as_text());
  out.name = std::string(record["name"].as_text()) + "." + out.dtype;
  if (const auto route = record["route"].as_text(); !route.empty()) out.name += "@" + std::string(route);
  out.family = record["family"].as_text();
  out.layer = "torch";
  out.status = *status;
  out.max_error = number(record["max_error"]);
  out.mean_error = number(record["mean_error"]);
  out.p99_error = number(record["p99_error"]);
  out.bound = number(record["bound"]);
  out.time_ms = number(record["time_ms"]);
  out.detail = record["detail"].as_text();
  const auto variant = record["variant"].as_text();
  if (is_fault(out.status) && !variant.empty() && variant != "base") out.detail = "(" + std::string(variant) + " inputs) " + out.detail;
  return out;
}

}  // namespace

std::span<const std::string_view> torch_families() { return families; }

std::optional<std::string> torch_dtype(std::string_view name) {
  for (const auto& type : types)
    if (type.torch == name || type.brief == name) return std::string(type.torch);
  return std::nullopt;
}

std::string short_dtype(std::string_view torch_name) {
  for (const auto& type : types)
    if (type.torch == torch_name) return std::string(type.brief);
  return std::string(torch_name);
}

TorchRecords read_torch_records(std::span<const Value> records) {
  TorchRecords out;
  for (const Value& record : records) {
    const auto event = record["event"].as_text();
    if (event == "hello") {
      out.hello = record;
    } else if (event == "unavailable") {
      out.unavailable = record["detail"].as_text();
    } else if (event == "start") {
      out.unfinished = case_of(record);
      out.unfinished_variant.clear();
    } else if (event == "variant") {
      out.unfinished_variant = record["variant"].as_text();
    } else if (event == "dead") {
      out.dead = record["detail"].as_text();
    } else if (event == "result") {
      auto result = result_of(record);
      if (!result) continue;
      out.finished.push_back(case_of(record));
      out.results.push_back(std::move(*result));
      out.unfinished.reset();
    } else if (event == "end") {
      out.ended = true;
    }
  }
  return out;
}

}  // namespace ff::compute
