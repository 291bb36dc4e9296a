#include "dataset/judge_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "dataset/judge_metadata.h"
#include "dataset/picture_column.h"
#include "dataset/picture_statistics.h"
#include "dataset/rows.h"
#include "dataset/statistics.h"
#include "media/ffmpeg.h"

namespace ff::dataset {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t most_frames = 128;  ///< of one episode of an image column: encoded pictures take milliseconds each
constexpr std::int64_t most_frames_of_all = 256;
constexpr std::size_t most_videos = 8;                    ///< of a camera of v2.0
constexpr std::uint64_t most_bytes_to_read = 1ULL << 30;  ///< of data files, to look at every picture
constexpr double level = 1 / 255.0;
/// What encoding and the way to YUV and back may change: of a mean or deviation, and of an extreme.
constexpr double lossy = 0.02, lossy_extreme = 0.15;
/// lerobot 0.4 squares 8-bit values in 8 bits: a mean of squares below 256 leaves no deviation above this.
constexpr double most_overflowed = 16 * level;

bool channel_layout(const Value& v, std::size_t channels) {
  if (!v.is_list() || v.items().size() != channels) return false;
  return std::ranges::all_of(v.items(), [](const Value& row) {
    return row.is_list() && row.items().size() == 1 && row.items()[0].is_list() && row.items()[0].items().size() == 1;
  });
}

bool is_depth(const Feature& f) { return f.info["is_depth_map"].as_bool(false) || f.info["video.is_depth_map"].as_bool(false); }

std::size_t channels_of(const Feature& f) {
  const auto size = f.picture_size();
  return size && size->channels == 1 ? 1 : 3;
}

class Judge {
 public:
  Judge(const Survey& s, const Parquet& parquet, bool videos, const std::function<void(std::string_view)>& progress)
      : d_(s.dataset), parquet_(parquet), progress_(progress) {
    if (videos) ffmpeg_ = media::find_ffmpeg();
    for (const auto& run : s.rows.runs) runs_.emplace(run.episode, &run);
  }

  PictureJudgement run() {
    for (const auto& f : d_.features) {
      if ((!f.is_image() && !f.is_video()) || is_depth(f)) continue;
      ++out_.features;
      told_ = 0;
      if (f.is_image()) {
        ++out_.columns;
        every_picture(f);
      }
      if (d_.format == Format::v20) {
        from_all_over(f);
      } else {
        some_episodes(f);  // where a mistake is seen best
        whole(f);
      }
    }
    return std::move(out_);
  }

 private:
  void add(const Feature& f, const std::string& where, std::string sentence, Value measured = Value::object()) {
    if (told_++ > 0) return;  // one sentence a feature: the others follow from the same mistake
    measured.set("feature", f.name);
    out_.findings.push_back({"dataset.picture-statistics", false, "data.statistics", std::move(sentence), std::move(measured), where, 0, ""});
  }

  void bad_pictures(const Feature& f, const std::vector<BadPicture>& bad) {
    for (const auto& b : bad) {
      if (!bad_.insert({f.name, b.row}).second) continue;
      const auto place = row_place(d_, b.row);
      out_.findings.push_back({"dataset.images", true, b.size ? "data.metadata-mismatch" : "data.picture-undecodable",
                               fmt::format("the picture {} of row {} {} ({})", f.name, b.row, b.problem, place),
                               Value::object({{"feature", f.name}, {"row", b.row}}), place, 0, ""});
    }
  }

  /// First and last bytes of all pictures, where reading them takes seconds.
  void every_picture(const Feature& f) {
    std::uint64_t bytes = 0;
    for (const auto& file : d_.files) {
      std::error_code error;
      const auto size = fs::file_size(fs::path(d_.root) / file.path, error);
      if (!error) bytes += size;
    }
    if (bytes > most_bytes_to_read) return;
    progress_("looking at every picture of " + f.name);
    const auto seen = glance_at_column(d_, parquet_, f);
    if (!seen) return;  // a file that cannot be read has its own check
    out_.looked_at += seen->looked_at;
    bad_pictures(f, seen->bad);
    if (seen->bad_rows > static_cast<std::int64_t>(seen->bad.size()))
      out_.findings.push_back({"dataset.images", true, "data.picture-undecodable",
                               fmt::format("{} pictures of {} are damaged or of another size in all", seen->bad_rows, f.name),
                               Value::object({{"feature", f.name}, {"pictures", seen->bad_rows}}), "", 0, ""});
  }

  /// Pictures of an image column; nothing with a note when they are of a kind that is not decoded here, or none is whole.
  std::optional<PictureHistogram> column(const Feature& f, std::int64_t first_row, std::int64_t rows, std::int64_t most, const std::string& whose) {
    auto found = column_pictures(d_, parquet_, f, first_row, rows, most);
    if (!found) {
      out_.notes.push_back(fmt::format("{}{}: {}", f.name, whose, found.error().to_string()));
      return std::nullopt;
    }
    out_.decoded += found->histogram.frames;
    bad_pictures(f, found->bad);
    if (!found->unread.empty()) {
      out_.unread.push_back(fmt::format("{} of {}", f.name, found->unread));
      out_.notes.push_back(fmt::format("{}{}: {}", f.name, whose, found->unread));
      return std::nullopt;
    }
    if (!found->bad.empty()) {
      out_.notes.push_back(fmt::format("{}{}: row {} {}", f.name, whose, found->bad[0].row, found->bad[0].problem));
      return std::nullopt;
    }
    if (found->histogram.frames < found->wanted) {
      out_.notes.push_back(fmt::format("{}{}: {} of {} pictures are there", f.name, whose, found->histogram.frames, found->wanted));
      return std::nullopt;
    }
    return std::move(found->histogram);
  }

  /// min, max, mean and std of an entry, by channel, with what can be said of them alone; nothing when it has another layout than
  /// [[[r]], [[g]], [[b]]] (or one channel).
  std::optional<Distribution> stated(const Feature& f, const Value& entry, const std::string& where, const std::string& whose) {
    Distribution out;
    const std::size_t channels = channels_of(f);
    for (const auto& [name, to] : {std::pair{"min", &out.min}, {"max", &out.max}, {"mean", &out.mean}, {"std", &out.std}}) {
      *to = stated_numbers(entry[name]);
      if (channel_layout(entry[name], channels) && to->size() == channels) continue;
      add(f, where,
          fmt::format("{}{} of {} has {} numbers in another layout than [[[r]], [[g]], [[b]]]: LeRobot refuses to put such statistics together",
                      whose, name, f.name, to->size()));
      return std::nullopt;
    }
    for (std::size_t c = 0; c < channels; ++c) {
      const double low = out.min[c], high = out.max[c], mean = out.mean[c], std = out.std[c];
      const Value measured = Value::object({{"channel", c}, {"min", low}, {"max", high}, {"mean", mean}, {"std", std}});
      if (high > 1 + level)
        add(f, where,
            fmt::format("{}the statistics of {} reach {:.4g}: LeRobot's pictures are numbers from 0 to 1, these count to 255", whose, f.name, high),
            measured);
      else if (!(low <= mean + level && mean <= high + level && std >= 0 && low >= -level))
        add(f, where, fmt::format("{}minimum {:.4g}, mean {:.4g}, maximum {:.4g} of {} contradict each other", whose, low, mean, high, f.name),
            measured);
      // No numbers between a minimum and a maximum spread more (Bhatia and Davis, 2000).
      else if (std > std::sqrt(std::max(0.0, (high - mean) * (mean - low))) + level)
        add(f, where,
            fmt::format("{}std {:.4g} of {} is more than numbers from {:.4g} to {:.4g} with the mean {:.4g} can have", whose, std, f.name, low, high,
                        mean),
            measured);
      else
        continue;
      return std::nullopt;
    }
    return out;
  }

  /// meta/stats.json, and whether it is what the episodes' own statistics put together give.
  void whole(const Feature& f) {
    if (d_.format == Format::v21) return;
    const Value& entry = d_.stats[f.name];
    if (!entry.is_object()) return;
    const auto own = stated(f, entry, "meta/stats.json", "");
    std::vector<std::pair<Value, double>> parts;
    for (const auto& e : d_.episodes)
      if (const auto count = stated_numbers(e.stats[f.name]["count"]); !count.empty()) parts.emplace_back(e.stats[f.name], count[0]);
    if (!own || parts.empty() || parts.size() != d_.episodes.size()) return;
    const Value together = aggregate_entries(parts);
    for (const char* name : {"mean", "std", "min", "max"}) {
      const auto& values = statistic(*own, name);
      const auto given = stated_numbers(together[name]);
      for (std::size_t c = 0; c < values.size() && c < given.size(); ++c)
        if (std::abs(values[c] - given[c]) > level)
          return add(f, "meta/stats.json",
                     fmt::format("{} of {} is {:.4g}, but the statistics of its episodes give {:.4g} together", name, f.name, values[c], given[c]),
                     Value::object({{"channel", c}, {"stated", values[c]}, {"episodes", given[c]}}));
    }
  }

  /// Positions of at most `most` of n episodes, evenly spread, first and last among them.
  static std::vector<std::size_t> spread(std::size_t n, std::size_t most) {
    std::vector<std::size_t> out;
    const std::size_t k = std::min(n, most);
    for (std::size_t i = 0; i < k; ++i) out.push_back(k == 1 ? 0 : i == k - 1 ? n - 1 : i * n / (k - 1));
    return out;
  }

  [[nodiscard]] const Run* run_of(const Episode& e) const {
    const auto run = runs_.find(e.index);
    return run == runs_.end() || run->second->rows != e.length ? nullptr : run->second;
  }

  /// Pictures that are whole and show nothing: black ones, one picture throughout, another camera's.
  void what_they_show(const Feature& f, const Episode& e, const PictureHistogram& pictures) {
    constexpr std::size_t enough = 10;
    const double near = pictures.lossy ? 1e-4 : 0;
    const auto warn = [&](const std::string& what) {
      out_.findings.push_back({f.is_image() ? "dataset.images" : "dataset.picture-statistics", false, "closed-loop.observation-mismatch",
                               fmt::format("{} of episode {}: {}", f.name, e.index, what), Value::object({{"feature", f.name}, {"episode", e.index}}),
                               e.source, 0, ""});
    };
    const auto& means = pictures.means;
    const auto alike = [&](const auto& a, const auto& b) {
      for (std::size_t c = 0; c < 3; ++c)
        if (std::abs(a[c] - b[c]) > near) return false;
      return true;
    };
    constexpr double dark = 0.02;
    const bool black = !means.empty() && std::ranges::all_of(means, [](const auto& m) { return m[0] < dark && m[1] < dark && m[2] < dark; }) &&
                       std::ranges::all_of(pictures.counts, [](const auto& channel) {
                         return std::all_of(channel.begin() + 32, channel.end(), [](std::uint64_t n) { return n == 0; });
                       });
    if (black) return warn(fmt::format("all {} pictures that were looked at are black", means.size()));
    if (means.size() < enough) return;
    if (std::ranges::all_of(means, [&](const auto& m) { return alike(m, means.front()); }))
      return warn(fmt::format(
          "all {} pictures that were looked at have the same mean colour: one picture throughout, as of a camera that stands still", means.size()));
    for (const auto& [other, theirs] : shown_[e.index])
      if (theirs.size() == means.size() && std::equal(means.begin(), means.end(), theirs.begin(), alike))
        return warn(fmt::format("its pictures are those of {}", other));
    shown_[e.index].emplace_back(f.name, means);
  }

  void some_episodes(const Feature& f) {
    bool compared = true;
    for (const std::size_t i : spread(d_.episodes.size(), 3)) {
      const Episode& e = d_.episodes[i];
      const Value& entry = e.stats[f.name];
      const auto own = entry.is_object() && compared ? stated(f, entry, e.source, fmt::format("episode {}: ", e.index)) : std::nullopt;
      compared = compared && told_ == 0;
      const Run* run = run_of(e);
      if (run == nullptr || (!own && !f.is_image())) continue;
      progress_(fmt::format("looking at {} of episode {}", f.name, e.index));
      const auto pictures = f.is_image() ? column(f, run->first_row, e.length, most_frames, fmt::format(" of episode {}", e.index)) : video(f, e);
      if (!pictures && f.is_video()) return;
      if (pictures) what_they_show(f, e, *pictures);
      if (!pictures || !own) continue;
      ++out_.episodes;
      out_.frames += pictures->frames;
      compare(f, e.source, fmt::format("episode {}: ", e.index), Value::object({{"episode", e.index}}), *own, *pictures, pictures->frames < e.length);
      compared = told_ == 0;
    }
  }

  /// Format v2.0: its statistics are those of all frames of the set, and of no episode.
  void from_all_over(const Feature& f) {
    const Value& entry = d_.stats[f.name];
    const auto own = entry.is_object() ? stated(f, entry, "meta/stats.json", "") : std::nullopt;
    if (f.is_image()) {
      const auto pictures = column(f, 0, d_.rows, most_frames_of_all, "");
      if (own && pictures) compare_all(f, *own, *pictures, d_.episodes.size(), pictures->frames < d_.rows);
      return;
    }
    if (!own) return;
    PictureHistogram all;
    std::vector<std::array<double, 3>> means;  // of episodes: frames of one are alike
    for (const std::size_t i : spread(d_.episodes.size(), most_videos)) {
      const Episode& e = d_.episodes[i];
      if (run_of(e) == nullptr) continue;
      progress_(fmt::format("looking at {} of episode {}", f.name, e.index));
      const auto pictures = video(f, e);
      if (!pictures) return;
      auto& mean = means.emplace_back();
      for (const auto& m : pictures->means)
        for (std::size_t c = 0; c < 3; ++c) mean[c] += m[c] / static_cast<double>(pictures->frames);
      all.merge(*pictures);
    }
    if (means.empty() || (means.size() == 1 && d_.episodes.size() > 1)) return;
    const bool complete = all.frames == d_.rows;
    const std::size_t episodes = means.size();
    if (episodes > 1) all.means = std::move(means);
    compare_all(f, *own, all, episodes, !complete);
  }

  void compare_all(const Feature& f, const Distribution& own, const PictureHistogram& pictures, std::size_t episodes, bool sampled) {
    out_.episodes += episodes;
    out_.frames += pictures.frames;
    compare(f, "meta/stats.json", "", Value::object(), own, pictures, sampled);
  }

  /// The frames of one episode; nothing with a note when they cannot be decoded here.
  std::optional<PictureHistogram> video(const Feature& f, const Episode& e) {
    auto found = decoded_video(f, e);
    if (found) return std::move(*found);
    out_.notes.push_back(fmt::format("{} of episode {}: {}", f.name, e.index, found.error().to_string()));
    return std::nullopt;
  }

  Result<PictureHistogram> decoded_video(const Feature& f, const Episode& e) {
    if (ffmpeg_.empty()) return fail("there is no ffmpeg to decode it with");
    const auto name = video_file(d_, f.name, e);
    if (!name) return fail("its window is not known");
    PictureRequest request;
    request.path = (fs::path(d_.root) / *name).string();
    if (d_.format == Format::v30) request.from_s = e.videos.at(f.name).from_s;
    request.frames = e.length;
    request.fps = d_.fps;
    if (const auto size = f.picture_size()) {
      request.height = size->height;
      request.width = size->width;
    }
    return picture_histogram(ffmpeg_, request);
  }

  /// `sampled`: not all of the frames that the statistics are of are among these pictures. `measured`: what goes with a finding.
  void compare(const Feature& f, const std::string& where, const std::string& whose, const Value& measured, const Distribution& own,
               const PictureHistogram& pictures, bool sampled) {
    const auto real = pictures.distribution();
    const double encoded = pictures.lossy ? lossy : 0, extreme = level + (pictures.lossy ? lossy_extreme : 0);
    // Of other frames than those looked at the mean may differ by three standard errors.
    std::array<double, 3> sampling{};
    const auto n = static_cast<double>(pictures.means.size());
    if (sampled)
      for (std::size_t c = 0; c < 3; ++c) {
        double sum = 0, squares = 0;
        for (const auto& m : pictures.means) sum += m[c];
        const double mean = sum / n;
        for (const auto& m : pictures.means) squares += (m[c] - mean) * (m[c] - mean);
        sampling[c] = 3 * std::sqrt(squares) / n;
      }
    const auto tolerance = [&](std::size_t c) { return level + encoded + sampling[c]; };
    const std::size_t channels = own.mean.size();
    const auto sentence = [&](std::string_view name, std::size_t c, double said, double is, std::string_view more) {
      static constexpr std::array<std::string_view, 3> colours{"red", "green", "blue"};
      Value numbers = measured;
      numbers.set("statistic", std::string(name));
      numbers.set("channel", c);
      numbers.set("stated", said);
      numbers.set("data", is);
      add(f, where,
          fmt::format("{}{} of {}{} is {:.4g}, but its pictures give {:.4g}{}", whose, name, f.name,
                      channels == 3 ? fmt::format(" ({})", colours[c]) : std::string(), said, is, more),
          std::move(numbers));
    };
    const auto mean_fits = [&](std::size_t c, std::size_t as) { return std::abs(own.mean[c] - real.mean[as]) <= tolerance(as); };
    for (std::size_t c = 0; c < channels; ++c) {
      if (!mean_fits(c, c)) {
        const bool turned = channels == 3 && mean_fits(0, 2) && mean_fits(1, 1) && mean_fits(2, 0);
        return sentence("mean", c, own.mean[c], real.mean[c],
                        turned ? ": red and blue are exchanged" : ": these are the statistics of other pictures");
      }
      if (own.min[c] > real.min[c] + extreme) return sentence("min", c, own.min[c], real.min[c], "");
      if (own.max[c] < real.max[c] - extreme) return sentence("max", c, own.max[c], real.max[c], "");
    }
    for (std::size_t c = 0; c < channels; ++c)
      if (std::abs(own.std[c] - real.std[c]) > tolerance(c) + 0.02 * real.std[c])
        return sentence("std", c, own.std[c], real.std[c],
                        own.std[c] <= most_overflowed && own.std[c] < real.std[c]
                            ? ": lerobot 0.4 squares 8-bit values in 8 bits, which leaves such numbers; training that uses them "
                              "(use_imagenet_stats=false) divides by too little"
                            : "");
  }

  const Dataset& d_;
  const Parquet& parquet_;
  const std::function<void(std::string_view)>& progress_;
  std::string ffmpeg_;
  std::map<std::int64_t, const Run*> runs_;
  std::set<std::pair<std::string, std::int64_t>> bad_;  ///< pictures that were told
  std::size_t told_ = 0;
  std::map<std::int64_t, std::vector<std::pair<std::string, std::vector<std::array<double, 3>>>>> shown_;  // by episode: what each camera shows
  PictureJudgement out_;
};

}  // namespace

PictureJudgement judge_pictures(const Survey& survey, const Parquet& parquet, bool videos, const std::function<void(std::string_view)>& progress) {
  return Judge(survey, parquet, videos, progress).run();
}

}  // namespace ff::dataset
