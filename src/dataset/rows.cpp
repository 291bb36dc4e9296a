#include "dataset/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

namespace ff::dataset {
namespace {

constexpr std::size_t histogram_bins = 4096;
constexpr std::int64_t max_width = 100'000;

bool finite(float v) { return (std::bit_cast<std::uint32_t>(v) & 0x7f800000U) != 0x7f800000U; }
bool finite(double v) { return (std::bit_cast<std::uint64_t>(v) & 0x7ff0000000000000ULL) != 0x7ff0000000000000ULL; }

/// Sums of one dimension over one stretch of rows, relative to a pivot so that squares do not cancel.
struct Sums {
  double pivot = 0, sum = 0, squares = 0, min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
  [[nodiscard]] Moments moments() const {
    Moments m;
    m.count = count;
    if (count == 0) return m;
    const auto n = static_cast<double>(count);
    m.min = min;
    m.max = max;
    m.mean = pivot + sum / n;
    m.m2 = std::max(0.0, squares - sum * sum / n);
    return m;
  }
};

/// Accumulates a stretch of rows of one episode. The inner loop runs over dimensions, which are contiguous.
template <class T>
void accumulate(const T* values, std::int64_t rows, std::int64_t width, std::int64_t first_row, FeatureSurvey& f, std::vector<Sums>& sums) {
  sums.assign(static_cast<std::size_t>(width), Sums{});
  for (std::int64_t d = 0; d < width; ++d)
    sums[static_cast<std::size_t>(d)].pivot = finite(static_cast<double>(values[d])) ? static_cast<double>(values[d]) : 0.0;
  // A cheap pass first: is everything finite? Then the sums need no branch.
  bool all_finite = true;
  const std::int64_t n = rows * width;
  if constexpr (std::is_floating_point_v<T>)
    for (std::int64_t i = 0; i < n; ++i) all_finite &= finite(values[i]);
  if (all_finite) {
    for (std::int64_t d = 0; d < width; ++d) {
      Sums& s = sums[static_cast<std::size_t>(d)];
      double sum = 0, squares = 0, low = s.pivot, high = s.pivot;
      const T* p = values + d;
      for (std::int64_t r = 0; r < rows; ++r, p += width) {
        const auto v = static_cast<double>(*p);
        const double x = v - s.pivot;
        sum += x;
        squares += x * x;
        low = v < low ? v : low;
        high = v > high ? v : high;
      }
      s.sum = sum;
      s.squares = squares;
      s.min = low;
      s.max = high;
      s.count = rows;
    }
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t d = 0; d < width; ++d) {
      const auto v = static_cast<double>(values[r * width + d]);
      if (!finite(v)) {
        if (f.nonfinite++ == 0) {
          f.first_nonfinite_row = first_row + r;
          f.first_nonfinite_dimension = d;
        }
        continue;
      }
      Sums& s = sums[static_cast<std::size_t>(d)];
      const double x = v - s.pivot;
      s.sum += x;
      s.squares += x * x;
      s.min = std::min(s.min, v);
      s.max = std::max(s.max, v);
      ++s.count;
    }
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
      for (auto& f : survey_.features) values(scan.column(f.name), f, r - first, end - r, r);
      r = end;
    }
    survey_.rows += n;
  }

 private:
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

  void values(const ColumnView* c, FeatureSurvey& f, std::int64_t offset, std::int64_t rows, std::int64_t first_row) {
    f.episodes.resize(survey_.runs.size());
    auto& own = f.episodes.back();
    if (c == nullptr) return;
    if (offset == 0 && c->nulls > 0) {
      if (f.nulls == 0) f.first_null_row = first_row + c->first_null;
      f.nulls += c->nulls;
    }
    const std::int64_t width = c->is_list ? c->width : 1;
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
        for (std::int64_t i = 0; i < rows * width; ++i) converted_[static_cast<std::size_t>(i)] = c->real(skip + i);
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
      const Moments m = sums_[d].moments();
      own[d].merge(m);
      f.all[d].merge(m);
    }
  }

  RowSurvey& survey_;
  std::vector<Sums> sums_;
  std::vector<double> converted_;
};

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
  min = std::min(min, other.min);
  max = std::max(max, other.max);
}

RowSurvey survey_rows(const Dataset& dataset, const Parquet& parquet, bool threads) {
  RowSurvey survey;
  survey.episode.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(dataset.rows, 0, 1 << 28)));
  Surveyor surveyor(dataset, survey);
  const auto columns = surveyor.columns();
  for (const auto& file : dataset.files) {
    if (!file.info) continue;
    const auto refuse = [&](const Error& error) {
      survey.unreadable.push_back(file.path);
      survey.findings.push_back({"dataset.files-whole", true, "data.truncated", file.path + ": " + error.what, Value::object(), file.path, 0, ""});
    };
    auto scan = parquet.scan((std::filesystem::path(dataset.root) / file.path).string(), columns, 65536, threads);
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
  return survey;
}

std::string row_place(const Dataset& dataset, std::int64_t row) {
  const DataFile* best = nullptr;
  for (const auto& file : dataset.files)
    if (file.info && file.first_row <= row && row < file.first_row + file.info->rows) best = &file;
  return best != nullptr ? fmt::format("{} row {}", best->path, row - best->first_row) : fmt::format("row {}", row);
}

}  // namespace ff::dataset
