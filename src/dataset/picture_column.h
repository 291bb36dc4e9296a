#pragma once

#include <string>

#include "dataset/dataset.h"
#include "dataset/picture_statistics.h"

namespace ff::dataset {

/// The pictures of an image column (stored inside Parquet) in the rows [first_row, first_row + rows): those that LeRobot looks at
/// (numpy.linspace over the rows, rounded to even), at most `most`, of large pictures every k-th row and column as it does.
/// Errors: a file cannot be read, a row holds no PNG or a damaged one.
Result<PictureHistogram> column_pictures(const Dataset& dataset, const Parquet& parquet, const std::string& feature, std::int64_t first_row,
                                         std::int64_t rows, std::int64_t most);

}  // namespace ff::dataset
