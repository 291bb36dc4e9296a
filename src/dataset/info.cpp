#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/file_kind.h"
#include "base/text.h"
#include "dataset/dataset.h"

namespace ff::dataset {
namespace {

constexpr std::size_t max_features = 10'000;
constexpr std::size_t max_names = 100'000;

/// Leaves of a names entry: a list, a nested list, an object of lists, or null (lerobot writes all of them).
void collect_names(const Value& value, std::vector<std::string>& out, int depth = 0) {
  if (depth > 8 || out.size() > max_names) return;
  if (value.is_text()) out.emplace_back(value.as_text());
  for (const auto& item : value.items()) collect_names(item, out, depth + 1);
  for (const auto& [key, item] : value.members()) collect_names(item, out, depth + 1);
}

std::int64_t count(const Value& value) {
  const auto n = value.as_int(-1);
  return n >= 0 ? n : -1;
}

void field_finding(Dataset& d, const std::string& where, std::string summary) {
  d.findings.push_back({"dataset.metadata", true, "data.metadata-mismatch", std::move(summary), Value::object(), where, 0, ""});
}

}  // namespace

std::string_view format_name(Format format) {
  switch (format) {
    case Format::v20:
      return "v2.0";
    case Format::v21:
      return "v2.1";
    case Format::v30:
      return "v3.0";
  }
  return "?";
}

bool Feature::is_numeric() const {
  return dtype.starts_with("float") || dtype == "double" || dtype.starts_with("int") || dtype.starts_with("uint") || dtype.starts_with("bool");
}

/// What lerobot hands to datasets.Value (datasets/features.py, string_to_arrow), and its own names.
bool Feature::has_known_dtype() const {
  static const std::set<std::string_view> known{"video",        "image",       "language", "string",  "large_string", "string_view", "binary",
                                                "large_binary", "binary_view", "bool",     "bool_",   "null",         "int8",        "int16",
                                                "int32",        "int64",       "uint8",    "uint16",  "uint32",       "uint64",      "float",
                                                "double",       "float16",     "float32",  "float64", "date32",       "date64"};
  return known.contains(dtype) || dtype.starts_with("time") || dtype.starts_with("duration[") || dtype.starts_with("decimal");
}

std::optional<Feature::PictureSize> Feature::picture_size() const {
  if (shape.size() != 3) return std::nullopt;
  const bool first = shape[0] == 3 || shape[0] == 1;
  return PictureSize{shape[first ? 1 : 0], shape[first ? 2 : 1], shape[first ? 0 : 2], first};
}

std::int64_t Feature::width() const {
  std::int64_t product = 1;
  for (const auto n : shape) {
    if (n < 0 || (n > 0 && product > std::numeric_limits<std::int64_t>::max() / n)) return -1;
    product *= n;
  }
  return product;
}

const Feature* Dataset::feature(std::string_view name) const {
  for (const auto& f : features)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<const Feature*> Dataset::cameras() const {
  std::vector<const Feature*> out;
  for (const auto& f : features)
    if (f.is_video()) out.push_back(&f);
  return out;
}

std::string Dataset::dimension(std::string_view name, std::size_t d) const {
  const Feature* f = feature(name);
  const bool named = f != nullptr && d < f->names.size() && static_cast<std::int64_t>(f->names.size()) == f->width();
  return named ? fmt::format("{}[{}] ({})", name, d, f->names[d]) : fmt::format("{}[{}]", name, d);
}

bool bookkeeping(std::string_view name) {
  return name == "index" || name == "episode_index" || name == "frame_index" || name == "timestamp" || name == "task_index";
}

Result<Dataset> parse_info(std::string_view json, const std::string& where) {
  auto info = parse_json(json, where);
  if (!info) return std::unexpected(info.error());
  if (!info->is_object()) return fail("is no JSON object", where, "a LeRobot dataset's meta/info.json describes it; copy it again from its source");
  Dataset d;
  const std::string version((*info)["codebase_version"].as_text());
  if (version == "v2.0") {
    d.format = Format::v20;
  } else if (version == "v2.1") {
    d.format = Format::v21;
  } else if (version == "v3.0") {
    d.format = Format::v30;
  } else if (version.empty()) {
    return fail("has no codebase_version", where, "a LeRobot dataset of format v2.0, v2.1 or v3.0 is wanted");
  } else {
    return fail("format " + version.substr(0, 40) + " is not known here", where,
                version.starts_with("v1") ? "convert it with lerobot's scripts for v2.0, v2.1 and v3.0 in turn"
                                          : "formats v2.0, v2.1 and v3.0 are read; a newer FirstFault may know it");
  }
  // fps may be written as 20.0 (third-party exporters do).
  d.fps = (*info)["fps"].as_real(0);
  if (!(d.fps > 0) || !std::isfinite(d.fps)) field_finding(d, "meta/info.json", "fps is " + (*info)["fps"].to_string() + ", not a positive number");
  d.total_episodes = count((*info)["total_episodes"]);
  d.total_frames = count((*info)["total_frames"]);
  d.total_tasks = count((*info)["total_tasks"]);
  for (const auto& [name, value] : {std::pair{"total_episodes", d.total_episodes}, {"total_frames", d.total_frames}, {"total_tasks", d.total_tasks}})
    if (value < 0) field_finding(d, "meta/info.json", std::string(name) + " is missing or no count");
  d.chunks_size = count((*info)["chunks_size"]);
  if (d.chunks_size <= 0) {
    field_finding(d, "meta/info.json", "chunks_size is " + (*info)["chunks_size"].to_string() + ", not a positive count");
    d.chunks_size = 1000;
  }
  // LeRobot 0.6 refuses a limit that is not above zero when it loads the set, whatever it is loaded for.
  for (const char* name : {"data_files_size_in_mb", "video_files_size_in_mb"})
    if (const Value* limit = info->find(name); d.format == Format::v30 && limit != nullptr && !(limit->is_number() && limit->as_real() > 0))
      field_finding(d, "meta/info.json", fmt::format("{} is {}, not a positive number: LeRobot 0.6 does not load the set", name, limit->to_string()));
  d.data_path = (*info)["data_path"].as_text();
  d.video_path = (*info)["video_path"].as_text();
  if (d.data_path.empty()) field_finding(d, "meta/info.json", "data_path, the template of the data files' names, is missing");
  const auto& features = (*info)["features"].members();
  if (features.empty()) return fail("describes no features", where, "the file is incomplete: copy it again from its source");
  if (features.size() > max_features) return fail("describes more than 10000 features", where);
  for (const auto& [name, value] : features) {
    Feature f;
    f.name = name;
    f.dtype = value["dtype"].as_text();
    for (const auto& n : value["shape"].items()) f.shape.push_back(n.as_int(-1));
    collect_names(value["names"], f.names);
    f.info = value["info"].is_object() ? value["info"] : value["video_info"];
    if (f.dtype.empty())
      field_finding(d, "meta/info.json", "feature " + name + " has no dtype");
    else if (!f.has_known_dtype())
      field_finding(d, "meta/info.json", fmt::format("feature {} has the dtype {}, which the datasets library does not know", name, f.dtype));
    if (f.width() < 0) field_finding(d, "meta/info.json", "feature " + name + " has a shape that is no list of sizes: " + value["shape"].to_string());
    if (name.find('/') != std::string::npos) field_finding(d, "meta/info.json", "feature name " + name + " holds '/', which the format forbids");
    if (!f.names.empty() && f.is_numeric() && static_cast<std::int64_t>(f.names.size()) != f.width())
      d.findings.push_back({"dataset.metadata", false, "data.metadata-mismatch",
                            name + " has " + std::to_string(f.names.size()) + " names for " + std::to_string(f.width()) +
                                " values: reports and joint masks name the wrong joint",
                            Value::object({{"names", f.names.size()}, {"values", f.width()}}), "meta/info.json", 0, ""});
    d.features.push_back(std::move(f));
  }
  d.info = std::move(*info);
  return d;
}

std::optional<Impostor> impostor(std::string_view path, std::string_view head, std::string_view tail, std::uint64_t size_bytes) {
  if (auto common = common_impostor(head, size_bytes)) return common;
  if (path.ends_with(".parquet")) {
    if (!head.starts_with("PAR1")) {
      if (head.starts_with("PARE")) return Impostor{Impostor::Kind::foreign, "an encrypted Parquet file", -1};
      if (const auto kind = file_kind(head); !kind.what.empty())
        return Impostor{Impostor::Kind::foreign, "no Parquet file: it is " + std::string(kind.what), -1};
      return Impostor{Impostor::Kind::foreign, "no Parquet file (it does not begin with PAR1)", -1};
    }
    if (!tail.ends_with("PAR1")) return Impostor{Impostor::Kind::truncated, "an incomplete Parquet file (it does not end with PAR1)", -1};
  }
  if (path.ends_with(".mp4") && (head.size() < 8 || (head.substr(4, 4) != "ftyp" && head.substr(4, 4) != "moov" && head.substr(4, 4) != "mdat" &&
                                                     head.substr(4, 4) != "free" && head.substr(4, 4) != "skip" && head.substr(4, 4) != "wide")))
    return Impostor{Impostor::Kind::foreign, "no MP4 file" + (file_kind(head).what.empty() ? "" : ": it is " + std::string(file_kind(head).what)),
                    -1};
  return std::nullopt;
}

}  // namespace ff::dataset
