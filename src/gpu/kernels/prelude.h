// Goes before every kernel source: the same words for NVRTC, hipRTC, clang and this program's own compiler. No header of
// any vendor is needed. FF_WAVE is the wavefront's width on a GPU.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;

#if defined(FF_CUDA)
#define FF_KERNEL(name) extern "C" __global__ void __launch_bounds__(1024) name
#define FF_DEVICE static __device__ __forceinline__
#define FF_SHARED(type, name, count) __shared__ type name[count]
#define FF_DYNAMIC(type, name)               \
  extern __shared__ u64 ff_dynamic_memory[]; \
  type* name = (type*)ff_dynamic_memory
#define FF_KERNELS(set, list)
#define FF_GLOBAL_ATOMIC
FF_DEVICE u32 ff_thread() { return threadIdx.x; }
FF_DEVICE u32 ff_thread_y() { return threadIdx.y; }
FF_DEVICE u32 ff_thread_z() { return threadIdx.z; }
FF_DEVICE u32 ff_block() { return blockIdx.x; }
FF_DEVICE u32 ff_block_y() { return blockIdx.y; }
FF_DEVICE u32 ff_block_z() { return blockIdx.z; }
FF_DEVICE u32 ff_block_size() { return blockDim.x; }
FF_DEVICE u32 ff_block_size_y() { return blockDim.y; }
FF_DEVICE u32 ff_block_size_z() { return blockDim.z; }
FF_DEVICE u32 ff_grid() { return gridDim.x; }
FF_DEVICE u32 ff_grid_y() { return gridDim.y; }
FF_DEVICE u32 ff_wave() { return 32; }
FF_DEVICE u32 ff_lane() {
  u32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
FF_DEVICE void ff_barrier() { __syncthreads(); }
FF_DEVICE void ff_yield() {}
FF_DEVICE u32 ff_exchange(u32 v, u32 from) { return __shfl_sync(0xffffffffu, v, (int)from); }
FF_DEVICE u64 ff_ballot(bool p) { return __ballot_sync(0xffffffffu, p); }
FF_DEVICE f32 ff_fma(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
FF_DEVICE f64 ff_fma(f64 a, f64 b, f64 c) { return fma(a, b, c); }
FF_DEVICE f32 ff_sqrt(f32 a) { return sqrtf(a); }
FF_DEVICE f64 ff_sqrt(f64 a) { return sqrt(a); }
FF_DEVICE f32 ff_rint(f32 a) { return rintf(a); }
FF_DEVICE u32 ff_popcount(u32 a) { return (u32)__popc(a); }
FF_DEVICE f32 ff_half_value(u16 bits) {
  f32 v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
FF_DEVICE u16 ff_half_bits(f32 v) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}
FF_DEVICE u32 ff_atomic_add(u32* p, u32 v) { return atomicAdd(p, v); }
FF_DEVICE u64 ff_atomic_add(u64* p, u64 v) { return atomicAdd(p, v); }
FF_DEVICE f32 ff_atomic_add(f32* p, f32 v) { return atomicAdd(p, v); }
FF_DEVICE f64 ff_atomic_add(f64* p, f64 v) { return atomicAdd(p, v); }
FF_DEVICE u32 ff_atomic_sub(u32* p, u32 v) { return atomicSub(p, v); }
FF_DEVICE u32 ff_atomic_min(u32* p, u32 v) { return atomicMin(p, v); }
FF_DEVICE u32 ff_atomic_max(u32* p, u32 v) { return atomicMax(p, v); }
FF_DEVICE i32 ff_atomic_min(i32* p, i32 v) { return atomicMin(p, v); }
FF_DEVICE i32 ff_atomic_max(i32* p, i32 v) { return atomicMax(p, v); }
FF_DEVICE u64 ff_atomic_min(u64* p, u64 v) { return atomicMin(p, v); }
FF_DEVICE u64 ff_atomic_max(u64* p, u64 v) { return atomicMax(p, v); }
FF_DEVICE u32 ff_atomic_and(u32* p, u32 v) { return atomicAnd(p, v); }
FF_DEVICE u32 ff_atomic_or(u32* p, u32 v) { return atomicOr(p, v); }
FF_DEVICE u32 ff_atomic_xor(u32* p, u32 v) { return atomicXor(p, v); }
FF_DEVICE u32 ff_atomic_exchange(u32* p, u32 v) { return atomicExch(p, v); }
FF_DEVICE u32 ff_atomic_swap_if(u32* p, u32 expected, u32 v) { return atomicCAS(p, expected, v); }
FF_DEVICE u64 ff_atomic_swap_if(u64* p, u64 expected, u64 v) { return atomicCAS(p, expected, v); }
FF_DEVICE u32 ff_atomic_add_block(u32* p, u32 v) { return atomicAdd_block(p, v); }
FF_DEVICE u32 ff_atomic_add_system(u32* p, u32 v) { return atomicAdd_system(p, v); }
#elif defined(FF_HIP)
#define FF_KERNEL(name) extern "C" __attribute__((global)) __attribute__((launch_bounds(1024))) void name
#define FF_DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define FF_SHARED(type, name, count) static __attribute__((shared)) type name[count]
#define FF_DYNAMIC(type, name)                            \
  extern __attribute__((shared)) u64 ff_dynamic_memory[]; \
  type* name = (type*)ff_dynamic_memory
#define FF_KERNELS(set, list)
FF_DEVICE u32 ff_thread() { return __builtin_amdgcn_workitem_id_x(); }
FF_DEVICE u32 ff_thread_y() { return __builtin_amdgcn_workitem_id_y(); }
FF_DEVICE u32 ff_thread_z() { return __builtin_amdgcn_workitem_id_z(); }
FF_DEVICE u32 ff_block() { return __builtin_amdgcn_workgroup_id_x(); }
FF_DEVICE u32 ff_block_y() { return __builtin_amdgcn_workgroup_id_y(); }
FF_DEVICE u32 ff_block_z() { return __builtin_amdgcn_workgroup_id_z(); }
FF_DEVICE u32 ff_block_size() { return __builtin_amdgcn_workgroup_size_x(); }
FF_DEVICE u32 ff_block_size_y() { return __builtin_amdgcn_workgroup_size_y(); }
FF_DEVICE u32 ff_block_size_z() { return __builtin_amdgcn_workgroup_size_z(); }
FF_DEVICE u32 ff_grid() { return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(); }
FF_DEVICE u32 ff_grid_y() { return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(); }
FF_DEVICE u32 ff_wave() { return FF_WAVE; }
#if FF_WAVE == 64
FF_DEVICE u32 ff_lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
FF_DEVICE u64 ff_ballot(bool p) { return __builtin_amdgcn_uicmp(p ? 1u : 0u, 0u, 33); }
#else
FF_DEVICE u32 ff_lane() { return __builtin_amdgcn_mbcnt_lo(~0u, 0u); }
FF_DEVICE u64 ff_ballot(bool p) { return __builtin_amdgcn_ballot_w32(p); }
#endif
FF_DEVICE void ff_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
FF_DEVICE void ff_yield() {}
FF_DEVICE u32 ff_exchange(u32 v, u32 from) { return (u32)__builtin_amdgcn_ds_bpermute((int)((from & (FF_WAVE - 1)) << 2), (int)v); }
FF_DEVICE f32 ff_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
FF_DEVICE f64 ff_fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
FF_DEVICE f32 ff_sqrt(f32 a) { return __builtin_sqrtf(a); }
FF_DEVICE f64 ff_sqrt(f64 a) { return __builtin_sqrt(a); }
FF_DEVICE f32 ff_rint(f32 a) { return __builtin_rintf(a); }
FF_DEVICE u32 ff_popcount(u32 a) { return (u32)__builtin_popcount(a); }
FF_DEVICE f32 ff_half_value(u16 bits) {
  union {
    u16 u;
    _Float16 h;
  } c;
  c.u = bits;
  return (f32)c.h;
}
FF_DEVICE u16 ff_half_bits(f32 v) {
  union {
    u16 u;
    _Float16 h;
  } c;
  c.h = (_Float16)v;
  return c.u;
}
#define FF_FETCH(op, p, v) __hip_atomic_fetch_##op(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
FF_DEVICE u32 ff_atomic_add(u32* p, u32 v) { return FF_FETCH(add, p, v); }
FF_DEVICE u64 ff_atomic_add(u64* p, u64 v) { return FF_FETCH(add, p, v); }
FF_DEVICE f32 ff_atomic_add(f32* p, f32 v) { return FF_FETCH(add, p, v); }
FF_DEVICE f64 ff_atomic_add(f64* p, f64 v) { return FF_FETCH(add, p, v); }
FF_DEVICE u32 ff_atomic_sub(u32* p, u32 v) { return FF_FETCH(add, p, (u32)(0u - v)); }
FF_DEVICE u32 ff_atomic_min(u32* p, u32 v) { return FF_FETCH(min, p, v); }
FF_DEVICE u32 ff_atomic_max(u32* p, u32 v) { return FF_FETCH(max, p, v); }
FF_DEVICE i32 ff_atomic_min(i32* p, i32 v) { return FF_FETCH(min, p, v); }
FF_DEVICE i32 ff_atomic_max(i32* p, i32 v) { return FF_FETCH(max, p, v); }
FF_DEVICE u64 ff_atomic_min(u64* p, u64 v) { return FF_FETCH(min, p, v); }
FF_DEVICE u64 ff_atomic_max(u64* p, u64 v) { return FF_FETCH(max, p, v); }
FF_DEVICE u32 ff_atomic_and(u32* p, u32 v) { return FF_FETCH(and, p, v); }
FF_DEVICE u32 ff_atomic_or(u32* p, u32 v) { return FF_FETCH(or, p, v); }
FF_DEVICE u32 ff_atomic_xor(u32* p, u32 v) { return FF_FETCH(xor, p, v); }
FF_DEVICE u32 ff_atomic_exchange(u32* p, u32 v) { return __hip_atomic_exchange(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
FF_DEVICE u32 ff_atomic_swap_if(u32* p, u32 expected, u32 v) {
  __hip_atomic_compare_exchange_strong(p, &expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
FF_DEVICE u64 ff_atomic_swap_if(u64* p, u64 expected, u64 v) {
  __hip_atomic_compare_exchange_strong(p, &expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
FF_DEVICE u32 ff_atomic_add_block(u32* p, u32 v) { return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
FF_DEVICE u32 ff_atomic_add_system(u32* p, u32 v) { return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
#else  // this program, for the CPU back end; gpu/host_kernel.h stands before
#define FF_HOST 1
#define FF_KERNEL(name) static void name
#define FF_DEVICE [[maybe_unused]] static inline
#define FF_SHARED(type, name, count) static thread_local type name[count]
#define FF_DYNAMIC(type, name) type* name = static_cast<type*>(host::place->dynamic_shared)
#define FF_K(name) HostKernel{#name, &host::Entry<&name>::call, host::Entry<&name>::sizes},
#define FF_KERNELS(set, list) constexpr HostKernel set##_kernels[] = {list};
FF_DEVICE u32 ff_thread() { return host::place->thread.x; }
FF_DEVICE u32 ff_thread_y() { return host::place->thread.y; }
FF_DEVICE u32 ff_thread_z() { return host::place->thread.z; }
FF_DEVICE u32 ff_block() { return host::place->block.x; }
FF_DEVICE u32 ff_block_y() { return host::place->block.y; }
FF_DEVICE u32 ff_block_z() { return host::place->block.z; }
FF_DEVICE u32 ff_block_size() { return host::place->block_size.x; }
FF_DEVICE u32 ff_block_size_y() { return host::place->block_size.y; }
FF_DEVICE u32 ff_block_size_z() { return host::place->block_size.z; }
FF_DEVICE u32 ff_grid() { return host::place->grid_size.x; }
FF_DEVICE u32 ff_grid_y() { return host::place->grid_size.y; }
FF_DEVICE u32 ff_wave() { return host::place->wavefront; }
FF_DEVICE u32 ff_lane() { return host::place->lane; }
FF_DEVICE void ff_barrier() { host::barrier(); }
FF_DEVICE void ff_yield() { host::yield(); }
FF_DEVICE u32 ff_exchange(u32 v, u32 from) { return static_cast<u32>(host::exchange(v, from)); }
FF_DEVICE u64 ff_ballot(bool p) { return host::ballot(p); }
FF_DEVICE f32 ff_fma(f32 a, f32 b, f32 c) { return a * b + c; }  // two roundings: the bounds allow for them
FF_DEVICE f64 ff_fma(f64 a, f64 b, f64 c) { return a * b + c; }
FF_DEVICE f32 ff_sqrt(f32 a) { return __builtin_sqrtf(a); }
FF_DEVICE f64 ff_sqrt(f64 a) { return __builtin_sqrt(a); }
FF_DEVICE f32 ff_rint(f32 a) { return __builtin_rintf(a); }
FF_DEVICE u32 ff_popcount(u32 a) { return static_cast<u32>(__builtin_popcount(a)); }
FF_DEVICE f32 ff_half_value(u16 bits) { return host::half_value(bits); }
FF_DEVICE u16 ff_half_bits(f32 v) { return host::half_bits(v); }
#define FF_FETCH(op, p, v) __atomic_fetch_##op(p, v, __ATOMIC_RELAXED)
template <class T, class F>
static inline T ff_host_update(T* p, F f) {
  T old, now;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do now = f(old);
  while (!__atomic_compare_exchange(p, &old, &now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
FF_DEVICE u32 ff_atomic_add(u32* p, u32 v) { return FF_FETCH(add, p, v); }
FF_DEVICE u64 ff_atomic_add(u64* p, u64 v) { return FF_FETCH(add, p, v); }
FF_DEVICE f32 ff_atomic_add(f32* p, f32 v) {
  return ff_host_update(p, [=](f32 o) { return o + v; });
}
FF_DEVICE f64 ff_atomic_add(f64* p, f64 v) {
  return ff_host_update(p, [=](f64 o) { return o + v; });
}
FF_DEVICE u32 ff_atomic_sub(u32* p, u32 v) { return FF_FETCH(sub, p, v); }
FF_DEVICE u32 ff_atomic_min(u32* p, u32 v) {
  return ff_host_update(p, [=](u32 o) { return o < v ? o : v; });
}
FF_DEVICE u32 ff_atomic_max(u32* p, u32 v) {
  return ff_host_update(p, [=](u32 o) { return o > v ? o : v; });
}
FF_DEVICE i32 ff_atomic_min(i32* p, i32 v) {
  return ff_host_update(p, [=](i32 o) { return o < v ? o : v; });
}
FF_DEVICE i32 ff_atomic_max(i32* p, i32 v) {
  return ff_host_update(p, [=](i32 o) { return o > v ? o : v; });
}
FF_DEVICE u64 ff_atomic_min(u64* p, u64 v) {
  return ff_host_update(p, [=](u64 o) { return o < v ? o : v; });
}
FF_DEVICE u64 ff_atomic_max(u64* p, u64 v) {
  return ff_host_update(p, [=](u64 o) { return o > v ? o : v; });
}
FF_DEVICE u32 ff_atomic_and(u32* p, u32 v) { return FF_FETCH(and, p, v); }
FF_DEVICE u32 ff_atomic_or(u32* p, u32 v) { return FF_FETCH(or, p, v); }
FF_DEVICE u32 ff_atomic_xor(u32* p, u32 v) { return FF_FETCH(xor, p, v); }
FF_DEVICE u32 ff_atomic_exchange(u32* p, u32 v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }
FF_DEVICE u32 ff_atomic_swap_if(u32* p, u32 expected, u32 v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
FF_DEVICE u64 ff_atomic_swap_if(u64* p, u64 expected, u64 v) {
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
FF_DEVICE u32 ff_atomic_add_block(u32* p, u32 v) { return FF_FETCH(add, p, v); }
FF_DEVICE u32 ff_atomic_add_system(u32* p, u32 v) { return FF_FETCH(add, p, v); }
#endif

struct alignas(16) ff_vec {
  u32 w[4];
};

FF_DEVICE u32 ff_bits(f32 v) {
  union {
    f32 f;
    u32 u;
  } c;
  c.f = v;
  return c.u;
}
FF_DEVICE f32 ff_float(u32 v) {
  union {
    f32 f;
    u32 u;
  } c;
  c.u = v;
  return c.f;
}

/// 16-bit types: storage with conversions; arithmetic is done in f32 and rounded once.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
FF_DEVICE u16 ff_bf16_bits(f32 v) {
  u32 u = ff_bits(v);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (u16)((u >> 16) | 0x40u);
  return (u16)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/// The type in which a storage type is computed, and the ways there and back.
template <class T>
struct ff_as {
  typedef T acc;
};
template <>
struct ff_as<f16> {
  typedef f32 acc;
};
template <>
struct ff_as<bf16> {
  typedef f32 acc;
};
template <>
struct ff_as<i8> {
  typedef i32 acc;
};
FF_DEVICE f32 ff_load(f32 v) { return v; }
FF_DEVICE f64 ff_load(f64 v) { return v; }
FF_DEVICE i32 ff_load(i32 v) { return v; }
FF_DEVICE i32 ff_load(i8 v) { return v; }
FF_DEVICE f32 ff_load(f16 v) { return ff_half_value(v.bits); }
FF_DEVICE f32 ff_load(bf16 v) { return ff_float((u32)v.bits << 16); }
FF_DEVICE void ff_store(f32* p, f32 v) { *p = v; }
FF_DEVICE void ff_store(f64* p, f64 v) { *p = v; }
FF_DEVICE void ff_store(i32* p, i32 v) { *p = v; }
FF_DEVICE void ff_store(i8* p, i32 v) { *p = (i8)v; }
FF_DEVICE void ff_store(f16* p, f32 v) { p->bits = ff_half_bits(v); }
FF_DEVICE void ff_store(bf16* p, f32 v) { p->bits = ff_bf16_bits(v); }
FF_DEVICE i32 ff_fma(i32 a, i32 b, i32 c) { return a * b + c; }

FF_DEVICE u64 ff_global() { return (u64)ff_block() * ff_block_size() + ff_thread(); }
FF_DEVICE u64 ff_stride() { return (u64)ff_grid() * ff_block_size(); }
FF_DEVICE f32 ff_exchange(f32 v, u32 from) { return ff_float(ff_exchange(ff_bits(v), from)); }

/// e^x for f32 in plain arithmetic, at most 2 units in the last place: the same on every device, no library.
FF_DEVICE f32 ff_exp(f32 x) {
  if (!(x > -104.0f)) return x != x ? x : 0.0f;
  if (x > 88.8f) return ff_float(0x7f800000u);
  const f32 n = ff_rint(x * 1.44269504f);
  f32 r = ff_fma(-n, 0.693359375f, x);
  r = ff_fma(-n, -2.12194440e-4f, r);
  f32 p = 1.9875691500e-4f;
  p = ff_fma(p, r, 1.3981999507e-3f);
  p = ff_fma(p, r, 8.3334519073e-3f);
  p = ff_fma(p, r, 4.1665795894e-2f);
  p = ff_fma(p, r, 1.6666665459e-1f);
  p = ff_fma(p, r, 5.0000001201e-1f);
  const f32 e = ff_fma(p, r * r, r) + 1.0f;
  // Two steps, so that results below the normal range are right.
  const i32 k = (i32)n, half = k / 2;
  return e * ff_float((u32)(half + 127) << 23) * ff_float((u32)(k - half + 127) << 23);
}
