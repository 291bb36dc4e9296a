#include "binary/loader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/mapped_file.h"
#include "base/process.h"
#include "base/text.h"
#include "support.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

std::string real(const std::string& path) { return fs::canonical(path).string(); }

ChildResult run(std::vector<std::string> argv, std::vector<std::string> environment = {}) {
  environment.emplace_back("PATH=/usr/bin:/bin");
  ChildOptions options;
  options.argv = std::move(argv);
  options.environment = std::move(environment);
  options.time_limit = std::chrono::seconds(60);
  return run_child(options);
}

std::set<std::string> names(const LoaderView& view) {
  std::set<std::string> out;
  for (std::size_t i = 1; i < view.loaded.size(); ++i) out.insert(view.loaded[i].real_path);
  return out;
}

TEST(Loader, AgreesWithTheSystemsLoaderOnThePrograms) {
  if (!fs::exists("/lib64/ld-linux-x86-64.so.2")) GTEST_SKIP() << "no glibc loader here";
  int compared = 0;
  for (const auto* program : {"/bin/ls",           "/bin/bash",       "/bin/tar",       "/bin/grep",      "/bin/sed",        "/usr/bin/git",
                              "/usr/bin/gcc",      "/usr/bin/ld",     "/usr/bin/cmake", "/usr/bin/ninja", "/usr/bin/gdb",    "/usr/bin/python3",
                              "/usr/bin/perl",     "/usr/bin/ccache", "/usr/bin/curl",  "/usr/bin/ssh",   "/usr/bin/zstd",   "/usr/bin/xz",
                              "/usr/bin/clang-19", "/usr/bin/as",     "/usr/bin/file",  "/usr/bin/make",  "/usr/bin/openssl"}) {
    if (!fs::exists(program)) continue;
    const auto told = run({"/lib64/ld-linux-x86-64.so.2", "--list", program});
    if (!told.ok()) continue;  // a script, or static
    std::set<std::string> expected;
    for (const auto& [name, path] : parse_loader_list(told.out)) {
      ASSERT_FALSE(path.empty()) << program << " " << name;
      expected.insert(real(path));
    }
    const auto view = resolve(program, {});
    ASSERT_TRUE(view) << program << view.error().what;
    EXPECT_EQ(names(*view), expected) << program;
    EXPECT_TRUE(view->missing.empty()) << program;
    EXPECT_TRUE(view->versions.empty()) << program;
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

/// Seeded conflicts, compiled here; each compared with what the loader does.
class LoaderConflict : public WithDirectory {
 protected:
  void SetUp() override {
    WithDirectory::SetUp();
    if (std::system("command -v gcc >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gcc here";
  }
  void compile(const std::string& source, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{"gcc", "-o"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    argv.insert(argv.begin() + 3, write("source.c", source));
    const auto done = run(std::move(argv));
    ASSERT_TRUE(done.ok()) << done.err;
  }
  void library(const std::string& folder, const std::string& value, std::vector<std::string> extra = {}) const {
    fs::create_directories(directory + "/" + folder);
    std::vector<std::string> arguments{directory + "/" + folder + "/libthing.so.1", "-shared", "-fPIC", "-Wl,-soname,libthing.so.1"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    compile("int thing(void) { return " + value + "; }", arguments);
  }
  void program(const std::vector<std::string>& extra) const {
    std::vector<std::string> arguments{directory + "/program", directory + "/a/libthing.so.1"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    compile("int thing(void); int main(void) { return thing(); }", arguments);
  }
  [[nodiscard]] std::string chosen(const LoaderOptions& options) const {
    const auto view = resolve(directory + "/program", options);
    EXPECT_TRUE(view);
    for (const auto& library : view->loaded)
      if (library.name == "libthing.so.1")
        return std::string(found_by_name(library.by)) + " " + fs::path(library.path).lexically_relative(directory).lexically_normal().string();
    return "missing";
  }
};

TEST_F(LoaderConflict, RpathBeatsLibraryPathAndRunpathLosesToIt) {
  library("a", "1");
  library("b", "2");
  const LoaderOptions with_b{.library_path = directory + "/b", .preload = {}, .also = {}, .root = {}};
  program({"-Wl,--disable-new-dtags,-rpath,$ORIGIN/a"});
  EXPECT_EQ(chosen(with_b), "rpath a/libthing.so.1");
  EXPECT_EQ(run({directory + "/program"}, {"LD_LIBRARY_PATH=" + directory + "/b"}).exit_status, 1) << "so does the loader";
  program({"-Wl,--enable-new-dtags,-rpath,$ORIGIN/a"});
  EXPECT_EQ(chosen(with_b), "LD_LIBRARY_PATH b/libthing.so.1");
  EXPECT_EQ(run({directory + "/program"}, {"LD_LIBRARY_PATH=" + directory + "/b"}).exit_status, 2);
  EXPECT_EQ(chosen({}), "runpath a/libthing.so.1");
}

TEST_F(LoaderConflict, AMissingLibraryNamesWhoAsksForIt) {
  library("a", "1");
  program({});
  EXPECT_EQ(chosen({}), "missing");
  const auto view = resolve(directory + "/program", {});
  ASSERT_EQ(view->missing.size(), 1U);
  EXPECT_EQ(view->missing[0].name, "libthing.so.1");
  EXPECT_EQ(view->missing[0].asked_by, directory + "/program");
  EXPECT_EQ(run({directory + "/program"}).exit_status, 127) << "the loader refuses as well";
}

TEST_F(LoaderConflict, AVersionThatTheLibraryLacksIsFound) {
  const auto old_map = write("old.map", "THING_1.0 { global: thing; };"),
             new_map = write("new.map", "THING_1.0 { }; THING_1.2 { global: thing; } THING_1.0;");
  library("a", "1", {"-Wl,--version-script," + new_map});
  library("b", "2", {"-Wl,--version-script," + old_map});
  program({});
  const auto view = resolve(directory + "/program", {.library_path = directory + "/b", .preload = {}, .also = {}, .root = {}});
  ASSERT_EQ(view->versions.size(), 1U);
  EXPECT_EQ(view->versions[0].version, "THING_1.2");
  EXPECT_EQ(view->versions[0].best_had, "THING_1.0");
  const auto refused = run({directory + "/program"}, {"LD_LIBRARY_PATH=" + directory + "/b"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_NE(refused.err.find("version `THING_1.2' not found"), std::string::npos) << refused.err;
  EXPECT_TRUE(resolve(directory + "/program", {.library_path = directory + "/a", .preload = {}, .also = {}, .root = {}})->versions.empty());
}

TEST_F(LoaderConflict, TwoCopiesOfOneSonameAreSeen) {
  library("a", "1");
  library("b", "2");
  program({"-Wl,-rpath,$ORIGIN/a"});
  const auto view = resolve(directory + "/program", {.library_path = {}, .preload = {directory + "/b/libthing.so.1"}, .also = {}, .root = {}});
  // The preloaded file answers to its soname: nothing is loaded twice.
  EXPECT_TRUE(view->duplicates.empty());
  const auto opened = resolve(directory + "/program", {.library_path = {}, .preload = {}, .also = {directory + "/b/libthing.so.1"}, .root = {}});
  ASSERT_EQ(opened->duplicates.size(), 1U) << "a path that is opened later is another file";
  EXPECT_EQ(opened->duplicates[0].soname, "libthing.so");
  EXPECT_EQ(opened->duplicates[0].paths.size(), 2U);
}

TEST_F(LoaderConflict, RocmLibrariesOfTwoInstallationsAreAFault) {
  library("rocm-6/lib", "1");
  library("wheel/lib", "2");
  library("a", "3");
  compile("int hip(void) { return 1; }", {directory + "/rocm-6/lib/libamdhip64.so.6", "-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.6"});
  compile("int hip7(void) { return 1; }", {directory + "/wheel/lib/libamdhip64.so.7", "-shared", "-fPIC", "-Wl,-soname,libamdhip64.so.7"});
  compile("int hip(void); int hip7(void); int main(void) { return hip() + hip7(); }",
          {directory + "/program", directory + "/rocm-6/lib/libamdhip64.so.6", directory + "/wheel/lib/libamdhip64.so.7",
           "-Wl,-rpath,$ORIGIN/rocm-6/lib:$ORIGIN/wheel/lib"});
  const auto view = resolve(directory + "/program", {});
  EXPECT_EQ(view->mixed_rocm.size(), 2U);
  EXPECT_EQ(view->duplicates.size(), 1U);
}

TEST(LoaderCache, ListsWhatLdconfigWrote) {
  const auto file = MappedFile::open("/etc/ld.so.cache");
  if (!file) GTEST_SKIP() << "no cache here";
  const auto entries = read_loader_cache(file->bytes());
  ASSERT_TRUE(entries) << entries.error().what;
  EXPECT_TRUE(std::ranges::any_of(*entries, [](const auto& row) { return row.first == "libc.so.6"; }));
  // Every truncation of a small cache is an error or a shorter list, never a read outside.
  const std::string bytes(file->bytes().substr(0, 3000));
  for (std::size_t size = 0; size < bytes.size(); ++size) (void)read_loader_cache(std::string(bytes, 0, size));
  std::string huge(bytes);
  huge.replace(20, 4, "\xff\xff\xff\xff");
  EXPECT_FALSE(read_loader_cache(huge));
}

TEST(Loader, SaysWhatItCannotRead) {
  EXPECT_FALSE(resolve("/absent", {}));
  EXPECT_FALSE(resolve("/etc/passwd", {}));
  EXPECT_NE(resolve(fixture_path("gfx1100.co"), {}).error().what.find("another kind of processor"), std::string::npos);
}

}  // namespace
}  // namespace ff::binary
