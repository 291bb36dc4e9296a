#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/dataset.h"

namespace ff::dataset {

/// The quantiles that lerobot stores from 0.4 on (compute_stats.py, DEFAULT_QUANTILES), and their names.
inline constexpr std::array<double, 5> stored_quantiles{0.01, 0.10, 0.50, 0.90, 0.99};
inline constexpr std::array<std::string_view, 5> stored_quantile_names{"q01", "q10", "q50", "q90", "q99"};

/// Statistics of one feature over one stretch of rows, by dimension. Population standard deviation. A quantile q is the
/// smallest value that at least a share q of the rows does not exceed: what lerobot's histogram approximates.
struct Distribution {
  std::int64_t count = 0;
  std::vector<double> min, max, mean, std;
  std::array<std::vector<double>, 5> quantiles;
};

struct FeatureStatistics {
  std::string name;
  bool integer = false;  ///< min and max are written without a fraction
  bool boolean = false;  ///< min and max are written as true and false
  Distribution all;
  std::vector<Distribution> episodes;
};

/// A statistic as stats.json holds it, flattened: a number, or lists of any depth; truth values are 0 and 1. Empty when absent.
[[nodiscard]] std::vector<double> stated_numbers(const Value& value);

/// The values of one statistic of a distribution: "min", "max", "mean", "std", "q01", …
[[nodiscard]] const std::vector<double>& statistic(const Distribution& distribution, std::string_view name);

/// One entry as stats.json and episodes_stats.jsonl hold it: {"min":[…],"max":[…],"mean":[…],"std":[…],"count":[n],…}.
[[nodiscard]] Value statistics_value(const FeatureStatistics& feature, const Distribution& distribution, bool quantiles);

/// Statistics of every numeric feature with one number or one list of numbers a row, exactly from all rows. `files` are full
/// paths in the loader's order, `lengths` the rows of each episode in the same order. One feature is held in memory at a time.
Result<std::vector<FeatureStatistics>> exact_statistics(const Parquet& parquet, const std::vector<std::string>& files,
                                                        const std::vector<Feature>& features, const std::vector<std::int64_t>& lengths,
                                                        bool quantiles);

/// One entry from several of unlike sources, weighted by rows: for features whose values cannot be recomputed here (images).
/// min, max, mean and std are exact when the parts are; quantiles become the weighted mean, as lerobot up to 0.6.1 makes them.
[[nodiscard]] Value aggregate_entries(const std::vector<std::pair<Value, double>>& entries);

}  // namespace ff::dataset
