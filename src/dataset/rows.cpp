#include "dataset/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <system_error>
#include <thread>

#include "dataset/row_part.h"

// The survey of a dataset is made of the surveys of its parts, one thread each.

namespace ff::dataset {
namespace {

/// Fewer rows than this are not worth another thread.
constexpr std::int64_t least_rows_of_a_part = 32768;
constexpr std::size_t most_parts = 8;

/// The dataset in as many parts as threads are worth while, in row order.
std::vector<Part> parts_of(const Dataset& dataset, bool threads) {
  const auto cores = static_cast<std::int64_t>(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most_parts));
  const std::int64_t wanted = threads ? std::clamp<std::int64_t>(dataset.rows / least_rows_of_a_part, 1, cores) : 1;
  std::vector<Part> out(1);
  std::int64_t done = 0;
  for (const auto& file : dataset.files) {
    if (!file.info) continue;
    const auto& groups = file.info->row_groups;
    bool begun = false;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto parts = static_cast<std::int64_t>(out.size());
      // Full when what is done has reached its share.
      if (parts < wanted && out.back().rows > 0 && done * wanted >= dataset.rows * parts) {
        out.emplace_back();
        begun = false;
      }
      if (!begun) out.back().pieces.push_back({&file, {static_cast<std::int64_t>(g), 0}});
      begun = true;
      ++out.back().pieces.back().groups.count;
      out.back().rows += groups[g];
      done += groups[g];
    }
    if (groups.empty()) out.back().pieces.push_back({&file, {}});
  }
  return out;
}

/// Adds the survey of the part behind `to`'s last row. A run that the border cuts becomes one again.
void append(RowSurvey& to, RowSurvey&& from) {
  const std::int64_t base = to.rows;
  const bool joined = !to.runs.empty() && !from.runs.empty() && to.runs.back().episode == from.runs.front().episode;
  const auto later = [&](auto& list, auto&& more) {
    list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  for (auto& run : from.runs) run.first_row += base;
  if (joined) {
    to.runs.back().rows += from.runs.front().rows;
    from.runs.erase(from.runs.begin());
  }
  later(to.runs, from.runs);
  later(to.episode, from.episode);
  later(to.frame, from.frame);
  later(to.task, from.task);
  later(to.index, from.index);
  later(to.timestamp, from.timestamp);
  to.has_index |= from.has_index;
  to.has_episode |= from.has_episode;
  to.has_frame |= from.has_frame;
  to.has_timestamp |= from.has_timestamp;
  to.has_task |= from.has_task;
  to.timestamp_is_float32 |= from.timestamp_is_float32;
  for (std::size_t i = 0; i < to.features.size(); ++i) {
    FeatureSurvey &f = to.features[i], &more = from.features[i];
    if (more.type != ElementType::other) f.type = more.type;
    for (std::size_t d = 0; d < f.all.size(); ++d) f.all[d].merge(more.all[d]);
    if (joined && !f.episodes.empty() && !more.episodes.empty()) {
      auto& own = f.episodes.back();
      own.resize(std::max(own.size(), more.episodes.front().size()));
      for (std::size_t d = 0; d < more.episodes.front().size(); ++d) own[d].merge(more.episodes.front()[d]);
      more.episodes.erase(more.episodes.begin());
    }
    later(f.episodes, more.episodes);
    for (auto& still : more.stills) still.first_row += base;
    if (joined && !f.stills.empty() && !more.stills.empty()) {
      if (f.stills.back().rows < more.stills.front().rows) f.stills.back() = more.stills.front();
      more.stills.erase(more.stills.begin());
    }
    later(f.stills, more.stills);
    for (auto& jump : more.jumps) jump.row += base;
    later(f.jumps, more.jumps);
    if (f.jumps.size() > most_jumps) f.jumps.resize(most_jumps);
    if (f.nonfinite == 0 && more.nonfinite > 0) {
      f.first_nonfinite_row = more.first_nonfinite_row + base;
      f.first_nonfinite_dimension = more.first_nonfinite_dimension;
    }
    f.nonfinite += more.nonfinite;
    if (f.nulls == 0 && more.nulls > 0) f.first_null_row = more.first_null_row + base;
    f.nulls += more.nulls;
    if (f.wrong_width_row < 0 && more.wrong_width_row >= 0) {
      f.wrong_width_row = more.wrong_width_row + base;
      f.wrong_width = more.wrong_width;
    }
    for (std::size_t d = 0; d < f.histogram.size(); ++d)
      for (std::size_t b = 0; b < f.histogram[d].size(); ++b) f.histogram[d][b] += more.histogram[d][b];
  }
  to.relation.merge(from.relation);
  // A damaged file that two parts share is said once.
  if (!from.unreadable.empty() && std::ranges::find(to.unreadable, from.unreadable.front()) != to.unreadable.end()) {
    from.unreadable.erase(from.unreadable.begin());
    from.findings.erase(from.findings.begin());
  }
  later(to.unreadable, from.unreadable);
  later(to.findings, from.findings);
  to.rows += from.rows;
}

}  // namespace

double Moments::std() const { return count > 0 ? std::sqrt(m2 / static_cast<double>(count)) : 0; }

void Moments::merge(const Moments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(count);
  const auto b = static_cast<double>(other.count);
  const double delta = other.mean - mean;
  mean += delta * b / (a + b);
  m2 += other.m2 + delta * delta * a * b / (a + b);
  count += other.count;
  at_min = other.min < min ? other.at_min : other.min > min ? at_min : at_min + other.at_min;
  at_max = other.max > max ? other.at_max : other.max < max ? at_max : at_max + other.at_max;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

void ActionRelation::merge(const ActionRelation& other) {
  if (other.rows == 0) return;
  if (rows == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(rows), b = static_cast<double>(other.rows);
  const auto join = [&](std::vector<double>& mean, const std::vector<double>& more, double& squares) {
    for (std::size_t d = 0; d < mean.size() && d < more.size(); ++d) {
      const double delta = more[d] - mean[d];
      squares += delta * delta * a * b / (a + b);
      mean[d] += delta * b / (a + b);
    }
  };
  action += other.action;
  state += other.state;
  join(mean_action, other.mean_action, action);
  join(mean_state, other.mean_state, state);
  to_state += other.to_state;
  to_next_state += other.to_next_state;
  to_step += other.to_step;
  step += other.step;
  rows += other.rows;
}

RowSurvey survey_rows(const Dataset& dataset, const Parquet& parquet, bool threads) {
  const auto parts = parts_of(dataset, threads);
  if (parts.size() == 1) return survey_part(dataset, parquet, parts.front(), dataset.rows, threads && dataset.rows > least_rows_of_a_part);
  std::vector<RowSurvey> found(parts.size());
  const auto work = [&](std::size_t i) { found[i] = survey_part(dataset, parquet, parts[i], i == 0 ? dataset.rows : parts[i].rows, false); };
  {
    std::vector<std::jthread> others;
    std::vector<std::size_t> left;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      try {
        others.emplace_back(work, i);
      } catch (const std::system_error&) {  // no thread to be had
        left.push_back(i);
      }
    }
    work(0);
    for (const auto i : left) work(i);
  }
  for (std::size_t i = 1; i < parts.size(); ++i) append(found.front(), std::move(found[i]));
  return std::move(found.front());
}

std::string row_place(const Dataset& dataset, std::int64_t row) {
  const DataFile* best = nullptr;
  for (const auto& file : dataset.files)
    if (file.info && file.first_row <= row && row < file.first_row + file.info->rows) best = &file;
  return best != nullptr ? fmt::format("{} row {}", best->path, row - best->first_row) : fmt::format("row {}", row);
}

}  // namespace ff::dataset
