// A checkpoint's weights as they are compared: what is whole is read, what is cut at any place is an error.
#include "training/weights_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/file.h"

namespace ff::training {
namespace {

std::string safetensors(const std::string& header, const std::vector<float>& values) {
  std::string out(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, sizeof length);
  out += header;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

const std::string two =
    R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}})";

Result<StoredTensors> written(const TemporaryDirectory& place, const std::string& bytes) {
  const std::string path = (place.path() / "x.safetensors").string();
  EXPECT_TRUE(write_file(path, bytes));
  return StoredTensors::open(path);
}

TEST(WeightsFile, AWholeFileIsReadAndEachTruncationIsAnError) {
  const auto place = TemporaryDirectory::make("firstfault-test");
  ASSERT_TRUE(place);
  const std::string whole = safetensors(two, {0.5F, -2.F, 0.F});
  {
    const auto tensors = written(*place, whole);
    ASSERT_TRUE(tensors) << tensors.error().to_string();
    ASSERT_NE(tensors->find("a.weight"), nullptr);
    EXPECT_EQ(tensors->all().size(), 2U);
    EXPECT_EQ(tensors->find("a.weight")->values(), (std::vector<double>{0.5, -2}));
    EXPECT_EQ(tensors->find("a.weight")->elements, 2U);
    EXPECT_TRUE(tensors->find("a.weight")->real());
    EXPECT_FALSE(tensors->find("b")->real());
    EXPECT_TRUE(tensors->find("b")->values().empty());
    EXPECT_EQ(tensors->find("c"), nullptr);
  }
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(written(*place, whole.substr(0, size))) << size;
}

TEST(WeightsFile, PlacesOutsideOfTheFileAreAnError) {
  const auto place = TemporaryDirectory::make("firstfault-test");
  ASSERT_TRUE(place);
  for (const char* offsets : {"[8,4]", "[-4,8]", "[0,400]", "[0]", "\"x\"", "[4611686018427387904,4611686018427387908]"})
    EXPECT_FALSE(written(*place, safetensors(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":)" + std::string(offsets) + "}}", {1.F, 2.F})))
        << offsets;
}

}  // namespace
}  // namespace ff::training
