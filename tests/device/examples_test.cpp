// The examples that ship are recorded machines in the form in which captures travel. This keeps them equal to their
// sources; FIRSTFAULT_REMAKE_EXAMPLES=1 writes them anew.
#include <cstdlib>
#include <filesystem>

#include "capture/open.h"
#include "capture/store.h"
#include "support/host_file.h"
#include "support/machines.h"
#include "support/paths.h"

namespace ff::device::test {
namespace {

namespace fs = std::filesystem;

struct Example {
  const char* host;
  const char* path;
};

void PrintTo(const Example& v, std::ostream* out) { *out << v.host; }

class Examples : public testing::TestWithParam<Example> {};

TEST_P(Examples, AreWhatTheirHostsSay) {
  const auto recorded = ff::test::host(GetParam().host);
  const fs::path path = ff::test::source_directory() / "examples" / GetParam().path;
  if (std::getenv("FIRSTFAULT_REMAKE_EXAMPLES") != nullptr) {
    fs::remove_all(path);
    const auto stored = capture::store(recorded, path);
    ASSERT_TRUE(stored) << stored.error().to_string();
  }
  const auto shipped = capture::open({path.string()});
  ASSERT_TRUE(shipped) << shipped.error().to_string();
  EXPECT_EQ(shipped->files(), recorded.files());
  EXPECT_EQ(shipped->links(), recorded.links());
  EXPECT_EQ(shipped->errors(), recorded.errors());
  EXPECT_EQ(shipped->probes(), recorded.probes());
  EXPECT_EQ(shipped->commands(), recorded.commands());
  std::uintmax_t bytes = 0, files = 0;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) {
        bytes += entry.file_size();
        ++files;
      }
  } else {
    bytes = fs::file_size(path);
    files = 1;
  }
  EXPECT_LT(bytes, 200'000U);
  EXPECT_LT(files, 120U);
}

INSTANTIATE_TEST_SUITE_P(All, Examples,
                         testing::Values(Example{"rx7900xtx", "rx7900xtx-healthy.tar.zst"},
                                         Example{"mi300x-render-group", "mi300x-render-group.tar.zst"}));

}  // namespace
}  // namespace ff::device::test
