#include "dataset/rows.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>
#include <thread>

namespace ff::dataset {
namespace {

constexpr std::size_t histogram_bins = 4096;
/// Small enough that a batch stays near the cache and its memory is used again.
constexpr std::int64_t batch_rows = 4096;
/// Fewer rows than this are not worth another thread.
constexpr std::int64_t least_rows_of_a_part = 32768;
constexpr std::size_t most_parts = 8;
constexpr std::int64_t max_width = 100'000;

bool finite(double v) { return (std::bit_cast<std::uint64_t>(v) & 0x7ff0000000000000ULL) != 0x7ff0000000000000ULL; }

/// Sums over one stretch of rows, by dimension, relative to a pivot so that squares do not cancel.
struct Sums {
  std::vector<double> pivot, sum, squares, low, high;
  std::vector<double> step;  ///< largest difference of neighbouring rows
  std::vector<std::int64_t> count, at_low, at_high;
  void reset(std::size_t width) {
    for (auto* v : {&pivot, &sum, &squares, &low, &high, &step}) v->assign(width, 0);
    for (auto* v : {&count, &at_low, &at_high}) v->assign(width, 0);
  }
  [[nodiscard]] Moments moments(std::size_t d) const {
    Moments m;
    m.count = count[d];
    if (m.count == 0) return m;
    const auto n = static_cast<double>(m.count);
    m.min = low[d];
    m.max = high[d];
    m.mean = pivot[d] + sum[d] / n;
    m.m2 = std::max(0.0, squares[d] - sum[d] * sum[d] / n);
    m.at_min = at_low[d];
    m.at_max = at_high[d];
    return m;
  }
};

template <class T, int N>
struct Vector {
  typedef T type __attribute__((vector_size(N * sizeof(T))));  // NOLINT(modernize-use-using): GCC drops the attribute from an alias
};

/// N dimensions at once, in vector registers over all rows (GCC's and clang's vector types).
template <class T, int N>
[[gnu::always_inline]] inline void accumulate_tile(const T* values, std::int64_t rows, std::int64_t width, std::size_t first, Sums& out) {
  using Number = typename Vector<T, N>::type;
  // Sums are doubles, four at a time: GCC takes wider vectors apart through memory.
  constexpr int quarter = 4, parts = N / quarter;
  using Few = typename Vector<T, quarter>::type;
  using Real = typename Vector<double, quarter>::type;
  const auto read = [](const T* from, Real& to) __attribute__((always_inline)) {
    Few few;
    std::memcpy(&few, from, sizeof few);
    to = __builtin_convertvector(few, Real);
  };
  const T* p = values + first;
  Number v;
  std::memcpy(&v, p, sizeof v);
  Number low = v, high = v, before = v, step = v - v;
  Real pivot[parts], sum[parts], squares[parts];
  for (int k = 0; k < parts; ++k) {
    read(p + k * quarter, pivot[k]);
    sum[k] = squares[k] = pivot[k] - pivot[k];
  }
  for (std::int64_t r = 0; r < rows; ++r, p += width) {
    std::memcpy(&v, p, sizeof v);
    for (int k = 0; k < parts; ++k) {
      Real x;
      read(p + k * quarter, x);
      x -= pivot[k];
      sum[k] += x;
      squares[k] += x * x;
    }
    low = v < low ? v : low;
    high = v > high ? v : high;
    const Number up = v - before, down = before - v;
    const Number moved = up > down ? up : down;
    step = moved > step ? moved : step;
    before = v;
  }
  auto at_low = low != low;  // integers of the same size, 0; a comparison that holds is -1
  auto at_high = at_low;
  p = values + first;
  for (std::int64_t r = 0; r < rows; ++r, p += width) {
    std::memcpy(&v, p, sizeof v);
    at_low -= v == low;
    at_high -= v == high;
  }
  for (int i = 0; i < N; ++i) {
    const std::size_t d = first + static_cast<std::size_t>(i);
    out.pivot[d] = pivot[i / quarter][i % quarter];
    out.sum[d] = sum[i / quarter][i % quarter];
    out.squares[d] = squares[i / quarter][i % quarter];
    out.low[d] = static_cast<double>(low[i]);
    out.high[d] = static_cast<double>(high[i]);
    out.step[d] = static_cast<double>(step[i]);
    out.at_low[d] = static_cast<std::int64_t>(at_low[i]);
    out.at_high[d] = static_cast<std::int64_t>(at_high[i]);
    out.count[d] = rows;
  }
}

template <class T>
[[gnu::always_inline]] inline void accumulate_tiles(const T* values, std::int64_t rows, std::int64_t width, Sums& out) {
  constexpr std::size_t tile = 32 / sizeof(T);
  const auto w = static_cast<std::size_t>(width);
  std::size_t d = 0;
  for (; d + tile <= w; d += tile) accumulate_tile<T, static_cast<int>(tile)>(values, rows, width, d, out);
  // The last one overlaps the one before: the same results again.
  if (d < w) accumulate_tile<T, static_cast<int>(tile)>(values, rows, width, w - tile, out);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2,fma")]] void accumulate_tiles_avx2(const T* values, std::int64_t rows, std::int64_t width, Sums& out) {
  accumulate_tiles<T>(values, rows, width, out);
}
#endif
/// Needs at least 32 bytes a row.
template <class T>
void accumulate_wide(const T* values, std::int64_t rows, std::int64_t width, Sums& out) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (avx2) return accumulate_tiles_avx2<T>(values, rows, width, out);
#endif
  accumulate_tiles<T>(values, rows, width, out);
}

/// The same for one dimension.
template <class T>
void accumulate_one(const T* values, std::int64_t rows, std::int64_t width, std::size_t d, Sums& out) {
  const T* p = values + d;
  T low = *p, high = *p, before = *p;
  const auto pivot = static_cast<double>(*p);
  double sum = 0, squares = 0, step = 0;
  std::int64_t at_low = 0, at_high = 0;
  for (std::int64_t r = 0; r < rows; ++r, p += width) {
    const double x = static_cast<double>(*p) - pivot;
    sum += x;
    squares += x * x;
    step = std::max(step, std::abs(static_cast<double>(*p) - static_cast<double>(before)));
    before = *p;
    at_low = *p < low ? 1 : at_low + (*p == low ? 1 : 0);
    at_high = *p > high ? 1 : at_high + (*p == high ? 1 : 0);
    low = std::min(low, *p);
    high = std::max(high, *p);
  }
  out.pivot[d] = pivot;
  out.sum[d] = sum;
  out.squares[d] = squares;
  out.low[d] = static_cast<double>(low);
  out.high[d] = static_cast<double>(high);
  out.step[d] = step;
  out.at_low[d] = at_low;
  out.at_high[d] = at_high;
  out.count[d] = rows;
}

/// Accumulates a stretch of rows of one episode.
template <class T>
void accumulate(const T* values, std::int64_t rows, std::int64_t width, std::int64_t first_row, FeatureSurvey& f, Sums& s) {
  const auto w = static_cast<std::size_t>(width);
  s.reset(w);
  bool wide = false;
  if constexpr (std::is_floating_point_v<T>) wide = w * sizeof(T) >= 32;
  if (wide)
    accumulate_wide<T>(values, rows, width, s);
  else
    for (std::size_t d = 0; d < w; ++d) accumulate_one(values, rows, width, d, s);
  // What is not finite makes the sum of squares so; only then are values looked at one by one.
  if (std::ranges::all_of(s.squares, [](double v) { return finite(v); })) return;
  s.reset(w);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::size_t d = 0; d < w; ++d) {
      const auto v = static_cast<double>(values[r * width + static_cast<std::int64_t>(d)]);
      if (!finite(v)) {
        if (f.nonfinite++ == 0) {
          f.first_nonfinite_row = first_row + r;
          f.first_nonfinite_dimension = static_cast<std::int64_t>(d);
        }
        continue;
      }
      if (s.count[d] == 0) s.low[d] = s.high[d] = s.pivot[d] = v;
      const double x = v - s.pivot[d];
      s.sum[d] += x;
      s.squares[d] += x * x;
      s.low[d] = std::min(s.low[d], v);
      s.high[d] = std::max(s.high[d], v);
      ++s.count[d];
    }
}

constexpr std::size_t most_jumps = 1000;
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

/// A list of numbers in stats.json, flattened; empty when absent.
std::vector<double> numbers(const Value& value) {
  std::vector<double> out;
  if (value.is_number()) out.push_back(value.as_real());
  for (const auto& item : value.items()) {
    const auto inner = numbers(item);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
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
      if (!feature.is_numeric() || feature.width() <= 0 || feature.width() > max_width) continue;
      FeatureSurvey f;
      f.name = feature.name;
      f.width = feature.width();
      f.all.resize(static_cast<std::size_t>(f.width));
      const Value& stats = dataset.stats[feature.name];
      const auto low = numbers(stats["min"]);
      const auto high = numbers(stats["max"]);
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

/// Neighbouring row groups of some files, with about as many rows as every other part of the dataset.
struct Part {
  struct Piece {
    const DataFile* file;
    RowGroups groups;
  };
  std::vector<Piece> pieces;
  std::int64_t rows = 0;
};

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

namespace {

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

/// One pass over one part, in this thread; with `threads` its columns are decoded by others.
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

}  // namespace

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
