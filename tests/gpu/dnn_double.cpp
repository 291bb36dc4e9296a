// Stand-ins for MIOpen and cuDNN over host memory, for tests: the same calls with the same arguments, worked out on the host in float64.
// FF_VENDOR_FAIL="miopenCreate:3" makes every such call fail with that status; FF_VENDOR_WRONG="Winograd" spoils one element of what that
// algorithm gives; FF_VENDOR_SOLUTIONS=0: nothing is offered.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "compute/native_types.h"

namespace {

using ff::compute::Type;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}
int injected(const char* function) {
  const std::string wanted = variable("FF_VENDOR_FAIL");
  const auto colon = wanted.find(':');
  return colon != std::string::npos && wanted.substr(0, colon) == function ? std::atoi(wanted.c_str() + colon + 1) : 0;
}
#define FF_ENTRY \
  if (const int code = injected(__func__); code != 0) return code

/// An array (or the weights) as it was described.
struct Tensor {
  int type = -1, n = 0, c = 0, h = 0, w = 0;
  [[nodiscard]] std::size_t elements() const { return at(n, 0, 0, 0); }
  /// Where an element lies; packed, the last index fastest.
  [[nodiscard]] std::size_t at(int i, int j, int row, int column) const {
    const auto u = [](int v) { return static_cast<std::size_t>(v); };
    return ((u(i) * u(c) + u(j)) * u(h) + u(row)) * u(w) + u(column);
  }
};
struct Conv {
  int pad_h = 0, pad_w = 0, stride_h = 0, stride_w = 0, dilation_h = 0, dilation_w = 0, groups = 1, math = -1;
};

Type miopen_type(int number) { return number == 0 ? Type::f16 : number == 5 ? Type::bf16 : number == 6 ? Type::f64 : Type::f32; }
Type cudnn_type(int number) { return number == 2 ? Type::f16 : number == 9 ? Type::bf16 : number == 1 ? Type::f64 : Type::f32; }

/// 3: the arguments do not fit each other (both libraries have that number for it here).
int convolve(Type type, const Tensor& x, const void* from, const Tensor& w, const void* weights, const Conv& conv, const Tensor& y, void* to,
             const std::string& algorithm) {
  const int out_h = (x.h + 2 * conv.pad_h - conv.dilation_h * (w.h - 1) - 1) / conv.stride_h + 1,
            out_w = (x.w + 2 * conv.pad_w - conv.dilation_w * (w.w - 1) - 1) / conv.stride_w + 1;
  if (x.c != w.c * conv.groups || y.n != x.n || y.c != w.n || y.h != out_h || y.w != out_w || x.type != y.type || w.type != x.type) return 3;
  const auto read = [&](const void* at, std::size_t count) {
    return ff::compute::decode(type, {static_cast<const std::byte*>(at), count * ff::compute::type_size(type)});
  };
  const auto a = read(from, x.elements()), b = read(weights, w.elements());
  std::vector<double> out(y.elements());
  for (int n = 0; n < y.n; ++n)
    for (int k = 0; k < y.c; ++k)
      for (int i = 0; i < y.h; ++i)
        for (int j = 0; j < y.w; ++j) {
          double sum = 0;
          for (int c = 0; c < w.c; ++c)
            for (int u = 0; u < w.h; ++u)
              for (int v = 0; v < w.w; ++v) {
                const int row = i * conv.stride_h + u * conv.dilation_h - conv.pad_h, column = j * conv.stride_w + v * conv.dilation_w - conv.pad_w;
                if (row < 0 || column < 0 || row >= x.h || column >= x.w) continue;
                const int channel = k / (y.c / conv.groups) * w.c + c;
                sum += a[x.at(n, channel, row, column)] * b[w.at(k, c, u, v)];
              }
          out[y.at(n, k, i, j)] = sum;
        }
  // A transform's rounding: within what is allowed for one, beyond what is allowed for a plain sum.
  if (algorithm == "Winograd")
    for (auto& v : out) v += 1e-4;
  if (variable("FF_VENDOR_WRONG") == algorithm) out[out.size() / 2] += 1;
  const auto bytes = ff::compute::encode(type, out);
  std::memcpy(to, bytes.data(), bytes.size());
  return 0;
}

template <class T>
T& as(void* p) {
  return *static_cast<T*>(p);
}
bool offers() { return variable("FF_VENDOR_SOLUTIONS") != "0"; }

}  // namespace

extern "C" {

// ---- MIOpen

int miopenGetVersion(std::size_t* major, std::size_t* minor, std::size_t* patch) {
  *major = 3;
  *minor = 2;
  *patch = 0;
  return 0;
}
int miopenCreate(void** handle) {
  FF_ENTRY;
  *handle = new int(0);
  return 0;
}
int miopenSetStream(void*, void*) {
  FF_ENTRY;
  return 0;
}
int miopenCreateTensorDescriptor(void** tensor) {
  FF_ENTRY;
  *tensor = new Tensor();
  return 0;
}
int miopenSet4dTensorDescriptor(void* tensor, int type, int n, int c, int h, int w) {
  FF_ENTRY;
  as<Tensor>(tensor) = {type, n, c, h, w};
  return 0;
}
int miopenDestroyTensorDescriptor(void* tensor) {
  delete static_cast<Tensor*>(tensor);
  return 0;
}
int miopenCreateConvolutionDescriptor(void** conv) {
  FF_ENTRY;
  *conv = new Conv();
  return 0;
}
int miopenInitConvolutionDescriptor(void* conv, int mode, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w) {
  FF_ENTRY;
  if (mode != 0) return 3;
  as<Conv>(conv) = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
  return 0;
}
int miopenSetConvolutionGroupCount(void* conv, int groups) {
  FF_ENTRY;
  as<Conv>(conv).groups = groups;
  return 0;
}
int miopenDestroyConvolutionDescriptor(void* conv) {
  delete static_cast<Conv*>(conv);
  return 0;
}
struct MiopenSolution {
  float time;
  std::size_t workspace;
  std::uint64_t id;
  int algorithm;
};
/// Solution 85 is a plain sum with a workspace, 53 is Winograd (3x3 without stride only).
static std::vector<MiopenSolution> solutions_of(void* w, void* conv) {
  if (!offers()) return {};
  std::vector<MiopenSolution> out{{0.5F, 512, 85, 1}};
  if (as<Tensor>(w).h == 3 && as<Conv>(conv).stride_h == 1 && as<Tensor>(w).type == 1) out.insert(out.begin(), {0.2F, 0, 53, 3});
  return out;
}
int miopenConvolutionForwardGetSolutionCount(void*, void* w, void*, void* conv, void*, std::size_t* count) {
  FF_ENTRY;
  *count = solutions_of(w, conv).size();
  return 0;
}
int miopenConvolutionForwardGetSolution(void*, void* w, void*, void* conv, void*, std::size_t most, std::size_t* count, MiopenSolution* solutions) {
  FF_ENTRY;
  const auto all = solutions_of(w, conv);
  *count = std::min(most, all.size());
  std::copy_n(all.begin(), *count, solutions);
  return 0;
}
static std::uint64_t compiled = 0;
int miopenConvolutionForwardCompileSolution(void*, void*, void*, void*, void*, std::uint64_t solution) {
  FF_ENTRY;
  compiled = solution;
  return 0;
}
int miopenConvolutionForwardImmediate(void*, void* w_of, const void* w, void* x_of, const void* x, void* conv, void* y_of, void* y, void* workspace,
                                      std::size_t size, std::uint64_t solution) {
  FF_ENTRY;
  if (solution != compiled || (solution == 85 && (workspace == nullptr || size < 512))) return 3;
  return convolve(miopen_type(as<Tensor>(x_of).type), as<Tensor>(x_of), x, as<Tensor>(w_of), w, as<Conv>(conv), as<Tensor>(y_of), y,
                  solution == 53 ? "Winograd" : "direct");
}
int miopenConvolutionForwardGetWorkSpaceSize(void*, void*, void*, void*, void*, std::size_t* size) {
  FF_ENTRY;
  *size = 4096;
  return 0;
}
struct MiopenFound {
  int algorithm;
  float time;
  std::size_t workspace;
};
int miopenFindConvolutionForwardAlgorithm(void*, void*, const void*, void*, const void*, void*, void*, void* y, int asked, int* found,
                                          MiopenFound* results, void* workspace, std::size_t size, bool) {
  FF_ENTRY;
  if (asked < 1 || y == nullptr || workspace == nullptr || size < 4096) return 3;
  *found = offers() ? 1 : 0;
  results[0] = {0, 0.3F, 1024};
  return 0;
}
int miopenConvolutionForward(void*, const void* alpha, void* x_of, const void* x, void* w_of, const void* w, void* conv, int algorithm,
                             const void* beta, void* y_of, void* y, void* workspace, std::size_t size) {
  FF_ENTRY;
  const bool f64 = as<Tensor>(x_of).type == 6;
  const double a = f64 ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha)),
               b = f64 ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
  if (a != 1 || b != 0 || algorithm != 0 || workspace == nullptr || size < 1024) return 3;
  return convolve(miopen_type(as<Tensor>(x_of).type), as<Tensor>(x_of), x, as<Tensor>(w_of), w, as<Conv>(conv), as<Tensor>(y_of), y, "GEMM");
}

// ---- cuDNN

std::size_t cudnnGetVersion() { return 91002; }
const char* cudnnGetErrorString(int status) {
  return status == 2000 ? "CUDNN_STATUS_BAD_PARAM" : status == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_INTERNAL_ERROR";
}
int cudnnCreate(void** handle) {
  FF_ENTRY;
  *handle = new int(0);
  return 0;
}
int cudnnSetStream(void*, void*) {
  FF_ENTRY;
  return 0;
}
int cudnnCreateTensorDescriptor(void** tensor) {
  FF_ENTRY;
  *tensor = new Tensor();
  return 0;
}
int cudnnSetTensor4dDescriptor(void* tensor, int layout, int type, int n, int c, int h, int w) {
  FF_ENTRY;
  if (layout != 0) return 2000;
  as<Tensor>(tensor) = {type, n, c, h, w};
  return 0;
}
int cudnnDestroyTensorDescriptor(void* tensor) {
  delete static_cast<Tensor*>(tensor);
  return 0;
}
int cudnnCreateFilterDescriptor(void** filter) {
  FF_ENTRY;
  *filter = new Tensor();
  return 0;
}
int cudnnSetFilter4dDescriptor(void* filter, int type, int layout, int k, int c, int h, int w) {
  FF_ENTRY;
  if (layout != 0) return 2000;
  as<Tensor>(filter) = {type, k, c, h, w};
  return 0;
}
int cudnnDestroyFilterDescriptor(void* filter) {
  delete static_cast<Tensor*>(filter);
  return 0;
}
int cudnnCreateConvolutionDescriptor(void** conv) {
  FF_ENTRY;
  *conv = new Conv();
  return 0;
}
int cudnnSetConvolution2dDescriptor(void* conv, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode, int) {
  FF_ENTRY;
  if (mode != 1) return 2000;
  as<Conv>(conv) = {pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w};
  return 0;
}
int cudnnSetConvolutionGroupCount(void* conv, int groups) {
  FF_ENTRY;
  as<Conv>(conv).groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(void* conv, int math) {
  FF_ENTRY;
  as<Conv>(conv).math = math;
  return 0;
}
int cudnnDestroyConvolutionDescriptor(void* conv) {
  delete static_cast<Conv*>(conv);
  return 0;
}
struct CudnnEstimate {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};
int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void* conv, void*, int asked, int* found, CudnnEstimate* estimates) {
  FF_ENTRY;
  *found = 0;
  if (!offers()) return 0;
  if (asked < 3 || as<Conv>(conv).math < 0) return 2000;
  estimates[0] = {6, 0, 0.1F, 0, 1, 0, {}};
  estimates[1] = {1, 0, 0.2F, 512, 1, 0, {}};
  estimates[2] = {4, 3000, -1, 0, 1, 0, {}};
  *found = 3;
  return 0;
}
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm, std::size_t* size) {
  FF_ENTRY;
  *size = algorithm == 1 ? 1024 : 0;
  return 0;
}
int cudnnFindConvolutionForwardAlgorithmEx(void*, void*, const void*, void*, const void*, void*, void*, void* y, int asked, int* found,
                                           CudnnEstimate* estimates, void* workspace, std::size_t size) {
  FF_ENTRY;
  if (asked < 1 || y == nullptr || workspace == nullptr || size < 1024) return 2000;
  estimates[0] = {1, 0, 0.1F, 1024, 1, 0, {}};
  *found = 1;
  return 0;
}
int cudnnConvolutionForward(void*, const void* alpha, void* x_of, const void* x, void* w_of, const void* w, void* conv, int algorithm,
                            void* workspace, std::size_t size, const void* beta, void* y_of, void* y) {
  FF_ENTRY;
  const bool f64 = as<Tensor>(x_of).type == 1;
  const double a = f64 ? *static_cast<const double*>(alpha) : static_cast<double>(*static_cast<const float*>(alpha)),
               b = f64 ? *static_cast<const double*>(beta) : static_cast<double>(*static_cast<const float*>(beta));
  if (a != 1 || b != 0 || (algorithm == 1 && (workspace == nullptr || size < 1024))) return 2000;
  return convolve(cudnn_type(as<Tensor>(x_of).type), as<Tensor>(x_of), x, as<Tensor>(w_of), w, as<Conv>(conv), as<Tensor>(y_of), y,
                  algorithm == 6 ? "Winograd" : "implicit GEMM");
}

}  // extern "C"
