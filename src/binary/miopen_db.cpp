#include "binary/miopen_db.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <memory>

#include "base/mapped_file.h"
#include "base/text.h"

namespace ff::binary {
namespace {

constexpr std::string_view sqlite_magic("SQLite format 3\0", 16);
/// Instructions of SQLite's machine between two looks, and looks until a query is ended: seconds at most.
constexpr int steps_between_looks = 100'000, looks = 200;

/// A path as the URI of a database that nobody changes meanwhile: no lock, no journal is looked for.
std::string immutable_uri(const std::string& path) {
  std::string out = "file:";
  for (const char c : path) {
    if (std::string_view("%?#").find(c) == std::string_view::npos && static_cast<unsigned char>(c) > ' ')
      out += c;
    else
      out += fmt::format("%{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out + "?mode=ro&immutable=1";
}

/// More than any kernel database of MIOpen holds for one kernel.
constexpr sqlite3_int64 kernel_limit_bytes = sqlite3_int64{1} << 28;

using Database = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

/// Opened for reading alone; `left` counts down the looks that a query has.
Result<Database> open_database(const std::string& path, int& left) {
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(immutable_uri(path).c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw, &sqlite3_close);
  if (opened != SQLITE_OK) return fail("it cannot be opened as an SQLite database", path);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_progress_handler(raw, steps_between_looks, [](void* counter) { return --*static_cast<int*>(counter) <= 0 ? 1 : 0; }, &left);
  return database;
}

Result<MiopenContent> read_sqlite(const std::string& path) {
  int left = looks;
  const auto database = open_database(path, left);
  if (!database) return std::unexpected(database.error());
  sqlite3* const raw = database->get();
  for (const auto& [table, kind] : {std::pair("kern_db", "compiled kernels"), std::pair("perf_db", "tuned parameters")}) {
    sqlite3_stmt* statement = nullptr;
    const std::string query = fmt::format("SELECT count(*) FROM {}", table);
    const int prepared = sqlite3_prepare_v2(raw, query.c_str(), -1, &statement, nullptr);
    const Statement guard(statement, &sqlite3_finalize);
    if (prepared == SQLITE_ERROR) continue;  // no such table
    const int stepped = prepared == SQLITE_OK ? sqlite3_step(statement) : prepared;
    if (stepped != SQLITE_ROW) return fail(fmt::format("its table {} cannot be read: {}", table, sqlite3_errmsg(raw)), path);
    return MiopenContent{kind, static_cast<std::uint64_t>(std::max<sqlite3_int64>(0, sqlite3_column_int64(statement, 0)))};
  }
  return fail("it holds neither MIOpen's table kern_db nor perf_db", path);
}

}  // namespace

Result<MiopenContent> read_miopen_database(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return std::unexpected(file.error());
  const auto bytes = file->bytes();
  if (bytes.starts_with(sqlite_magic)) return read_sqlite(path);
  if (!path.ends_with(".txt")) return fail("it is no SQLite database", path, "an empty or replaced file: install MIOpen's databases again");
  // One entry a line: "key=solver:value;…".
  MiopenContent out{contains(path, ".fdb") || contains(path, ".ufdb") ? "find results" : "tuned parameters", 0};
  for (const auto line : lines(bytes)) {
    if (trim(line).empty()) continue;
    if (!contains(line, "=")) return fail("a line without \"=\": no text database of MIOpen", path);
    ++out.entries;
  }
  return out;
}

std::vector<std::string> visit_miopen_kernels(const std::string& path, const std::function<void(std::string_view, std::string_view)>& visit) {
  std::vector<std::string> problems;
  const auto file = MappedFile::open(path);
  if (!file || !file->bytes().starts_with(sqlite_magic)) return problems;
  int left = looks;
  const auto database = open_database(path, left);
  if (!database) return {database.error().what};
  sqlite3_stmt* raw = nullptr;
  const int prepared = sqlite3_prepare_v2(database->get(), "SELECT kernel_name, kernel_blob, uncompressed_size FROM kern_db", -1, &raw, nullptr);
  const Statement statement(raw, &sqlite3_finalize);
  if (prepared != SQLITE_OK) return problems;  // tuned parameters
  std::string code;
  int status = SQLITE_ROW;
  constexpr std::size_t problem_limit = 20;
  while (problems.size() < problem_limit && (status = sqlite3_step(raw)) == SQLITE_ROW) {
    const auto* name_bytes = reinterpret_cast<const char*>(sqlite3_column_text(raw, 0));
    const std::string_view name = name_bytes != nullptr ? name_bytes : "";
    const std::string_view blob(static_cast<const char*>(sqlite3_column_blob(raw, 1)), static_cast<std::size_t>(sqlite3_column_bytes(raw, 1)));
    const sqlite3_int64 size = sqlite3_column_int64(raw, 2);
    if (size == 0) {
      visit(name, blob);
      continue;
    }
    if (size < 0 || size > kernel_limit_bytes) {
      problems.push_back(fmt::format("{}: it claims {} bytes (limit {})", name, size, kernel_limit_bytes));
      continue;
    }
    code.resize(static_cast<std::size_t>(size));
    auto written = static_cast<unsigned>(size);
    const int done = BZ2_bzBuffToBuffDecompress(code.data(), &written, const_cast<char*>(blob.data()), static_cast<unsigned>(blob.size()), 0, 0);
    if (done != BZ_OK || written != static_cast<unsigned>(size))
      problems.push_back(fmt::format("{}: its bzip2 data is damaged, or holds other than {} bytes", name, size));
    else
      visit(name, code);
  }
  if (status != SQLITE_DONE && status != SQLITE_ROW)
    problems.push_back(fmt::format("its table kern_db cannot be read to its end: {}", sqlite3_errmsg(database->get())));
  return problems;
}

}  // namespace ff::binary
