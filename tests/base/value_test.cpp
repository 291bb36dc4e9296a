#include "base/value.h"

#include <gtest/gtest.h>

#include <limits>

namespace ff {
namespace {

TEST(Value, KeepsMembersInOrderAndReplacesByName) {
  Value v = Value::object({{"b", 1}, {"a", "x"}});
  v.set("b", 2).set("c", Value::list({1.5, nullptr, true}));
  EXPECT_EQ(to_json(v), R"({"b":2,"a":"x","c":[1.5,null,true]})");
}

TEST(Value, ReadsWhatItWrites) {
  const std::string text = R"({"a":[1,-2,3.25,"é\n",{"b":null}],"u":"18446744073709551615"})";
  const auto v = parse_json(text);
  ASSERT_TRUE(v) << v.error().to_string();
  EXPECT_EQ(to_json(*v), text);
}

TEST(Value, KeepsUnsignedIdentifiersExact) {
  const auto v = parse_json("18446744073709551615");
  ASSERT_TRUE(v);
  EXPECT_EQ(v->as_text(), "18446744073709551615");
}

TEST(Value, RefusesDeepNestingAndGarbage) {
  EXPECT_FALSE(parse_json(std::string(100000, '[')));
  for (const char* bad : {"", "{", "[1,]", "nul", "{\"a\":1}x", "\"\xff\""}) {
    const auto v = parse_json(bad, "f.json");
    ASSERT_FALSE(v) << bad;
    EXPECT_TRUE(v.error().where.starts_with("f.json")) << v.error().where;
  }
}

TEST(Value, WritesWhatJsonCannotHoldAsNull) {
  EXPECT_EQ(to_json(Value::list({std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})), "[null,null]");
  EXPECT_EQ(to_json(Value("a\xff")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace ff
