#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ff::model {
namespace {

/// A file as the format describes it: length, header, data.
std::string file(const std::string& header, std::size_t data_bytes) {
  std::string out(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(out.data(), &size, 8);
  return out + header + std::string(data_bytes, '\1');
}
std::string one(const std::string& tensor, std::size_t data_bytes = 4) { return file(R"({"a":)" + tensor + "}", data_bytes); }

Violation violation(const std::string& bytes) {
  auto parsed = parse_safetensors(bytes);
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Violation{} : parsed.error();
}

const std::string two = file(
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}} )",
    8);

TEST(Safetensors, GivesTensorsInTheOrderOfTheirDataWithTheirBytes) {
  const auto parsed = parse_safetensors(two);
  ASSERT_TRUE(parsed) << parsed.error().what;
  ASSERT_EQ(parsed->tensors.size(), 2U);
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[0].elements, 1U);
  EXPECT_EQ(parsed->tensors[1].shape_text(), "[2]");
  EXPECT_EQ(parsed->tensors[1].bytes.size(), 4U);
  EXPECT_EQ(parsed->tensors[1].bytes.data() + 4, two.data() + two.size());
  EXPECT_EQ(parsed->metadata.front().second, "pt");
}

TEST(Safetensors, EveryTruncationIsCalledTruncatedNeverABadHeader) {
  for (std::size_t size = 0; size < two.size(); ++size) {
    const std::string cut = two.substr(0, size);
    EXPECT_EQ(violation(cut).kind, Violation::Kind::truncated) << "at " << size;
  }
  EXPECT_EQ(violation(two.substr(0, two.size() - 3)).expected_bytes, two.size());
}

TEST(Safetensors, EmptyTensorsMayShareAPlaceAndAHeaderMayHoldNone) {
  EXPECT_TRUE(
      parse_safetensors(file(R"({"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0)));
  EXPECT_TRUE(parse_safetensors(file("{}", 0)));
  EXPECT_TRUE(parse_safetensors(file(" { } \n", 0)));
}

struct Rule {
  const char* tensor;
  std::size_t data_bytes;
  const char* says;
};
void PrintTo(const Rule& v, std::ostream* out) { *out << v.says; }

class EveryRule : public testing::TestWithParam<Rule> {};
TEST_P(EveryRule, IsCheckedAndNamed) {
  const auto v = violation(one(GetParam().tensor, GetParam().data_bytes));
  EXPECT_NE(v.what.find(GetParam().says), std::string::npos) << v.what;
  EXPECT_TRUE(v.kind == Violation::Kind::header || v.kind == Violation::Kind::unknown_dtype);
  EXPECT_GE(v.position, 8U) << "positions count from the file's first byte";
  EXPECT_EQ(v.tensor, "a");
}
INSTANTIATE_TEST_SUITE_P(Safetensors, EveryRule,
                         testing::Values(Rule{R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})", 4, "unknown dtype \"F33\""},
                                         Rule{R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4, "negative"},
                                         Rule{R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4, "no whole number"},
                                         Rule{R"({"dtype":"F32","shape":[1],"data_offsets":[0,5]})", 5, "needs 4 bytes, data_offsets give 5"},
                                         Rule{R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4, "before they begin"},
                                         Rule{R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})", 5, "hole of 1 bytes"},
                                         Rule{R"({"dtype":"F32","shape":[1]})", 4, "data_offsets is missing"},
                                         Rule{R"({"shape":[1],"data_offsets":[0,4]})", 4, "dtype is missing"},
                                         Rule{R"({"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]})", 4, "shape stands twice"},
                                         Rule{R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})", 4, "overflows"},
                                         Rule{R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1, "whole bytes"},
                                         Rule{R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})", 4, "two numbers"}));

TEST(Safetensors, OverlapRepeatedNamesAndTrailingBytesAreNamed) {
  const auto overlap =
      violation(file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6));
  EXPECT_EQ(overlap.what, "its data overlap those of \"a\" by 2 bytes");
  EXPECT_EQ(overlap.tensor, "b");
  const auto trailing = violation(two + "xyz");
  EXPECT_EQ(trailing.what, "3 bytes follow the last tensor");
  EXPECT_EQ(trailing.position, two.size());
  // The reference reader takes the second and accepts; so do we, and say it.
  const auto repeated =
      parse_safetensors(file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]}})", 4));
  ASSERT_TRUE(repeated);
  EXPECT_EQ(repeated->repeated, std::vector<std::string>{"a"});
  EXPECT_EQ(repeated->tensors.front().shape_text(), "[2, 2]");
}

TEST(Safetensors, OtherFilesAreToldByTheirFirstBytes) {
  EXPECT_NE(violation(std::string("PK\3\4", 4) + std::string(100, 'x')).what.find("zip"), std::string::npos);
  EXPECT_NE(violation(std::string(100, '\0')).what.find("zero bytes"), std::string::npos);
  EXPECT_EQ(violation(std::string("\x10\0\0\0\0\0\0\0abcdefgh", 16)).kind, Violation::Kind::foreign);
  EXPECT_NE(violation(file("{\"\xff\":1}", 0)).what.find("UTF-8"), std::string::npos);
}

TEST(Safetensors, TheHeaderLimitIsAtItsEdge) {
  std::string bytes(8, '\0');
  std::uint64_t size = safetensors_max_header_bytes;
  std::memcpy(bytes.data(), &size, 8);
  bytes += "{";
  EXPECT_EQ(violation(bytes).kind, Violation::Kind::truncated);
  ++size;
  std::memcpy(bytes.data(), &size, 8);
  EXPECT_EQ(violation(bytes).kind, Violation::Kind::foreign);
}

TEST(Safetensors, DeepNestingIsRefusedNotFollowed) {
  const auto nested = [](int depth) {
    return file(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":)" + std::string(depth, '[') + std::string(depth, ']') + "}}", 0);
  };
  EXPECT_TRUE(parse_safetensors(nested(125)));
  EXPECT_FALSE(parse_safetensors(nested(126)));
  EXPECT_FALSE(parse_safetensors(nested(1'000'000)));
}

}  // namespace
}  // namespace ff::model
