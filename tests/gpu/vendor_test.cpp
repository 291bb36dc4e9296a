// rocBLAS, hipBLASLt and RCCL over two devices of the stand-in for HIP, every status at every call that is made; and no call of a library that
// no test makes fail.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "gpu/blas.h"
#include "gpu/blas_lt.h"
#include "gpu/collectives.h"
#include "support/paths.h"

namespace ff::gpu {
namespace {

struct Set {
  const char* name;
  Set(const char* variable, const std::string& value) : name(variable) { ::setenv(variable, value.c_str(), 1); }
  ~Set() { ::unsetenv(name); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;
};

OpenOptions options(int index) { return {.index = index, .library_folders = {FIRSTFAULT_HIP_DOUBLE, FIRSTFAULT_HIP_DOUBLE "/../vendor_double"}}; }

Result<void> products() {
  auto device = open(Api::hip, options(0));
  if (!device) return std::unexpected(device.error().error);
  auto a = (*device)->buffer(4096), b = (*device)->buffer(4096), c = (*device)->buffer(4096);
  if (!a || !b || !c) return fail("no memory");
  auto blas = open_blas(**device, options(0));
  if (!blas) return std::unexpected(blas.error());
  GemmShape s{};
  s.m = s.n = s.k = s.lda = s.ldb = s.ldc = 4;
  if (auto ok = (*blas)->gemm(BlasType::f32, s, 1, 1, 0, a->address(), b->address(), c->address(), nullptr); !ok) return ok;
  auto lt = open_blas_lt(**device, options(0));
  if (!lt) return std::unexpected(lt.error());
  return (*lt)->multiply(Float8::e4m3fnuz, Float8::e4m3fnuz, 16, 16, 16, a->address(), b->address(), c->address(), nullptr);
}

Result<void> collectives() {
  auto first = open(Api::hip, options(0)), second = open(Api::hip, options(1));
  if (!first) return std::unexpected(first.error().error);
  if (!second) return std::unexpected(second.error().error);
  Device* devices[] = {first->get(), second->get()};
  auto a = (*first)->buffer(64), b = (*second)->buffer(64), c = (*first)->buffer(64), d = (*second)->buffer(64);
  if (!a || !b || !c || !d) return fail("no memory");
  auto group = Collectives::open(devices, options(0));
  if (!group) return std::unexpected(group.error());
  const Address in[] = {a->address(), b->address()}, out[] = {c->address(), d->address()};
  const Stream streams[] = {nullptr, nullptr};
  if (auto ok = (*group)->all_reduce(in, out, 4, Element::f32, Reduction::sum, streams); !ok) return ok;
  if (auto ok = (*group)->broadcast(in, out, 4, Element::f32, 1, streams); !ok) return ok;
  if (auto ok = (*group)->all_gather(in, out, 4, Element::f32, streams); !ok) return ok;
  if (auto ok = (*group)->reduce_scatter(in, out, 4, Element::f32, Reduction::sum, streams); !ok) return ok;
  return (*group)->all_to_all(in, out, 4, Element::f32, streams);
}

const std::set<std::string> rocblas_calls{"rocblas_create_handle", "rocblas_set_stream", "rocblas_gemm_strided_batched_ex"};
const std::set<std::string> lt_calls{"hipblasLtCreate",
                                     "hipblasLtMatmulDescCreate",
                                     "hipblasLtMatmulDescSetAttribute",
                                     "hipblasLtMatrixLayoutCreate",
                                     "hipblasLtMatmulPreferenceCreate",
                                     "hipblasLtMatmulPreferenceSetAttribute",
                                     "hipblasLtMatmulAlgoGetHeuristic",
                                     "hipblasLtMatmul"};
const std::set<std::string> nccl_calls{"ncclCommInitAll", "ncclGroupStart",    "ncclGroupEnd", "ncclAllReduce", "ncclBroadcast",
                                       "ncclAllGather",   "ncclReduceScatter", "ncclSend",     "ncclRecv"};

TEST(Vendor, ProductsAndCollectivesOverTwoDevices) {
  const Set two("FF_DOUBLE_DEVICES", "2");
  for (const auto& all : {products(), collectives()}) EXPECT_TRUE(all) << all.error().to_string();
}

TEST(Vendor, EveryStatusAtEveryCallIsAnErrorThatNamesIt) {
  const Set two("FF_DOUBLE_DEVICES", "2");
  const auto expect = [](const std::set<std::string>& calls, int last, int not_supported, Result<void> (*all)()) {
    for (const auto& call : calls)
      for (int status = 1; status <= last; ++status) {
        const Set fail("FF_VENDOR_FAIL", call + ":" + std::to_string(status));
        const auto result = all();
        ASSERT_FALSE(result) << call << " failed with " << status << " and nobody noticed";
        if (status == not_supported) {
          if (result.error().what.starts_with("unsupported")) continue;
        }
        EXPECT_NE(result.error().what.find(call + ": "), std::string::npos) << result.error().what;
        EXPECT_NE(result.error().what.find("(" + std::to_string(status) + ")"), std::string::npos) << result.error().what;
      }
  };
  expect(rocblas_calls, 16, 2, products);
  expect(lt_calls, 12, 7, products);
  expect(nccl_calls, 8, 0, collectives);
}

/// The names that a source file binds.
std::set<std::string> bound(const char* file, const std::string& pattern) {
  std::ifstream in(test::source_directory() / "src/gpu" / file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> out;
  const std::regex name("[{ ]\"(" + pattern + ")\"[},]");
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) out.insert((*it)[1]);
  return out;
}

TEST(Vendor, NoCallIsLeftOut) {
  // What gives back or only describes may fail without harm.
  const auto without = [](std::set<std::string> all, std::initializer_list<const char*> harmless) {
    for (const char* name : harmless) EXPECT_EQ(all.erase(name), 1u) << name;
    return all;
  };
  EXPECT_EQ(without(bound("collectives.cpp", "nccl\\w+"), {"ncclGetErrorString", "ncclGetVersion", "ncclCommDestroy"}), nccl_calls);
  std::set<std::string> lt;
  for (const auto& call :
       without(bound("blas_lt.cpp", "(?:Create|Mat)\\w*"), {"MatmulDescDestroy", "MatrixLayoutDestroy", "MatmulPreferenceDestroy"}))
    lt.insert("hipblasLt" + call);
  EXPECT_EQ(lt, lt_calls);
}

}  // namespace
}  // namespace ff::gpu
