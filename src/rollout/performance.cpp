#include "rollout/performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "check/once.h"
#include "facts/machine.h"
#include "gpu/name.h"
#include "python/python.h"
#include "python/versions.h"

namespace ff::rollout {
namespace {

namespace fs = std::filesystem;

/// What the episodes' headers and frames say.
void from_episodes(const Survey& s, Performance& p) {
  std::set<std::string> cameras, sizes;
  for (const auto& j : s.episodes) {
    const auto& h = j.episode.header;
    cameras.insert(h.cameras.begin(), h.cameras.end());
    for (const auto& [key, size] : h.camera_sizes) sizes.insert(size);
    for (std::size_t i = 1; i < j.episode.frames.size(); ++i) p.steps_s.push_back(j.episode.frames[i].t - j.episode.frames[i - 1].t);
    if (!h.environment_version.empty() && !h.environment.empty()) p.versions[h.environment] = h.environment_version;
    if (p.device.empty()) p.device = h.device;
    if (p.precision.empty()) p.precision = h.precision;
    if (!h.renderer.empty()) p.versions["renderer"] = h.renderer;
  }
  if (!p.device.empty()) p.from["device"] = "the episodes' headers";
  if (!p.versions.empty()) p.from["versions"] = "the episodes' headers";
  if (!p.steps_s.empty()) p.from["step_median_s"] = "the frames' t";
  if (cameras.empty()) return;
  p.cameras = static_cast<double>(cameras.size());
  p.resolution = join(std::vector<std::string>(sizes.begin(), sizes.end()), ", ");
  p.from["cameras"] = "the episodes' headers";
}

/// What the policy's own file says of its pictures.
void from_policy(const std::string& policy, Performance& p) {
  const auto text = read_file(fs::path(policy) / "config.json", 16U << 20U);
  const auto config = text ? parse_json(*text) : Result<Value>(std::unexpected(text.error()));
  if (!config || !(*config)["input_features"].is_object()) return;
  double count = 0;
  std::set<std::string> sizes;
  for (const auto& [name, feature] : (*config)["input_features"].members()) {
    const std::string size = picture_size(feature["shape"]);
    if (feature["type"].as_text() != "VISUAL" || size.empty()) continue;
    count += 1;
    sizes.insert(size);
  }
  p.cameras = count;
  p.resolution = join(std::vector<std::string>(sizes.begin(), sizes.end()), ", ");
  p.from["cameras"] = "the policy's config.json";
  p.precision = (*config)["use_amp"].as_bool(false) ? "amp" : (*config)["dtype"].is_text() ? std::string((*config)["dtype"].as_text()) : "";
  if (!p.precision.empty()) p.from["precision"] = "the policy's config.json";
}

void from_lerobot(const CheckContext& context, const LerobotRun& run, Performance& p) {
  p.batch = run.batch;
  p.peak_process_bytes = run.peak_process_bytes;
  if (std::isfinite(run.batch)) p.from["batch"] = "lerobot-eval's words: environments at a time";
  if (run.device == "cpu") {
    const auto& model = context.machine.host.cpu_model;
    p.device = "cpu" + (model ? ": " + *model : "");
  } else {
    p.device = once(context, "device name: gpu", [] { return gpu::device_name("gpu"); });
  }
  if (!p.device.empty()) p.from["device"] = "lerobot-eval's words";
  const auto interpreter = python::interpreter_of(context.inputs.python);
  const auto versions = once(context, "versions: " + interpreter, [&] { return python::versions_of(interpreter); });
  p.versions.insert(versions.begin(), versions.end());
  if (!versions.empty()) p.from["versions"] = "--python";
  from_policy(run.policy, p);
}

}  // namespace

double seconds_of_batch(const Survey& survey) {
  double seconds = 0;
  for (const auto& r : survey.results)
    if (r.seconds > 0) seconds += r.seconds;
  if (seconds > 0) return seconds;
  for (const auto& j : survey.episodes) {
    if (!j.episode.ending || !(j.episode.ending->seconds > 0)) return missing;
    seconds += j.episode.ending->seconds;
  }
  return seconds > 0 ? seconds : missing;
}

Performance performance_of(const CheckContext& context, const Shared& shared) {
  Performance p;
  const Survey& s = **shared.survey;
  from_episodes(s, p);
  if (shared.lerobot) from_lerobot(context, *shared.lerobot, p);
  if (context.inputs.workload == "reference" && context.inputs.results.empty()) {
    p.device = "cpu (1 thread)";
    p.precision = "float32";
    p.from["device"] = p.from["precision"] = "the built-in workload";
  }
  if (const double seconds = seconds_of_batch(s); seconds > 0) {
    p.per_second = static_cast<double>(s.outcomes.size()) / seconds;
    p.from["throughput_per_s"] = "the seconds that the results state";
  }
  p.video = s.videos.empty() ? "without video" : fmt::format("with {}", count_of(s.videos.size(), "video"));
  p.from["video"] = "the files";
  return p;
}

}  // namespace ff::rollout
