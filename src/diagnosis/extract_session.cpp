// Python sessions and version reports.
//
//   pythons[0].packages.<name>   of `x.__version__` in a session, `pip show`, and the lists of lerobot-info
//   dataset.pad.all_frames       true: as many frames are flagged as padding as the dataset has
//   checkpoint.{has_training_state,last_behind}   of a listing of checkpoints/
//   model.{embedding_rows,token_id_max,vocab_size}   sizes that a log prints

#include <re2/re2.h>

#include <algorithm>
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
    if (value && asked == Asked::length) length = *value;
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
  static const RE2 command(R"((?:^|[$#>]\s*)(?:ls|find|tree)\b.*checkpoints)");
  static const RE2 link(R"(\blast\s*->\s*(?:\S*/)?(\d{3,9})\b)");
  static const RE2 step(R"((?:^|\s)(\d{5,9})(?:/|\s|$))");
  bool listing = false, weights = false, state = false;
  std::int64_t newest = -1, last = -1, value = 0;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 2000) return;
    if (RE2::PartialMatch(piece(line), command)) {
      listing = true;
      at = number;
      return;
    }
    if (trim(line).starts_with("$ ")) listing = false;
    if (!listing) return;
    weights = weights || line.find("pretrained_model") != std::string_view::npos;
    state = state || line.find("training_state") != std::string_view::npos;
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

}  // namespace

void extract_session(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (text.find("__version__") != std::string_view::npos || text.find("version:") != std::string_view::npos ||
      text.find("Version:") != std::string_view::npos)
    versions(text, sink);
  if (text.find("checkpoints") != std::string_view::npos) checkpoints(text, sink);
  if (text.find("_is_pad") != std::string_view::npos) padding(text, sink);
  if (text.find("Embedding(") != std::string_view::npos || text.find("vocab_size") != std::string_view::npos || mentions(text, "token id"))
    sizes(text, sink);
}

}  // namespace ff::diagnosis
