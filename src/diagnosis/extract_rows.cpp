// Printed rows of a dataset and of its episode table (pandas, CSV, column -t).
//
//   dataset.rows.{count,index_jumps,index_descents,index_restarts,frame_jumps,duplicate_index,time_errors}
//     Rows with columns index, frame_index, episode_index, timestamp as a loader would meet them. `index_jumps`: the
//     global index does not go up by one; `index_descents`: it falls; `index_restarts`: it falls to 0 where a new
//     episode begins (a merge that did not renumber); `frame_jumps`: inside an episode frame_index does not go up by
//     one; `time_errors`: timestamp is not frame_index / fps.
//   dataset.rows.index_fits_sorted   true: sorted by episode and frame, the global index is right; only the rows' order is not
//   dataset.segments.{rows,off_grid_frames,length_errors,overlaps,holes,row_errors}
//     The episode table of v3.0. `off_grid_frames`: largest distance of from_timestamp * fps from a whole number (sums of
//     rounded times drift); `length_errors`: (to - from) * fps differs from length by half a frame; `row_errors`:
//     dataset_from_index and dataset_to_index do not fit length.
//   dataset.table.{zero_range,max_abs}   of a table with columns min and max, or q01 and q99

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void read_rows(const Table& table, FactSink& sink) {
  const auto index = table.column("index"), frame = table.column("frame_index"), episode = table.column("episode_index"),
             time = table.column("timestamp");
  if (!frame || (!index && !episode && !time)) return;
  double index_jumps = 0, index_descents = 0, restarts = 0, frame_jumps = 0, duplicates = 0, time_errors = 0;
  std::set<double> seen;
  std::vector<double> rates;
  const Table::Row* previous = nullptr;
  for (const Table::Row& row : table.rows) {
    if (time && row.values[*frame] > 0 && row.values[*time] > 0) rates.push_back(row.values[*frame] / row.values[*time]);
    if (index && seen.size() < max_table_rows && !seen.insert(row.values[*index]).second) ++duplicates;
    if (previous != nullptr && !row.after_gap) {
      const bool same_episode = !episode || row.values[*episode] == previous->values[*episode];
      if (index) {
        const double step = row.values[*index] - previous->values[*index];
        if (step != 1) ++index_jumps;
        if (step < 0) {
          ++index_descents;
          if (!same_episode && row.values[*index] == 0) ++restarts;
        }
      }
      // Without an episode column a fall to 0 is the beginning of the next episode.
      const double step = row.values[*frame] - previous->values[*frame];
      if (same_episode && step != 1 && (episode || row.values[*frame] != 0)) ++frame_jumps;
    }
    previous = &row;
  }
  if (index && episode && index_jumps > 0) {
    // The rows as they should stand: whether their global index goes up by one in every episode then.
    std::vector<std::array<double, 3>> sorted;
    for (const Table::Row& row : table.rows) sorted.push_back({row.values[*episode], row.values[*frame], row.values[*index]});
    std::ranges::sort(sorted);
    bool fits = true;
    std::size_t pairs = 0;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i][0] == sorted[i - 1][0]) {
        ++pairs;
        fits = fits && sorted[i][1] == sorted[i - 1][1] + 1 && sorted[i][2] == sorted[i - 1][2] + 1;
      } else {
        fits = fits && sorted[i][2] > sorted[i - 1][2];
      }
    }
    if (pairs >= 2) sink.add("dataset.rows.index_fits_sorted", fits, table.line);
  }
  const double fps = std::round(median(rates));
  if (time && fps > 0)
    for (const Table::Row& row : table.rows) time_errors += std::abs(row.values[*time] * fps - row.values[*frame]) > 0.1 ? 1 : 0;
  sink.number("dataset.rows.count", static_cast<double>(table.rows.size()), table.line);
  if (index) {
    sink.number("dataset.rows.index_jumps", index_jumps, table.line);
    sink.number("dataset.rows.index_descents", index_descents, table.line);
    sink.number("dataset.rows.index_restarts", restarts, table.line);
    sink.number("dataset.rows.duplicate_index", duplicates, table.line);
  }
  sink.number("dataset.rows.frame_jumps", frame_jumps, table.line);
  if (time && fps > 0) sink.number("dataset.rows.time_errors", time_errors, table.line);
}

void read_segments(const Table& table, FactSink& sink) {
  const auto length = table.column_ending("length");
  const auto from = table.column_ending("from_timestamp"), to = table.column_ending("to_timestamp");
  const auto row_from = table.column("dataset_from_index"), row_to = table.column("dataset_to_index");
  const auto episode = table.column("episode_index"), file = table.column_ending("file_index");
  if (!length || (!from && !row_from)) return;
  sink.number("dataset.segments.rows", static_cast<double>(table.rows.size()), table.line);
  if (from && to) {
    std::vector<double> rates;
    for (const Table::Row& row : table.rows)
      if (row.values[*to] > row.values[*from]) rates.push_back(row.values[*length] / (row.values[*to] - row.values[*from]));
    const double fps = std::round(median(rates));
    if (fps > 0) {
      double off_grid = 0, length_errors = 0, overlaps = 0, holes = 0;
      const Table::Row* previous = nullptr;
      for (const Table::Row& row : table.rows) {
        const double start = row.values[*from] * fps;
        off_grid = std::max(off_grid, std::abs(start - std::round(start)));
        if (std::abs((row.values[*to] - row.values[*from]) * fps - row.values[*length]) > 0.5) ++length_errors;
        const bool follows = previous != nullptr && (!episode || row.values[*episode] == previous->values[*episode] + 1) &&
                             (!file || row.values[*file] == previous->values[*file]);
        if (follows) {
          const double step = (row.values[*from] - previous->values[*to]) * fps;
          if (step < -0.5) ++overlaps;
          if (step > 0.5) ++holes;
        }
        previous = &row;
      }
      sink.number("dataset.segments.off_grid_frames", off_grid, table.line);
      sink.number("dataset.segments.length_errors", length_errors, table.line);
      sink.number("dataset.segments.overlaps", overlaps, table.line);
      sink.number("dataset.segments.holes", holes, table.line);
      sink.number("dataset.segments.fps", fps, table.line);
    }
  }
  if (row_from && row_to) {
    double errors = 0;
    const Table::Row* previous = nullptr;
    for (const Table::Row& row : table.rows) {
      if (row.values[*row_to] - row.values[*row_from] != row.values[*length]) ++errors;
      const bool follows = previous != nullptr && (!episode || row.values[*episode] == previous->values[*episode] + 1);
      if (follows && row.values[*row_from] != previous->values[*row_to]) ++errors;
      previous = &row;
    }
    sink.number("dataset.segments.row_errors", errors, table.line);
  }
}

/// A table of statistics with one dimension a line: columns min and max, or q01 and q99.
void read_ranges(const Table& table, FactSink& sink) {
  auto low = table.column("q01"), high = table.column("q99");
  if (!low || !high) {
    low = table.column("min");
    high = table.column("max");
  }
  if (!low || !high || table.rows.size() < 2) return;
  double zero = 0, largest = 0;
  for (const Table::Row& row : table.rows) {
    zero += row.values[*low] == row.values[*high] ? 1 : 0;
    for (double x : {row.values[*low], row.values[*high]})
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  sink.number("dataset.table.zero_range", zero, table.line);
  sink.number("dataset.table.max_abs", largest, table.line);
}

}  // namespace

void extract_rows(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (text.find("frame_index") != std::string_view::npos)
    for (const Table& table : number_tables(text, "frame_index")) read_rows(table, sink);
  if (text.find("_timestamp") != std::string_view::npos || text.find("dataset_from_index") != std::string_view::npos)
    for (const Table& table : number_tables(text, "length")) read_segments(table, sink);
  for (std::string_view mark : {"q99", "max"})
    for (const Table& table : number_tables(text, mark)) read_ranges(table, sink);
}

}  // namespace ff::diagnosis
