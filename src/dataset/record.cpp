#include "dataset/record.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "dataset/metadata_tables.h"
#include "media/png.h"

namespace ff::dataset {
namespace {

namespace fs = std::filesystem;

constexpr const char* task = "put the object on the goal";
constexpr const char* data_file = "data/chunk-000/file-000.parquet";
constexpr const char* episodes_file = "meta/episodes/chunk-000/file-000.parquet";

Value info_of(const reference::Dataset& data) {
  const auto feature = [](const char* dtype, const Value& shape, Value names) {
    return Value::object({{"dtype", dtype}, {"shape", shape}, {"names", std::move(names)}});
  };
  const Value axes = Value::list_of(reference::action_names), four = Value::list({static_cast<long long>(reference::action_size)});
  Value features = Value::object({{"observation.state", feature("float32", four, axes)}, {"action", feature("float32", four, axes)}});
  for (const char* camera : reference::camera_names)
    features.set(camera, feature("image", Value::list({reference::image_side, reference::image_side, reference::image_channels}),
                                 Value::list({"height", "width", "channels"})));
  features.set("timestamp", feature("float32", Value::list({1}), Value()));
  for (const char* number : {"frame_index", "episode_index", "index", "task_index"})
    features.set(number, feature("int64", Value::list({1}), Value()));
  return Value::object({{"codebase_version", "v3.0"},
                        {"robot_type", "firstfault_reference"},
                        {"total_episodes", data.episodes()},
                        {"total_frames", data.frames.size()},
                        {"total_tasks", 1},
                        {"chunks_size", 1000},
                        {"data_files_size_in_mb", 100},
                        {"video_files_size_in_mb", 200},
                        {"fps", static_cast<long long>(reference::control_rate_hz)},
                        {"splits", Value::object({{"train", fmt::format("0:{}", data.episodes())}})},
                        {"data_path", "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"},
                        {"video_path", Value()},
                        {"features", std::move(features)}});
}

Result<void> write_rows(const reference::Dataset& data, const std::string& path, const Parquet& parquet) {
  Rewrite job;
  std::vector<float> state, action, time;
  std::vector<std::int64_t> frame, episode, index, zero;
  std::array<std::vector<std::string>, reference::camera_names.size()> pictures, names;
  for (std::size_t e = 0; e < data.episodes(); ++e) {
    job.group_rows.push_back(static_cast<std::int64_t>(data.starts[e + 1] - data.starts[e]));
    for (std::size_t row = data.starts[e]; row < data.starts[e + 1]; ++row) {
      const auto& f = data.frames[row];
      const std::size_t number = row - data.starts[e];
      for (const double x : f.seen.state) state.push_back(static_cast<float>(x));
      for (const double x : f.action) action.push_back(static_cast<float>(x));
      for (std::size_t c = 0; c < pictures.size(); ++c) {
        pictures[c].push_back(media::png_bytes(f.seen.images[c], reference::image_side, reference::image_side));
        names[c].push_back(fmt::format("frame-{:06}.png", number));
      }
      time.push_back(static_cast<float>(static_cast<double>(number) / reference::control_rate_hz));
      frame.push_back(static_cast<std::int64_t>(number));
      episode.push_back(static_cast<std::int64_t>(e));
      index.push_back(static_cast<std::int64_t>(row));
      zero.push_back(0);
    }
  }
  job.rows.assign(data.frames.size(), -1);
  job.columns.float_rows("observation.state", reference::action_size, state);
  job.columns.float_rows("action", reference::action_size, action);
  for (std::size_t c = 0; c < pictures.size(); ++c) job.columns.pictures(reference::camera_names[c], pictures[c], names[c]);
  job.columns.floats("timestamp", time);
  job.columns.integers("frame_index", frame);
  job.columns.integers("episode_index", episode);
  job.columns.integers("index", index);
  job.columns.integers("task_index", zero);
  return parquet.rewrite(path, job);
}

Result<void> write_episodes(const reference::Dataset& data, const std::vector<FeatureStatistics>& statistics, const std::string& path,
                            const Parquet& parquet) {
  const std::size_t n = data.episodes();
  std::vector<std::int64_t> number, length, from, to, zero(n, 0);
  for (std::size_t e = 0; e < n; ++e) {
    number.push_back(static_cast<std::int64_t>(e));
    from.push_back(static_cast<std::int64_t>(data.starts[e]));
    to.push_back(static_cast<std::int64_t>(data.starts[e + 1]));
    length.push_back(to.back() - from.back());
  }
  Rewrite job;
  job.rows.assign(n, -1);
  job.columns.integers("episode_index", number);
  job.columns.text_lists("tasks", std::vector<std::vector<std::string>>(n, {task}));
  job.columns.integers("length", length);
  job.columns.integers("data/chunk_index", zero);
  job.columns.integers("data/file_index", zero);
  job.columns.integers("dataset_from_index", from);
  job.columns.integers("dataset_to_index", to);
  add_statistics(job.columns, statistics);
  job.columns.integers("meta/episodes/chunk_index", zero);
  job.columns.integers("meta/episodes/file_index", zero);
  return parquet.rewrite(path, job);
}

/// Statistics of the pictures, 0 to 1, by channel: shape 3 x 1 x 1, as lerobot stores them.
Value picture_statistics(const reference::Dataset& data, std::size_t camera) {
  std::array<double, reference::image_channels> low{}, high{};
  low.fill(1);
  for (const auto& f : data.frames)
    for (std::size_t i = 0; i < reference::image_size; ++i) {
      const double x = f.seen.images[camera][i] / 255.0;
      double &l = low[i % low.size()], &h = high[i % high.size()];
      l = std::min(l, x);
      h = std::max(h, x);
    }
  const auto nested = [](const double* values) {
    Value out = Value::list();
    for (std::size_t c = 0; c < reference::image_channels; ++c) out.push(Value::list({Value::list({values[c]})}));
    return out;
  };
  const auto& s = data.statistics;
  const std::size_t at = camera * reference::image_channels;
  return Value::object({{"min", nested(low.data())},
                        {"max", nested(high.data())},
                        {"mean", nested(&s.image_mean[at])},
                        {"std", nested(&s.image_std[at])},
                        {"count", Value::list({data.frames.size()})}});
}

}  // namespace

Result<void> write_demonstrations(const reference::Dataset& data, const std::string& root, const Parquet& parquet) {
  const auto full = [&](const char* name) { return (fs::path(root) / name).string(); };
  std::error_code error;
  for (const char* name : {data_file, episodes_file}) {
    fs::create_directories(fs::path(full(name)).parent_path(), error);
    if (error) return fail("cannot be created: " + error.message(), fs::path(full(name)).parent_path().string());
  }
  const Value info = info_of(data);
  const auto described = parse_info(to_json(info), "meta/info.json");
  if (!described) return std::unexpected(described.error());
  if (auto done = write_rows(data, full(data_file), parquet); !done) return done;
  std::vector<std::int64_t> lengths;
  for (std::size_t e = 0; e < data.episodes(); ++e) lengths.push_back(static_cast<std::int64_t>(data.starts[e + 1] - data.starts[e]));
  const auto statistics = exact_statistics(parquet, {full(data_file)}, described->features, lengths, true);
  if (!statistics) return std::unexpected(statistics.error());
  if (auto done = write_episodes(data, *statistics, full(episodes_file), parquet); !done) return done;
  if (auto done = write_tasks(full("meta/tasks.parquet"), {task}, parquet); !done) return done;
  Value stats = Value::object();
  for (const auto& f : *statistics) stats.set(f.name, statistics_value(f, f.all, true));
  for (std::size_t c = 0; c < reference::camera_names.size(); ++c) stats.set(reference::camera_names[c], picture_statistics(data, c));
  if (auto done = write_file(full("meta/stats.json"), to_json(stats, 4) + "\n"); !done) return done;
  return write_file(full("meta/info.json"), to_json(info, 4) + "\n");
}

}  // namespace ff::dataset
