#include "dataset/judge_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.h"

namespace ff::dataset {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t most_per_kind = 10;

class Judge {
 public:
  explicit Judge(const Dataset& d) : d_(d) {}

  std::vector<Finding> run() {
    totals();
    numbering();
    splits();
    files();
    schema();
    videos();
    if (d_.format == Format::v30) limits();
    leftovers();
    return std::move(out_);
  }

 private:
  void add(std::string check, bool fails, std::string cause, std::string summary, std::string file = "meta/info.json",
           Value measured = Value::object(), std::uint64_t line = 0) {
    out_.push_back({std::move(check), fails, std::move(cause), std::move(summary), std::move(measured), std::move(file), line, ""});
  }

  [[nodiscard]] bool all_readable() const {
    return !d_.files.empty() && std::ranges::all_of(d_.files, [](const DataFile& f) { return f.info.has_value(); });
  }

  void totals() {
    const auto episodes = static_cast<std::int64_t>(d_.episodes.size());
    std::int64_t sum = 0;
    for (const auto& e : d_.episodes) sum += std::max<std::int64_t>(0, e.length);
    const auto differs = [&](const char* name, std::int64_t stated, std::int64_t own, std::string_view where) {
      if (stated >= 0 && stated != own)
        add("dataset.metadata", true, "data.metadata-mismatch", fmt::format("info.json says {} {}, but {} {}", name, stated, where, own),
            "meta/info.json", Value::object({{"field", name}, {"stated", stated}, {"found", own}}));
    };
    if (episodes > 0) {
      differs("total_episodes", d_.total_episodes, episodes, "the episode list has");
      differs("total_frames", d_.total_frames, sum, "the episodes' lengths add up to");
    }
    if (all_readable()) differs("total_frames", d_.total_frames, d_.rows, "the data files hold rows:");
    if (!d_.tasks.empty()) differs("total_tasks", d_.total_tasks, static_cast<std::int64_t>(d_.tasks.size()), "the task list has");
  }

  /// The loader takes episodes by position, so the list must count 0, 1, 2, … and v3.0's row windows must join.
  void numbering() {
    std::size_t told = 0;
    std::int64_t expected_from = 0;
    for (std::size_t i = 0; i < d_.episodes.size() && told < most_per_kind; ++i) {
      const Episode& e = d_.episodes[i];
      if (e.index != static_cast<std::int64_t>(i)) {
        ++told;
        add("dataset.episodes", true, "data.metadata-mismatch",
            fmt::format("entry {} of the episode list is episode {}: the loader takes episodes by position", i, e.index), e.source,
            Value::object({{"position", i}, {"episode_index", e.index}}), e.line);
      }
      if (e.length < 0 || (e.length == 0 && ++told <= most_per_kind))
        add("dataset.episodes", true, "data.metadata-mismatch", fmt::format("episode {} has the length {}", e.index, e.length), e.source,
            Value::object({{"episode", e.index}, {"length", e.length}}), e.line);
      if (d_.format == Format::v30) {
        if (e.from != expected_from || e.to - e.from != e.length) {
          ++told;
          add("dataset.episodes", true, "data.metadata-mismatch",
              fmt::format("episode {} covers rows {} to {}, but its length is {} and the episode before it ends at {}", e.index, e.from, e.to,
                          e.length, expected_from),
              e.source, Value::object({{"episode", e.index}, {"from", e.from}, {"to", e.to}, {"length", e.length}, {"expected_from", expected_from}}),
              e.line);
        }
        expected_from = std::max(e.to, expected_from);
      }
    }
  }

  void splits() {
    const auto episodes = static_cast<std::int64_t>(d_.episodes.size());
    for (const auto& [name, range] : d_.info["splits"].members()) {
      const auto parts = split(range.as_text(), ':');
      if (parts.size() != 2) continue;
      const auto from = to_integer(parts[0]);
      const auto to = to_integer(parts[1]);
      if (!from || !to || *from < 0 || *to < *from || *to > episodes)
        add("dataset.metadata", false, "data.metadata-mismatch",
            fmt::format("split {} is \"{}\", but there are {} episodes", name, range.as_text(), episodes));
    }
  }

  void files() {
    std::set<std::string> present;
    for (const auto& f : d_.files) present.insert(f.path);
    std::set<std::string> named;
    std::size_t missing = 0;
    for (const auto& e : d_.episodes) {
      std::string path;
      if (d_.format == Format::v30)
        path = fill_template(d_.data_path, {{"chunk_index", e.data_chunk}, {"file_index", e.data_file}});
      else
        path = fill_template(d_.data_path, {{"episode_chunk", e.index / d_.chunks_size}, {"episode_index", e.index}});
      if (!named.insert(path).second) continue;
      if (!present.contains(path) && ++missing <= most_per_kind)
        add("dataset.layout", true, "data.layout", fmt::format("{} is named by the metadata (episode {}) and is not there", path, e.index), path,
            Value::object({{"episode", e.index}}));
    }
    if (missing > most_per_kind) add("dataset.layout", true, "data.layout", fmt::format("{} data files are missing in all", missing), "data");
    // The v3 loader reads every file below data/, also those that no episode names: their rows shift all that follow.
    std::size_t extra = 0;
    if (missing == 0 && !d_.episodes.empty())
      for (const auto& path : present)
        if (!named.contains(path) && ++extra <= most_per_kind)
          add("dataset.layout", true, "data.layout",
              fmt::format("{} belongs to no episode; the loader reads it all the same, and its rows shift those that follow", path), path);
  }

  void schema() {
    std::size_t told = 0;
    for (const auto& file : d_.files) {
      if (!file.info || told > most_per_kind) continue;
      for (const auto& feature : d_.features) {
        if (feature.is_video()) continue;
        const auto* column = file.info->column(feature.name);
        if (column == nullptr) {
          // Bookkeeping columns are reported once, by the rows.
          if (++told <= most_per_kind)
            add("dataset.schema", true, "data.metadata-mismatch",
                fmt::format("{} has no column {}, which info.json describes", file.path, feature.name), file.path,
                Value::object({{"feature", feature.name}}));
          continue;
        }
        const std::string stored = element_of(column->type);
        const std::string wanted = feature.dtype == "float64" ? "double" : feature.dtype == "float32" ? "float" : feature.dtype;
        if ((feature.is_numeric() || !feature.has_known_dtype()) && !stored.empty() && stored != wanted && ++told <= most_per_kind)
          add("dataset.schema", !castable(stored, wanted), "data.metadata-mismatch",
              fmt::format("{} holds {} as {}, but info.json says {}", file.path, feature.name, column->type, feature.dtype), file.path,
              Value::object({{"feature", feature.name}, {"stored", column->type}, {"stated", feature.dtype}}));
      }
      for (const auto& column : file.info->columns)
        if (d_.feature(column.name) == nullptr && !column.name.starts_with("__index_level") && ++told <= most_per_kind)
          add("dataset.schema", d_.format == Format::v30, "data.metadata-mismatch",
              fmt::format("{} has a column {} that info.json does not describe: loading fails with a cast error", file.path, column.name), file.path,
              Value::object({{"column", column.name}}));
    }
    if (d_.feature("action") == nullptr) {
      const bool plural = d_.feature("actions") != nullptr;
      add("dataset.metadata", false, "data.metadata-mismatch",
          plural
              ? std::string("the action feature is named \"actions\": lerobot looks for \"action\" and would train on single steps instead of chunks")
              : std::string("there is no feature named action"));
    }
  }

  static std::string element_of(const std::string& type) {
    if (type.starts_with("list<") || type.starts_with("fixed_size_list<")) {
      const auto colon = type.find(": ");
      const auto end = type.rfind('>');
      if (colon == std::string::npos || end == std::string::npos || colon + 2 > end) return {};
      std::string inner = type.substr(colon + 2, end - colon - 2);
      if (inner.ends_with(" not null")) inner.resize(inner.size() - 9);
      return element_of(inner);
    }
    if (type.starts_with("extension<") || type.starts_with("struct<")) return {};
    return type;
  }

  /// datasets casts between number types of a kind; text or structure against numbers fails.
  static bool castable(std::string_view stored, std::string_view wanted) {
    const auto kind = [](std::string_view t) {
      return t == "double" || t == "float" || t == "halffloat" ? 'f' : t.find("int") != std::string_view::npos ? 'i' : t == "bool" ? 'b' : 'x';
    };
    return kind(stored) == kind(wanted) || (kind(stored) != 'x' && kind(wanted) == 'f');
  }

  void videos() {
    std::size_t missing = 0;
    std::set<std::string> seen;
    for (const auto* camera : d_.cameras()) {
      if (d_.video_path.empty()) {
        add("dataset.metadata", true, "data.metadata-mismatch", fmt::format("{} is a video, but info.json has no video_path", camera->name));
        return;
      }
      for (const auto& e : d_.episodes) {
        const auto path = video_file(d_, camera->name, e);
        if (!path) {
          if (++missing <= most_per_kind)
            add("dataset.videos-present", true, "data.metadata-mismatch",
                fmt::format("the metadata of episode {} does not say where its video of {} is", e.index, camera->name), e.source, Value::object(),
                e.line);
          continue;
        }
        if (!seen.insert(*path).second) continue;
        std::error_code error;
        if (!fs::exists(fs::path(d_.root) / *path, error) && ++missing <= most_per_kind)
          add("dataset.videos-present", true, "data.video-missing",
              fmt::format("{} is missing (camera {}, episode {})", *path, camera->name, e.index), *path,
              Value::object({{"camera", camera->name}, {"episode", e.index}}));
      }
    }
    if (missing > most_per_kind)
      add("dataset.videos-present", true, "data.video-missing", fmt::format("{} videos are missing in all", missing), "videos");
  }

  /// What info.json allows a file and a folder against what they are. Loading never looks at it; whoever appends, merges or splits does
  /// (dataset_writer.py, aggregate.py): a file with a single episode may be as large as it is, and sizes are estimated before a file ends.
  void limits() {
    std::map<std::pair<std::string, bool>, std::size_t> episodes;  // file, of video: episodes in it
    std::int64_t last_number = -1;
    std::string last_name;
    for (const auto& e : d_.episodes) {
      const auto count = [&](const std::string& path, std::int64_t number, bool video) {
        ++episodes[{path, video}];
        if (number <= last_number) return;
        last_number = number;
        last_name = path;
      };
      count(fill_template(d_.data_path, {{"chunk_index", e.data_chunk}, {"file_index", e.data_file}}), e.data_file, false);
      for (const auto& [camera, span] : e.videos)
        if (const auto path = video_file(d_, camera, e)) count(*path, span.file, true);
    }
    if (last_number >= d_.chunks_size)
      add("dataset.layout", false, "data.layout",
          fmt::format("{} has the number {}, but a folder holds files 0 to {} (chunks_size {}): whoever appends goes on counting in this folder "
                      "without end",
                      last_name, last_number, d_.chunks_size - 1, d_.chunks_size),
          last_name, Value::object({{"file_index", last_number}, {"chunks_size", d_.chunks_size}}));
    for (const bool video : {false, true}) {
      const char* name = video ? "video_files_size_in_mb" : "data_files_size_in_mb";
      const double limit = d_.info[name].as_real(0);
      if (d_.info.find(name) == nullptr) {
        if (!video || !d_.cameras().empty())
          add("dataset.metadata", false, "data.metadata-mismatch",
              fmt::format("info.json has no {}: LeRobot before 0.6 cannot append to the set or merge it", name));
        continue;
      }
      constexpr double mb = 1024.0 * 1024, tolerance = 1.5;
      if (!(limit > 0)) continue;
      std::size_t over = 0;
      double largest = 0;
      std::string path;
      for (const auto& [file, count] : episodes) {
        std::error_code error;
        const auto bytes = file.second == video && count > 1 ? fs::file_size(fs::path(d_.root) / file.first, error) : 0;
        if (error || static_cast<double>(bytes) <= tolerance * limit * mb) continue;
        ++over;
        if (static_cast<double>(bytes) / mb <= largest) continue;
        largest = static_cast<double>(bytes) / mb;
        path = file.first;
      }
      if (over > 0)
        add("dataset.metadata", false, "data.metadata-mismatch",
            fmt::format("{} has {:.3g} MiB with several episodes, but info.json allows a file {:.3g} ({}){}: it was not written by these rules, and "
                        "what is appended makes files of another size",
                        path, largest, limit, name, over > 1 ? fmt::format("; so have {} more", over - 1) : ""),
            path, Value::object({{"field", name}, {"stated_mb", limit}, {"largest_mb", largest}, {"files", over}}));
    }
  }

  void leftovers() {
    // lerobot leaves empty folders behind, and 0.3 the frames of image features, which the rows hold too; only frames of a
    // camera that is a video say that a recording was interrupted.
    for (const auto* camera : d_.cameras()) {
      const std::string name = "images/" + camera->name;
      if (files_in(d_.root, name, 1).empty()) continue;
      add("dataset.layout", false, "data.layout", name + " holds frames that were never encoded: a recording was interrupted", name);
      return;
    }
  }

  const Dataset& d_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> judge_metadata(const Dataset& dataset) { return Judge(dataset).run(); }

std::optional<std::string> video_file(const Dataset& dataset, const std::string& camera, const Episode& episode) {
  if (dataset.format != Format::v30)
    return fill_template(dataset.video_path,
                         {{"video_key", camera}, {"episode_chunk", episode.index / dataset.chunks_size}, {"episode_index", episode.index}});
  const auto span = episode.videos.find(camera);
  if (span == episode.videos.end()) return std::nullopt;
  return fill_template(dataset.video_path, {{"video_key", camera}, {"chunk_index", span->second.chunk}, {"file_index", span->second.file}});
}

std::string fill_template(std::string_view pattern, const std::vector<std::pair<std::string, Value>>& fields) {
  std::string out;
  while (!pattern.empty()) {
    const auto open = pattern.find('{');
    const auto close = open == std::string_view::npos ? open : pattern.find('}', open);
    if (close == std::string_view::npos) return out.append(pattern);
    out += pattern.substr(0, open);
    const std::string_view inside = pattern.substr(open + 1, close - open - 1);
    const auto colon = inside.find(':');
    const std::string_view name = inside.substr(0, colon);
    const std::string_view format = colon == std::string_view::npos ? std::string_view() : inside.substr(colon + 1);
    const auto found = std::ranges::find_if(fields, [&](const auto& f) { return f.first == name; });
    if (found == fields.end()) {
      out += pattern.substr(open, close - open + 1);
    } else if (found->second.is_text()) {
      out += found->second.as_text();
    } else {
      // Python's "03d": a width with leading zeros.
      const std::size_t width =
          format.starts_with('0')
              ? static_cast<std::size_t>(std::clamp<std::int64_t>(to_integer(format.substr(1, format.find('d') - 1)).value_or(0), 0, 20))
              : 0;
      std::string number = std::to_string(found->second.as_int());
      if (number.size() < width) number.insert(0, width - number.size(), '0');
      out += number;
    }
    pattern.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace ff::dataset
