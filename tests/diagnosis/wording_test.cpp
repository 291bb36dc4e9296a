// Fix and proof speak of this evidence: values in place of `<…>`, and programs that its operating system has.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnosis/explain.h"
#include "diagnosis/scanner.h"
#include "knowledge/knowledge.h"

namespace ff::diagnosis {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

Diagnosis first(const Files& files) {
  static Scanner scanner = std::move(*Scanner::make(knowledge::Knowledge::built_in()));
  const Explanation e = explain_texts(scanner, files, knowledge::Knowledge::built_in());
  return e.judgement.diagnoses.empty() ? Diagnosis{} : e.judgement.diagnoses.front();
}

std::string joined(const Diagnosis& d) {
  std::string out;
  for (const auto* list : {&d.fix, &d.verify})
    for (const std::string& line : *list) out += line + "\n";
  return out;
}

std::string lacks(const std::string& gfx) {
  return "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for GPU arch : " + gfx + "\nAborted\n";
}

TEST(Wording, the_one_value_of_the_evidence_stands_in_the_proof) {
  const Diagnosis d = first({{"stderr.txt", lacks("gfx1103")}});
  ASSERT_EQ(d.cause, "library-coverage.rocblas-lacks-target");
  EXPECT_TRUE(contains(joined(d), "grep -c gfx1103")) << joined(d);
  EXPECT_FALSE(contains(joined(d), "<gfx>"));
}

TEST(Wording, two_values_leave_the_place_open) {
  const Diagnosis d = first({{"a.txt", lacks("gfx1103")}, {"b.txt", lacks("gfx1010")}});
  ASSERT_EQ(d.cause, "library-coverage.rocblas-lacks-target");
  EXPECT_TRUE(contains(joined(d), "<gfx>")) << joined(d);
}

TEST(Wording, the_card_has_its_number) {
  const Diagnosis d = first({{"server.log",
                              "ggml_cuda_init: found 2 ROCm devices:\n"
                              "  Device 0: AMD Radeon Graphics, gfx1036 (0x1036), VMM: no, Wave Size: 32\n"
                              "  Device 1: AMD Radeon RX 7900 XTX, gfx1100 (0x1100), VMM: no, Wave Size: 32\n"
                              "load_tensors:        ROCm0 model buffer size = 17201.43 MiB\n"
                              "load_tensors:        ROCm1 model buffer size = 11874.60 MiB\n"
                              "Segmentation fault (core dumped)\n"}});
  ASSERT_EQ(d.cause, "runtime.integrated-gpu-selected");
  EXPECT_TRUE(contains(joined(d), "HIP_VISIBLE_DEVICES=1 ")) << joined(d);
}

TEST(Wording, what_a_shell_would_take_for_more_than_a_word_stays_out) {
  const Diagnosis d = first(
      {{"stderr.txt", "gymnasium.error.NamespaceNotFound: Namespace gym_pusht not found. Have you installed the proper package for gym_pusht?"}});
  EXPECT_TRUE(contains(joined(d), "import gym_pusht, gymnasium")) << joined(d);
  const Diagnosis library = first(
      {{"stderr.txt", "a.out: error while loading shared libraries: libgomp$(id).so.1: cannot open shared object file: No such file or directory"}});
  EXPECT_FALSE(contains(joined(library), "$(id)")) << joined(library);
}

TEST(Wording, windows_gets_no_program_of_linux) {
  const Diagnosis d = first({{"traceback.txt",
                              "OSError: [WinError 126] The specified module could not be found. Error loading "
                              "\"C:\\envs\\rocm\\Lib\\site-packages\\torch\\lib\\shm.dll\" or one of its dependencies.\n"}});
  ASSERT_EQ(d.cause, "runtime.system-library-missing");
  ASSERT_FALSE(d.verify.empty());
  for (const std::string& command : d.verify) {
    EXPECT_FALSE(contains(command, "ldd ") || contains(command, "ldconfig") || contains(command, "grep")) << command;
  }
  const Diagnosis linux_one = first({{"traceback.txt", "ImportError: libGL.so.1: cannot open shared object file: No such file or directory\n"}});
  EXPECT_TRUE(contains(joined(linux_one), "ldconfig")) << joined(linux_one);
}

TEST(Wording, the_client_is_named_where_every_generation_has_the_same_name) {
  const Diagnosis d = first({{"dmesg.txt",
                              "[  143.220517] amdgpu 0000:c5:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:32772)\n"
                              "[  143.220531] amdgpu 0000:c5:00.0: amdgpu:   in page starting at address 0x00007c4b1a600000 from client 10\n"
                              "[  143.220533] amdgpu 0000:c5:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00800932\n"}});
  std::string decoded;
  for (const std::string& text : d.decoded) decoded += text + "\n";
  EXPECT_TRUE(contains(decoded, "client CPF")) << decoded;
  EXPECT_FALSE(contains(decoded, "not named")) << decoded;
}

}  // namespace
}  // namespace ff::diagnosis
