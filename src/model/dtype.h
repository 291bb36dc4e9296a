#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ff::model {

/// Element types of safetensors (safetensors 0.8, src/tensor.rs Dtype). FNUZ: the FP8 types of MI300, without infinity.
enum class Dtype {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

[[nodiscard]] std::string_view dtype_name(Dtype dtype);  ///< "BF16"
[[nodiscard]] std::optional<Dtype> dtype_from_name(std::string_view name);
[[nodiscard]] unsigned dtype_bits(Dtype dtype);  ///< of one element
/// Can elements be NaN or infinite? F4 and F6 have no such value.
[[nodiscard]] bool dtype_can_be_nonfinite(Dtype dtype);
/// Floating point of at least 16 bits: what weights are stored in.
[[nodiscard]] bool dtype_is_wide_float(Dtype dtype);

}  // namespace ff::model
