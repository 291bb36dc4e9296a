// How many values are NaN or infinite. A value is so when all bits of its exponent are set; adding the exponent's lowest bit
// carries into the sign's place exactly then, for one, two or four values a word alike. Eight-bit types that have one NaN code only:
// `flip` turns that code's lower bits into ones, and without `any` its sign has to be set too.
template <u32 exponent, u32 one, u32 sign, u32 flip, u32 any>
FF_DEVICE u32 ff_not_finite(u32 w) {
  return (((w ^ flip) & exponent) + one) & sign & (w | any);
}
template <u32 exponent, u32 one, u32 sign, u32 flip = 0, u32 any = ~0u>
FF_DEVICE void ff_finite(u64* r, const ff_vec* x, u64 vectors) {
  const u64 stride = ff_stride();
  u32 count = 0;
  u64 first = ~0ull;
  for (u64 i = ff_global(); i < vectors; i += 4 * stride) {
    u32 hit[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      hit[j] = 0;
      if (i + j * stride < vectors) {
        const ff_vec v = x[i + j * stride];
#pragma unroll
        for (u32 k = 0; k < 4; ++k) hit[j] |= ff_not_finite<exponent, one, sign, flip, any>(v.w[k]);
      }
    }
    if ((hit[0] | hit[1] | hit[2] | hit[3]) != 0)
      for (u32 j = 0; j < 4; ++j) {
        if (hit[j] == 0) continue;
        const u64 at = i + j * stride;
        const ff_vec v = x[at];
        for (u32 k = 0; k < 4; ++k) {
          const u32 h = ff_not_finite<exponent, one, sign, flip, any>(v.w[k]);
          count += ff_popcount(h);
          if (h != 0 && at * 4 + k < first) first = at * 4 + k;
        }
      }
  }
  if (count != 0) {
    ff_atomic_add(&r[0], (u64)count);
    ff_atomic_min(&r[1], first);
  }
}
/// r[2]: how many, and the number of the first 32-bit word that holds one (start with ~0).
FF_KERNEL(finite_f32)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7f800000u, 0x00800000u, 0x80000000u>(r, x, vectors); }
FF_KERNEL(finite_f16)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7c007c00u, 0x04000400u, 0x80008000u>(r, x, vectors); }
FF_KERNEL(finite_bf16)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7f807f80u, 0x00800080u, 0x80008000u>(r, x, vectors); }
FF_KERNEL(finite_e5m2)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7c7c7c7cu, 0x04040404u, 0x80808080u>(r, x, vectors); }
FF_KERNEL(finite_e4m3)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7f7f7f7fu, 0x01010101u, 0x80808080u>(r, x, vectors); }
FF_KERNEL(finite_fnuz)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7f7f7f7fu, 0x01010101u, 0x80808080u, 0x7f7f7f7fu, 0>(r, x, vectors); }
FF_KERNEL(finite_e8m0)(u64* r, const ff_vec* x, u64 vectors) { ff_finite<0x7f7f7f7fu, 0x01010101u, 0x80808080u, 0, 0>(r, x, vectors); }
FF_KERNEL(finite_f64)(u64* r, const ff_vec* x, u64 vectors) {
  u32 count = 0;
  u64 first = ~0ull;
  for (u64 i = ff_global(); i < vectors; i += ff_stride()) {
    const ff_vec v = x[i];
    for (u32 k = 1; k < 4; k += 2)
      if (((v.w[k] & 0x7ff00000u) + 0x00100000u) & 0x80000000u) {
        ++count;
        if (i * 4 + k < first) first = i * 4 + k;
      }
  }
  if (count != 0) {
    ff_atomic_add(&r[0], (u64)count);
    ff_atomic_min(&r[1], first);
  }
}
FF_KERNELS(finite, FF_K(finite_f32) FF_K(finite_f16) FF_K(finite_bf16) FF_K(finite_f64) FF_K(finite_e5m2) FF_K(finite_e4m3) FF_K(finite_fnuz)
                       FF_K(finite_e8m0))
