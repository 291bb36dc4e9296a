#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>

#include "gpu/device.h"
#include "gpu/fiber.h"
#include "gpu/half.h"
#include "gpu/host_kernel.h"
#include "gpu/kernels.h"
#include "support/paths.h"

namespace ff::gpu {
namespace {

TEST(Half, EveryValueSurvivesTheWayThereAndBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    const float v = half_value(h);
    if (std::isnan(v)) {
      EXPECT_TRUE(std::isnan(half_value(half_bits(v))));
    } else {
      EXPECT_EQ(half_bits(v), h) << bits;
    }
  }
}

TEST(Half, RoundsToNearestWithTiesToEven) {
  EXPECT_EQ(half_bits(65519.0F), 0x7bff);  // the largest that does not become infinite
  EXPECT_EQ(half_bits(65520.0F), 0x7c00);
  EXPECT_EQ(half_bits(0x1p-25F), 0x0000);    // half of the smallest subnormal: to even
  EXPECT_EQ(half_bits(0x1.8p-24F), 0x0002);  // between 1 and 2 units: to even
  EXPECT_EQ(half_bits(1.0F + 0x1p-11F), 0x3c00);
  EXPECT_EQ(half_bits(1.0F + 0x3p-11F), 0x3c02);
  EXPECT_EQ(half_bits(-0.0F), 0x8000);
}

TEST(Half, EveryBfloatSurvivesTheWayThereAndBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    const float v = bfloat_value(h);
    if (std::isnan(v)) continue;
    EXPECT_EQ(bfloat_bits(v), h) << bits;
  }
}

void half_barrier(void** arguments) {
  if (host::place->thread.x < 3) host::barrier();
  ++*static_cast<int*>(arguments[0]);
}
TEST(Fiber, ABarrierThatSomeThreadsSkipIsAHangAndFound) {
  int count = 0;
  void* arguments[] = {&count};
  // On a GPU the threads that ended do not hold up the others; those at the barrier go on.
  EXPECT_TRUE(host::run_grid(&half_barrier, arguments, {1, 1, 1}, {8, 1, 1}, 0, 32, 0));
  EXPECT_EQ(count, 8);
}
void mixed_barrier(void**) {
  if (host::place->thread.x < 3)
    host::barrier();
  else
    (void)host::ballot(true);
}
TEST(Fiber, ThreadsThatWaitForEachOtherAtDifferentPlacesAreFound) {
  EXPECT_FALSE(host::run_grid(&mixed_barrier, nullptr, {1, 1, 1}, {8, 1, 1}, 0, 32, 0));
}

TEST(Cpu, CopiesOutsideAnAllocationAreErrors) {
  auto device = open(Api::cpu);
  ASSERT_TRUE(device);
  auto buffer = (*device)->buffer(100);
  ASSERT_TRUE(buffer);
  char host[200] = {};
  EXPECT_TRUE((*device)->copy_in(buffer->address(), host, 100));
  EXPECT_FALSE((*device)->copy_in(buffer->address(), host, 101));
  EXPECT_FALSE((*device)->copy_in(buffer->address() + 50, host, 51));
  EXPECT_FALSE((*device)->copy_out(host, buffer->address() - 1, 2));
  EXPECT_FALSE((*device)->fill(0, 0, 1));
}

TEST(Kernels, AllSourcesAreEmbeddedAndListTheirKernels) {
  EXPECT_GT(prelude_text().size(), 1000u);
  std::set<std::string> names;
  for (const auto& source : kernel_sources()) {
    EXPECT_GT(source.text.size(), 200u) << source.name;
    for (const auto& kernel : source.host) {
      EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
      // Types are named by macros, so a kernel's name may be put together there: its first word must stand in the text.
      const std::string first = std::string(kernel.name).substr(0, std::string(kernel.name).find('_'));
      EXPECT_NE(source.text.find(first), std::string_view::npos) << kernel.name;
    }
  }
  EXPECT_GT(names.size(), 60u);
}

/// The stand-in for HIP, with the function that makes its calls fail.
struct Double {
  void (*fail)(const char*, int, int) = nullptr;
  OpenOptions options;
  Double() {
    options.library_folders = {FIRSTFAULT_HIP_DOUBLE};
    ::setenv("FF_DOUBLE_DEVICES", "2", 1);
    void* handle = ::dlopen(FIRSTFAULT_HIP_DOUBLE "/libamdhip64.so.6", RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) fail = reinterpret_cast<void (*)(const char*, int, int)>(::dlsym(handle, "ff_double_fail"));
  }
  ~Double() {
    if (fail != nullptr) fail("", 0, 0);
    ::unsetenv("FF_DOUBLE_DEVICES");
  }
};

/// Every call of the interface once; the first failure, or nothing.
Result<void> everything(const OpenOptions& options) {
  auto opened = open(Api::hip, options);
  if (!opened) return std::unexpected(opened.error().error);
  Device& d = **opened;
  if (auto m = d.memory(); !m) return std::unexpected(m.error());
  auto a = d.buffer(4096), b = d.buffer(4096);
  if (!a) return std::unexpected(a.error());
  if (!b) return std::unexpected(b.error());
  char host[4096] = {};
  auto pinned = d.allocate_pinned(64);
  if (!pinned) return std::unexpected(pinned.error());
  auto stream = d.make_stream();
  if (!stream) return std::unexpected(stream.error());
  auto e = d.make_event(), f = d.make_event();
  if (!e) return std::unexpected(e.error());
  if (!f) return std::unexpected(f.error());
  for (const auto& step : std::initializer_list<std::function<Result<void>()>>{
           [&] { return d.copy_in(a->address(), host, 4096); },
           [&] { return d.copy(b->address(), a->address(), 4096); },
           [&] { return d.copy_out(host, b->address(), 4096); },
           [&] { return d.fill(a->address(), 1, 4096); },
           [&] { return d.record(*e, *stream); },
           [&] { return d.copy_in_async(a->address(), host, 4096, *stream); },
           [&] { return d.copy_async(b->address(), a->address(), 4096, *stream); },
           [&] { return d.copy_out_async(host, b->address(), 4096, *stream); },
           [&] { return d.fill_async(a->address(), 1, 4096, *stream); },
           [&] { return d.record(*f, *stream); },
           [&] { return d.stream_waits(*stream, *f); },
           [&] { return d.wait_event(*f); },
           [&] { return d.wait(*stream); },
           [&] { return d.wait(nullptr); },
           [&]() -> Result<void> {
             auto ms = d.milliseconds_between(*e, *f);
             return ms ? Result<void>() : std::unexpected(ms.error());
           },
           [&]() -> Result<void> {
             auto module = d.compile(*kernel_source("parallel"));
             if (!module) return std::unexpected(module.error());
             auto function = (*module)->function("step");
             if (!function) return std::unexpected(function.error());
             return d.launch(*function, {2, 1, 1}, {64, 1, 1}, 0,
                             Arguments<Address, unsigned, unsigned, std::uint64_t>(a->address(), 3u, 1u, 1024ull), *stream);
           },
           [&] { return d.begin_capture(*stream); },
           [&]() -> Result<void> {
             auto graph = d.end_capture(*stream);
             if (!graph) return std::unexpected(graph.error());
             if (auto ok = d.launch_graph(*graph, *stream); !ok) return ok;
             return d.release_graph(*graph);
           },
           [&]() -> Result<void> {
             auto other = open(Api::hip, {.index = 1, .library_folders = options.library_folders});
             if (!other) return std::unexpected(other.error().error);
             auto reach = d.reach(**other);
             if (!reach) return std::unexpected(reach.error());
             if (auto ok = d.use(); !ok) return ok;
             return d.copy_from_peer(a->address(), **other, b->address(), 4096);
           },
           [&]() -> Result<void> {
             auto own = d.allocate(64);
             if (!own) return std::unexpected(own.error());
             return d.release(*own);
           },
           [&] { return d.release_event(*e); },
           [&] { return d.release_event(*f); },
           [&] { return d.release_stream(*stream); },
           [&] { return d.release_pinned(*pinned); },
       })
    if (auto ok = step(); !ok) return ok;
  return {};
}

TEST(HipDouble, RunsEverything) {
  Double hip;
  ASSERT_NE(hip.fail, nullptr);
  const auto ok = everything(hip.options);
  EXPECT_TRUE(ok) << ok.error().to_string();
}

TEST(HipDouble, RecognisesTheReleaseAndTheTarget) {
  Double hip;
  const auto device = open(Api::hip, hip.options);
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->properties().target, "gfx90a:sramecc+:xnack-");
  EXPECT_EQ((*device)->properties().wavefront, 64u);
  EXPECT_NE((*device)->properties().runtime.find("HIP 6.4.43482, ROCm 6"), std::string::npos) << (*device)->properties().runtime;
}

/// Calls whose failure must be an error, and those whose failure costs a reading only.
const std::set<std::string> needed_calls{"hipInit",
                                         "hipGetDeviceCount",
                                         "hipDeviceGet",
                                         "hipSetDevice",
                                         "hipGetDevicePropertiesR0600",
                                         "hipDeviceSynchronize",
                                         "hipMemGetInfo",
                                         "hipMalloc",
                                         "hipHostMalloc",
                                         "hipHostFree",
                                         "hipMemcpyHtoD",
                                         "hipMemcpyDtoH",
                                         "hipMemcpyDtoD",
                                         "hipMemcpyHtoDAsync",
                                         "hipMemcpyDtoHAsync",
                                         "hipMemcpyDtoDAsync",
                                         "hipMemsetD8",
                                         "hipMemsetD8Async",
                                         "hipStreamCreateWithFlags",
                                         "hipStreamDestroy",
                                         "hipStreamSynchronize",
                                         "hipStreamWaitEvent",
                                         "hipEventCreateWithFlags",
                                         "hipEventDestroy",
                                         "hipEventRecord",
                                         "hipEventSynchronize",
                                         "hipEventElapsedTime",
                                         "hipModuleLoadData",
                                         "hipModuleGetFunction",
                                         "hipModuleLaunchKernel",
                                         "hipStreamBeginCapture",
                                         "hipStreamEndCapture",
                                         "hipGraphInstantiateWithFlags",
                                         "hipGraphLaunch",
                                         "hipGraphExecDestroy",
                                         "hipDeviceCanAccessPeer",
                                         "hipDeviceEnablePeerAccess",
                                         "hipMemcpyPeer",
                                         "hipFree",
                                         "hiprtcCreateProgram",
                                         "hiprtcCompileProgram",
                                         "hiprtcGetCodeSize",
                                         "hiprtcGetCode"};
const std::set<std::string> readings{"hipRuntimeGetVersion", "hipDeviceGetName", "hipDeviceGetAttribute", "hipDeviceTotalMem",
                                     "hipDeviceGetPCIBusId", "hipModuleUnload",  "hiprtcDestroyProgram",  "hipGraphDestroy"};

TEST(HipDouble, EveryErrorAtEveryCallIsAnErrorThatNamesIt) {
  Double hip;
  ASSERT_NE(hip.fail, nullptr);
  // All codes of hipError_t (HIP 7.2), and one that no release knows.
  std::vector<int> codes;
  for (const auto& [from, to] : std::initializer_list<std::pair<int, int>>{{1, 9},
                                                                           {13, 13},
                                                                           {18, 18},
                                                                           {21, 21},
                                                                           {35, 35},
                                                                           {52, 53},
                                                                           {98, 101},
                                                                           {200, 226},
                                                                           {300, 304},
                                                                           {400, 401},
                                                                           {500, 500},
                                                                           {600, 600},
                                                                           {700, 720},
                                                                           {800, 801},
                                                                           {900, 911},
                                                                           {999, 999},
                                                                           {1052, 1054},
                                                                           {123456, 123456}})
    for (int c = from; c <= to; ++c) codes.push_back(c);
  for (const auto& call : needed_calls)
    for (const int code : codes) {
      if (call == "hipDeviceEnablePeerAccess" && code == 704) continue;  // it says that it is allowed already
      hip.fail(call.c_str(), code, 1);
      const auto ok = everything(hip.options);
      ASSERT_FALSE(ok) << call << " failed with " << code << " and nobody noticed";
      // The properties call says only that it did not work; all others say their code.
      if (call == "hipGetDevicePropertiesR0600") continue;
      EXPECT_NE(ok.error().what.find(std::to_string(code)), std::string::npos) << call << ": " << ok.error().to_string();
    }
}

TEST(HipDouble, NotEveryReadingIsNeeded) {
  Double hip;
  for (const auto& call : readings) {
    hip.fail(call.c_str(), 1, 1);
    EXPECT_TRUE(everything(hip.options)) << call;
  }
}

TEST(HipDouble, NoCallIsLeftOut) {
  std::ifstream in(test::source_directory() / "src/gpu/hip.cpp");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> bound;
  const std::regex name("slot\\([\\w.]+\\), \"(\\w+)\"");
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) bound.insert((*it)[1]);
  EXPECT_GT(bound.size(), 50u);
  // Words about errors, names of older releases (the stand-in has those of 6), what nothing calls.
  for (const char* other :
       {"hipGetErrorName", "hiprtcGetErrorString", "hiprtcGetProgramLogSize", "hiprtcGetProgramLog", "hipGetDeviceProperties", "hipGraphInstantiate"})
    EXPECT_EQ(bound.erase(other), 1u) << other;
  std::set<std::string> tried = needed_calls;
  tried.insert(readings.begin(), readings.end());
  EXPECT_EQ(bound, tried);
}

TEST(Libraries, ABrokenLibraryIsAnErrorWithARemedy) {
  const auto missing = open(Api::hip, {.library_folders = {"/nonexistent"}});
  if (!missing) {  // a machine with ROCm opens its own
    EXPECT_EQ(missing.error().stage, OpenStage::library);
    EXPECT_FALSE(missing.error().error.remedy.empty());
  }
}

}  // namespace
}  // namespace ff::gpu
