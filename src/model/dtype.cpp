#include "model/dtype.h"

#include <array>

namespace ff::model {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  unsigned bits;
  bool nonfinite, wide_float;
};
constexpr std::array rows = std::to_array<Row>({
    {Dtype::boolean, "BOOL", 8, false, false},
    {Dtype::f4, "F4", 4, false, false},
    {Dtype::f6_e2m3, "F6_E2M3", 6, false, false},
    {Dtype::f6_e3m2, "F6_E3M2", 6, false, false},
    {Dtype::u8, "U8", 8, false, false},
    {Dtype::i8, "I8", 8, false, false},
    {Dtype::f8_e5m2, "F8_E5M2", 8, true, false},
    {Dtype::f8_e4m3, "F8_E4M3", 8, true, false},
    {Dtype::f8_e8m0, "F8_E8M0", 8, true, false},
    {Dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, true, false},
    {Dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, true, false},
    {Dtype::i16, "I16", 16, false, false},
    {Dtype::u16, "U16", 16, false, false},
    {Dtype::f16, "F16", 16, true, true},
    {Dtype::bf16, "BF16", 16, true, true},
    {Dtype::i32, "I32", 32, false, false},
    {Dtype::u32, "U32", 32, false, false},
    {Dtype::f32, "F32", 32, true, true},
    {Dtype::c64, "C64", 64, true, true},
    {Dtype::f64, "F64", 64, true, true},
    {Dtype::i64, "I64", 64, false, false},
    {Dtype::u64, "U64", 64, false, false},
});
constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].dtype) != i) return false;
  return true;
}
static_assert(in_order());
const Row& row(Dtype dtype) { return rows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(Dtype dtype) { return row(dtype).name; }
std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const auto& r : rows)
    if (r.name == name) return r.dtype;
  return std::nullopt;
}
unsigned dtype_bits(Dtype dtype) { return row(dtype).bits; }
bool dtype_can_be_nonfinite(Dtype dtype) { return row(dtype).nonfinite; }
bool dtype_is_wide_float(Dtype dtype) { return row(dtype).wide_float; }

}  // namespace ff::model
