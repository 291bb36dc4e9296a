#include "base/python_json.h"

#include <gtest/gtest.h>

#include "base/value.h"

namespace ff {
namespace {

TEST(PythonJson, BareWordsBecomeTextsAndTextsStay) {
  EXPECT_EQ(without_nonfinite(R"({"a": NaN, "b": -Infinity, "c": "NaN x \" NaN", "d": [Infinity]})", Nonfinite::quoted),
            R"({"a": "NaN", "b": "-Infinity", "c": "NaN x \" NaN", "d": ["Infinity"]})");
  EXPECT_EQ(without_nonfinite("[NaN, -Infinity, \"Infinity\"]", Nonfinite::null), "[null, null, \"Infinity\"]");
  EXPECT_EQ(without_nonfinite("[NaNs, xNaN]", Nonfinite::quoted), "[NaNs, xNaN]");
}

TEST(PythonJson, NumbersBeyondADoubleAreInfiniteAsInPython) {
  EXPECT_EQ(without_nonfinite(R"({"loss": 1e400, "low": -2.5E+999, "small": 1e-400, "fits": 1.7e308})", Nonfinite::quoted),
            R"({"loss": "Infinity", "low": "-Infinity", "small": 1e-400, "fits": 1.7e308})");
  EXPECT_EQ(without_nonfinite("[" + std::string(400, '9') + "]", Nonfinite::null), "[null]");
  EXPECT_TRUE(parse_json(without_nonfinite(R"({"loss": 1e400})", Nonfinite::quoted)));
}

TEST(PythonJson, EveryTruncationIsTakenWithoutHarm) {
  const std::string text = R"({"a": -Infinity, "b": 1e400, "c": "\\\"", "d": NaN})";
  for (std::size_t size = 0; size <= text.size(); ++size) (void)without_nonfinite(text.substr(0, size), Nonfinite::quoted);
}

}  // namespace
}  // namespace ff
