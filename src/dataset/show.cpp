#include "dataset/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/mapped_file.h"
#include "dataset/judge_metadata.h"
#include "dataset/survey.h"
#include "media/mp4.h"

namespace ff::dataset {
namespace fs = std::filesystem;
namespace {

/// Means of equal parts of a series that is fed one value after another.
class Buckets {
 public:
  Buckets(std::int64_t length, std::size_t buckets) : length_(std::max<std::int64_t>(1, length)) {
    const auto n = std::min<std::size_t>(buckets, static_cast<std::size_t>(length_));
    sums_.resize(n);
    counts_.resize(n);
  }
  void add(std::int64_t position, double value) {
    if (!std::isfinite(value) || position < 0 || position >= length_) return;
    const auto b = static_cast<std::size_t>(position * static_cast<std::int64_t>(sums_.size()) / length_);
    sums_[b] += value;
    ++counts_[b];
  }
  [[nodiscard]] Value value() const {
    Value out = Value::list();
    for (std::size_t i = 0; i < sums_.size(); ++i) out.push(counts_[i] > 0 ? Value(sums_[i] / static_cast<double>(counts_[i])) : Value());
    return out;
  }

 private:
  std::int64_t length_;
  std::vector<double> sums_;
  std::vector<std::int64_t> counts_;
};

class Describer {
 public:
  Describer(const Dataset& d, const RowSurvey& rows, const Parquet& parquet, std::optional<std::int64_t> episode)
      : d_(d), rows_(rows), parquet_(parquet), episode_(episode) {}

  Result<Value> run() {
    if (episode_ && std::ranges::none_of(rows_.runs, [&](const Run& r) { return r.episode == *episode_; }))
      return usage_error(fmt::format("has no episode {}", *episode_), d_.root, fmt::format("it has {} episodes, counted from 0", d_.episodes.size()));
    if (auto done = values(); !done) return std::unexpected(done.error());
    Value out = Value::object({{"schema", "firstfault/data-show/1"},
                               {"path", d_.root},
                               {"format", std::string(format_name(d_.format))},
                               {"robot_type", d_.info["robot_type"]},
                               {"fps", d_.fps},
                               {"episodes", d_.episodes.size()},
                               {"rows", rows_.rows},
                               {"seconds", d_.fps > 0 ? Value(static_cast<double>(rows_.rows) / d_.fps) : Value()},
                               {"bytes", bytes("data") + bytes("videos") + bytes("meta")},
                               {"video_bytes", bytes("videos")}});
    out.set("tasks", tasks());
    out.set("lengths", lengths());
    out.set("features", features());
    out.set("episode_list", episodes());
    if (episode_) out.set("episode", one_episode());
    return out;
  }

 private:
  [[nodiscard]] std::int64_t bytes(const char* directory) const {
    std::int64_t total = 0;
    for (const auto& path : files_in(d_.root, directory)) {
      std::error_code error;
      const auto size = fs::file_size(fs::path(d_.root) / path, error);
      if (!error) total += static_cast<std::int64_t>(size);
    }
    return total;
  }

  struct Dimension {
    double low = 0, high = 0;
    std::vector<double> bins;
    std::optional<Buckets> curve;
  };
  struct Seen {
    const FeatureSurvey* survey;
    std::vector<Dimension> dimensions;
  };

  /// The second pass: histograms between the extremes that the first one found, curves, and how much the action moves.
  Result<void> values() {
    std::vector<std::string> columns;
    for (const auto& f : rows_.features) {
      if (bookkeeping(f.name) || f.all.empty() || f.all[0].count == 0) continue;
      Seen s{&f, {}};
      for (const auto& m : f.all) s.dimensions.push_back({m.min, m.max, std::vector<double>(show_bins), std::nullopt});
      if (episode_ && (f.name == "action" || f.name == "observation.state"))
        for (const auto& run : rows_.runs)
          if (run.episode == *episode_)
            for (auto& dimension : s.dimensions)
              if (!dimension.curve) dimension.curve.emplace(run.rows, show_points);
      columns.push_back(f.name);
      seen_.push_back(std::move(s));
    }
    for (const auto& run : rows_.runs) motion_.emplace_back(run.rows - 1, show_bins);  // steps between rows
    std::int64_t first = 0;
    std::size_t run = 0;
    std::vector<double> before;
    for (const auto& file : d_.files) {
      if (!file.info) continue;
      auto scan = parquet_.scan((fs::path(d_.root) / file.path).string(), columns);
      if (!scan) return std::unexpected(scan.error());
      while (true) {
        const auto more = scan->next();
        if (!more) return std::unexpected(more.error());
        if (!*more) break;
        for (auto& s : seen_)
          if (const auto* c = scan->column(s.survey->name); c != nullptr) batch(s, *c, first, run, before);
        first += scan->rows();
        while (run + 1 < rows_.runs.size() && rows_.runs[run + 1].first_row <= first) ++run;
      }
    }
    return {};
  }

  void batch(Seen& s, const ColumnView& c, std::int64_t first, std::size_t run, std::vector<double>& before) {
    const auto width = static_cast<std::int64_t>(s.dimensions.size());
    if ((c.is_list ? c.width : 1) != width || c.type == ElementType::text || c.type == ElementType::other) return;
    const bool action = s.survey->name == "action";
    for (std::int64_t r = 0; r < c.rows; ++r) {
      const std::int64_t row = first + r;
      while (run + 1 < rows_.runs.size() && rows_.runs[run + 1].first_row <= row) ++run;
      const Run& own = rows_.runs[run];
      double moved = 0;
      for (std::int64_t k = 0; k < width; ++k) {
        Dimension& dimension = s.dimensions[static_cast<std::size_t>(k)];
        const double v = c.real(r * width + k);
        const double range = dimension.high - dimension.low;
        if (range > 0 && std::isfinite(v))
          ++dimension.bins[static_cast<std::size_t>(std::clamp((v - dimension.low) / range * show_bins, 0.0, static_cast<double>(show_bins - 1)))];
        if (dimension.curve && own.episode == *episode_) dimension.curve->add(row - own.first_row, v);
        if (!action) continue;
        const auto at = static_cast<std::size_t>(k);
        if (before.size() <= at) before.resize(at + 1);
        if (row > own.first_row && range > 0) moved += std::abs(v - before[at]) / range;
        before[at] = v;
      }
      if (action && row > own.first_row) motion_[run].add(row - own.first_row - 1, moved / static_cast<double>(std::max<std::int64_t>(1, width)));
    }
  }

  [[nodiscard]] Value tasks() const {
    std::map<std::int64_t, std::pair<std::int64_t, std::set<std::int64_t>>> uses;
    for (const auto& run : rows_.runs)
      for (std::int64_t r = run.first_row; r < run.first_row + run.rows && rows_.has_task; ++r) {
        auto& [count, episodes] = uses[rows_.task[static_cast<std::size_t>(r)]];
        ++count;
        if (r == run.first_row || episodes.empty() || !episodes.contains(run.episode)) episodes.insert(run.episode);
      }
    Value out = Value::list();
    for (const auto& [index, text] : d_.tasks)
      out.push(Value::object({{"task_index", index}, {"task", text}, {"episodes", uses[index].second.size()}, {"rows", uses[index].first}}));
    return out;
  }

  [[nodiscard]] Value lengths() const {
    std::vector<std::int64_t> n;
    for (const auto& run : rows_.runs) n.push_back(run.rows);
    if (n.empty()) return {};
    std::ranges::sort(n);
    Value bins = Value::list();
    std::vector<std::int64_t> counts(show_bins);
    const double range = static_cast<double>(n.back() - n.front());
    for (const auto x : n)
      ++counts[range > 0 ? std::min(show_bins - 1, static_cast<std::size_t>(static_cast<double>(x - n.front()) / range * show_bins)) : 0];
    for (const auto x : counts) bins.push(x);
    return Value::object({{"min", n.front()}, {"median", n[n.size() / 2]}, {"max", n.back()}, {"histogram", std::move(bins)}});
  }

  [[nodiscard]] Value features() const {
    Value out = Value::list();
    for (const auto& f : d_.features) {
      Value shape = Value::list();
      for (const auto n : f.shape) shape.push(n);
      Value entry = Value::object({{"name", f.name}, {"dtype", f.dtype}, {"shape", std::move(shape)}});
      const auto s = std::ranges::find_if(seen_, [&](const Seen& x) { return x.survey->name == f.name; });
      if (s != seen_.end()) {
        Value dimensions = Value::list();
        const bool named = f.names.size() == s->dimensions.size();
        for (std::size_t i = 0; i < s->dimensions.size(); ++i) {
          const Moments& m = s->survey->all[i];
          dimensions.push(Value::object({{"name", named ? Value(f.names[i]) : Value()},
                                         {"min", m.min},
                                         {"max", m.max},
                                         {"mean", m.mean},
                                         {"std", m.std()},
                                         {"histogram", Value::list_of(s->dimensions[i].bins)}}));
        }
        entry.set("dimensions", std::move(dimensions));
        if (s->survey->nonfinite > 0) entry.set("nonfinite", s->survey->nonfinite);
      }
      if (f.is_video()) entry.set("video", video(f));
      out.push(std::move(entry));
    }
    return out;
  }

  [[nodiscard]] Value video(const Feature& camera) const {
    std::set<std::string> names;
    for (const auto& e : d_.episodes) names.insert(video_file(d_, camera.name, e).value_or(""));
    names.erase("");
    std::int64_t files = 0, frames = 0, keys = 0;
    media::Mp4Video first;
    for (const auto& name : names) {
      const auto mapped = MappedFile::open((fs::path(d_.root) / name).string());
      if (!mapped) continue;
      const auto v = media::read_mp4(mapped->bytes(), name);
      if (!v) continue;
      if (files++ == 0) first = *v;
      frames += v->frames;
      keys += v->key_frames > 0 ? v->key_frames : v->frames;
    }
    return Value::object({{"files", names.size()},
                          {"readable", files},
                          {"frames", frames},
                          {"key_frames", keys},
                          {"codec", files > 0 ? Value(media::codec_name(first.codec)) : Value()},
                          {"width", first.width},
                          {"height", first.height},
                          {"fps", first.fps}});
  }

  [[nodiscard]] Value episodes() const {
    std::map<std::int64_t, const Episode*> known;
    for (const auto& e : d_.episodes) known.emplace(e.index, &e);
    Value out = Value::list();
    for (std::size_t i = 0; i < rows_.runs.size(); ++i) {
      const Run& run = rows_.runs[i];
      std::set<std::int64_t> numbers;
      for (std::int64_t r = run.first_row; r < run.first_row + run.rows && rows_.has_task; ++r)
        numbers.insert(rows_.task[static_cast<std::size_t>(r)]);
      Value texts = Value::list();
      for (const auto n : numbers)
        if (const auto text = d_.tasks.find(n); text != d_.tasks.end()) texts.push(text->second);
      out.push(Value::object({{"episode", run.episode},
                              {"rows", run.rows},
                              {"seconds", d_.fps > 0 ? Value(static_cast<double>(run.rows) / d_.fps) : Value()},
                              {"tasks", std::move(texts)},
                              {"file", row_place(d_, run.first_row)},
                              {"motion", motion_[i].value()}}));
    }
    return out;
  }

  [[nodiscard]] Value one_episode() const {
    Value out = Value::object({{"episode", *episode_}});
    Value features = Value::list();
    for (const auto& s : seen_) {
      if (s.dimensions.empty() || !s.dimensions[0].curve) continue;
      const Feature* f = d_.feature(s.survey->name);
      const bool named = f != nullptr && f->names.size() == s.dimensions.size();
      Value dimensions = Value::list();
      for (std::size_t i = 0; i < s.dimensions.size(); ++i)
        dimensions.push(Value::object({{"name", named ? Value(f->names[i]) : Value()}, {"curve", s.dimensions[i].curve->value()}}));
      features.push(Value::object({{"name", s.survey->name}, {"dimensions", std::move(dimensions)}}));
    }
    out.set("features", std::move(features));
    return out;
  }

  const Dataset& d_;
  const RowSurvey& rows_;
  const Parquet& parquet_;
  std::optional<std::int64_t> episode_;
  std::vector<Seen> seen_;
  std::vector<Buckets> motion_;  ///< by run
};

}  // namespace

Result<Value> describe_dataset(const std::string& path, std::optional<std::int64_t> episode, const Parquet& parquet) {
  if (auto error = unreadable_dataset(path)) return std::unexpected(std::move(*error));
  auto dataset = open_dataset(path, parquet);
  if (!dataset) return std::unexpected(dataset.error());
  const RowSurvey rows = survey_rows(*dataset, parquet);
  return Describer(*dataset, rows, parquet, episode).run();
}

}  // namespace ff::dataset
