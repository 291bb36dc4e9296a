// MIOpen and cuDNN behind gpu/dnn.h, over the stand-ins of dnn_double.cpp, whose memory is the host's.
#include "gpu/dnn.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace ff::gpu {
namespace {

constexpr const char* folder = FIRSTFAULT_HIP_DOUBLE "/../vendor_double";

struct Set {
  const char* name;
  Set(const char* variable, const std::string& value) : name(variable) { ::setenv(variable, value.c_str(), 1); }
  ~Set() { ::unsetenv(name); }
};

ConvShape shape() { return {1, 2, 5, 4, 3, 3, 3, 1, 1, 1, 1, 5, 4}; }
Address address(std::vector<float>& v) { return reinterpret_cast<Address>(v.data()); }

/// Everything that is done with a library, in order; what the last algorithm gave is left in y.
Result<std::set<std::string>> everything(Api api, DnnType type = DnnType::f32) {
  const OpenOptions options{.library_folders = {folder}};
  auto dnn = api == Api::hip ? open_miopen(options) : open_cudnn(options);
  if (!dnn) return std::unexpected(dnn.error());
  auto convolution = (*dnn)->convolution(type, shape());
  if (!convolution) return std::unexpected(convolution.error());
  std::vector<float> x(40, 1), w(54, 1), y(60), room(4096);
  auto ways = (*convolution)->offered();
  if (!ways) return std::unexpected(ways.error());
  auto size = (*convolution)->find_workspace();
  if (!size) return std::unexpected(size.error());
  auto found = (*convolution)->find(address(x), address(w), address(y), address(room), *size);
  if (!found) return std::unexpected(found.error());
  ways->push_back(*found);
  std::set<std::string> names;
  for (const auto& way : *ways) {
    std::ranges::fill(y, -1);
    if (auto ok = (*convolution)->run(way, address(x), address(w), address(y), address(room), way.workspace_bytes, nullptr); !ok)
      return std::unexpected(ok.error());
    // The middle sees all nine places of both channels, the corner four.
    EXPECT_NEAR(y[1 * 4 + 1], 18, way.transforms ? 1e-3 : 0) << way.name;
    EXPECT_NEAR(y[0], 8, way.transforms ? 1e-3 : 0) << way.name;
    names.insert(way.name);
  }
  return names;
}

TEST(Dnn, OffersPlainAndTransformingAlgorithmsAndASearch) {
  const auto miopen = everything(Api::hip);
  ASSERT_TRUE(miopen) << miopen.error().to_string();
  EXPECT_EQ(*miopen, (std::set<std::string>{"Winograd, solution 53", "direct, solution 85", "GEMM"}));
  const auto cudnn = everything(Api::cuda);
  ASSERT_TRUE(cudnn) << cudnn.error().to_string();
  EXPECT_EQ(*cudnn, (std::set<std::string>{"Winograd", "implicit GEMM, precomputed"}));
}

TEST(Dnn, NamesItsVersionAndFile) {
  EXPECT_NE((*open_miopen({.library_folders = {folder}}))->library().find("MIOpen 3.2.0 ("), std::string::npos);
  EXPECT_NE((*open_cudnn({.library_folders = {folder}}))->library().find("cuDNN 9.10.2 ("), std::string::npos);
}

TEST(Dnn, EveryStatusAtEveryCallIsAnErrorThatNamesIt) {
  const std::vector<std::string> statuses{"",
                                          "miopenStatusNotInitialized",
                                          "miopenStatusInvalidValue",
                                          "miopenStatusBadParm",
                                          "miopenStatusAllocFailed",
                                          "miopenStatusInternalError",
                                          "miopenStatusNotImplemented",
                                          "miopenStatusUnknownError",
                                          "miopenStatusUnsupportedOp",
                                          "miopenStatusGpuOperationsSkipped",
                                          "miopenStatusVersionMismatch"};
  for (const std::string call :
       {"miopenCreate", "miopenSetStream", "miopenCreateTensorDescriptor", "miopenSet4dTensorDescriptor", "miopenCreateConvolutionDescriptor",
        "miopenInitConvolutionDescriptor", "miopenSetConvolutionGroupCount", "miopenConvolutionForwardGetSolutionCount",
        "miopenConvolutionForwardGetSolution", "miopenConvolutionForwardCompileSolution", "miopenConvolutionForwardImmediate",
        "miopenConvolutionForwardGetWorkSpaceSize", "miopenFindConvolutionForwardAlgorithm", "miopenConvolutionForward"})
    for (int status = 1; status <= 11; ++status) {
      const Set fail("FF_VENDOR_FAIL", call + ":" + std::to_string(status));
      const auto result = everything(Api::hip);
      ASSERT_FALSE(result) << call << " failed with " << status << " and nobody noticed";
      const std::string name = status == 11 ? "unknown status" : statuses[static_cast<std::size_t>(status)];
      EXPECT_NE(result.error().what.find(call + ": " + name + " (" + std::to_string(status) + ")"), std::string::npos) << result.error().what;
      EXPECT_EQ(result.error().what.starts_with("unsupported"), status == 6 || status == 8) << result.error().what;
    }
  for (const std::string call :
       {"cudnnCreate", "cudnnSetStream", "cudnnCreateTensorDescriptor", "cudnnSetTensor4dDescriptor", "cudnnCreateFilterDescriptor",
        "cudnnSetFilter4dDescriptor", "cudnnCreateConvolutionDescriptor", "cudnnSetConvolution2dDescriptor", "cudnnSetConvolutionGroupCount",
        "cudnnSetConvolutionMathType", "cudnnGetConvolutionForwardAlgorithm_v7", "cudnnFindConvolutionForwardAlgorithmEx", "cudnnConvolutionForward"})
    for (const int status : {9, 1001, 2000, 3000, 3001, 4000, 5000}) {
      const Set fail("FF_VENDOR_FAIL", call + ":" + std::to_string(status));
      const auto result = everything(Api::cuda);
      ASSERT_FALSE(result) << call << " failed with " << status << " and nobody noticed";
      EXPECT_NE(result.error().what.find(call + ": CUDNN_STATUS_"), std::string::npos) << result.error().what;
      EXPECT_NE(result.error().what.find("(" + std::to_string(status) + ")"), std::string::npos) << result.error().what;
      EXPECT_EQ(result.error().what.starts_with("unsupported"), status == 9 || status / 1000 == 3) << result.error().what;
    }
}

TEST(Dnn, ALibraryThatIsNotThereSaysHowToGetIt) {
  for (const auto& opened : {open_miopen({.library_folders = {"/nonexistent"}}), open_cudnn({.library_folders = {"/nonexistent"}})})
    if (!opened) {
      EXPECT_NE(opened.error().remedy.find("install"), std::string::npos);
    }
}

/// FIRSTFAULT_REAL_MIOPEN: a folder with a real MIOpen, on a machine without an AMD GPU.
TEST(Dnn, ARealMiopenWithoutADeviceSaysSo) {
  const char* real = std::getenv("FIRSTFAULT_REAL_MIOPEN");
  if (real == nullptr) GTEST_SKIP() << "FIRSTFAULT_REAL_MIOPEN names no folder";
  const auto opened = open_miopen({.library_folders = {real}});
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().what.starts_with("miopenCreate: miopenStatus")) << opened.error().to_string();
  EXPECT_NE(opened.error().where.find("MIOpen 3"), std::string::npos) << opened.error().where;
  std::cout << opened.error().to_string() << "\n";
}

TEST(Dnn, MiopenHasNoTf32) {
  const auto made = (*open_miopen({.library_folders = {folder}}))->convolution(DnnType::tf32, shape());
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().what.starts_with("unsupported"));
}

}  // namespace
}  // namespace ff::gpu
