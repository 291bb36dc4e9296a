#include "dataset/row_part.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "dataset/row_sums.h"
#include "dataset/statistics.h"

namespace ff::dataset {
namespace {

constexpr std::size_t histogram_bins = 4096;
/// Small enough that a batch stays near the cache and its memory is used again.
constexpr std::int64_t batch_rows = 4096;
constexpr std::int64_t max_width = 100'000;
constexpr std::int64_t least_rows_for_motion = 8;

/// Looks for a step of one dimension that stands out: larger than a third of the range in these rows and four times any other
/// step, in a signal that is no switch (a gripper that is told "open" or "closed" rests exactly and jumps in between).
template <class T>
void find_jump(const T* values, std::int64_t rows, std::int64_t width, std::int64_t d, std::int64_t first_row, FeatureSurvey& f) {
  const auto v = [&](std::int64_t r) { return static_cast<double>(values[r * width + d]); };
  std::int64_t at = 1, resting = 0;
  double largest = 0;
  for (std::int64_t r = 1; r < rows; ++r) {
    const double step = std::abs(v(r) - v(r - 1));
    if (step > largest) {
      largest = step;
      at = r;
    }
    resting += step == 0 ? 1 : 0;
  }
  if (resting > rows / 2) return;
  // Of a spike's two steps the one back may be the larger.
  if (at >= 2 && std::abs(v(at) - v(at - 2)) < 0.25 * largest) {
    --at;
    largest = std::abs(v(at) - v(at - 1));
  }
  const bool spike = at + 1 < rows && std::abs(v(at + 1) - v(at - 1)) < 0.25 * largest;
  double other = 0;
  for (std::int64_t r = 1; r < rows; ++r)
    if (r != at && !(spike && r == at + 1)) other = std::max(other, std::abs(v(r) - v(r - 1)));
  if (largest > 4 * other && f.jumps.size() < most_jumps) f.jumps.push_back({first_row + at, d, v(at - 1), v(at), spike});
}

/// Stretches in which nothing changes, and steps that may be jumps.
template <class T>
void follow(const T* values, std::int64_t rows, std::int64_t width, std::int64_t first_row, const Sums& s, FeatureSurvey& f) {
  const auto w = static_cast<std::size_t>(width);
  Still longest{first_row, 1, true};
  std::int64_t start = 0;
  for (std::int64_t r = 1; r <= rows; ++r) {
    // Bits, not values: NaN stands still too.
    if (r < rows && std::memcmp(values + r * width, values + (r - 1) * width, sizeof(T)) == 0 &&
        std::memcmp(values + r * width, values + (r - 1) * width, w * sizeof(T)) == 0)
      continue;
    if (r - start > longest.rows) longest = {first_row + start, r - start, start == 0 || r == rows};
    start = r;
  }
  if (f.stills.back().rows < longest.rows) f.stills.back() = longest;
  if (rows < least_rows_for_motion) return;
  for (std::size_t d = 0; d < w; ++d)
    if (s.step[d] > (s.high[d] - s.low[d]) / 3 && s.count[d] == rows && s.high[d] > s.low[d])
      find_jump(values, rows, width, static_cast<std::int64_t>(d), first_row, f);
}

template <class T>
void fill_histogram(const T* values, std::int64_t rows, std::int64_t width, FeatureSurvey& f) {
  for (std::int64_t d = 0; d < width; ++d) {
    const auto k = static_cast<std::size_t>(d);
    const double low = f.histogram_low[k];
    const double range = f.histogram_high[k] - low;
    if (!(range > 0)) continue;
    const double scale = static_cast<double>(histogram_bins) / range;
    auto& bins = f.histogram[k];
    const T* p = values + d;
    for (std::int64_t r = 0; r < rows; ++r, p += width) {
      const double position = (static_cast<double>(*p) - low) * scale;
      // NaN fails both comparisons and lands in the first bin; the finite check reports it.
      const std::size_t bin = position >= static_cast<double>(histogram_bins) ? histogram_bins - 1
                              : position > 0                                  ? static_cast<std::size_t>(position)
                                                                              : 0;
      ++bins[bin];
    }
  }
}

template <class T>
void narrow(const ColumnView& column, std::vector<T>& out) {
  const std::size_t start = out.size();
  out.resize(start + static_cast<std::size_t>(column.rows));
  T* to = out.data() + start;
  if (column.type == ElementType::i64) {
    const auto* from = column.data<std::int64_t>();
    for (std::int64_t i = 0; i < column.rows; ++i)
      to[i] = from[i] >= std::numeric_limits<T>::min() && from[i] <= std::numeric_limits<T>::max() ? static_cast<T>(from[i]) : static_cast<T>(-1);
    return;
  }
  for (std::int64_t i = 0; i < column.rows; ++i) {
    const std::int64_t v = column.integer(i);
    to[i] = v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max() ? static_cast<T>(v) : static_cast<T>(-1);
  }
}

/// A scalar, or a list of one value, as some exporters write (shape [1]).
bool one_number(const ColumnView* c) {
  return c != nullptr && c->type != ElementType::text && c->type != ElementType::other && (!c->is_list || c->width == 1);
}

class Surveyor {
 public:
  Surveyor(const Dataset& dataset, RowSurvey& survey) : survey_(survey) {
    for (const auto& feature : dataset.features) {
      if (!feature.is_numeric() || feature.width() <= 0) continue;
      FeatureSurvey f;
      f.name = feature.name;
      f.width = feature.width();
      if (f.width <= max_width) f.all.resize(static_cast<std::size_t>(f.width));  // of wider ones the length of the rows is compared, no more
      const Value& stats = dataset.stats[feature.name];
      const auto low = stated_numbers(stats["min"]);
      const auto high = stated_numbers(stats["max"]);
      if (stats.find("q01") != nullptr && low.size() == f.all.size() && high.size() == f.all.size()) {
        f.histogram_low = low;
        f.histogram_high = high;
        f.histogram.assign(f.all.size(), std::vector<std::uint32_t>(histogram_bins));
      }
      survey.features.push_back(std::move(f));
    }
    pending_.resize(survey.features.size());
  }

  [[nodiscard]] std::vector<std::string> columns() const {
    std::vector<std::string> out{"index", "episode_index", "frame_index", "timestamp", "task_index"};
    for (const auto& f : survey_.features)
      if (std::ranges::find(out, f.name) == out.end()) out.push_back(f.name);
    return out;
  }

  void batch(const Parquet::Scan& scan) {
    const std::int64_t n = scan.rows();
    const std::int64_t first = survey_.rows;
    integers(scan.column("episode_index"), survey_.episode, survey_.has_episode, n);
    integers(scan.column("frame_index"), survey_.frame, survey_.has_frame, n);
    integers(scan.column("task_index"), survey_.task, survey_.has_task, n);
    integers(scan.column("index"), survey_.index, survey_.has_index, n);
    times(scan.column("timestamp"), n);
    // A run that the batch before left open and that does not go on here is over.
    if (n > 0 && !survey_.runs.empty() && survey_.runs.back().episode != survey_.episode[static_cast<std::size_t>(first)]) end();
    for (std::int64_t r = first; r < first + n;) {
      const std::int32_t e = survey_.episode[static_cast<std::size_t>(r)];
      std::int64_t end = r + 1;
      while (end < first + n && survey_.episode[static_cast<std::size_t>(end)] == e) ++end;
      const bool continues =
          !survey_.runs.empty() && survey_.runs.back().episode == e && survey_.runs.back().first_row + survey_.runs.back().rows == r && r == first;
      if (continues)
        survey_.runs.back().rows += end - r;
      else
        survey_.runs.push_back({e, r, end - r});
      const Piece piece{r - first, end - r, r, continues, end == first + n};
      for (std::size_t i = 0; i < survey_.features.size(); ++i) values(scan.column(survey_.features[i].name), i, piece);
      r = end;
    }
    relate(scan.column("action"), scan.column("observation.state"), first);
    survey_.rows += n;
  }

  /// Nothing of the last run comes any more.
  void end() {
    for (std::size_t i = 0; i < pending_.size(); ++i) finish(i);
  }

 private:
  /// Rows of one run within a batch.
  struct Piece {
    std::int64_t offset = 0, rows = 0, first_row = 0;
    bool continues = false;  ///< it began in the batch before
    bool open = false;       ///< it may go on in the next
  };
  /// What a batch's border has cut off of a signal: how a robot moves is judged over whole runs.
  struct Pending {
    std::vector<double> values;
    std::int64_t rows = 0, width = 0, first_row = 0;
  };
  static constexpr std::int64_t most_pending_rows = 1 << 18;

  template <class T>
  void move(std::size_t i, const T* values, const Piece& piece, std::int64_t width) {
    if (!piece.continues && !piece.open) return follow(values, piece.rows, width, piece.first_row, sums_, survey_.features[i]);
    Pending& p = pending_[i];
    if (p.rows == 0) p = {std::move(p.values), 0, width, piece.first_row};
    p.values.insert(p.values.end(), values, values + piece.rows * width);
    p.rows += piece.rows;
    if (!piece.open || p.rows >= most_pending_rows) finish(i);
  }

  void finish(std::size_t i) {
    Pending& p = pending_[i];
    if (p.rows == 0) return;
    FeatureSurvey counted_already;
    accumulate(p.values.data(), p.rows, p.width, p.first_row, counted_already, sums_);
    follow(p.values.data(), p.rows, p.width, p.first_row, sums_, survey_.features[i]);
    p.values.clear();
    p.rows = 0;
  }

  template <class T>
  void integers(const ColumnView* c, std::vector<T>& out, bool& has, std::int64_t n) {
    if (one_number(c)) {
      has = true;
      narrow(*c, out);
    } else {
      out.resize(out.size() + static_cast<std::size_t>(n), static_cast<T>(-1));
    }
  }

  void times(const ColumnView* c, std::int64_t n) {
    const std::size_t start = survey_.timestamp.size();
    survey_.timestamp.resize(start + static_cast<std::size_t>(n), std::numeric_limits<double>::quiet_NaN());
    if (!one_number(c)) return;
    survey_.has_timestamp = true;
    double* to = survey_.timestamp.data() + start;
    if (c->type == ElementType::f32) {
      survey_.timestamp_is_float32 = true;
      const auto* from = c->data<float>();
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(from[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = c->real(i);
    }
  }

  void values(const ColumnView* c, std::size_t i, const Piece& piece) {
    FeatureSurvey& f = survey_.features[i];
    const auto offset = piece.offset, rows = piece.rows, first_row = piece.first_row;
    f.episodes.resize(survey_.runs.size());
    auto& own = f.episodes.back();
    if (moves(f.name)) f.stills.resize(survey_.runs.size());
    if (c == nullptr) return;
    if (offset == 0 && c->nulls > 0) {
      if (f.nulls == 0) f.first_null_row = first_row + c->first_null;
      f.nulls += c->nulls;
    }
    const std::int64_t width = c->is_list ? c->width : 1;
    if (c->is_list && c->type == ElementType::other) return;  // arrays of uneven lists are not looked into
    if (width != f.width) {
      if (f.wrong_width_row < 0) {
        f.wrong_width_row = first_row - offset + std::max<std::int64_t>(0, c->ragged_row);
        f.wrong_width = c->ragged_row >= 0 ? c->ragged_width : width;
      }
      return;
    }
    f.type = c->type;
    if (width > max_width) return;
    const std::int64_t skip = offset * width;
    switch (c->type) {
      case ElementType::f32:
        accumulate(c->data<float>() + skip, rows, width, first_row, f, sums_);
        break;
      case ElementType::f64:
        accumulate(c->data<double>() + skip, rows, width, first_row, f, sums_);
        break;
      case ElementType::i64:
        accumulate(c->data<std::int64_t>() + skip, rows, width, first_row, f, sums_);
        break;
      case ElementType::text:
      case ElementType::other:
        return;
      default: {
        converted_.resize(static_cast<std::size_t>(rows * width));
        for (std::int64_t k = 0; k < rows * width; ++k) converted_[static_cast<std::size_t>(k)] = c->real(skip + k);
        accumulate(converted_.data(), rows, width, first_row, f, sums_);
      }
    }
    if (!f.histogram.empty()) {
      if (c->type == ElementType::f32)
        fill_histogram(c->data<float>() + skip, rows, width, f);
      else if (c->type == ElementType::f64)
        fill_histogram(c->data<double>() + skip, rows, width, f);
      else if (c->type == ElementType::i64)
        fill_histogram(c->data<std::int64_t>() + skip, rows, width, f);
    }
    own.resize(static_cast<std::size_t>(f.width));
    for (std::size_t d = 0; d < own.size(); ++d) {
      const Moments m = sums_.moments(d);
      own[d].merge(m);
      f.all[d].merge(m);
    }
    if (!moves(f.name)) return;
    if (c->type == ElementType::f32)
      move(i, c->data<float>() + skip, piece, width);
    else if (c->type == ElementType::f64)
      move(i, c->data<double>() + skip, piece, width);
  }

  RowSurvey& survey_;
  static bool moves(std::string_view name) { return name == "action" || name == "observation.state"; }

  /// Every 97th row or so: enough for a guess, and no cost.
  void relate(const ColumnView* a, const ColumnView* s, std::int64_t first) {
    constexpr std::int64_t stride = 97;
    if (a == nullptr || s == nullptr || !a->is_list || !s->is_list || a->width != s->width || a->width <= 0) return;
    if (a->type == ElementType::text || a->type == ElementType::other || s->type == ElementType::text || s->type == ElementType::other) return;
    const std::int64_t w = a->width;
    ActionRelation& out = survey_.relation;
    out.mean_action.resize(static_cast<std::size_t>(w));
    out.mean_state.resize(static_cast<std::size_t>(w));
    const std::int64_t step = std::min(stride, std::max<std::int64_t>(1, a->rows / 50));
    for (std::int64_t r = 0; r + 1 < a->rows; r += step) {
      const auto row = static_cast<std::size_t>(first + r);
      if (survey_.episode[row] != survey_.episode[row + 1]) continue;
      ++out.rows;
      for (std::int64_t d = 0; d < w; ++d) {
        const double action = a->real(r * w + d), state = s->real(r * w + d), next = s->real((r + 1) * w + d);
        if (!finite(action) || !finite(state) || !finite(next)) continue;
        const auto at = static_cast<std::size_t>(d);
        const auto n = static_cast<double>(out.rows);
        const auto squared = [](double x) { return x * x; };
        out.to_state += squared(action - state);
        out.to_next_state += squared(action - next);
        out.to_step += squared(action - (next - state));
        out.step += squared(next - state);
        // Welford's update around the running mean.
        const double da = action - out.mean_action[at], ds = state - out.mean_state[at];
        out.mean_action[at] += da / n;
        out.mean_state[at] += ds / n;
        out.action += da * (action - out.mean_action[at]);
        out.state += ds * (state - out.mean_state[at]);
      }
    }
  }

  Sums sums_;
  std::vector<double> converted_;
  std::vector<Pending> pending_;  ///< by feature
};

/// Reserves, and asks for huge pages: thousands of first touches cost as much as what is written there.
template <class T>
void reserve_large(std::vector<T>& v, std::size_t n) {
  v.reserve(n);
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t huge = 2U << 20;
  const auto from = (reinterpret_cast<std::uintptr_t>(v.data()) + huge - 1) / huge * huge;
  const auto to = (reinterpret_cast<std::uintptr_t>(v.data()) + n * sizeof(T)) / huge * huge;
  if (to > from) (void)::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

}  // namespace

RowSurvey survey_part(const Dataset& dataset, const Parquet& parquet, const Part& part, std::int64_t expected_rows, bool threads) {
  RowSurvey survey;
  const auto expected = static_cast<std::size_t>(std::clamp<std::int64_t>(expected_rows, 0, 1 << 28));
  for (auto* column : {&survey.episode, &survey.frame, &survey.task}) reserve_large(*column, expected);
  reserve_large(survey.index, expected);
  reserve_large(survey.timestamp, expected);
  Surveyor surveyor(dataset, survey);
  const auto columns = surveyor.columns();
  for (const auto& piece : part.pieces) {
    const std::string& name = piece.file->path;
    const auto refuse = [&](const Error& error) {
      survey.unreadable.push_back(name);
      survey.findings.push_back({"dataset.files-whole", true, "data.truncated", name + ": " + error.what, Value::object(), name, 0, ""});
    };
    auto scan = parquet.scan((std::filesystem::path(dataset.root) / name).string(), columns, batch_rows, threads, piece.groups);
    if (!scan) {
      refuse(scan.error());
      continue;
    }
    while (true) {
      const auto more = scan->next();
      if (!more) {
        refuse(more.error());
        break;
      }
      if (!*more) break;
      surveyor.batch(*scan);
    }
  }
  surveyor.end();
  return survey;
}

}  // namespace ff::dataset
