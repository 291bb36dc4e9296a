#include "dataset/metadata_tables.h"

#include <fmt/format.h>

namespace ff::dataset {

void add_statistics(ArrowTable& table, const std::vector<FeatureStatistics>& statistics) {
  for (const auto& f : statistics) {
    for (const std::string_view name : {"min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"}) {
      std::vector<std::vector<double>> values;
      for (const auto& e : f.episodes) values.push_back(statistic(e, name));
      if (f.integer && (name == "min" || name == "max")) {
        std::vector<std::vector<std::int64_t>> whole;
        for (const auto& v : values) whole.emplace_back(v.begin(), v.end());
        table.integer_lists(fmt::format("stats/{}/{}", f.name, name), whole);
      } else {
        table.real_lists(fmt::format("stats/{}/{}", f.name, name), values);
      }
    }
    std::vector<std::vector<std::int64_t>> counts;
    for (const auto& e : f.episodes) counts.push_back({e.count});
    table.integer_lists(fmt::format("stats/{}/count", f.name), counts);
  }
}

Result<void> write_tasks(const std::string& path, const std::vector<std::string>& tasks, const Parquet& parquet) {
  Rewrite job;
  std::vector<std::int64_t> numbers;
  for (std::size_t t = 0; t < tasks.size(); ++t) numbers.push_back(static_cast<std::int64_t>(t));
  job.rows.assign(tasks.size(), -1);
  job.columns.integers("task_index", numbers);
  job.columns.texts("task", tasks);
  const auto column = [](const char* name, const char* kind, const char* numpy) {
    return Value::object({{"name", name}, {"field_name", name}, {"pandas_type", kind}, {"numpy_type", numpy}, {"metadata", Value()}});
  };
  job.metadata.emplace_back(
      "pandas", to_json(Value::object({{"index_columns", Value::list({"task"})},
                                       {"column_indexes", Value::list()},
                                       {"columns", Value::list({column("task_index", "int64", "int64"), column("task", "unicode", "object")})},
                                       {"pandas_version", "2.2.0"}})));
  return parquet.rewrite(path, job);
}

}  // namespace ff::dataset
