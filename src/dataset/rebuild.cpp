#include "dataset/rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <expected>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/interrupt.h"
#include "dataset/judge_metadata.h"
#include "dataset/metadata_tables.h"
#include "dataset/picture_column.h"
#include "dataset/picture_statistics.h"
#include "dataset/statistics.h"
#include "media/ffmpeg.h"

namespace ff::dataset {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view v3_data = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
constexpr std::string_view v3_video = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";
constexpr std::string_view v2_data = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet";
constexpr std::string_view v2_video = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4";
constexpr double default_file_mb = 100;

/// chunk and file numbers that count on, `per_chunk` files in a chunk.
struct FileNumber {
  std::int64_t chunk = 0, file = 0;
  void advance(std::int64_t per_chunk) {
    if (++file >= per_chunk) {
      file = 0;
      ++chunk;
    }
  }
};

class Writer {
 public:
  Writer(const Plan& plan, std::string root, const Parquet& parquet, const std::function<void(std::string_view)>& progress)
      : plan_(plan), root_(std::move(root)), parquet_(parquet), progress_(progress), format_(plan.sources.front()->dataset.format) {}

  Result<Written> run() {
    std::error_code error;
    auto hold = hold_interrupts();
    fs::create_directories(fs::path(root_) / "meta", error);
    hold.unlock();
    if (error) return fail("cannot be created: " + error.message(), root_);
    prepare();
    for (const auto step : {&Writer::data, &Writer::statistics, &Writer::videos, &Writer::pictures, &Writer::metadata, &Writer::others})
      if (auto done = (this->*step)(); !done) return std::unexpected(done.error());
    return written_;
  }

 private:
  [[nodiscard]] const Dataset& source(const EpisodePlan& e) const { return plan_.sources[e.source]->dataset; }
  [[nodiscard]] std::string full(const std::string& name) const { return (fs::path(root_) / name).string(); }
  [[nodiscard]] std::int64_t length(std::size_t e) const { return static_cast<std::int64_t>(plan_.episodes[e].rows.size()); }
  Result<void> make_parent(const std::string& name) {
    std::error_code error;
    // An interrupt takes the whole copy away; a directory that is made after that would stay.
    const auto hold = hold_interrupts();
    fs::create_directories(fs::path(full(name)).parent_path(), error);
    if (error) return fail("cannot be created: " + error.message(), fs::path(full(name)).parent_path().string());
    return {};
  }

  /// info.json's description, parsed the way the reader does, and the path templates, standard ones where they are unusable.
  void prepare() {
    info_ = plan_.info;
    const bool v3 = format_ == Format::v30;
    if (auto parsed = parse_info(to_json(info_), "meta/info.json")) described_ = std::move(*parsed);
    const auto usable = [](std::string_view pattern, std::initializer_list<std::string_view> fields) {
      return std::ranges::all_of(fields, [&](std::string_view f) { return pattern.find(f) != std::string_view::npos; });
    };
    data_path_ = described_.data_path;
    video_path_ = described_.video_path;
    if (v3 ? !usable(data_path_, {"{chunk_index", "{file_index"}) || !data_path_.starts_with("data/")
           : !usable(data_path_, {"{episode_index"}) || !data_path_.starts_with("data/"))
      data_path_ = v3 ? v3_data : v2_data;
    if (!described_.cameras().empty() &&
        (v3 ? !usable(video_path_, {"{video_key", "{chunk_index", "{file_index"}) : !usable(video_path_, {"{video_key", "{episode_index"})))
      video_path_ = v3 ? v3_video : v2_video;
    for (std::size_t e = 0; e < plan_.episodes.size(); ++e) lengths_.push_back(length(e));
  }

  /// Bytes that a row of a source takes on disk, for the size of the files to be written.
  [[nodiscard]] double bytes_per_row(std::size_t s) {
    auto& known = row_bytes_[s];
    if (known > 0) return known;
    const Dataset& d = plan_.sources[s]->dataset;
    double bytes = 0;
    for (const auto& f : d.files) {
      std::error_code error;
      if (f.info) bytes += static_cast<double>(fs::file_size(fs::path(d.root) / f.path, error));
    }
    return known = std::max(1.0, bytes / static_cast<double>(std::max<std::int64_t>(1, d.rows)));
  }

  Result<void> data() {
    const double limit = std::max(1.0, info_["data_files_size_in_mb"].as_real(default_file_mb)) * 1024 * 1024;
    FileNumber number;
    std::size_t first = 0;
    std::int64_t row = 0;
    data_files_.resize(plan_.episodes.size());
    while (first < plan_.episodes.size()) {
      std::size_t end = first + 1;
      std::string name;
      if (format_ == Format::v30) {
        double bytes = bytes_per_row(plan_.episodes[first].source) * static_cast<double>(length(first));
        while (end < plan_.episodes.size()) {
          const double more = bytes_per_row(plan_.episodes[end].source) * static_cast<double>(length(end));
          if (bytes + more > limit) break;
          bytes += more;
          ++end;
        }
        name = fill_template(data_path_, {{"chunk_index", number.chunk}, {"file_index", number.file}});
      } else {
        name = fill_template(data_path_, {{"episode_chunk", static_cast<long long>(first) / described_.chunks_size},
                                          {"episode_index", static_cast<long long>(first)}});
      }
      progress_(fmt::format("writing {} (episode {} of {})", name, first + 1, plan_.episodes.size()));
      if (auto done = data_file(name, first, end, row); !done) return done;
      for (std::size_t e = first; e < end; ++e) {
        data_files_[e] = number;
        row += length(e);
      }
      names_.push_back(full(name));
      if (format_ == Format::v30) number.advance(described_.chunks_size);
      first = end;
    }
    written_.episodes = static_cast<std::int64_t>(plan_.episodes.size());
    written_.rows = row;
    written_.data_files = static_cast<std::int64_t>(names_.size());
    return {};
  }

  /// One data file with the episodes [first, end); `row` is the global index of its first row.
  Result<void> data_file(const std::string& name, std::size_t first, std::size_t end, std::int64_t row) {
    Rewrite job;
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> start;  // (source, file) -> its first row among job.paths
    std::int64_t laid = 0;
    std::vector<std::int64_t> index, episode, frame, task;
    std::vector<double> time;
    for (std::size_t e = first; e < end; ++e) {
      const EpisodePlan& p = plan_.episodes[e];
      const Survey& s = *plan_.sources[p.source];
      const auto& files = s.dataset.files;
      std::size_t f = 0;
      for (std::size_t i = 0; i < p.rows.size(); ++i) {
        const std::int64_t r = p.rows[i];
        const auto holds = [&](std::size_t k) { return files[k].info && files[k].first_row <= r && r < files[k].first_row + files[k].info->rows; };
        if (f >= files.size() || !holds(f)) {
          f = 0;
          while (f < files.size() && !holds(f)) ++f;
          if (f == files.size()) return fail(fmt::format("row {} is in no file", r), s.dataset.root);
        }
        const auto [at, added] = start.try_emplace({p.source, f}, laid);
        if (added) {
          job.paths.push_back((fs::path(s.dataset.root) / files[f].path).string());
          laid += files[f].info->rows;
        }
        job.rows.push_back(at->second + r - files[f].first_row);
        index.push_back(row++);
        episode.push_back(static_cast<std::int64_t>(e));
        frame.push_back(static_cast<std::int64_t>(i));
        const auto number = plan_.task_numbers[p.source].find(s.rows.has_task ? s.rows.task[static_cast<std::size_t>(r)] : 0);
        task.push_back(number != plan_.task_numbers[p.source].end() ? number->second : 0);
        time.push_back(static_cast<double>(i) / described_.fps);
      }
      job.group_rows.push_back(length(e));
    }
    job.columns.integers("index", index);
    job.columns.integers("episode_index", episode);
    job.columns.integers("frame_index", frame);
    job.columns.integers("task_index", task);
    if (plan_.rewrite_timestamps) {
      const Feature* f = described_.feature("timestamp");
      if (f != nullptr && f->dtype == "float32")
        job.columns.floats("timestamp", std::vector<float>(time.begin(), time.end()));
      else
        job.columns.reals("timestamp", time);
    }
    job.drop = plan_.drop_columns;
    if (auto made = make_parent(name); !made) return made;
    return parquet_.rewrite(full(name), job);
  }

  Result<void> statistics() {
    progress_("computing statistics");
    bool quantiles = format_ == Format::v30;
    if (format_ == Format::v20)
      for (const auto& s : plan_.sources)
        for (const auto& [name, entry] : s->dataset.stats.members()) quantiles = quantiles || entry.find("q01") != nullptr;
    quantiles_ = quantiles;
    auto computed = exact_statistics(parquet_, names_, described_.features, lengths_, quantiles);
    if (!computed) return std::unexpected(computed.error());
    statistics_ = std::move(*computed);
    return {};
  }

  Result<void> copy(const std::string& from, const std::string& name) {
    if (auto made = make_parent(name); !made) return made;
    std::error_code error;
    if (plan_.link_videos) {
      fs::create_hard_link(from, full(name), error);
      if (!error) return {};
      error.clear();  // another file system: a copy then
    }
    fs::copy_file(from, full(name), error);
    if (error) return fail("cannot be copied: " + error.message(), from);
    return {};
  }

  Result<void> videos() {
    spans_.resize(plan_.episodes.size());
    std::set<std::string> files;
    for (const auto* camera : described_.cameras()) {
      FileNumber next;
      std::map<std::pair<std::size_t, std::string>, FileNumber> placed;  // (source, path there) -> number here
      for (std::size_t e = 0; e < plan_.episodes.size(); ++e) {
        const EpisodePlan& p = plan_.episodes[e];
        const Dataset& d = source(p);
        std::string from, to;
        if (format_ == Format::v30) {
          const auto window = p.windows.find(camera->name);
          if (window == p.windows.end()) return fail(fmt::format("the video of episode {} is not known", p.old_index), camera->name);
          VideoSpan span = window->second;
          from = fill_template(d.video_path, {{"video_key", camera->name}, {"chunk_index", span.chunk}, {"file_index", span.file}});
          const auto [at, added] = placed.try_emplace({p.source, from}, next);
          span.chunk = at->second.chunk;
          span.file = at->second.file;
          spans_[e][camera->name] = span;
          if (!added) continue;
          to = fill_template(video_path_, {{"video_key", camera->name}, {"chunk_index", next.chunk}, {"file_index", next.file}});
          next.advance(described_.chunks_size);
        } else {
          from = fill_template(d.video_path,
                               {{"video_key", camera->name}, {"episode_chunk", p.old_index / d.chunks_size}, {"episode_index", p.old_index}});
          to = fill_template(video_path_, {{"video_key", camera->name},
                                           {"episode_chunk", static_cast<long long>(e) / described_.chunks_size},
                                           {"episode_index", static_cast<long long>(e)}});
        }
        progress_(fmt::format("copying {}", to));
        if (auto done = copy((fs::path(d.root) / from).string(), to); !done) return done;
        files.insert(to);
      }
    }
    written_.video_files = static_cast<std::int64_t>(files.size());
    return {};
  }

  /// Tasks of an episode's rows, each once, in the order of their first row.
  [[nodiscard]] std::vector<std::string> tasks_of(const EpisodePlan& p) const {
    std::vector<std::string> out;
    std::set<std::int64_t> seen;
    const RowSurvey& rows = plan_.sources[p.source]->rows;
    for (const auto r : p.rows) {
      const auto number = plan_.task_numbers[p.source].find(rows.has_task ? rows.task[static_cast<std::size_t>(r)] : 0);
      if (number != plan_.task_numbers[p.source].end() && seen.insert(number->second).second)
        out.push_back(plan_.tasks[static_cast<std::size_t>(number->second)]);
    }
    return out;
  }

  /// Statistics of one feature from the histograms of its episodes; where one cannot be had, it says why, and the old ones are taken over.
  using Histogram = std::expected<PictureHistogram, std::string>;
  void gather(const std::string& feature, const std::function<Histogram(std::size_t e)>& of) {
    Pictures found;
    for (std::size_t e = 0; e < plan_.episodes.size(); ++e) {
      progress_(fmt::format("statistics of {} (episode {} of {})", feature, e + 1, plan_.episodes.size()));
      const auto histogram = of(e);
      if (!histogram) {
        why_taken_over_[feature] = histogram.error();
        return;
      }
      found.all.merge(*histogram);
      found.episodes.push_back(histogram->distribution());
    }
    pictures_.emplace(feature, std::move(found));
  }

  /// Statistics of each image column from the pictures in the files that were written.
  Result<void> image_columns() {
    if (std::ranges::none_of(described_.features, &Feature::is_image)) return {};
    Dataset written;  // as much of it as finding rows takes
    written.root = root_;
    for (const auto& path : names_) {
      auto info = parquet_.inspect(path);
      if (!info) return std::unexpected(info.error());
      DataFile& file = written.files.emplace_back();
      file.path = fs::path(path).lexically_relative(root_).string();
      file.first_row = written.rows;
      written.rows += info->rows;
      file.info = std::move(*info);
    }
    for (const auto& feature : described_.features) {
      if (!feature.is_image()) continue;
      std::int64_t row = 0;
      gather(feature.name, [&](std::size_t e) -> Histogram {
        const auto first = std::exchange(row, row + length(e));
        auto found = column_pictures(written, parquet_, feature, first, length(e), picture_samples(length(e)));
        if (!found) return std::unexpected(found.error().to_string());
        if (!found->unread.empty()) return std::unexpected(found->unread);
        if (!found->bad.empty()) return std::unexpected(fmt::format("row {} {}", found->bad[0].row, found->bad[0].problem));
        if (found->histogram.frames < found->wanted) return std::unexpected("pictures are missing");
        return std::move(found->histogram);
      });
    }
    return {};
  }

  /// Statistics of each camera from the frames of the copied videos.
  Result<void> pictures() {
    if (!plan_.picture_statistics) return {};
    if (auto done = image_columns(); !done) return done;
    if (described_.cameras().empty()) return {};
    const auto ffmpeg = media::find_ffmpeg();
    for (const auto* camera : described_.cameras()) {
      if (ffmpeg.empty()) {
        why_taken_over_[camera->name] = "there is no ffmpeg to decode the frames with";
        continue;
      }
      const auto size = camera->picture_size();
      if (!size || size->channels != 3) {
        why_taken_over_[camera->name] = "it is no picture of three colours";
        continue;
      }
      PictureRequest request;
      request.fps = described_.fps;
      request.height = size->height;
      request.width = size->width;
      gather(camera->name, [&](std::size_t e) -> Histogram {
        std::string name;
        if (format_ == Format::v30) {
          const VideoSpan& span = spans_[e].at(camera->name);
          name = fill_template(video_path_, {{"video_key", camera->name}, {"chunk_index", span.chunk}, {"file_index", span.file}});
          request.from_s = span.from_s;
        } else {
          const auto number = static_cast<long long>(e);
          name = fill_template(video_path_,
                               {{"video_key", camera->name}, {"episode_chunk", number / described_.chunks_size}, {"episode_index", number}});
        }
        request.path = full(name);
        request.frames = length(e);
        auto histogram = picture_histogram(ffmpeg, request);
        if (!histogram) return std::unexpected(name + " " + histogram.error().what);
        return std::move(*histogram);
      });
    }
    return {};
  }

  /// LeRobot's limits are whole numbers above zero. Videos are taken over as they are: a limit that they do not keep is raised to what they have.
  void state_limit(const char* name, double standard, const char* folder) {
    const double stated = info_[name].is_number() && info_[name].as_real() > 0 ? info_[name].as_real() : standard;
    double largest = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator it(full(folder), error), end; !error && it != end; it.increment(error))
      if (const auto bytes = it->is_regular_file(error) ? it->file_size(error) : 0; !error)
        largest = std::max(largest, static_cast<double>(bytes) / (1024 * 1024));
    info_.set(name, static_cast<long long>(std::ceil(std::min(largest > stated ? largest : stated, 1e9))));
  }

  Result<void> metadata() {
    progress_("writing metadata");
    const auto episodes = static_cast<std::int64_t>(plan_.episodes.size());
    info_.set("total_episodes", episodes);
    info_.set("total_frames", written_.rows);
    info_.set("total_tasks", plan_.tasks.size());
    if (format_ != Format::v30 || info_.find("total_videos") != nullptr)
      info_.set("total_videos", episodes * static_cast<std::int64_t>(described_.cameras().size()));
    if (format_ != Format::v30 || info_.find("total_chunks") != nullptr)
      info_.set("total_chunks",
                format_ == Format::v30 ? data_files_.back().chunk + 1 : (episodes + described_.chunks_size - 1) / described_.chunks_size);
    info_.set("chunks_size", described_.chunks_size);
    if (format_ == Format::v30) {
      state_limit("data_files_size_in_mb", default_file_mb, "data");
      state_limit("video_files_size_in_mb", 200, "videos");
    }
    info_.set("data_path", data_path_);
    info_.set("video_path", described_.cameras().empty() ? Value() : Value(video_path_));
    if (!plan_.keep_splits) info_.set("splits", Value::object({{"train", fmt::format("0:{}", episodes)}}));
    if (auto done = write_file(full("meta/info.json"), to_json(info_, 4) + "\n"); !done) return done;
    return format_ == Format::v30 ? v3_metadata() : v2_metadata();
  }

  /// stats.json: recomputed entries, and for the rest (images, arrays) the sources' own, aggregated.
  [[nodiscard]] Value whole_statistics() {
    Value out = Value::object();
    for (const auto& feature : described_.features) {
      const auto own = std::ranges::find_if(statistics_, [&](const FeatureStatistics& f) { return f.name == feature.name; });
      if (own != statistics_.end()) {
        out.set(feature.name, statistics_value(*own, own->all, quantiles_));
        continue;
      }
      if (const auto seen = pictures_.find(feature.name); seen != pictures_.end()) {
        out.set(feature.name, picture_value(seen->second.all.distribution(), quantiles_));
        continue;
      }
      std::vector<std::pair<Value, double>> entries;
      for (const auto& s : plan_.sources) {
        const Value& entry = s->dataset.stats[feature.name];
        if (!entry.is_object()) continue;
        const Value& count = entry["count"];
        const double weight = count.is_list() && !count.items().empty() ? count.items()[0].as_real() : count.as_real(0);
        entries.emplace_back(entry, weight > 0 ? weight : static_cast<double>(std::max<std::int64_t>(1, s->rows.rows)));
      }
      if (entries.empty()) continue;
      out.set(feature.name, entries.size() == 1 ? entries.front().first : aggregate_entries(entries));
      const auto why = why_taken_over_.find(feature.name);
      written_.notes.push_back(fmt::format("statistics of {} were taken over{}: {}", feature.name,
                                           entries.size() > 1 ? " and weighted by their counts" : "",
                                           why != why_taken_over_.end() ? why->second
                                           : feature.is_numeric()       ? "its values have more than one dimension"
                                                                        : "they come from decoded images"));
    }
    return out;
  }

  Result<void> v2_metadata() {
    std::string episodes, tasks, lines;
    for (std::size_t e = 0; e < plan_.episodes.size(); ++e) {
      const EpisodePlan& p = plan_.episodes[e];
      episodes += to_json(Value::object({{"episode_index", e}, {"tasks", Value::list_of(tasks_of(p))}, {"length", length(e)}})) + "\n";
      if (format_ != Format::v21) continue;
      Value stats = Value::object();
      for (const auto& feature : described_.features) {
        const auto own = std::ranges::find_if(statistics_, [&](const FeatureStatistics& f) { return f.name == feature.name; });
        if (own != statistics_.end())
          stats.set(feature.name, statistics_value(*own, own->episodes[e], false));
        else if (const auto seen = pictures_.find(feature.name); seen != pictures_.end())
          stats.set(feature.name, picture_value(seen->second.episodes[e], false));
        else if (p.meta != nullptr && p.meta->stats[feature.name].is_object())
          stats.set(feature.name, p.meta->stats[feature.name]);
      }
      lines += to_json(Value::object({{"episode_index", e}, {"stats", std::move(stats)}})) + "\n";
    }
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) tasks += to_json(Value::object({{"task_index", t}, {"task", plan_.tasks[t]}})) + "\n";
    if (auto done = write_file(full("meta/episodes.jsonl"), episodes); !done) return done;
    if (auto done = write_file(full("meta/tasks.jsonl"), tasks); !done) return done;
    if (format_ == Format::v21) return write_file(full("meta/episodes_stats.jsonl"), lines);
    return write_file(full("meta/stats.json"), to_json(whole_statistics(), 4) + "\n");
  }

  Result<void> v3_metadata() {
    if (auto done = write_file(full("meta/stats.json"), to_json(whole_statistics(), 4) + "\n"); !done) return done;
    if (auto done = write_tasks(full("meta/tasks.parquet"), plan_.tasks, parquet_); !done) return done;
    Rewrite job;
    // The sources' own episode rows bring what is not made anew: image statistics, columns of the user's own.
    std::map<std::pair<std::size_t, std::string>, std::int64_t> start;
    std::int64_t laid = 0;
    for (std::size_t s = 0; s < plan_.sources.size(); ++s) {
      std::map<std::string, std::int64_t> rows;
      for (const auto& e : plan_.sources[s]->dataset.episodes) rows[e.source] = std::max(rows[e.source], static_cast<std::int64_t>(e.line));
      for (const auto& [file, n] : rows) {
        start[{s, file}] = laid;
        laid += n;
        job.paths.push_back((fs::path(plan_.sources[s]->dataset.root) / file).string());
      }
    }
    const std::size_t n = plan_.episodes.size();
    std::vector<std::int64_t> number, from, to, chunk, file, zero(n, 0);
    std::vector<std::vector<std::string>> tasks;
    std::int64_t row = 0;
    for (std::size_t e = 0; e < n; ++e) {
      const EpisodePlan& p = plan_.episodes[e];
      job.rows.push_back(p.meta != nullptr ? start.at({p.source, p.meta->source}) + static_cast<std::int64_t>(p.meta->line) - 1 : -1);
      number.push_back(static_cast<std::int64_t>(e));
      from.push_back(row);
      to.push_back(row += length(e));
      chunk.push_back(data_files_[e].chunk);
      file.push_back(data_files_[e].file);
      tasks.push_back(tasks_of(p));
    }
    ArrowTable& c = job.columns;
    c.integers("episode_index", number);
    c.text_lists("tasks", tasks);
    c.integers("length", lengths_);
    c.integers("data/chunk_index", chunk);
    c.integers("data/file_index", file);
    c.integers("dataset_from_index", from);
    c.integers("dataset_to_index", to);
    for (const auto* camera : described_.cameras()) {
      std::vector<std::int64_t> video_chunk, video_file;
      std::vector<double> begin, end;
      for (std::size_t e = 0; e < n; ++e) {
        const VideoSpan& span = spans_[e].at(camera->name);
        video_chunk.push_back(span.chunk);
        video_file.push_back(span.file);
        begin.push_back(span.from_s);
        end.push_back(span.to_s);
      }
      const std::string prefix = "videos/" + camera->name + "/";
      c.integers(prefix + "chunk_index", video_chunk);
      c.integers(prefix + "file_index", video_file);
      c.reals(prefix + "from_timestamp", begin);
      c.reals(prefix + "to_timestamp", end);
    }
    add_statistics(c, statistics_);
    for (const auto& [camera, found] : pictures_) {
      for (const std::string_view name : {"min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"}) {
        std::vector<std::vector<double>> values;
        for (const auto& e : found.episodes) values.push_back(statistic(e, name));
        c.picture_lists(fmt::format("stats/{}/{}", camera, name), values);
      }
      std::vector<std::vector<std::int64_t>> counts;
      for (const auto& e : found.episodes) counts.push_back({e.count});
      c.integer_lists(fmt::format("stats/{}/count", camera), counts);
    }
    c.integers("meta/episodes/chunk_index", zero);
    c.integers("meta/episodes/file_index", zero);
    if (job.paths.empty()) job.rows.assign(n, -1);
    const std::string name = "meta/episodes/chunk-000/file-000.parquet";
    if (auto made = make_parent(name); !made) return made;
    return parquet_.rewrite(full(name), job);
  }

  Result<void> others() {
    for (const auto& name : plan_.other_files)
      if (auto done = copy((fs::path(plan_.sources.front()->dataset.root) / name).string(), name); !done) return done;
    return {};
  }

  const Plan& plan_;
  std::string root_;
  const Parquet& parquet_;
  const std::function<void(std::string_view)>& progress_;
  Format format_;
  Value info_;
  Dataset described_;  ///< info_ as the reader sees it
  std::string data_path_, video_path_;
  std::map<std::size_t, double> row_bytes_;
  std::vector<std::int64_t> lengths_;
  std::vector<FileNumber> data_files_;                   ///< by episode
  std::vector<std::string> names_;                       ///< data files written, full paths
  std::vector<std::map<std::string, VideoSpan>> spans_;  ///< by episode
  std::vector<FeatureStatistics> statistics_;
  struct Pictures {
    PictureHistogram all;
    std::vector<Distribution> episodes;
  };
  std::map<std::string, Pictures> pictures_;  ///< by camera, made anew
  std::map<std::string, std::string> why_taken_over_;
  bool quantiles_ = false;
  Written written_;
};

}  // namespace

Result<Written> write_dataset(const Plan& plan, const std::string& root, const Parquet& parquet,
                              const std::function<void(std::string_view)>& progress) {
  if (plan.sources.empty() || plan.episodes.empty()) return fail("would hold no episode", root, "nothing is written");
  return Writer(plan, root, parquet, progress).run();
}

}  // namespace ff::dataset
