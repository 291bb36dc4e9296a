#include "binary/build.h"

#include "binary/kernels.h"
#include "elf/code_objects.h"
#include "support.h"

namespace ff::binary {
namespace {

class Build : public WithDirectory {};

constexpr const char* source = R"(#include <hip/hip_runtime.h>
extern "C" __global__ void __launch_bounds__(256) bounded(float* a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
extern "C" __global__ void shared_one(float* a) {
  __shared__ float t[2048];
  t[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  atomicAdd(a, t[2047 - threadIdx.x] + expf(__shfl_xor(a[1], 1)));
}
)";

TEST_F(Build, WithoutACompilerSaysWhatToInstall) {
  const auto answer = build_kernels({.source = write("k.hip", source), .targets = {"gfx1100"}, .extra = {}, .compiler = "/absent/clang++"});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("/absent/clang++"), std::string::npos) << answer.error().what;
  EXPECT_NE(answer.error().remedy.find("clang-19"), std::string::npos);
  EXPECT_FALSE(build_kernels({.source = directory + "/absent.hip", .targets = {"gfx1100"}}));
}

TEST_F(Build, ALibraryThatIsNoHiprtcIsRefused) {
  const std::string path = write("libhiprtc.so.9", "no library");
  const auto answer = build_kernels({.source = write("k.hip", source), .targets = {"gfx1100"}, .extra = {}, .compiler = path});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("libhiprtc.so.9"), std::string::npos);
}

class BuildWithCompiler : public Build {
 protected:
  void SetUp() override {
    Build::SetUp();
    if (device_compilers().empty()) GTEST_SKIP() << "no hipRTC or clang on this machine";
  }
};

TEST_F(BuildWithCompiler, KernelsHaveTheirBoundsAndSharedMemory) {
  const auto answer = build_kernels({.source = write("k.hip", source), .targets = {"gfx1100", "gfx90a"}});
  ASSERT_TRUE(answer) << answer.error().to_string();
  ASSERT_EQ(answer->built.size(), 2U);
  for (const auto& built : answer->built) {
    ASSERT_FALSE(built.code.empty()) << built.diagnostics;
    // A bundle would need clang-offload-bundler, which Debian keeps in a package of its own.
    EXPECT_TRUE(
        built.code.starts_with("\x7f"
                               "ELF"));
    std::size_t kernels_seen = 0;
    (void)elf::visit_code(built.code, elf::list_code_objects(built.code), [&](const elf::CodeObject& object, std::string_view code) {
      EXPECT_EQ(object.target.processor, built.target);
      const auto kernels = read_kernels(code, {}, {});
      ASSERT_TRUE(kernels);
      for (const auto& kernel : *kernels) {
        ++kernels_seen;
        const bool bounded = kernel.name == "bounded";
        EXPECT_EQ(kernel.metadata["max_flat_workgroup_size"].as_int(), bounded ? 256 : 1024);
        EXPECT_EQ(kernel.metadata["group_segment_fixed_size"].as_int(), bounded ? 0 : 8192);
      }
    });
    EXPECT_EQ(kernels_seen, 2U);
  }
}

TEST_F(BuildWithCompiler, AFaultOfTheSourceIsTheCompilersWord) {
  const auto answer =
      build_kernels({.source = write("bad.hip", "__global__ void k(float* a) { a[0] = undeclared_name; }\n"), .targets = {"gfx1100"}});
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->built.at(0).code.empty());
  EXPECT_NE(answer->built[0].diagnostics.find("undeclared_name"), std::string::npos) << answer->built[0].diagnostics;
}

TEST_F(BuildWithCompiler, ATargetThatTheCompilerDoesNotKnowIsNoFaultOfTheSource) {
  const auto answer = build_kernels({.source = write("k.hip", source), .targets = {"gfx1999"}});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().what.find("gfx1999"), std::string::npos) << answer.error().what;
}

}  // namespace
}  // namespace ff::binary
