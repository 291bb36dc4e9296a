#pragma once

#include <memory>
#include <string>

#include "gpu/device.h"

namespace ff::gpu {

/// Inputs of a product in eight bits. The fnuz forms are those of gfx94x, the others (OCP) of everything later and of NVIDIA.
enum class Float8 { e4m3, e5m2, e4m3fnuz, e5m2fnuz };

/// The vendor's library for products with eight-bit inputs: cuBLASLt for CUDA, hipBLASLt for HIP.
class BlasLt {
 public:
  virtual ~BlasLt() = default;
  /// C = A B', row-major: A is m x k, B is n x k, C is m x n in f32, which is also what is accumulated in; the scales are 1. The one
  /// layout that all devices have; m, n and k multiples of 16. "unsupported: ..." where the device lacks the combination.
  virtual Result<void> multiply(Float8 a_type, Float8 b_type, unsigned m, unsigned n, unsigned k, Address a, Address b, Address c, Stream stream) = 0;
  [[nodiscard]] const std::string& library() const { return library_; }

 protected:
  std::string library_;
};

/// Opens the library that belongs to the device's API; its remedy says what to install.
[[nodiscard]] Result<std::unique_ptr<BlasLt>> open_blas_lt(Device& device, const OpenOptions& options = {});

}  // namespace ff::gpu
