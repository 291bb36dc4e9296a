#pragma once

// What kernel sources see when they are compiled into this program for the CPU back end: a block's threads are fibers on one
// OS thread, so that barriers and wavefront operations do what they do on a GPU.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

namespace ff::gpu::host {

struct Index {
  unsigned x, y, z;
};

/// Where the running fiber stands. Set by the scheduler.
struct Place {
  Index thread, block, block_size, grid_size;
  unsigned lane = 0;        ///< within the wavefront
  unsigned wavefront = 32;  ///< lanes of one wavefront
  void* dynamic_shared = nullptr;
};
extern thread_local Place* place;

void barrier();  ///< all threads of the block
void yield();    ///< lets other threads of the block run: what a GPU does between any two instructions
/// Every lane gives a value and gets that of lane `from` of its wavefront. All lanes of the wavefront must call it.
std::uint64_t exchange(std::uint64_t value, unsigned from);
std::uint64_t ballot(bool predicate);

template <class... A, std::size_t... I>
void unpack(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<A*>(arguments[I])...);
}
/// HostKernel::entry of a kernel.
template <auto kernel>
struct Entry;
template <class... A, void (*kernel)(A...)>
struct Entry<kernel> {
  static void call(void** arguments) { unpack(kernel, arguments, std::index_sequence_for<A...>()); }
  static constexpr std::size_t sizes[sizeof...(A)] = {sizeof(A)...};
};

}  // namespace ff::gpu::host
