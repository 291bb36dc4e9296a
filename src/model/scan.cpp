#include "model/scan.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>

// Minimum and maximum of floating-point values are found on their bits: seen as integers of the same width, with the lower
// bits of negative ones flipped, they sort as the values do, with -Inf and NaNs at the ends. So one pass of integer minimum and maximum,
// which compilers vectorise, tells whether a block holds a non-finite value at all; only such blocks are looked at again.

namespace ff::model {
namespace {

constexpr std::size_t block_elements = 8192;
constexpr std::size_t cache_line = 64;
constexpr std::size_t prefetch_bytes = 2048;
constexpr std::uint64_t piece_bytes = 16ULL << 20;

template <class Int>
struct Extremes {
  using Unsigned = std::make_unsigned_t<Int>;
  Int low = std::numeric_limits<Int>::max(), high = std::numeric_limits<Int>::min();
  /// The smallest magnitude of bits less one, so that 0 counts as the largest: below the smallest normal value's, something is subnormal.
  Unsigned least = std::numeric_limits<Unsigned>::max();
};

template <class Int>
[[gnu::always_inline]] inline Int sortable(Int bits) {
  return static_cast<Int>(bits ^ static_cast<Int>(static_cast<Int>(bits >> (sizeof(Int) * 8 - 1)) & std::numeric_limits<Int>::max()));
}

template <class Int>
[[gnu::always_inline]] inline std::make_unsigned_t<Int> magnitude_less_one(Int bits) {
  using Unsigned = std::make_unsigned_t<Int>;
  return static_cast<Unsigned>(static_cast<Unsigned>(bits & std::numeric_limits<Int>::max()) - Unsigned{1});
}

template <class T, int Bytes>
struct Vector {
  typedef T type __attribute__((vector_size(Bytes)));  // NOLINT(modernize-use-using): GCC drops the attribute from an alias
};

/// One pass in registers of `Bytes` (GCC's and clang's vector types), so that no compiler widens 16-bit elements on the way.
template <class Int, int Bytes>
[[gnu::always_inline]] inline Extremes<Int> extremes_body(const char* data, std::size_t count) {
  using Unsigned = std::make_unsigned_t<Int>;
  using Signed = typename Vector<Int, Bytes>::type;
  using Magnitude = typename Vector<Unsigned, Bytes>::type;
  constexpr std::size_t lanes = static_cast<std::size_t>(Bytes) / sizeof(Int);
  constexpr Int all_but_sign = std::numeric_limits<Int>::max();
  Extremes<Int> out;
  Signed low = Signed{} + out.low, high = Signed{} + out.high;
  Magnitude least = Magnitude{} + out.least;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    // Hardware prefetching stops at every page's end.
    __builtin_prefetch(data + i * sizeof(Int) + prefetch_bytes, 0, 3);
    Signed bits;
    std::memcpy(&bits, data + i * sizeof(Int), sizeof bits);
    const Signed key = bits ^ ((bits >> (sizeof(Int) * 8 - 1)) & all_but_sign);
    low = key < low ? key : low;
    high = key > high ? key : high;
    const Magnitude below = reinterpret_cast<Magnitude>(bits & all_but_sign) - Unsigned{1};
    least = below < least ? below : least;
  }
  for (std::size_t k = 0; k < lanes; ++k) {
    out.low = std::min<Int>(out.low, low[k]);
    out.high = std::max<Int>(out.high, high[k]);
    out.least = std::min<Unsigned>(out.least, least[k]);
  }
  for (; i < count; ++i) {
    Int bits;
    std::memcpy(&bits, data + i * sizeof(Int), sizeof bits);
    out.low = std::min(out.low, sortable(bits));
    out.high = std::max(out.high, sortable(bits));
    out.least = std::min(out.least, magnitude_less_one(bits));
  }
  return out;
}

#if defined(__x86_64__)
template <class Int>
[[gnu::target("avx2")]] Extremes<Int> extremes_avx2(const char* data, std::size_t count) {
  return extremes_body<Int, 32>(data, count);
}
template <class Int>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] Extremes<Int> extremes_avx512(const char* data, std::size_t count) {
  return extremes_body<Int, 64>(data, count);
}
#endif
template <class Int>
using ExtremesFunction = Extremes<Int> (*)(const char*, std::size_t);

template <class Int>
ExtremesFunction<Int> best_extremes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0)
    return &extremes_avx512<Int>;
  if (__builtin_cpu_supports("avx2") != 0) return &extremes_avx2<Int>;
#endif
  return [](const char* data, std::size_t count) { return extremes_body<Int, 16>(data, count); };
}

template <class Int>
std::uint64_t count_subnormal(const char* data, std::size_t count, Int smallest_normal) {
  const auto limit = static_cast<std::make_unsigned_t<Int>>(smallest_normal - 1);
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Int bits;
    std::memcpy(&bits, data + i * sizeof(Int), sizeof bits);
    out += magnitude_less_one(bits) < limit ? 1 : 0;
  }
  return out;
}

/// How a wide type's bits are laid out.
template <Dtype>
struct Layout;
template <>
struct Layout<Dtype::f64> {
  using Int = std::int64_t;
  static double value(Int bits) { return std::bit_cast<double>(bits); }
  static constexpr Int infinity = 0x7ff0000000000000, smallest_normal = 0x0010000000000000;
};
template <>
struct Layout<Dtype::f32> {
  using Int = std::int32_t;
  static double value(Int bits) { return static_cast<double>(std::bit_cast<float>(bits)); }
  static constexpr Int infinity = 0x7f800000, smallest_normal = 0x00800000;
};
template <>
struct Layout<Dtype::bf16> {
  using Int = std::int16_t;
  static double value(Int bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::uint16_t>(bits)) << 16));
  }
  static constexpr Int infinity = 0x7f80, smallest_normal = 0x0080;
};
template <>
struct Layout<Dtype::f16> {
  using Int = std::int16_t;
  static double value(Int bits) {
    const auto u = static_cast<std::uint16_t>(bits);
    const int exponent = u >> 10 & 31, mantissa = u & 1023;
    const double magnitude = exponent == 31  ? (mantissa == 0 ? HUGE_VAL : std::nan(""))
                             : exponent == 0 ? std::ldexp(mantissa, -24)
                                             : std::ldexp(mantissa + 1024, exponent - 25);
    return (u & 0x8000) != 0 ? -magnitude : magnitude;
  }
  static constexpr Int infinity = 0x7c00, smallest_normal = 0x0400;
};

constexpr double f16_overflow = 65520;  // halfway between the largest FP16 value and the next step: rounds to infinity

void take_value(ValueStats& s, double value, std::uint64_t index) {
  if (std::isfinite(value)) {
    s.min = s.any_finite ? std::min(s.min, value) : value;
    s.max = s.any_finite ? std::max(s.max, value) : value;
    s.any_finite = true;
    if (std::fabs(value) >= f16_overflow) ++s.over_f16;
    return;
  }
  if (s.nonfinite() == 0) s.first_nonfinite = index;
  ++(std::isnan(value) ? s.nan : value > 0 ? s.positive_inf : s.negative_inf);
}

template <Dtype type>
ValueStats scan_wide(std::string_view bytes) {
  using L = Layout<type>;
  using Int = typename L::Int;
  ValueStats s;
  const std::size_t count = bytes.size() / sizeof(Int);
  s.elements = count;
  Extremes<Int> all;
  const auto extremes = best_extremes<Int>();
  // A short first block, so that the others begin at a cache line: headers leave tensors at any multiple of eight, and a load that
  // crosses lines costs two.
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(bytes.data()) % cache_line;
  const std::size_t first = past_line == 0 || past_line % sizeof(Int) != 0 ? block_elements : (cache_line - past_line) / sizeof(Int);
  std::size_t n = 0;
  for (std::size_t at = 0; at < count; at += n) {
    n = std::min(at == 0 ? first : block_elements, count - at);
    const char* data = bytes.data() + at * sizeof(Int);
    const auto e = extremes(data, n);
    if (e.least < static_cast<std::make_unsigned_t<Int>>(L::smallest_normal - 1)) s.subnormal += count_subnormal<Int>(data, n, L::smallest_normal);
    all.low = std::min(all.low, e.low);
    all.high = std::max(all.high, e.high);
    const Int least = sortable(e.low), most = sortable(e.high);  // its own inverse
    const bool finite = e.high < L::infinity && e.low > sortable(static_cast<Int>(L::infinity | std::numeric_limits<Int>::min()));
    if (finite && std::fabs(L::value(least)) < f16_overflow && std::fabs(L::value(most)) < f16_overflow) {
      const double low = L::value(least), high = L::value(most);
      s.min = s.any_finite ? std::min(s.min, low) : low;
      s.max = s.any_finite ? std::max(s.max, high) : high;
      s.any_finite = true;
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) {
      Int bits;
      std::memcpy(&bits, data + i * sizeof(Int), sizeof(Int));
      take_value(s, L::value(bits), at + i);
    }
  }
  s.all_equal = count > 1 && all.low == all.high;
  return s;
}

/// Is the exponent field 0? E8M0 has no such values.
bool fp8_is_subnormal(Dtype dtype, unsigned code) {
  if (dtype == Dtype::f8_e8m0) return false;
  return dtype == Dtype::f8_e4m3 || dtype == Dtype::f8_e4m3fnuz ? (code >> 3 & 15U) == 0 : (code >> 2 & 31U) == 0;
}

/// One count a code answers every question about a type of 256 values.
ValueStats scan_fp8(Dtype dtype, std::string_view bytes) {
  ValueStats s;
  s.elements = bytes.size();
  std::array<std::array<std::uint64_t, 256>, 4> counts{};  // four, so that a run of one value does not wait for itself
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4)
    for (std::size_t k = 0; k < 4; ++k) ++counts[k][static_cast<unsigned char>(bytes[i + k])];
  for (; i < bytes.size(); ++i) ++counts[0][static_cast<unsigned char>(bytes[i])];
  std::size_t distinct = 0;
  for (unsigned code = 0; code < 256; ++code) {
    const std::uint64_t n = counts[0][code] + counts[1][code] + counts[2][code] + counts[3][code];
    if (n == 0) continue;
    ++distinct;
    const double value = fp8_value(dtype, code);
    if (std::isfinite(value)) {
      s.min = s.any_finite ? std::min(s.min, value) : value;
      s.max = s.any_finite ? std::max(s.max, value) : value;
      s.any_finite = true;
      if (value != 0 && fp8_is_subnormal(dtype, code)) s.subnormal += n;
      if (std::fabs(value) >= f16_overflow) s.over_f16 += n;
      continue;
    }
    const auto first = static_cast<std::uint64_t>(bytes.find(static_cast<char>(code)));
    s.first_nonfinite = s.nonfinite() == 0 ? first : std::min(s.first_nonfinite, first);
    (std::isnan(value) ? s.nan : value > 0 ? s.positive_inf : s.negative_inf) += n;
  }
  s.all_equal = bytes.size() > 1 && distinct == 1;
  return s;
}

/// Adds a later piece of the same tensor.
void join(ValueStats& s, const ValueStats& more) {
  if (more.nonfinite() != 0 && s.nonfinite() == 0) s.first_nonfinite = s.elements + more.first_nonfinite;
  s.nan += more.nan;
  s.positive_inf += more.positive_inf;
  s.negative_inf += more.negative_inf;
  s.over_f16 += more.over_f16;
  s.subnormal += more.subnormal;
  const bool first = s.elements == 0;
  // Single values say nothing alone, so equality of pieces is equality of their ranges.
  const bool flat = more.any_finite && more.nonfinite() == 0 && more.min == more.max;
  s.all_equal = first ? more.all_equal : (s.all_equal || s.elements == 1) && flat && s.any_finite && s.min == more.min && s.max == more.max;
  if (more.any_finite) {
    s.min = s.any_finite ? std::min(s.min, more.min) : more.min;
    s.max = s.any_finite ? std::max(s.max, more.max) : more.max;
    s.any_finite = true;
  }
  s.elements += more.elements;
}

/// Has the kernel map a piece at once instead of one page fault at a time; what it cannot do is done by faults.
void populate(std::string_view bytes) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  if (bytes.size() >= (64U << 10)) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
#else
  (void)bytes;
#endif
}

}  // namespace

// Exponent and mantissa widths, bias, and which codes are not finite.
double fp8_value(Dtype dtype, unsigned code) {
  if (dtype == Dtype::f8_e8m0) return code == 255 ? std::nan("") : std::ldexp(1.0, static_cast<int>(code) - 127);
  const bool fnuz = dtype == Dtype::f8_e4m3fnuz || dtype == Dtype::f8_e5m2fnuz;
  const bool e4 = dtype == Dtype::f8_e4m3 || dtype == Dtype::f8_e4m3fnuz;
  const int mantissa_bits = e4 ? 3 : 2;
  const int exponent = static_cast<int>(code >> mantissa_bits & (e4 ? 15U : 31U)), mantissa = static_cast<int>(code & (e4 ? 7U : 3U));
  const bool negative = (code & 0x80) != 0;
  if (fnuz && code == 0x80) return std::nan("");
  if (dtype == Dtype::f8_e4m3 && (code & 0x7f) == 0x7f) return std::nan("");
  if (dtype == Dtype::f8_e5m2 && exponent == 31) return mantissa != 0 ? std::nan("") : negative ? -HUGE_VAL : HUGE_VAL;
  const int bias = dtype == Dtype::f8_e4m3 ? 7 : dtype == Dtype::f8_e5m2 ? 15 : dtype == Dtype::f8_e4m3fnuz ? 8 : 16;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits) : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return negative ? -magnitude : magnitude;
}

double ValueStats::absmax() const { return any_finite ? std::max(std::fabs(min), std::fabs(max)) : 0; }

ValueStats scan_values(Dtype dtype, std::string_view bytes) {
  switch (dtype) {
    case Dtype::f64:
      return scan_wide<Dtype::f64>(bytes);
    case Dtype::c64:
    case Dtype::f32:
      return scan_wide<Dtype::f32>(bytes);
    case Dtype::f16:
      return scan_wide<Dtype::f16>(bytes);
    case Dtype::bf16:
      return scan_wide<Dtype::bf16>(bytes);
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3:
    case Dtype::f8_e8m0:
    case Dtype::f8_e4m3fnuz:
    case Dtype::f8_e5m2fnuz:
      return scan_fp8(dtype, bytes);
    default: {
      ValueStats s;
      s.elements = bytes.size() * 8 / dtype_bits(dtype);
      return s;
    }
  }
}

std::vector<ValueStats> scan_all(const std::vector<ScanTask>& tasks, unsigned threads) {
  struct Piece {
    std::size_t task;
    std::string_view bytes;
  };
  std::vector<Piece> pieces;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (!dtype_can_be_nonfinite(tasks[t].dtype)) continue;
    // A multiple of every element size, so no element is cut.
    for (std::uint64_t at = 0; at < tasks[t].bytes.size(); at += piece_bytes) pieces.push_back({t, tasks[t].bytes.substr(at, piece_bytes)});
  }
  std::vector<ValueStats> found(pieces.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      populate(pieces[i].bytes);
      found[i] = scan_values(tasks[pieces[i].task].dtype, pieces[i].bytes);
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads && i < pieces.size(); ++i) others.emplace_back(work);
    work();
  }
  std::vector<ValueStats> out(tasks.size());
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (!dtype_can_be_nonfinite(tasks[t].dtype)) out[t] = scan_values(tasks[t].dtype, tasks[t].bytes);
  for (std::size_t i = 0; i < pieces.size(); ++i) join(out[pieces[i].task], found[i]);
  return out;
}

}  // namespace ff::model
