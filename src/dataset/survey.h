#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/rows.h"

namespace ff::dataset {

/// A dataset with everything that was found wrong in it.
struct Survey {
  Dataset dataset;
  RowSurvey rows;
  std::vector<Finding> findings;  ///< of all checks, in the order in which they were made
};

/// Opens, reads every row once, judges. The error is that of opening, or of the missing Parquet library.
Result<std::shared_ptr<const Survey>> survey(const std::string& path);

}  // namespace ff::dataset
