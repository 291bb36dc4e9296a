// Eight-bit floating point. Formats: 0 e4m3 (OCP: no infinity, one NaN a sign), 1 e5m2 (OCP: as IEEE), 2 e4m3fnuz and 3 e5m2fnuz
// (gfx94x: bias one larger, no infinity, no -0, NaN is 0x80). Encoding rounds to nearest, ties to even; what is beyond the
// largest number becomes that (the instructions of NVIDIA saturate so; for AMD's the values are kept within). Where the target has
// instructions for a format they are used, else the same in whole-number arithmetic.
struct ff_float8 {
  i32 mantissa, bias;
  f32 largest;
  u32 nan;
};
FF_DEVICE ff_float8 ff_float8_of(u32 format) {
  ff_float8 f;
  f.mantissa = format == 0 || format == 2 ? 3 : 2;
  f.bias = format == 0 ? 7 : format == 1 ? 15 : format == 2 ? 8 : 16;
  f.largest = format == 0 ? 448.0f : format == 2 ? 240.0f : 57344.0f;
  f.nan = format < 2 ? 0x7fu : 0x80u;
  return f;
}
FF_DEVICE f32 ff_power_of_two(i32 e) { return ff_float((u32)(e + 127) << 23); }

#if defined(FF_CUDA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define FF_FLOAT8_OCP 1
FF_DEVICE u32 ff_encode_hard(f32 v, u32 format) {
  u16 bits;
  if (format == 0)
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(v));
  else
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(v));
  return bits & 0xffu;
}
FF_DEVICE f32 ff_decode_hard(u32 bits, u32 format) {
  u32 two;
  if (format == 0)
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"((u16)bits));
  else
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(two) : "h"((u16)bits));
  return ff_half_value((u16)(two & 0xffffu));
}
#elif defined(FF_HIP) && \
    (defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || defined(__gfx950__) || defined(__gfx1200__) || defined(__gfx1201__))
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define FF_FLOAT8_FNUZ 1
#else
#define FF_FLOAT8_OCP 1
#endif
FF_DEVICE u32 ff_encode_hard(f32 v, u32 format) {
  return (u32)(format == 0 || format == 2 ? __builtin_amdgcn_cvt_pk_fp8_f32(v, v, 0, false) : __builtin_amdgcn_cvt_pk_bf8_f32(v, v, 0, false)) &
         0xffu;
}
FF_DEVICE f32 ff_decode_hard(u32 bits, u32 format) {
  return format == 0 || format == 2 ? __builtin_amdgcn_cvt_f32_fp8((int)bits, 0) : __builtin_amdgcn_cvt_f32_bf8((int)bits, 0);
}
#endif

/// Whether the target has instructions for the format.
FF_DEVICE bool ff_float8_hard(u32 format) {
#if defined(FF_FLOAT8_OCP)
  return format < 2;
#elif defined(FF_FLOAT8_FNUZ)
  return format >= 2;
#else
  return false;
#endif
}

FF_DEVICE u32 ff_encode8(f32 v, u32 format) {
  const ff_float8 f = ff_float8_of(format);
  const u32 sign = ff_bits(v) >> 31 << 7;
  f32 x = ff_float(ff_bits(v) & 0x7fffffffu);
  if (x != x) return f.nan;
  if (x > f.largest) x = f.largest;
  i32 e = (i32)(ff_bits(x) >> 23) - 127;
  if (e < 1 - f.bias) e = 1 - f.bias;
  // In units of the last place; exact, since both are powers of two.
  u32 units = (u32)ff_rint(x * ff_power_of_two(f.mantissa - e));
  if (units >= 2u << f.mantissa) {  // rounded up to the next power of two
    units >>= 1;
    ++e;
  }
  const u32 one = 1u << f.mantissa;
  const u32 bits = units < one ? units : (u32)(e + f.bias) << f.mantissa | (units - one);
  return bits == 0 && format >= 2 ? 0 : sign | bits;
}
FF_DEVICE f32 ff_decode8(u32 bits, u32 format) {
  const ff_float8 f = ff_float8_of(format);
  const u32 magnitude = bits & 0x7fu, sign = bits << 24 & 0x80000000u;
  if (format >= 2 ? bits == 0x80u : format == 0 ? magnitude == 0x7fu : magnitude > 0x7cu) return ff_float(0x7fc00000u);
  if (format == 1 && magnitude == 0x7cu) return ff_float(sign | 0x7f800000u);
  const i32 e = (i32)(magnitude >> f.mantissa);
  const u32 fraction = magnitude & ((1u << f.mantissa) - 1);
  const f32 units = (f32)(e == 0 ? fraction : fraction + (1u << f.mantissa));
  return ff_float(sign | ff_bits(units * ff_power_of_two((e == 0 ? 1 : e) - f.bias - f.mantissa)));
}

FF_KERNEL(float8_encode)(u8* out, const f32* a, u32 format, u64 n) {
  for (u64 i = ff_global(); i < n; i += ff_stride()) {
    u32 bits = ff_encode8(a[i], format);
#if defined(FF_FLOAT8_OCP) || defined(FF_FLOAT8_FNUZ)
    if (ff_float8_hard(format)) bits = ff_encode_hard(a[i], format);
#endif
    out[i] = (u8)bits;
  }
}
FF_KERNEL(float8_decode)(f32* out, const u8* a, u32 format, u64 n) {
  for (u64 i = ff_global(); i < n; i += ff_stride()) {
    f32 v = ff_decode8(a[i], format);
#if defined(FF_FLOAT8_OCP) || defined(FF_FLOAT8_FNUZ)
    if (ff_float8_hard(format)) v = ff_decode_hard(a[i], format);
#endif
    out[i] = v;
  }
}
/// 1 for each format that the target has instructions for.
FF_KERNEL(float8_hard)(u32* out) {
  if (ff_global() < 4) out[ff_global()] = ff_float8_hard((u32)ff_global()) ? 1u : 0u;
}
FF_KERNELS(float8, FF_K(float8_encode) FF_K(float8_decode) FF_K(float8_hard))
