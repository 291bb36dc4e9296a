#pragma once

#include <span>
#include <string_view>

#include "gpu/device.h"

namespace ff::gpu {

/// The kernels of this program, one source a topic: memory, elementwise, reduction, matrix, neural, parallel, finite, float8. The same
/// text is compiled into the program for the CPU (kernels_host.cpp) and embedded for the run-time compilers.
[[nodiscard]] std::span<const KernelSource> kernel_sources();
/// One of them; null when there is none of that name.
[[nodiscard]] const KernelSource* kernel_source(std::string_view name);

// Structures that kernels take by value.
struct GemmShape {
  std::uint32_t m, n, k, lda, ldb, ldc, trans_a, trans_b;
  std::uint64_t batch_a, batch_b, batch_c;
};
struct ConvShape {
  std::uint32_t batch, in_channels, height, width, out_channels, kernel_h, kernel_w, stride, pad, dilation, groups, out_h, out_w;
};
struct AttentionShape {
  std::uint32_t heads, queries, keys, width, causal;
};

}  // namespace ff::gpu
