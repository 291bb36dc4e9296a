// JSON that training programs leave: HF Trainer's trainer_state.json, JSONL (LingBot-VLA's loss.jsonl, wandb-history.jsonl,
// metrics of one's own), wandb-summary.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/python_json.h"
#include "base/text.h"
#include "training/series.h"

namespace ff::training {
namespace {

std::optional<double> number_of(const Value& v) {
  if (v.is_number()) return v.as_real();
  if (v.is_text()) return to_metric(v.as_text());
  return std::nullopt;
}

}  // namespace

std::string quote_nonfinite(std::string_view json) { return without_nonfinite(json, Nonfinite::quoted); }

bool read_json_record(const Value& object, std::uint32_t source, std::uint64_t line, Log& log) {
  if (!object.is_object()) return false;
  Record record;
  record.source = source;
  record.line = line;
  bool evaluation = false;
  for (const auto& [key, value] : object.members()) {
    const auto number = number_of(value);
    if (!number) continue;
    if (key.starts_with("eval")) evaluation = true;
    if (key == "_timestamp" || key == "timestamp" || key == "time" || key == "wall_time") {
      record.time = *number;
      continue;
    }
    const auto named = known_metric(key);
    if (!named) {
      if (training_loss_name(lower(key)) && record.other.size() < 16) record.other.emplace_back(key, *number);
      continue;
    }
    if (named->step)
      record.step = *number;
    else if (!record.holds(named->quantity))
      record.set(named->quantity, *number * named->factor);
  }
  if (object.find("train_runtime") != nullptr) {
    log.events.push_back(
        {EventKind::end, source, line, 0, log.records.size(), record.step, unknown, "train_runtime " + object["train_runtime"].to_string() + " s"});
    return false;
  }
  const bool measures = record.holds(Quantity::loss) || broken_part(record) || record.holds(Quantity::gradient_norm) ||
                        record.holds(Quantity::learning_rate) || record.holds(Quantity::allocated) || record.holds(Quantity::host_memory);
  // Some writers (orjson, JavaScript) write NaN as null; others leave so what was not measured.
  constexpr std::string_view of_null = "the loss is null and nothing else is measured: ";
  if (const Value* loss = object.find("loss"); !measures && !evaluation && loss != nullptr && loss->is_null() &&
                                               std::ranges::none_of(log.notes, [&](const std::string& n) { return n.starts_with(of_null); }))
    log.notes.push_back(fmt::format("{}entry {} of {}; some writers put null where a number is NaN", of_null, line, log.sources[source]));
  if (!measures) {
    if (evaluation) log.events.push_back({EventKind::evaluation, source, line, 0, log.records.size(), record.step, record.time, "evaluation"});
    return false;
  }
  log.records.push_back(std::move(record));
  return true;
}

Result<void> read_json_document(std::string_view text, std::uint32_t source, Log& log) {
  const auto document = parse_json(quote_nonfinite(text), log.sources[source]);
  if (!document) return std::unexpected(document.error());
  const Value& d = *document;
  const auto& history = d["log_history"].is_list() ? d["log_history"].items() : d.items();
  if (d["log_history"].is_list()) {
    log.formats.emplace_back("HF Trainer state");
    for (const auto& [from, to] : {std::pair{"max_steps", "steps"}, std::pair{"logging_steps", "log_freq"}, std::pair{"save_steps", "save_freq"},
                                   std::pair{"train_batch_size", "batch"}, std::pair{"global_step", "global_step"}})
      if (const auto number = number_of(d[from]); number && *number > 0) log.settings.set(to, *number);
  } else if (d.is_list()) {
    log.formats.emplace_back("JSON list");
  }
  const std::uint32_t part = log.records.empty() ? 0 : log.records.back().part + 1;
  std::uint64_t entry = 0;
  for (const auto& object : history)
    if (++entry; read_json_record(object, source, entry, log)) log.records.back().part = part;
  if (d.is_object() && history.empty()) {
    if (read_json_record(d, source, 1, log)) log.formats.emplace_back("JSON object");
  }
  return {};
}

}  // namespace ff::training
