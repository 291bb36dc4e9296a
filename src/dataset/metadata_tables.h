#pragma once

#include <string>
#include <vector>

#include "dataset/arrow_table.h"
#include "dataset/parquet.h"
#include "dataset/statistics.h"

namespace ff::dataset {

/// Format v3.0, meta/episodes: the columns stats/<feature>/<statistic>, one row an episode.
void add_statistics(ArrowTable& table, const std::vector<FeatureStatistics>& statistics);

/// Format v3.0, meta/tasks.parquet: the pandas frame that lerobot reads; the texts are its index.
Result<void> write_tasks(const std::string& path, const std::vector<std::string>& tasks, const Parquet& parquet);

}  // namespace ff::dataset
