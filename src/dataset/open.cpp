#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "base/readable.h"
#include "base/text.h"
#include "dataset/dataset.h"

namespace ff::dataset {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t max_metadata_bytes = 1ULL << 30;
constexpr int max_depth = 8;

void add(Dataset& d, std::string check, bool fails, std::string cause, std::string summary, std::string file = {}, std::uint64_t line = 0,
         std::string text = {}, Value measured = Value::object()) {
  d.findings.push_back({std::move(check), fails, std::move(cause), std::move(summary), std::move(measured), std::move(file), line, std::move(text)});
}

/// First and last bytes of a file, for telling what it really is.
std::optional<Impostor> look_at(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::string head(512, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  std::string tail;
  if (size >= 12) {
    in.clear();
    in.seekg(-12, std::ios::end);
    tail.resize(12);
    in.read(tail.data(), 12);
  }
  return impostor(path.string(), head, tail, size);
}

std::string_view impostor_cause(Impostor::Kind kind) { return kind == Impostor::Kind::lfs_pointer ? "data.lfs-pointer" : "data.truncated"; }

/// Is a directory, pipe or device where a file belongs? Then that is the finding: it would be read as an empty file, or block for ever.
bool no_file(Dataset& d, const std::string& name) {
  std::error_code error;
  const auto status = fs::status(fs::path(d.root) / name, error);
  if (fs::is_regular_file(status)) return false;
  add(d, "dataset.layout", true, "data.layout", name + (fs::is_directory(status) ? " is a directory, where a file belongs" : " is no regular file"),
      name);
  return true;
}

/// Reads a metadata file; what is wrong with it becomes a finding and the content stays empty.
std::optional<std::string> metadata_file(Dataset& d, const std::string& name, bool required) {
  const fs::path path = fs::path(d.root) / name;
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (required) add(d, "dataset.layout", true, "data.layout", name + " is missing", name);
    return std::nullopt;
  }
  if (no_file(d, name)) return std::nullopt;
  if (const auto wrong = look_at(path)) {
    add(d, "dataset.files-whole", true, std::string(impostor_cause(wrong->kind)), name + " is " + wrong->what, name);
    return std::nullopt;
  }
  auto content = read_file(path, max_metadata_bytes);
  if (!content) {
    add(d, "dataset.layout", true, "data.layout", name + " cannot be read: " + content.error().what, name);
    return std::nullopt;
  }
  return std::move(*content);
}

/// Parses a .jsonl file line by line; a bad line is a finding, and the rest is still read.
template <class Use>
void each_json_line(Dataset& d, const std::string& name, std::string_view content, Use&& use) {
  std::uint64_t number = 0;
  std::size_t bad = 0;
  for (const auto line : lines(content)) {
    ++number;
    if (trim(line).empty()) continue;
    const auto value = parse_json(line, name);
    if (!value || !value->is_object()) {
      if (++bad == 1)
        add(d, "dataset.metadata", true, "data.metadata-mismatch", fmt::format("line {} of {} is no JSON object", number, name), name, number,
            std::string(line.substr(0, 120)));
      continue;
    }
    use(*value, number);
  }
}

void read_legacy_metadata(Dataset& d) {
  if (const auto content = metadata_file(d, "meta/episodes.jsonl", true))
    each_json_line(d, "meta/episodes.jsonl", *content, [&](const Value& v, std::uint64_t line) {
      Episode e;
      e.index = v["episode_index"].as_int(-1);
      e.length = v["length"].as_int(-1);
      for (const auto& task : v["tasks"].items()) e.tasks.emplace_back(task.as_text());
      e.source = "meta/episodes.jsonl";
      e.line = line;
      d.episodes.push_back(std::move(e));
    });
  std::int64_t position = 0;
  for (auto& e : d.episodes) {
    e.from = position;
    position += std::max<std::int64_t>(0, e.length);
    e.to = position;
  }
  if (const auto content = metadata_file(d, "meta/tasks.jsonl", true))
    each_json_line(d, "meta/tasks.jsonl", *content, [&](const Value& v, std::uint64_t line) {
      const auto index = v["task_index"].as_int(-1);
      if (!d.tasks.emplace(index, v["task"].as_text()).second)
        add(d, "dataset.tasks", true, "data.metadata-mismatch", fmt::format("task_index {} stands twice in meta/tasks.jsonl", index),
            "meta/tasks.jsonl", line);
    });
  if (d.format == Format::v21) {
    if (const auto content = metadata_file(d, "meta/episodes_stats.jsonl", true)) {
      std::map<std::int64_t, Episode*> by_index;
      for (auto& e : d.episodes) by_index.emplace(e.index, &e);
      each_json_line(d, "meta/episodes_stats.jsonl", *content, [&](const Value& v, std::uint64_t line) {
        const auto found = by_index.find(v["episode_index"].as_int(-1));
        if (found == by_index.end())
          add(d, "dataset.statistics", true, "data.statistics",
              fmt::format("meta/episodes_stats.jsonl describes episode {}, which does not exist", v["episode_index"].to_string()),
              "meta/episodes_stats.jsonl", line);
        else
          found->second->stats = v["stats"];
      });
    }
  }
}

/// A value of a Parquet statistics column: a number, or the list of numbers of one row.
Value row_value(const ColumnView& c, std::int64_t row) {
  if (c.type == ElementType::text) return Value(std::string(c.text(row)));
  if (c.type == ElementType::other) return {};
  if (!c.is_list)
    return c.type == ElementType::f32 || c.type == ElementType::f64 ? Value(c.real(row)) : Value(static_cast<long long>(c.integer(row)));
  std::int64_t from = row * c.width;
  std::int64_t to = from + c.width;
  if (c.width < 0) {
    from = c.offsets[row] - c.offsets[0];
    to = c.offsets[row + 1] - c.offsets[0];
  }
  Value out = Value::list();
  for (std::int64_t i = from; i < to; ++i) out.push(Value(c.real(i)));
  return out;
}

void read_v3_episodes(Dataset& d, const Parquet& parquet, const std::string& name) {
  const auto info = parquet.inspect((fs::path(d.root) / name).string());
  if (!info) {
    add(d, "dataset.files-whole", true, "data.truncated", name + ": " + info.error().what, name);
    return;
  }
  // What can be read as numbers and texts; of nested lists the statistics of pictures, which are [[[r]], [[g]], [[b]]].
  std::vector<std::string> wanted;
  std::set<std::string, std::less<>> nested;
  for (const auto& column : info->columns) {
    if (column.type.find("list<", 5) == std::string::npos) {
      wanted.push_back(column.name);
      continue;
    }
    const auto slash = column.name.rfind('/');
    if (!column.name.starts_with("stats/") || slash <= 6) continue;
    const Feature* feature = d.feature(std::string_view(column.name).substr(6, slash - 6));
    if (feature == nullptr || (!feature->is_image() && !feature->is_video())) continue;
    wanted.push_back(column.name);
    nested.insert(column.name);
  }
  auto scan = parquet.scan((fs::path(d.root) / name).string(), wanted, 4096, false);
  if (!scan) {
    add(d, "dataset.files-whole", true, "data.truncated", name + ": " + scan.error().what, name);
    return;
  }
  std::uint64_t row_in_file = 0;
  while (true) {
    const auto more = scan->next();
    if (!more) {
      add(d, "dataset.files-whole", true, "data.truncated", name + ": " + more.error().what, name);
      return;
    }
    if (!*more) return;
    const auto integer = [&](const std::string& column, std::int64_t row) -> std::int64_t {
      const ColumnView* c = scan->column(column);
      return c != nullptr && !c->is_list && c->type != ElementType::text && c->type != ElementType::other ? c->integer(row) : -1;
    };
    const auto real = [&](const std::string& column, std::int64_t row) -> double {
      const ColumnView* c = scan->column(column);
      return c != nullptr && !c->is_list && c->type != ElementType::text && c->type != ElementType::other ? c->real(row) : -1;
    };
    for (std::int64_t row = 0; row < scan->rows(); ++row) {
      Episode e;
      e.source = name;
      e.line = ++row_in_file;
      e.index = integer("episode_index", row);
      e.length = integer("length", row);
      e.from = integer("dataset_from_index", row);
      e.to = integer("dataset_to_index", row);
      e.data_chunk = integer("data/chunk_index", row);
      e.data_file = integer("data/file_index", row);
      if (const ColumnView* tasks = scan->column("tasks"); tasks != nullptr) e.tasks = tasks->texts(row);
      for (const auto* camera : d.cameras()) {
        const std::string prefix = "videos/" + camera->name + "/";
        if (scan->column(prefix + "chunk_index") == nullptr) continue;
        e.videos[camera->name] = {integer(prefix + "chunk_index", row), integer(prefix + "file_index", row), real(prefix + "from_timestamp", row),
                                  real(prefix + "to_timestamp", row)};
      }
      for (const auto& column : info->columns) {
        if (!column.name.starts_with("stats/")) continue;
        const auto slash = column.name.rfind('/');
        if (slash <= 6) continue;
        const ColumnView* c = scan->column(column.name);
        if (c == nullptr) continue;
        const std::string feature = column.name.substr(6, slash - 6);
        Value entry = e.stats[feature];
        Value value = row_value(*c, row);
        if (nested.contains(column.name) && value.is_list()) {
          Value channels = Value::list();
          for (const auto& number : value.items()) channels.push(Value::list({Value::list({number})}));
          value = std::move(channels);
        }
        entry.set(column.name.substr(slash + 1), std::move(value));
        e.stats.set(feature, std::move(entry));
      }
      d.episodes.push_back(std::move(e));
    }
  }
}

void read_v3_tasks(Dataset& d, const Parquet& parquet) {
  const std::string name = "meta/tasks.parquet";
  const fs::path path = fs::path(d.root) / name;
  std::error_code error;
  if (!fs::exists(path, error)) {
    add(d, "dataset.layout", true, "data.layout", name + " is missing", name);
    return;
  }
  if (no_file(d, name)) return;
  if (const auto wrong = look_at(path)) {
    add(d, "dataset.files-whole", true, std::string(impostor_cause(wrong->kind)), name + " is " + wrong->what, name);
    return;
  }
  auto scan = parquet.scan(path.string(), {}, 65536, false);
  if (!scan) {
    add(d, "dataset.files-whole", true, "data.truncated", name + ": " + scan.error().what, name);
    return;
  }
  const auto info = parquet.inspect(path.string());
  std::int64_t position = 0;
  while (true) {
    const auto more = scan->next();
    if (!more || !*more) break;
    const ColumnView* index = scan->column("task_index");
    // The text column is the pandas index: "task", or "__index_level_0__" in sets by older code.
    const ColumnView* text = nullptr;
    if (info)
      for (const auto& column : info->columns)
        if (const ColumnView* c = scan->column(column.name); c != nullptr && c->type == ElementType::text && !c->is_list) text = c;
    if (index == nullptr || text == nullptr) {
      add(d, "dataset.tasks", true, "data.metadata-mismatch", "meta/tasks.parquet lacks task_index or its text column", name);
      return;
    }
    for (std::int64_t row = 0; row < scan->rows(); ++row, ++position) {
      const auto own = index->integer(row);
      // The loader takes tasks by position (iloc), so a wrong order gives frames another instruction, without an error.
      if (own != position)
        add(d, "dataset.tasks", true, "data.metadata-mismatch",
            fmt::format("row {} of meta/tasks.parquet has task_index {}: the loader takes tasks by position, so frames get another task's text",
                        position, own),
            name);
      d.tasks.emplace(own, std::string(text->text(row)));
    }
  }
}

/// Numbers in "chunk-012/file-003.parquet" or "chunk-012/episode_000003.parquet".
void parse_file_name(DataFile& file) {
  const auto number_after = [&](std::string_view mark) -> std::int64_t {
    const auto at = file.path.rfind(mark);
    if (at == std::string::npos) return -1;
    std::size_t end = at + mark.size();
    while (end < file.path.size() && file.path[end] >= '0' && file.path[end] <= '9') ++end;
    return to_integer(std::string_view(file.path).substr(at + mark.size(), end - at - mark.size())).value_or(-1);
  };
  file.chunk = number_after("chunk-");
  file.file = file.path.find("/file-") != std::string::npos ? number_after("/file-") : number_after("episode_");
}

/// Paths with the given ending below a directory, sorted as text: the loader's order.
std::vector<std::string> files_below(const Dataset& d, const std::string& directory, std::string_view ending) {
  std::vector<std::string> out;
  for (auto& path : files_in(d.root, directory))
    if (path.ends_with(ending)) out.push_back(std::move(path));
  std::ranges::sort(out);
  return out;
}

void read_data_files(Dataset& d, const Parquet& parquet) {
  std::size_t wrong_count = 0;
  for (const auto& name : files_below(d, "data", ".parquet")) {
    DataFile file;
    file.path = name;
    parse_file_name(file);
    file.first_row = d.rows;
    const fs::path path = fs::path(d.root) / name;
    if (const auto wrong = look_at(path)) {
      if (++wrong_count <= 20) add(d, "dataset.files-whole", true, std::string(impostor_cause(wrong->kind)), name + " is " + wrong->what, name);
    } else if (auto info = parquet.inspect(path.string())) {
      d.rows += info->rows;
      file.info = std::move(*info);
    } else if (++wrong_count <= 20) {
      add(d, "dataset.files-whole", true, "data.truncated", name + ": " + info.error().what, name);
    }
    d.files.push_back(std::move(file));
  }
  if (d.files.empty()) add(d, "dataset.layout", true, "data.layout", "there is no Parquet file below data/", "data");
}

}  // namespace

std::vector<std::string> files_in(const std::string& root, const std::string& directory, std::size_t most) {
  std::vector<std::string> out;
  // Links are followed, as LeRobot's glob does (large disks, caches), but not back up.
  const auto walk = [&](const auto& self, const std::string& below, int depth) -> void {
    std::error_code error;
    for (fs::directory_iterator it(fs::path(root) / below, fs::directory_options::skip_permission_denied, error), end;
         !error && it != end && out.size() < most; it.increment(error)) {
      std::error_code own;
      const std::string path = below + "/" + it->path().filename().string();
      if (it->is_directory(own)) {
        if (depth < max_depth && !(it->is_symlink(own) && leads_up(it->path()))) self(self, path, depth + 1);
      } else if (it->is_regular_file(own)) {
        out.push_back(path);
      }
    }
  };
  walk(walk, directory, 0);
  return out;
}

Result<Dataset> open_dataset(const std::string& path, const Parquet& parquet) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return usage_error("is no directory", path, "--dataset takes the root of a LeRobot dataset: the directory that holds meta/, data/ and videos/");
  const fs::path info_path = fs::path(path) / "meta/info.json";
  if (!fs::exists(info_path, error)) {
    if (fs::exists(fs::path(path) / "meta_data/info.json", error) || fs::exists(fs::path(path) / "train", error))
      return fail("looks like a LeRobot dataset of format v1, which is not read", path,
                  "convert it with lerobot's conversion scripts to v2.0 or newer");
    return fail("holds no meta/info.json, so it is no LeRobot dataset of format v2.0, v2.1 or v3.0", path,
                "give the directory that holds meta/, data/ and videos/");
  }
  if (fs::is_directory(info_path, error)) return fail("is a directory, where a file belongs", info_path.string());
  if (!fs::is_regular_file(info_path, error)) return fail("is no regular file", info_path.string());
  if (const auto wrong = look_at(info_path))
    return fail("is " + wrong->what, info_path.string(),
                wrong->kind == Impostor::Kind::lfs_pointer ? "git lfs pull, or download the dataset again" : "");
  const auto json = read_file(info_path, max_metadata_bytes);
  if (!json) return std::unexpected(json.error());
  auto dataset = parse_info(*json, info_path.string());
  if (!dataset) return dataset;
  Dataset& d = *dataset;
  d.root = path;
  while (d.root.size() > 1 && d.root.ends_with('/')) d.root.pop_back();
  if (d.format == Format::v30) {
    const auto names = files_below(d, "meta/episodes", ".parquet");
    if (names.empty()) add(d, "dataset.layout", true, "data.layout", "there is no Parquet file below meta/episodes/", "meta/episodes");
    for (const auto& name : names) {
      if (const auto wrong = look_at(fs::path(d.root) / name))
        add(d, "dataset.files-whole", true, std::string(impostor_cause(wrong->kind)), name + " is " + wrong->what, name);
      else
        read_v3_episodes(d, parquet, name);
    }
    read_v3_tasks(d, parquet);
  } else {
    read_legacy_metadata(d);
  }
  if (d.format != Format::v21) {
    if (const auto content = metadata_file(d, "meta/stats.json", true)) {
      auto stats = parse_json(*content, "meta/stats.json");
      if (stats)
        d.stats = std::move(*stats);
      else
        add(d, "dataset.statistics", true, "data.statistics", "meta/stats.json: " + stats.error().what, "meta/stats.json");
    }
  }
  read_data_files(d, parquet);
  return dataset;
}

}  // namespace ff::dataset
