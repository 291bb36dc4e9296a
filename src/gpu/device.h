#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ff::gpu {

/// What a device is driven through. Chosen at run time; each API's libraries are opened when it is asked for.
enum class Api { cpu, cuda, hip };
[[nodiscard]] std::string_view api_name(Api api);  ///< "cpu", "cuda", "hip"

struct Properties {
  Api api = Api::cpu;
  int index = 0;
  std::string name;     ///< "NVIDIA H200", "AMD Instinct MI300X"
  std::string target;   ///< what kernels are compiled for: "sm_90", "gfx90a:sramecc+:xnack-", "x86-64"
  std::string runtime;  ///< "CUDA 13.0 (libcuda.so.1)", "HIP 6.4.43482, ROCm 6 (libamdhip64.so.6)"
  unsigned wavefront = 32;
  unsigned compute_units = 1;
  unsigned max_threads_per_block = 1024;
  std::array<unsigned, 3> max_block{1024, 1024, 64};
  std::array<unsigned, 3> max_grid{0x7fffffffu, 65535, 65535};
  std::size_t shared_bytes_per_block = 48 * 1024;  ///< LDS that a launch gets without asking for more
  std::uint64_t memory_bytes = 0;
  std::uint64_t cache_bytes = 0;  ///< the last level that all compute units share
  unsigned clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
  std::string pci;  ///< "0000:03:00.0"; empty when unknown
  bool integrated = false;
  unsigned devices = 1;  ///< that the runtime shows, this one among them
};

using Address = std::uint64_t;  ///< of device memory; 0 is no memory
using Stream = void*;           ///< null: the default stream
using Event = void*;
using Function = void*;
using Graph = void*;

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

/// A kernel's implementation inside this program, for the CPU back end. `entry` unpacks pointers to the arguments.
struct HostKernel {
  const char* name;
  void (*entry)(void** arguments);
  std::span<const std::size_t> sizes;  ///< bytes of each argument
};

/// One kernel source, for all back ends: text for the run-time compilers, functions for the CPU.
struct KernelSource {
  std::string_view name;
  std::string_view text;
  std::span<const HostKernel> host;
};

class Device;

/// Kernels that were compiled for one device; they live as long as the device.
class Module {
 public:
  virtual ~Module() = default;
  [[nodiscard]] virtual Result<Function> function(const std::string& name) = 0;
};

/// Device memory that frees itself.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, Address address, std::size_t size_bytes) : device_(device), address_(address), size_bytes_(size_bytes) {}
  Buffer(Buffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), address_(std::exchange(other.address_, 0)), size_bytes_(other.size_bytes_) {}
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  [[nodiscard]] Address address() const { return address_; }
  [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

 private:
  Device* device_ = nullptr;
  Address address_ = 0;
  std::size_t size_bytes_ = 0;
};

/// One opened device with its context. Every failure is an Error whose text names the call and the vendor's code
/// ("hipMalloc: hipErrorOutOfMemory (2)"). Not for use by several threads at once.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] const Properties& properties() const { return properties_; }

  [[nodiscard]] virtual Result<Address> allocate(std::size_t size_bytes) = 0;
  virtual Result<void> release(Address address) = 0;
  [[nodiscard]] Result<Buffer> buffer(std::size_t size_bytes);
  [[nodiscard]] virtual Result<void*> allocate_pinned(std::size_t size_bytes) = 0;
  virtual Result<void> release_pinned(void* memory) = 0;
  struct Memory {
    std::uint64_t free_bytes = 0, total_bytes = 0;
  };
  [[nodiscard]] virtual Result<Memory> memory() = 0;

  /// Copies and fills; the `_async` ones return at once and are ordered within their stream.
  virtual Result<void> copy_in(Address to, const void* from, std::size_t size_bytes) = 0;
  virtual Result<void> copy_out(void* to, Address from, std::size_t size_bytes) = 0;
  virtual Result<void> copy(Address to, Address from, std::size_t size_bytes) = 0;
  virtual Result<void> fill(Address to, std::uint8_t value, std::size_t size_bytes) = 0;
  virtual Result<void> copy_in_async(Address to, const void* from, std::size_t size_bytes, Stream stream) = 0;
  virtual Result<void> copy_out_async(void* to, Address from, std::size_t size_bytes, Stream stream) = 0;
  virtual Result<void> copy_async(Address to, Address from, std::size_t size_bytes, Stream stream) = 0;
  virtual Result<void> fill_async(Address to, std::uint8_t value, std::size_t size_bytes, Stream stream) = 0;

  [[nodiscard]] virtual Result<Stream> make_stream() = 0;
  virtual Result<void> release_stream(Stream stream) = 0;
  virtual Result<void> wait(Stream stream) = 0;  ///< null: everything on the device
  [[nodiscard]] virtual Result<Event> make_event() = 0;
  virtual Result<void> release_event(Event event) = 0;
  virtual Result<void> record(Event event, Stream stream) = 0;
  virtual Result<void> wait_event(Event event) = 0;
  virtual Result<void> stream_waits(Stream stream, Event event) = 0;
  [[nodiscard]] virtual Result<double> milliseconds_between(Event from, Event to) = 0;

  /// Compiles for this device. The error holds the compiler's log.
  [[nodiscard]] virtual Result<std::unique_ptr<Module>> compile(const KernelSource& source) = 0;
  virtual Result<void> launch(Function function, Extent grid, Extent block, std::size_t shared_bytes, void** arguments, Stream stream) = 0;

  /// Records what is put on `stream` until end_capture instead of running it. Fails with "unsupported" where graphs are not.
  virtual Result<void> begin_capture(Stream stream) = 0;
  [[nodiscard]] virtual Result<Graph> end_capture(Stream stream) = 0;
  virtual Result<void> launch_graph(Graph graph, Stream stream) = 0;
  virtual Result<void> release_graph(Graph graph) = 0;

  /// Makes this the device of the calling thread again, after another of the same API was opened or used.
  virtual Result<void> use() { return {}; }
  /// From the memory of `other`, which is of the same API; through the link between both where there is one.
  virtual Result<void> copy_from_peer(Address to, Device& other, Address from, std::size_t size_bytes);
  /// Whether kernels of this device may read the memory of `other` in place; allowed from then on.
  [[nodiscard]] virtual Result<bool> reach(Device& other);

 protected:
  Properties properties_;
};

/// Arguments of one launch: `device.launch(f, grid, block, 0, Arguments(a, b, n), stream)`.
template <class... A>
class Arguments {
 public:
  explicit Arguments(A... a) : values_(a...) { bind(std::index_sequence_for<A...>()); }
  operator void**() { return pointers_.data(); }  // NOLINT: this is what it is for

 private:
  template <std::size_t... I>
  void bind(std::index_sequence<I...>) {
    ((pointers_[I] = static_cast<void*>(&std::get<I>(values_))), ...);
  }
  std::tuple<A...> values_;
  std::array<void*, sizeof...(A) == 0 ? 1 : sizeof...(A)> pointers_{};
};

struct OpenOptions {
  int index = 0;
  unsigned cpu_wavefront = 32;               ///< 32 or 64: which wavefront the CPU back end plays
  std::vector<std::string> library_folders;  ///< searched before the usual places
};

/// How far the opening got; `runtime` fails before `context` does.
enum class OpenStage { library, runtime, device, context };
struct OpenFailure {
  OpenStage stage = OpenStage::library;
  Error error;
};
using Opened = std::expected<std::unique_ptr<Device>, OpenFailure>;

/// Opens one device of one API. Must run in a process of its own where a broken driver may hang or crash.
[[nodiscard]] Opened open(Api api, const OpenOptions& options = {});
[[nodiscard]] Opened open_cpu(const OpenOptions& options);
[[nodiscard]] Opened open_cuda(const OpenOptions& options);
[[nodiscard]] Opened open_hip(const OpenOptions& options);

/// Compiles for a target that need not be in this machine (hipRTC or NVRTC alone). Returns the code object.
[[nodiscard]] Result<std::string> compile_only(Api api, const KernelSource& source, const std::string& target, unsigned wavefront,
                                               const OpenOptions& options = {});

/// The text that goes before every kernel source: types, indices, barriers, atomics, wavefront operations for each compiler.
[[nodiscard]] std::string_view prelude_text();

}  // namespace ff::gpu
