#include "rollout/perceptual.h"

#include <algorithm>
#include <cmath>

namespace ff::rollout {

std::array<double, 3> lab_of(std::array<double, 3> srgb) {
  for (double& c : srgb) c = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  const auto [r, g, b] = srgb;
  // IEC 61966-2-1's matrix, divided by the white of D65.
  const double x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047, y = 0.2126729 * r + 0.7151522 * g + 0.0721750 * b,
               z = (0.0193339 * r + 0.1191920 * g + 0.9503041 * b) / 1.08883;
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  return {116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))};
}

std::optional<LookDistance> look_distance(const Value& a, const Value& b) {
  LookDistance out;
  std::size_t cells = 0;
  if (a.items().empty() || a.items().size() != b.items().size()) return std::nullopt;
  for (std::size_t row = 0; row < a.items().size(); ++row) {
    const auto &left = a.items()[row].items(), &right = b.items()[row].items();
    if (left.empty() || left.size() != right.size()) return std::nullopt;
    for (std::size_t column = 0; column < left.size(); ++column) {
      std::array<double, 3> p{}, q{};
      if (left[column].items().size() != p.size() || right[column].items().size() != q.size()) return std::nullopt;
      for (std::size_t c = 0; c < p.size(); ++c) {
        p[c] = left[column].items()[c].as_real();
        q[c] = right[column].items()[c].as_real();
      }
      const auto x = lab_of(p), y = lab_of(q);
      const double difference = std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
      out.mean += difference;
      out.largest = std::max(out.largest, difference);
      ++cells;
    }
  }
  out.mean /= static_cast<double>(cells);
  return out;
}

}  // namespace ff::rollout
