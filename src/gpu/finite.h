#pragma once

#include <cstdint>
#include <memory>

#include "gpu/device.h"

namespace ff::gpu {

/// Counts NaN and infinities in memory that is on a device already, in one pass at the speed of the memory.
class FiniteScan {
 public:
  enum class Type { f32, f16, bf16, f64, e5m2, e4m3, fnuz, e8m0 };  ///< fnuz: e4m3fnuz and e5m2fnuz, whose one NaN is 0x80
  struct Count {
    std::uint64_t nonfinite = 0;
    std::uint64_t first_word = 0;  ///< number of the first 32-bit word that holds one; meaningful when there are any
  };
  /// Compiles the kernels for the device, which must outlive this.
  static Result<FiniteScan> make(Device& device);
  /// Puts the scan of `size_bytes` at `address` (both multiples of 16) on the stream; results are added up until `take`.
  Result<void> add(Type type, Address address, std::uint64_t size_bytes, Stream stream = nullptr);
  /// Waits, returns what was counted since the last time, and starts anew.
  Result<Count> take(Stream stream = nullptr);

 private:
  explicit FiniteScan(Device& device) : device_(&device) {}
  Device* device_;
  std::unique_ptr<Module> module_;
  Buffer result_;
};

}  // namespace ff::gpu
