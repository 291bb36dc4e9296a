#include "cli/data_write.h"

#include <fmt/format.h>

#include <iostream>

#include "base/progress.h"
#include "base/readable.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "dataset/merge.h"
#include "dataset/repair.h"
#include "dataset/survey.h"
#include "report/style.h"

namespace ff::cli {
namespace {

/// What both commands have to say.
struct Outcome {
  std::string schema, heading, output;
  std::vector<std::string> changes, notes;
  std::vector<dataset::Refusal> refused;
  dataset::Written written;
  bool in_place = false;
};

Value document(const Outcome& o) {
  Value refused = Value::list();
  for (const auto& r : o.refused) refused.push(Value::object({{"cause", r.cause}, {"reason", r.reason}}));
  return Value::object({{"schema", o.schema},
                        {"output", o.output},
                        {"status", o.in_place ? "written" : "refused"},
                        {"changes", Value::list_of(o.changes)},
                        {"refused", std::move(refused)},
                        {"notes", Value::list_of(o.notes)},
                        {"episodes", o.written.episodes},
                        {"rows", o.written.rows},
                        {"data_files", o.written.data_files},
                        {"video_files", o.written.video_files}});
}

void print(const Outcome& o) {
  const auto style = report::Style::for_stdout();
  const auto width = report::terminal_width();
  const auto item = [&](const std::string& mark, const std::string& text) {
    std::cout << "  " << mark << " " << report::wrapped(report::printable(text, 2000), 7, width) << "\n";
  };
  std::cout << style.bold(o.heading) << "\n\n";
  for (const auto& c : o.changes) item(o.in_place ? style.green("done") : style.dim("    "), c);
  for (const auto& r : o.refused) item(style.red("NO  "), fmt::format("{} [{}]", r.reason, r.cause));
  for (const auto& n : o.notes) item(style.dim("note"), n);
  if (o.in_place)
    std::cout << fmt::format("\n{} written: {} episodes, {} rows, {} data file{}, {} video file{}. It passes: firstfault data check {}\n", o.output,
                             o.written.episodes, o.written.rows, o.written.data_files, o.written.data_files == 1 ? "" : "s", o.written.video_files,
                             o.written.video_files == 1 ? "" : "s", o.output);
  else
    std::cout << "\n" << style.red("Nothing was written.") << "\n";
}

int finish(const Outcome& o, bool json) {
  if (json)
    print_document(document(o));
  else
    print(o);
  return o.in_place ? 0 : 1;
}

/// Writes the plan of an outcome that was not refused.
Result<void> write(const dataset::Plan& plan, const dataset::Parquet& parquet, Outcome& outcome, Progress& progress) {
  auto placed = dataset::write_checked(plan, outcome.output, parquet, [&](std::string_view what) { progress.show("… " + std::string(what)); });
  progress.clear();
  if (!placed) return std::unexpected(placed.error());
  outcome.written = std::move(placed->written);
  for (auto& note : outcome.written.notes) outcome.notes.push_back(note);
  for (const auto& f : placed->faults) outcome.refused.push_back({f.cause, "the copy would still be at fault: " + f.summary});
  outcome.in_place = placed->faults.empty();
  if (!outcome.in_place) outcome.written = {};
  return {};
}

}  // namespace

int data_fix(const DataFixOptions& options) {
  if (const auto given = given_path(options.path); !given) return report_error(given.error());
  if (auto free = dataset::free_output(options.output, {options.path}); !free) return report_error(free.error());
  const auto parquet = dataset::Parquet::load();
  if (!parquet) return report_error(parquet.error());
  Progress progress(!options.json);
  progress.show("… reading every row");
  auto repair = dataset::plan_repair(options.path, options.repair, *parquet);
  progress.clear();
  if (!repair) {
    // What is no dataset at all is a refusal with one reason.
    if (repair.error().exit_code == 2 || is_unreadable(repair.error())) return report_error(repair.error());
    Outcome o{"firstfault/data-fix/1", "Repair of " + options.path, options.output, {}, {}, {{"data.layout", repair.error().to_string()}}, {}, false};
    return finish(o, options.json);
  }
  Outcome o{
      "firstfault/data-fix/1", "Repair of " + options.path, options.output, std::move(repair->changes), {}, std::move(repair->refused), {}, false};
  if (o.refused.empty()) {
    if (o.changes.empty()) o.changes.emplace_back("nothing was wrong; statistics, index and episode list were made anew all the same");
    if (auto done = write(repair->plan, *parquet, o, progress); !done) return report_error(done.error());
  }
  return finish(o, options.json);
}

int data_merge(const DataMergeOptions& options) {
  if (options.paths.size() < 2) return report_error(Error{"needs at least two datasets", "data merge", "firstfault data merge A B -o OUT", 2});
  // The second one is asked for before the first is read.
  for (const auto& path : options.paths)
    if (const auto given = given_path(path); !given)
      return report_error(given.error());
    else if (const auto closed = dataset::unreadable_dataset(path))
      return report_error(*closed);
  if (auto free = dataset::free_output(options.output, options.paths); !free) return report_error(free.error());
  const auto parquet = dataset::Parquet::load();
  if (!parquet) return report_error(parquet.error());
  Progress progress(!options.json);
  progress.show("… reading every row of every dataset");
  auto merge = dataset::plan_merge(options.paths, {options.link_videos});
  progress.clear();
  if (!merge) return report_error(merge.error());
  Outcome o{"firstfault/data-merge/1",
            fmt::format("Merge of {} datasets", options.paths.size()),
            options.output,
            {},
            std::move(merge->notes),
            std::move(merge->refused),
            {},
            false};
  if (o.refused.empty()) {
    if (auto done = write(merge->plan, *parquet, o, progress); !done) return report_error(done.error());
  }
  return finish(o, options.json);
}

}  // namespace ff::cli
