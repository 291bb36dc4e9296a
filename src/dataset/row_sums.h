#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "dataset/rows.h"

namespace ff::dataset {

inline bool finite(double v) { return (std::bit_cast<std::uint64_t>(v) & 0x7ff0000000000000ULL) != 0x7ff0000000000000ULL; }

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

/// Sums of `rows` rows of `width` values each, all of one episode, in one pass by dimension. Values that are not finite are counted
/// in `f` (`first_row` is the physical row of the first one) and left out of the sums. For float, double and std::int64_t.
template <class T>
void accumulate(const T* values, std::int64_t rows, std::int64_t width, std::int64_t first_row, FeatureSurvey& f, Sums& s);

}  // namespace ff::dataset
