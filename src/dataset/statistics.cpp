#include "dataset/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ff::dataset {
namespace {

/// Reads one column of all files into one array of rows*width values.
template <class T>
Result<void> load(const Parquet& parquet, const std::vector<std::string>& files, const Feature& feature, std::vector<T>& out, ElementType& type,
                  bool& usable) {
  for (const auto& path : files) {
    auto scan = parquet.scan(path, {feature.name}, 65536, true);
    if (!scan) return std::unexpected(scan.error());
    while (true) {
      const auto more = scan->next();
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
      const ColumnView* c = scan->column(feature.name);
      if (c == nullptr || c->type == ElementType::text || c->type == ElementType::other || c->width != feature.width() || c->nulls > 0) {
        usable = false;
        return {};
      }
      type = c->type;
      const std::int64_t n = c->rows * c->width;
      if (c->type == ElementType::f32) {
        out.insert(out.end(), c->data<float>(), c->data<float>() + n);
      } else if (c->type == ElementType::f64) {
        out.insert(out.end(), c->data<double>(), c->data<double>() + n);
      } else {
        const std::size_t start = out.size();
        out.resize(start + static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) out[start + static_cast<std::size_t>(i)] = static_cast<T>(c->real(i));
      }
    }
  }
  return {};
}

/// The statistics of one dimension; `values` is reordered.
template <class T>
void describe(std::vector<T>& values, bool quantiles, Distribution& out) {
  const std::size_t n = values.size();
  double sum = 0;
  T low = values[0], high = values[0];
  for (const T v : values) {
    sum += static_cast<double>(v);
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const double mean = sum / static_cast<double>(n);
  double squares = 0, rest = 0;
  for (const T v : values) {
    const double x = static_cast<double>(v) - mean;
    squares += x * x;
    rest += x;
  }
  // The second term corrects the rounding of the mean.
  const double variance = (squares - rest * rest / static_cast<double>(n)) / static_cast<double>(n);
  out.min.push_back(static_cast<double>(low));
  out.max.push_back(static_cast<double>(high));
  out.mean.push_back(mean);
  out.std.push_back(std::sqrt(std::max(0.0, variance)));
  if (!quantiles) return;
  auto from = values.begin();
  for (std::size_t q = 0; q < stored_quantiles.size(); ++q) {
    const double wanted = std::ceil(stored_quantiles[q] * static_cast<double>(n) - 1e-9);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::clamp<double>(wanted - 1, 0, static_cast<double>(n - 1)));
    if (from <= at) {
      std::nth_element(from, at, values.end());
      from = at;
    }
    out.quantiles[q].push_back(static_cast<double>(*at));
  }
}

template <class T>
Result<void> measure(const Parquet& parquet, const std::vector<std::string>& files, const Feature& feature, const std::vector<std::int64_t>& lengths,
                     bool quantiles, std::vector<FeatureStatistics>& out) {
  std::vector<T> rows;
  ElementType type = ElementType::other;
  bool usable = true;
  if (auto loaded = load(parquet, files, feature, rows, type, usable); !loaded) return loaded;
  const auto width = static_cast<std::size_t>(feature.width());
  if (!usable || width == 0 || rows.empty()) return {};
  const std::size_t n = rows.size() / width;
  FeatureStatistics f;
  f.name = feature.name;
  f.boolean = type == ElementType::boolean;
  f.integer = type != ElementType::f32 && type != ElementType::f64 && !f.boolean;
  f.all.count = static_cast<std::int64_t>(n);
  f.episodes.resize(lengths.size());
  std::vector<T> column(n), part;
  for (std::size_t d = 0; d < width; ++d) {
    for (std::size_t r = 0; r < n; ++r) column[r] = rows[r * width + d];
    std::size_t start = 0;
    for (std::size_t e = 0; e < lengths.size(); ++e) {
      const auto length = static_cast<std::size_t>(lengths[e]);
      if (length == 0 || start + length > n) continue;
      part.assign(column.begin() + static_cast<std::ptrdiff_t>(start), column.begin() + static_cast<std::ptrdiff_t>(start + length));
      f.episodes[e].count = lengths[e];
      describe(part, quantiles, f.episodes[e]);
      start += length;
    }
    describe(column, quantiles, f.all);
  }
  out.push_back(std::move(f));
  return {};
}

Value combine(const std::vector<const Value*>& values, auto&& fold) {
  if (values.front()->is_list()) {
    Value out = Value::list();
    for (std::size_t i = 0; i < values.front()->items().size(); ++i) {
      std::vector<const Value*> inner;
      for (const auto* v : values) {
        if (v->items().size() <= i) return {};
        inner.push_back(&v->items()[i]);
      }
      out.push(combine(inner, fold));
    }
    return out;
  }
  std::vector<double> numbers;
  for (const auto* v : values) numbers.push_back(v->as_real());
  return Value(fold(numbers));
}

}  // namespace

std::vector<double> stated_numbers(const Value& value) {
  std::vector<double> out;
  if (value.is_number()) out.push_back(value.as_real());
  if (value.kind() == Value::Kind::boolean) out.push_back(value.as_bool() ? 1 : 0);
  for (const auto& item : value.items()) {
    const auto inner = stated_numbers(item);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

const std::vector<double>& statistic(const Distribution& d, std::string_view name) {
  if (name == "min") return d.min;
  if (name == "max") return d.max;
  if (name == "mean") return d.mean;
  if (name == "std") return d.std;
  for (std::size_t q = 0; q < stored_quantile_names.size(); ++q)
    if (name == stored_quantile_names[q]) return d.quantiles[q];
  static const std::vector<double> none;
  return none;
}

Value statistics_value(const FeatureStatistics& feature, const Distribution& d, bool quantiles) {
  const auto list = [](const std::vector<double>& values) { return Value::list_of(values); };
  const auto exact = [&](const std::vector<double>& values) {
    Value out = Value::list();
    for (const double v : values) out.push(feature.boolean ? Value(v != 0) : feature.integer ? Value(static_cast<long long>(v)) : Value(v));
    return out;
  };
  Value out = Value::object(
      {{"min", exact(d.min)}, {"max", exact(d.max)}, {"mean", list(d.mean)}, {"std", list(d.std)}, {"count", Value::list({Value(d.count)})}});
  if (quantiles)
    for (std::size_t q = 0; q < stored_quantile_names.size(); ++q) out.set(stored_quantile_names[q], list(d.quantiles[q]));
  return out;
}

Result<std::vector<FeatureStatistics>> exact_statistics(const Parquet& parquet, const std::vector<std::string>& files,
                                                        const std::vector<Feature>& features, const std::vector<std::int64_t>& lengths,
                                                        bool quantiles) {
  std::vector<FeatureStatistics> out;
  for (const auto& feature : features) {
    if (!feature.is_numeric() || feature.width() <= 0 || feature.shape.size() > 1) continue;
    // float32 halves the memory; integers up to 2^53 stay exact as double.
    const auto done = feature.dtype == "float32" ? measure<float>(parquet, files, feature, lengths, quantiles, out)
                                                 : measure<double>(parquet, files, feature, lengths, quantiles, out);
    if (!done) return std::unexpected(done.error());
  }
  return out;
}

Value aggregate_entries(const std::vector<std::pair<Value, double>>& entries) {
  Value out = Value::object();
  double total = 0;
  for (const auto& [entry, weight] : entries) total += weight;
  if (entries.empty() || !(total > 0)) return out;
  const auto gather = [&](std::string_view name) {
    std::vector<const Value*> values;
    for (const auto& [entry, weight] : entries)
      if (const auto* v = entry.find(name); v != nullptr) values.push_back(v);
    return values.size() == entries.size() ? values : std::vector<const Value*>();
  };
  const auto weighted = [&](const std::vector<double>& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * entries[i].second;
    return sum / total;
  };
  if (const auto v = gather("min"); !v.empty()) out.set("min", combine(v, [](const std::vector<double>& x) { return *std::ranges::min_element(x); }));
  if (const auto v = gather("max"); !v.empty()) out.set("max", combine(v, [](const std::vector<double>& x) { return *std::ranges::max_element(x); }));
  const auto means = gather("mean");
  if (!means.empty()) out.set("mean", combine(means, weighted));
  if (const auto deviations = gather("std"); !deviations.empty() && !means.empty()) {
    // E[x^2] of each part, then the variance of the whole around the whole's mean.
    std::vector<Value> squares;
    for (std::size_t i = 0; i < entries.size(); ++i)
      squares.push_back(combine({deviations[i], means[i]}, [](const std::vector<double>& x) { return x[0] * x[0] + x[1] * x[1]; }));
    std::vector<const Value*> pointers;
    for (const auto& s : squares) pointers.push_back(&s);
    const Value square = combine(pointers, weighted);
    out.set("std", combine({&square, &out["mean"]}, [](const std::vector<double>& x) { return std::sqrt(std::max(0.0, x[0] - x[1] * x[1])); }));
  }
  if (const auto v = gather("count"); !v.empty())
    out.set("count", combine(v, [](const std::vector<double>& x) {
              double sum = 0;
              for (const double n : x) sum += n;
              return static_cast<long long>(sum);
            }));
  for (const auto name : stored_quantile_names)
    if (const auto v = gather(name); !v.empty()) out.set(name, combine(v, weighted));
  return out;
}

}  // namespace ff::dataset
