#pragma once

#include <cstdint>
#include <vector>

#include "dataset/rows.h"

namespace ff::dataset {

/// Neighbouring row groups of some files, with about as many rows as every other part of the dataset.
struct Part {
  struct Piece {
    const DataFile* file;
    RowGroups groups;
  };
  std::vector<Piece> pieces;
  std::int64_t rows = 0;
};

/// At most so many jumps of a feature are kept.
inline constexpr std::size_t most_jumps = 1000;

/// One pass over one part, in this thread; with `threads` its columns are decoded by others. Rows are numbered from the part's first one;
/// room is made for `expected_rows`.
RowSurvey survey_part(const Dataset& dataset, const Parquet& parquet, const Part& part, std::int64_t expected_rows, bool threads);

}  // namespace ff::dataset
