#include "capture/capture.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ff::capture {
namespace {

TEST(Capture, ListsNamesOnceAndInNaturalOrder) {
  Capture c;
  c.add_file("/sys/n/10/a", "x");
  c.add_file("/sys/n/9/a", " y\n");
  c.add_file("/sys/n/9-x/a", "z");
  c.add_link("/sys/n/driver", "../amdgpu");
  c.add_stat("/sys/n/9", {.type = 'd'});
  EXPECT_EQ(c.list("/sys/n"), (std::vector<std::string>{"9", "9-x", "10", "driver"}));
  EXPECT_EQ(c.value("/sys/n/9/a"), "y");
  EXPECT_TRUE(c.exists("/sys/n"));
  EXPECT_FALSE(c.exists("/sys/nn"));
}

TEST(Capture, TellsAbsentFromNotLookedAt) {
  Capture c;
  c.add_error("/dev/kfd", ENOENT);
  c.add_error("/dev/dri/renderD128", EACCES);
  EXPECT_TRUE(c.known_absent("/dev/kfd"));
  EXPECT_FALSE(c.known_absent("/dev/dri/renderD128"));
  EXPECT_FALSE(c.known_absent("/dev/dri/renderD129"));
}

TEST(Capture, RemovesWholeTreesOnly) {
  Capture c;
  c.add_file("/a/b/c", "1");
  c.add_file("/a/bc", "2");
  c.remove("/a/b");
  EXPECT_FALSE(c.exists("/a/b"));
  EXPECT_TRUE(c.exists("/a/bc"));
}

}  // namespace
}  // namespace ff::capture
