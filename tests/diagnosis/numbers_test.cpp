// Numbers whose relation says what is wrong.
#include <gtest/gtest.h>

#include <optional>

#include "diagnosis/extract.h"

namespace ff::diagnosis {
namespace {

std::optional<double> number(const std::string& text, std::string_view name) {
  std::vector<facts::NamedFact> out;
  extract_all(text, "out.txt", out);
  for (const auto& f : out)
    if (f.name == name) return f.value.kind() == Value::Kind::boolean ? 1.0 : f.value.as_real();
  return std::nullopt;
}

std::string oom(const char* free, const char* allocated, const char* reserved) {
  return std::string("HIP out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 24.00 GiB of which ") + free +
         " is free. Of the allocated memory " + allocated + " is allocated by PyTorch, and " + reserved +
         " is reserved by PyTorch but unallocated.\n";
}

TEST(Numbers, WhatOthersHoldOfTheDevice) {
  EXPECT_NEAR(*number(oom("512.00 MiB", "2.00 GiB", "512.00 MiB"), "memory.elsewhere_share"), 21.0 / 24, 0.001);
  EXPECT_NEAR(*number(oom("0 bytes", "23.50 GiB", "512.00 MiB"), "memory.elsewhere_share"), 0, 0.001);
  EXPECT_FALSE(number("of which 3 GiB is free", "memory.elsewhere_share"));
}

TEST(Numbers, DegreesBesideRadians) {
  EXPECT_TRUE(number("pan 12.41 deg 0.2166\nlift -48.02 deg -0.8381\nflex 67.35 deg 1.1755\n", "report.degrees_radians"));
  EXPECT_FALSE(number("pan 12.41 deg 0.2166\nlift -48.02 deg -0.8381\nflex 67.35 deg 1.3\n", "report.degrees_radians"));
  EXPECT_FALSE(number("epoch 57.30 grad 1.0\n", "report.degrees_radians"));
}

TEST(Numbers, RangesOfActions) {
  EXPECT_NEAR(*number("action range: [-1.02, 0.98] (dataset action range: [-98.3, 101.2])\n", "report.action_ratio"), 101.2 / 1.02, 0.01);
  EXPECT_NEAR(*number("policy action: min=-0.97 max=0.99 mean=0.02\ndataset action: min=-87.4 max=91.2\n", "report.action_ratio"), 91.2 / 0.99, 0.01);
  EXPECT_FALSE(number("action range: [-1.0, 1.0]\n", "report.action_ratio"));
  EXPECT_FALSE(number("action space limits: [-1.0, 1.0]\ndataset action range: [-9.0, 9.0]\n", "report.action_ratio"));
}

TEST(Numbers, PercentilesInAColumn) {
  EXPECT_NEAR(*number("p50   18.4 ms\np90 19.1 ms\np99  412.7 ms\n", "series.tail_ratio"), 412.7 / 18.4, 0.01);
  EXPECT_FALSE(number("p50 18.4 ms\np99 2 s\n", "series.tail_ratio")) << "other units";
}

TEST(Numbers, IndexOfMergedEpisodes) {
  const std::string asked =
      ">>> df.groupby(\"episode_index\")[\"index\"].agg([\"min\", \"max\", \"count\"])\n               min  max  count\nepisode_index\n";
  EXPECT_EQ(*number(asked + "0                0  299    300\n1              300  611    312\n2                0  287    288\n",
                    "dataset.rows.index_restarts"),
            1);
  EXPECT_EQ(*number(asked + "0                0  299    300\n1              300  611    312\n", "dataset.rows.index_restarts"), 0);
}

}  // namespace
}  // namespace ff::diagnosis
