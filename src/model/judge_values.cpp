#include <fmt/format.h>

#include "base/text.h"
#include "model/survey.h"

namespace ff::model {
namespace {

/// More threads than this do not read memory faster on common machines.
constexpr unsigned scan_threads = 2;

/// LeRobot before 0.4 keeps the statistics in the weights and sets them to infinity until they are known.
bool is_statistics(std::string_view name) { return name.starts_with("normalize_") || name.starts_with("unnormalize_"); }

/// Where the first one lies: "[3, 17]".
std::string place(std::uint64_t index, const std::vector<std::uint64_t>& shape) {
  std::vector<std::string> out(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return {};
    out[i] = std::to_string(index % shape[i]);
    index /= shape[i];
  }
  return "[" + join(out, ", ") + "]";
}

void judge(Survey& s, const ModelFile& f, const std::string& name, Dtype dtype, const ValueStats& v, const std::vector<std::uint64_t>& shape) {
  if (v.nonfinite() == 0) return;
  // Statistics are judged on their own: infinity in them means "never set".
  if (f.role == Role::normalizer || is_statistics(name)) return;
  // An attention mask is minus infinity where nothing may be seen.
  const bool mask = v.nan == 0 && v.positive_inf == 0 && contains(lower(name), "mask");
  if (mask) return;
  const std::string at = dtype == Dtype::c64 ? fmt::format("element {}", v.first_nonfinite / 2)
                         : shape.empty()     ? fmt::format("element {}", v.first_nonfinite)
                                             : place(v.first_nonfinite, shape);
  Value measured = Value::object({{"file", f.name},
                                  {"tensor", name},
                                  {"dtype", std::string(dtype_name(dtype))},
                                  {"nan", v.nan},
                                  {"positive_inf", v.positive_inf},
                                  {"negative_inf", v.negative_inf},
                                  {"elements", v.elements},
                                  {"first", at}});
  if (v.any_finite) measured.set("absmax", v.absmax());
  s.add("model.finite", true, "model.nonfinite",
        fmt::format("{}: tensor \"{}\" has {} NaN and {} Inf among {} values, first at {}", f.name, name, v.nan, v.positive_inf + v.negative_inf,
                    v.elements, at),
        f.name, std::move(measured));
}

}  // namespace

void judge_values(Survey& s) {
  std::vector<ScanTask> tasks;
  for (const auto& f : s.files) {
    if (f.safetensors)
      for (const auto& t : f.safetensors->tensors) tasks.push_back({t.dtype, t.bytes});
    if (f.torch)
      for (const auto& t : f.torch->storages) tasks.push_back({t.dtype.value_or(Dtype::u8), t.bytes});
  }
  for (const auto& t : tasks) s.value_bytes += t.bytes.size();
  auto values = scan_all(tasks, scan_threads);
  auto next = values.begin();
  for (auto& f : s.files) {
    const std::size_t n = f.safetensors ? f.safetensors->tensors.size() : f.torch ? f.torch->storages.size() : 0;
    f.values.assign(next, next + static_cast<std::ptrdiff_t>(n));
    next += static_cast<std::ptrdiff_t>(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (f.safetensors) {
        const auto& t = f.safetensors->tensors[i];
        judge(s, f, t.name, t.dtype, f.values[i], t.shape);
      } else {
        const auto& t = f.torch->storages[i];
        judge(s, f, t.tensor.empty() ? "storage " + t.key : t.tensor, t.dtype.value_or(Dtype::u8), f.values[i], {});
      }
    }
  }
}

}  // namespace ff::model
