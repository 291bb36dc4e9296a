#include "dataset/row_sums.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace ff::dataset {
namespace {

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

}  // namespace

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

template void accumulate(const float*, std::int64_t, std::int64_t, std::int64_t, FeatureSurvey&, Sums&);
template void accumulate(const double*, std::int64_t, std::int64_t, std::int64_t, FeatureSurvey&, Sums&);
template void accumulate(const std::int64_t*, std::int64_t, std::int64_t, std::int64_t, FeatureSurvey&, Sums&);

}  // namespace ff::dataset
