// Python sessions and version reports.
//
//   pythons[0].packages.<name>   of `x.__version__` in a session, `pip show`, and the lists of lerobot-info
//   packages.{from_source,from_registry}[i]   names that a project takes from a repository; names that were installed by version
//   dataset.pad.all_frames       true: as many frames are flagged as padding as the dataset has
//   dataset.segments.{row_errors,file_errors,misfiled_episode}   of episode bounds and files that a session prints
//   checkpoint.{has_training_state,last_behind}   of a listing of checkpoints/
//   model.{embedding_rows,token_id_max,vocab_size}   sizes that a log prints

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

/// Lower case, "-" for "_" and ".", as pip compares names.
std::string package_name(std::string name) {
  name = lower(name);
  std::replace(name.begin(), name.end(), '_', '-');
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

void versions(std::string_view text, FactSink& sink) {
  static const RE2 asked(R"(([A-Za-z_]\w*)\.__version__\s*\)?\s*[\"']?\s*$)");
  static const RE2 answer(R"(^'?(\d+\.\d+[\w.+-]*)'?\s*$)");
  static const RE2 listed(
      R"(^-\s+`?(LeRobot|lerobot|Transformers|transformers|Datasets|datasets|torchcodec|TorchCodec|accelerate|Accelerate)`? version:\s*(\d+\.\d+[\w.+-]*))");
  static const RE2 show_name(R"(^Name:\s*([\w.-]+)\s*$)");
  static const RE2 show_version(R"(^Version:\s*(\d[\w.+-]*)\s*$)");
  static const RE2 show_command(R"(pip3? show ([\w.-]+)\s*(?:\||$|2>))");
  std::string pending, shown;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    std::string name, version;
    if (!pending.empty() && RE2::PartialMatch(piece(trim(line)), answer, &version))
      sink.add("pythons[0].packages." + package_name(pending), version, number, line);
    pending.clear();
    if (RE2::PartialMatch(piece(trim(line)), asked, &name)) pending = name;
    if (RE2::PartialMatch(piece(trim(line)), listed, &name, &version)) sink.add("pythons[0].packages." + package_name(name), version, number, line);
    if (RE2::PartialMatch(piece(line), show_command, &name)) shown = name;
    if (RE2::PartialMatch(piece(line), show_name, &name)) shown = name;
    if (!shown.empty() && RE2::PartialMatch(piece(line), show_version, &version)) {
      sink.add("pythons[0].packages." + package_name(shown), version, number, line);
      shown.clear();
    }
  });
}

/// "transformers @ git+https://…" of a project, and "transformers==4.40.1" of a list of what is installed.
void origins(std::string_view text, FactSink& sink) {
  static const RE2 wanted(R"(^\s*['"]?([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*@\s*(?:git\+|https?://))");
  static const RE2 installed(R"(^([A-Za-z][\w.-]*)==\d)");
  int wants = 0, has = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 400) return;
    std::string name;
    if (wants < 256 && RE2::PartialMatch(piece(line), wanted, &name))
      sink.add("packages.from_source[" + std::to_string(wants++) + "]", package_name(name), number, line);
    else if (has < 2048 && RE2::PartialMatch(piece(line), installed, &name))
      sink.add("packages.from_registry[" + std::to_string(has++) + "]", package_name(name), number, line);
  });
}

void padding(std::string_view text, FactSink& sink) {
  enum class Asked { nothing, length, padded } asked = Asked::nothing;
  std::optional<std::int64_t> length;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    const std::string_view body = trim(line);
    if (body.starts_with(">>>") || body.starts_with("In [")) {
      asked = Asked::nothing;
      if (body.find("_is_pad") != std::string_view::npos &&
          (body.find("sum(") != std::string_view::npos || body.find("count") != std::string_view::npos))
        asked = Asked::padded;
      else if (body.find("len(") != std::string_view::npos)
        asked = Asked::length;
      return;
    }
    const auto value = to_integer(body);
    if (value && asked == Asked::length) length = value;
    if (value && asked == Asked::padded && length && *length > 0 && *value == *length) sink.add("dataset.pad.all_frames", true, number, line);
    asked = Asked::nothing;
  });
}

void sizes(std::string_view text, FactSink& sink) {
  static const RE2 rows(R"(\bEmbedding\((\d{1,9}), ?\d+)");
  static const RE2 token(R"((?i)\b(?:max(?:imum)?|largest|highest) (?:token|input)[ _]?ids?\s*[:=]?\s*(\d{1,9}))");
  static const RE2 vocabulary(R"(\bvocab_size[\"']?\s*[:= ]\s*(\d{1,9}))");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 4096) return;
    std::int64_t value = 0;
    if (RE2::PartialMatch(piece(line), rows, &value)) sink.number("model.embedding_rows", static_cast<double>(value), number, line);
    if (RE2::PartialMatch(piece(line), token, &value)) sink.number("model.token_id_max", static_cast<double>(value), number, line);
    if (RE2::PartialMatch(piece(line), vocabulary, &value)) sink.number("model.vocab_size", static_cast<double>(value), number, line);
  });
}

/// `ls` of a checkpoint: training_state beside pretrained_model, and where the link last points.
void checkpoints(std::string_view text, FactSink& sink) {
  static const RE2 command(R"((?:^|[$#>%]\s*|✗ |✓ )(?:ls|find|tree)\b.*(?:checkpoints|checkpoint-\d|global_step_?\d))");
  static const RE2 link(R"(\blast\s*->\s*(?:\S*/)?(\d{3,9})\b)");
  static const RE2 step(R"((?:^|\s)(\d{5,9})(?:/|\s|$))");
  static const RE2 weight_file(R"(\S*model\S*\.(?:pt|pth|bin|safetensors)\b)");
  static const RE2 state_file(R"((?i)training_state|optim|scheduler|random_states|rng_state|global_step\d|train_state)");
  bool listing = false, weights = false, state = false;
  std::int64_t newest = -1, last = -1, value = 0;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    if (RE2::PartialMatch(piece(line), command)) {
      listing = line.find("pretrained_model") == std::string_view::npos;
      at = number;
      return;
    }
    if (trim(line).starts_with("$ ")) listing = false;
    if (!listing) return;
    weights = weights || line.find("pretrained_model") != std::string_view::npos || RE2::PartialMatch(piece(line), weight_file);
    state = state || RE2::PartialMatch(piece(line), state_file);
    if (RE2::PartialMatch(piece(line), link, &value)) {
      last = value;
      return;
    }
    re2::StringPiece rest = piece(line);
    while (RE2::FindAndConsume(&rest, step, &value)) newest = std::max(newest, value);
  });
  if (weights) sink.add("checkpoint.has_training_state", state, at);
  if (last >= 0 && newest >= 0) sink.add("checkpoint.last_behind", last < newest, at);
}

/// Lists of a session: eps["dataset_from_index"], eps["dataset_to_index"], eps["length"].
void episode_bounds(std::string_view text, FactSink& sink) {
  static const RE2 asked(R"((?:dataset_(from|to)_index|\W(length)\W))");
  std::map<std::string, std::vector<double>> lists;
  std::string pending;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 16'384) return;
    const std::string_view body = trim(line);
    if (body.starts_with(">>>") || body.starts_with("In [")) {
      std::string bound, length;
      pending.clear();
      if (RE2::PartialMatch(piece(body), asked, &bound, &length)) pending = bound.empty() ? length : bound;
      return;
    }
    if (pending.empty()) return;
    if (auto numbers = bracketed_numbers(body); numbers.size() >= 3) {
      lists[pending] = std::move(numbers);
      at = number;
    }
    pending.clear();
  });
  const auto &from = lists["from"], &to = lists["to"], &length = lists["length"];
  double errors = 0;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    if (to[i] <= from[i] || (i < length.size() && to[i] - from[i] != length[i])) ++errors;
    if (i + 1 < from.size() && from[i + 1] != to[i]) ++errors;
  }
  if (from.empty())
    for (std::size_t i = 1; i < to.size(); ++i) errors += to[i] <= to[i - 1] ? 1 : 0;
  if (to.empty())
    for (std::size_t i = 1; i < from.size(); ++i) errors += from[i] <= from[i - 1] ? 1 : 0;
  if (from.empty() && to.empty()) return;
  sink.number("dataset.segments.row_errors", errors, at);
}

/// An episode table that names files, beside a listing "file-001.parquet 412 823" of the episodes that are in each.
void episode_files(std::string_view text, FactSink& sink) {
  static const RE2 range(R"(file[-_](\d{3,6})\.(?:parquet|mp4)\W+(?:episodes?\W+)?(\d{1,7})\W+(?:to\W+)?(\d{1,7})\s*$)");
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> files;
  for_each_line(text, [&](std::uint64_t, std::string_view line) {
    std::int64_t file = 0, low = 0, high = 0;
    if (line.size() <= 400 && RE2::PartialMatch(piece(line), range, &file, &low, &high) && low <= high) files[file] = {low, high};
  });
  // Or asked for file by file: pd.read_parquet(".../file-001.parquet")["episode_index"].min() and the number below it.
  static const RE2 asked(R"(^(?:>>>|In \[\d+\]:|\$).*file[-_](\d{3,6})\.parquet.*episode_index.*\.(min|max)\(\))");
  static const RE2 answer(R"(^(?:Out\[\d+\]: |np\.int64\()?(\d{1,7})\)?$)");
  std::int64_t of_file = -1;
  std::string side;
  for_each_line(text, [&](std::uint64_t, std::string_view line) {
    if (line.size() > 400) return;
    std::int64_t value = 0;
    if (RE2::PartialMatch(piece(line), asked, &value, &side)) {
      of_file = value;
    } else if (of_file >= 0 && RE2::PartialMatch(piece(trim(line)), answer, &value)) {
      auto& range_of = files.try_emplace(of_file, std::pair<std::int64_t, std::int64_t>{0, 1'000'000'000}).first->second;
      (side == "min" ? range_of.first : range_of.second) = value;
      of_file = -1;
    }
  });
  if (files.empty()) return;
  double errors = 0;
  for (const Table& table : number_tables(text, "file_index")) {
    const auto episode = table.column("episode_index"), file = table.column_ending("file_index");
    if (!episode || !file) continue;
    for (const Table::Row& row : table.rows) {
      const auto there = files.find(static_cast<std::int64_t>(row.values[*file]));
      const auto number = static_cast<std::int64_t>(row.values[*episode]);
      if (there == files.end() || number < there->second.first || number > there->second.second) {
        if (++errors == 1) sink.add("dataset.segments.misfiled_episode", number, row.line);
      }
    }
  }
  sink.number("dataset.segments.file_errors", errors);
}

}  // namespace

void extract_session(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (text.find("__version__") != std::string_view::npos || text.find("version:") != std::string_view::npos ||
      text.find("Version:") != std::string_view::npos)
    versions(text, sink);
  if (text.find("==") != std::string_view::npos || text.find("git+") != std::string_view::npos) origins(text, sink);
  if (text.find("checkpoint") != std::string_view::npos || text.find("global_step") != std::string_view::npos) checkpoints(text, sink);
  if (text.find("dataset_from_index") != std::string_view::npos || text.find("dataset_to_index") != std::string_view::npos)
    episode_bounds(text, sink);
  if (text.find("file_index") != std::string_view::npos && text.find("file-0") != std::string_view::npos) episode_files(text, sink);
  if (text.find("_is_pad") != std::string_view::npos) padding(text, sink);
  if (text.find("Embedding(") != std::string_view::npos || text.find("vocab_size") != std::string_view::npos || mentions(text, "token id"))
    sizes(text, sink);
}

}  // namespace ff::diagnosis
