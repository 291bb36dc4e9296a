#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ff::binary {

/// What a MIOpen database holds.
struct MiopenContent {
  std::string kind;  ///< "compiled kernels", "tuned parameters", "find results"
  std::uint64_t entries = 0;
};

/// Counts the entries of a kernel database (.kdb, SQLite, table kern_db), a performance database (.db, SQLite, table perf_db;
/// .db.txt, one a line) or a find database (.fdb.txt, one a line). Read-only, without locks; a query is ended after a bounded
/// number of steps. Source of the tables: MIOpen src/include/miopen/kern_db.hpp, sqlite_db.hpp, readonlyramdb.hpp.
/// Errors: no such table, damaged, not readable.
Result<MiopenContent> read_miopen_database(const std::string& path);

/// Calls `visit(name, code)` for each compiled kernel of a kernel database (.kdb, .ukdb): the blobs of kern_db, unpacked (bzip2; an
/// uncompressed_size of 0 says stored). Returns damage in words; nothing for other files. One kernel is in memory at a time.
std::vector<std::string> visit_miopen_kernels(const std::string& path, const std::function<void(std::string_view, std::string_view)>& visit);

}  // namespace ff::binary
