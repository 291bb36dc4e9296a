// The kernels as functions of this program. Compiled without warnings and with optimisation (CMakeLists.txt): the text is
// written for other compilers.
#include "gpu/half.h"
#include "gpu/host_kernel.h"
#include "gpu/kernels.h"

namespace ff::gpu {
namespace host {
using ff::gpu::half_bits;
using ff::gpu::half_value;
}  // namespace host
namespace {
#include "gpu/kernels/prelude.h"
// One order: later files use words of earlier ones only through the prelude.
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/finite.h"
#include "gpu/kernels/float8.h"
#include "gpu/kernels/matrix.h"
#include "gpu/kernels/memory.h"
#include "gpu/kernels/neural.h"
#include "gpu/kernels/parallel.h"
#include "gpu/kernels/reduction.h"

static_assert(sizeof(ff_gemm_shape) == sizeof(GemmShape) && sizeof(ff_conv_shape) == sizeof(ConvShape) &&
              sizeof(ff_attention_shape) == sizeof(AttentionShape));
}  // namespace

// The texts come in through the assembler: no generated array to compile.
#define FF_TEXT(name)                                                                                          \
  asm(".section .rodata\n.global ff_kernel_" #name "_begin\n.global ff_kernel_" #name "_end\nff_kernel_" #name \
      "_begin:\n.incbin \"gpu/kernels/" #name ".h\"\nff_kernel_" #name "_end:\n.byte 0\n.previous\n");         \
  extern "C" const char ff_kernel_##name##_begin[], ff_kernel_##name##_end[];

FF_TEXT(prelude)
FF_TEXT(memory)
FF_TEXT(elementwise)
FF_TEXT(reduction)
FF_TEXT(matrix)
FF_TEXT(neural)
FF_TEXT(parallel)
FF_TEXT(finite)
FF_TEXT(float8)

namespace {
#define FF_SOURCE(name)                                                                                                                            \
  KernelSource {                                                                                                                                   \
    #name, std::string_view(ff_kernel_##name##_begin, static_cast<std::size_t>(ff_kernel_##name##_end - ff_kernel_##name##_begin)), name##_kernels \
  }
}  // namespace

std::string_view prelude_text() { return {ff_kernel_prelude_begin, static_cast<std::size_t>(ff_kernel_prelude_end - ff_kernel_prelude_begin)}; }

std::span<const KernelSource> kernel_sources() {
  static const KernelSource sources[] = {FF_SOURCE(memory), FF_SOURCE(elementwise), FF_SOURCE(reduction), FF_SOURCE(matrix),
                                         FF_SOURCE(neural), FF_SOURCE(parallel),    FF_SOURCE(finite),    FF_SOURCE(float8)};
  return sources;
}

const KernelSource* kernel_source(std::string_view name) {
  for (const auto& source : kernel_sources())
    if (source.name == name) return &source;
  return nullptr;
}

}  // namespace ff::gpu
