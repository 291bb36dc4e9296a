#include "diagnosis/extract.h"

#include <array>

#include "capture/transcript.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/kind.h"

namespace ff::diagnosis {

namespace {

constexpr std::array<ExtractorEntry, 17> table = {{
    {"dataset", "dataset.info. dataset.stats. dataset.episodes. norm_stats.", extract_dataset},
    {"rows", "dataset.rows. dataset.segments. dataset.table.", extract_rows},
    {"video", "video. dataset.query. dataset.time_check.", extract_video},
    {"model", "file. files. safetensors. policy. weights. normalizer.keys", extract_model},
    {"training", "train.", extract_training},
    {"evaluation", "eval.", extract_evaluation},
    {"comparison", "compare. actions. gripper. rate. normalizer.passthrough", extract_comparison},
    {"code", "code. gripper.", extract_code},
    {"exception", "exception.", extract_exception},
    {"session", "pythons[0].packages. packages. dataset.pad. dataset.segments. checkpoint. model.", extract_session},
    {"report", "report. rate. eval. dataset. video.", extract_report},
    {"series", "series.", extract_series},
    {"names", "names.", extract_names},
    {"numbers", "memory. report. actions. dataset.", extract_numbers},
    {"labelled", "gripper. report. actions. rate. eval. names. compare.", extract_labelled},
    {"notes", "gripper. report. series. dataset. files. eval. rate.", extract_notes},
    {"results", "eval. config. gripper. dataset. actions. series. smi.", extract_results},
}};

}  // namespace

std::span<const ExtractorEntry> extractors() { return table; }

void extract_all(std::string_view text, std::string_view source, std::vector<facts::NamedFact>& out) {
  if (text.size() > max_extract_bytes) return;
  // Source text tells by its code alone: numbers and messages in it were not measured or printed.
  const bool quotes = quotes_messages(source);
  const bool packages = !quotes && lists_packages(text);
  const auto plain = quotes ? std::nullopt : capture::plain_transcript(text);
  if (plain) text = *plain;
  for (const ExtractorEntry& entry : table) {
    if (quotes && entry.name != "code") continue;
    // What is installed and what went wrong then; the numbers are versions.
    if (packages && entry.name != "session" && entry.name != "exception") continue;
    entry.run(text, source, out);
  }
}

}  // namespace ff::diagnosis
