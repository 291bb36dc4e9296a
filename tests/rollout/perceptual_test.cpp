#include "rollout/perceptual.h"

#include <gtest/gtest.h>

namespace ff::rollout {
namespace {

Value grid(std::initializer_list<std::array<double, 3>> cells) {
  Value row = Value::list();
  for (const auto& c : cells) row.push(Value::list({c[0], c[1], c[2]}));
  return Value::list({row});
}

TEST(Perceptual, KnowsTheColoursOfTheStandard) {
  // CIE L*a*b* under D65 of sRGB's corners (Lindbloom's tables).
  const auto white = lab_of({1, 1, 1}), red = lab_of({1, 0, 0}), blue = lab_of({0, 0, 1});
  EXPECT_NEAR(white[0], 100, 0.01);
  EXPECT_NEAR(white[1], 0, 0.02);
  EXPECT_NEAR(red[0], 53.24, 0.02);
  EXPECT_NEAR(red[1], 80.09, 0.02);
  EXPECT_NEAR(red[2], 67.20, 0.02);
  EXPECT_NEAR(blue[2], -107.86, 0.05);
}

TEST(Perceptual, EqualPicturesAreNotApartAndOthersAreByTheirCells) {
  const auto a = grid({{0.2, 0.4, 0.6}, {0, 0, 0}}), b = grid({{0.2, 0.4, 0.6}, {1, 1, 1}});
  EXPECT_EQ(look_distance(a, a)->mean, 0);
  EXPECT_NEAR(look_distance(a, b)->mean, 50, 0.02);
  EXPECT_NEAR(look_distance(a, b)->largest, 100, 0.02);
  // One of 255 in every channel is not seen.
  EXPECT_LT(look_distance(grid({{0.5, 0.5, 0.5}}), grid({{0.5 + 1 / 255.0, 0.5, 0.5}}))->mean, 1);
}

TEST(Perceptual, PicturesOfUnlikeSizesCannotBeCompared) {
  EXPECT_FALSE(look_distance(grid({{0, 0, 0}}), grid({{0, 0, 0}, {0, 0, 0}})));
  EXPECT_FALSE(look_distance(Value(), Value()));
  EXPECT_FALSE(look_distance(Value::list({1}), Value::list({1})));
}

}  // namespace
}  // namespace ff::rollout
