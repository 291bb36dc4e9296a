#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/kernels.h"

namespace ff::gpu {

/// What a vendor's convolution computes with; f16 and bf16 accumulate in f32. tf32: f32 in and out, products in TF32.
enum class DnnType { f64, f32, tf32, f16, bf16 };

/// One way in which the library offers to compute one convolution.
struct ConvAlgorithm {
  std::string name;      ///< "GEMM", "Winograd, solution 53", "implicit GEMM"
  std::uint64_t id = 0;  ///< the library's number of it
  std::uint64_t workspace_bytes = 0;
  bool transforms = false;  ///< Winograd or Fourier: the terms are not added as they stand, so another error analysis holds
  bool may_differ = false;  ///< the library says that its results are not the same from run to run
};

/// One convolution that was described to the library: the shape, the type, and what lies in memory (NCHW, packed).
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// What the library offers without trying (MIOpen's immediate mode, cuDNN's heuristics), fastest by its own estimate first.
  /// Empty: it has nothing for this shape and type.
  [[nodiscard]] virtual Result<std::vector<ConvAlgorithm>> offered() = 0;
  /// What the library chooses when it may try them out on these arrays ("find"); y is overwritten.
  [[nodiscard]] virtual Result<ConvAlgorithm> find(Address x, Address w, Address y, Address workspace, std::uint64_t workspace_bytes) = 0;
  /// Workspace that `find` wants, in bytes.
  [[nodiscard]] virtual Result<std::uint64_t> find_workspace() = 0;
  /// y = x * w by this algorithm, on the stream. The workspace is at least as large as the algorithm asks.
  virtual Result<void> run(const ConvAlgorithm& algorithm, Address x, Address w, Address y, Address workspace, std::uint64_t workspace_bytes,
                           Stream stream) = 0;
};

/// The vendor's library of convolutions: cuDNN for CUDA, MIOpen for HIP. Errors name the call and the library's status;
/// "unsupported: ..." where the library has no such convolution.
class Dnn {
 public:
  virtual ~Dnn() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<Convolution>> convolution(DnnType type, const ConvShape& shape) = 0;
  [[nodiscard]] const std::string& library() const { return library_; }  ///< "MIOpen 3.2.0 (libMIOpen.so.1)"

 protected:
  std::string library_;
};

/// Opens the library that belongs to the device's API; its remedy says what to install.
[[nodiscard]] Result<std::unique_ptr<Dnn>> open_dnn(Device& device, const OpenOptions& options = {});
[[nodiscard]] Result<std::unique_ptr<Dnn>> open_cudnn(const OpenOptions& options);
[[nodiscard]] Result<std::unique_ptr<Dnn>> open_miopen(const OpenOptions& options);

}  // namespace ff::gpu
