#include "binary/miopen_db.h"

#include <bzlib.h>
#include <sqlite3.h>

#include "support.h"

namespace ff::binary {
namespace {

class MiopenDatabase : public WithDirectory {
 protected:
  [[nodiscard]] std::string database(const std::string& name, const std::string& sql) const {
    const std::string path = directory + "/" + name;
    sqlite3* raw = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
    sqlite3_close(raw);
    return path;
  }
};

// The table as MIOpen's kern_db.hpp declares it.
constexpr const char* kernels =
    "CREATE TABLE kern_db (id INTEGER PRIMARY KEY ASC, kernel_name TEXT NOT NULL, kernel_args TEXT NOT NULL, kernel_blob BLOB NOT NULL, "
    "kernel_hash TEXT NOT NULL, uncompressed_size INT NOT NULL);"
    "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) VALUES ('a.o', '-mcpu=gfx90a', x'00', 'h', 1), "
    "('b.o', '-mcpu=gfx90a', x'00', 'h', 1);";

TEST_F(MiopenDatabase, KernelsParametersAndFindResultsAreCounted) {
  const auto kdb = read_miopen_database(database("gfx90a.kdb", kernels));
  ASSERT_TRUE(kdb) << kdb.error().to_string();
  EXPECT_EQ(kdb->entries, 2U);
  EXPECT_EQ(kdb->kind, "compiled kernels");
  const auto odd = read_miopen_database(database(
      "a #1?%20.db", "CREATE TABLE perf_db (id INTEGER, config INT, solver TEXT, params TEXT); INSERT INTO perf_db VALUES (1, 1, 's', 'p');"));
  ASSERT_TRUE(odd) << odd.error().to_string();
  EXPECT_EQ(odd->entries, 1U);
  const auto find = read_miopen_database(write("gfx942130.HIP.fdb.txt", "1-2=a:b\n\n3-4=c:d\n"));
  ASSERT_TRUE(find);
  EXPECT_EQ(find->entries, 2U);
  EXPECT_EQ(find->kind, "find results");
}

TEST_F(MiopenDatabase, OtherFilesAndDamageAreErrors) {
  EXPECT_FALSE(read_miopen_database(write("gfx90a.kdb", "")));
  EXPECT_FALSE(read_miopen_database(write("b.kdb", "version https://git-lfs.github.com/spec/v1\n")));
  EXPECT_FALSE(read_miopen_database(database("c.kdb", "CREATE TABLE other (x);")));
  EXPECT_FALSE(read_miopen_database(directory + "/absent.kdb"));
  EXPECT_FALSE(read_miopen_database(write("d.db.txt", "<html>\n")));
  const std::string whole = read_file(database("e.kdb", kernels));
  ASSERT_GT(whole.size(), 4096U);
  for (std::size_t size = 0; size < 4096; size += 97) (void)read_miopen_database(write("cut.kdb", whole.substr(0, size)));
}

TEST_F(MiopenDatabase, CompiledKernelsAreUnpackedAsMiopenPackedThem) {
  const std::string code = read_file(fixture_path("gfx90a.co"));
  std::string packed(code.size() + 1024, '\0');
  auto size = static_cast<unsigned>(packed.size());
  ASSERT_EQ(BZ2_bzBuffToBuffCompress(packed.data(), &size, const_cast<char*>(code.data()), static_cast<unsigned>(code.size()), 9, 0, 30), BZ_OK);
  packed.resize(size);
  const std::string path = database("gfx90a68.kdb", kernels);
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  const auto add = [&](const char* name, const std::string& blob, std::size_t unpacked) {
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(
                  raw, "INSERT INTO kern_db (kernel_name, kernel_args, kernel_blob, kernel_hash, uncompressed_size) VALUES (?, '', ?, 'h', ?)", -1,
                  &statement, nullptr),
              SQLITE_OK);
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
    sqlite3_bind_blob(statement, 2, blob.data(), static_cast<int>(blob.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 3, static_cast<sqlite3_int64>(unpacked));
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
  };
  EXPECT_EQ(sqlite3_exec(raw, "DELETE FROM kern_db", nullptr, nullptr, nullptr), SQLITE_OK);
  add("packed.cpp.o", packed, code.size());
  add("stored.cpp.o", code, 0);
  add("longer.cpp.o", packed, code.size() + 1);
  add("cut.cpp.o", packed.substr(0, packed.size() / 2), code.size());
  add("huge.cpp.o", packed, std::size_t{1} << 40);
  sqlite3_close(raw);
  std::vector<std::string> names;
  const auto problems = visit_miopen_kernels(path, [&](std::string_view name, std::string_view found) {
    names.emplace_back(name);
    EXPECT_TRUE(found == code) << name;
  });
  EXPECT_EQ(names, (std::vector<std::string>{"packed.cpp.o", "stored.cpp.o"}));
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_TRUE(problems[0].starts_with("longer.cpp.o: ")) << problems[0];
  EXPECT_TRUE(problems[1].starts_with("cut.cpp.o: ")) << problems[1];
  EXPECT_TRUE(problems[2].starts_with("huge.cpp.o: ")) << problems[2];
}

TEST_F(MiopenDatabase, AViewThatNeverEndsIsStopped) {
  const auto answer = read_miopen_database(
      database("v.kdb", "CREATE VIEW kern_db AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;"));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("interrupted"), std::string::npos) << answer.error().what;
  const auto problems = visit_miopen_kernels(
      database(
          "w.kdb",
          "CREATE VIEW kern_db AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT '' AS kernel_name, '' AS kernel_blob, 0 AS "
          "uncompressed_size FROM n WHERE x < 0;"),
      [](std::string_view, std::string_view) { ADD_FAILURE(); });
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("interrupted"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace ff::binary
