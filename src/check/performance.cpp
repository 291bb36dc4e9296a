#include "check/performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace ff {
namespace {

constexpr const char* unsaid = "not stated";

Value text_or(const std::string& s) { return s.empty() ? Value(unsaid) : Value(s); }
Value number_or(double x) { return std::isfinite(x) ? Value(x) : Value(unsaid); }

/// Of sorted values, by the nearest rank.
double share_of(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return Performance::none;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::vector<double> sorted_of(std::vector<double> v) {
  std::erase_if(v, [](double x) { return !std::isfinite(x); });
  std::ranges::sort(v);
  return v;
}

}  // namespace

std::string picture_size(const Value& shape) {
  std::vector<std::int64_t> n;
  for (const auto& item : shape.items()) n.push_back(item.as_int(0));
  if (n.size() != 3) return {};
  const bool channels_first = n[0] <= 4 && n[2] > 4;
  return channels_first ? fmt::format("{}x{}", n[2], n[1]) : fmt::format("{}x{}", n[1], n[0]);
}

Value Performance::to_value() const {
  const auto sorted = sorted_of(steps_s);
  Value by_package = Value::object();
  for (const auto& [name, version] : versions) by_package.set(name, version);
  const double middle = sorted.empty() ? step_s : share_of(sorted, 0.5);
  Value out = Value::object({{"device", text_or(device)},
                             {"versions", versions.empty() ? Value(unsaid) : by_package},
                             {"batch", number_or(batch)},
                             {"precision", text_or(precision)},
                             {"resolution", text_or(resolution)},
                             {"cameras", number_or(cameras)},
                             {"step_median_s", number_or(middle)},
                             {"step_p95_s", number_or(share_of(sorted, 0.95))},
                             {"step_p99_s", number_or(share_of(sorted, 0.99))},
                             {"step_without_loading_s", number_or(update_s)},
                             {"loading_s", number_or(data_s)},
                             {"throughput_per_s", number_or(per_second)},
                             {"peak_memory_bytes", number_or(peak_device_bytes)},
                             {"peak_process_bytes", number_or(peak_process_bytes)},
                             {"video", text_or(video)}});
  Value missing = Value::list(), said = Value::object();
  for (const auto& [name, value] : out.members())
    if (value.is_text() && value.as_text() == unsaid) missing.push(name);
  for (const auto& [name, who] : from) said.set(name, who);
  return out.set("not_stated", std::move(missing)).set("from", std::move(said));
}

std::string Performance::text(std::string_view unit) const {
  const auto sorted = sorted_of(steps_s);
  std::vector<std::string> parts;
  if (!sorted.empty())
    parts.push_back(fmt::format("step {:.3g} s (median), {:.3g} s (95 %), {:.3g} s (99 %, of {})", share_of(sorted, 0.5), share_of(sorted, 0.95),
                                share_of(sorted, 0.99), sorted.size()));
  else if (std::isfinite(step_s))
    parts.push_back(fmt::format("step {:.3g} s (mean)", step_s));
  if (std::isfinite(per_second)) parts.push_back(fmt::format("{:.3g} {} a second", per_second, unit));
  std::vector<std::string> with;
  if (!device.empty()) with.push_back(device);
  if (const auto torch = versions.find("torch"); torch != versions.end()) with.push_back("torch " + torch->second);
  if (std::isfinite(batch)) with.push_back(fmt::format("batch {:.0f}", batch));
  if (!precision.empty()) with.push_back(precision);
  if (std::isfinite(cameras))
    with.push_back(fmt::format("{:.0f} camera{}{}", cameras, cameras == 1 ? "" : "s", resolution.empty() ? "" : " " + resolution));
  if (!video.empty()) with.push_back(video);
  const double mib = 1024.0 * 1024.0;
  if (std::isfinite(peak_device_bytes)) with.push_back(fmt::format("at most {:.0f} MiB on the device", peak_device_bytes / mib));
  if (std::isfinite(peak_process_bytes)) with.push_back(fmt::format("largest process {:.0f} MiB", peak_process_bytes / mib));
  if (!with.empty()) parts.push_back(join(with, ", "));
  std::vector<std::string> missing;
  for (const auto& [name, absent] : {std::pair{"step times", sorted.empty() && !std::isfinite(step_s)},
                                     {"device", device.empty()},
                                     {"versions", versions.empty()},
                                     {"batch", !std::isfinite(batch)},
                                     {"precision", precision.empty()},
                                     {"cameras", !std::isfinite(cameras)}})
    if (absent) missing.emplace_back(name);
  if (!missing.empty()) parts.push_back("not stated: " + join(missing, ", "));
  return join(parts, "; ");
}

}  // namespace ff
