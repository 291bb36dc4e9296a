// Source text, scripts and a project's documents quote messages; that is no evidence that something happened.
#include <gtest/gtest.h>

#include "diagnosis/explain.h"
#include "diagnosis/extract.h"
#include "diagnosis/kind.h"

namespace ff::diagnosis {
namespace {

std::string first(const std::string& name, const std::string& text) {
  auto e = explain_texts({{name, text}}, knowledge::Knowledge::built_in());
  EXPECT_TRUE(e);
  for (const Diagnosis& d : e->judgement.diagnoses)
    if (!d.benign) return d.cause;
  return e->judgement.unexplained.empty() ? "" : "unexplained";
}

TEST(SourceText, IsKnownByItsName) {
  for (const char* name : {"train.py", "a/b/kernel.hip", "run.sh", "README.md", "README", "docs/CHANGELOG.rst", "Readme.txt", "faq.md",
                           "changelog.gz", "/usr/share/doc/pip/user_guide.rst.gz", "/usr/share/doc/slurm-wlm/NEWS.gz"})
    EXPECT_TRUE(quotes_messages(name)) << name;
  for (const char* name : {"train.log", "issue.md", "notes.txt", "install.txt", "history.txt", "job.sbatch", "config.yaml", "stderr",
                           "README-output.log", "info.json", "train.log.gz", "dmesg.0.gz", "/usr/share/doc/x/run.log"})
    EXPECT_FALSE(quotes_messages(name)) << name;
}

TEST(SourceText, QuotedMessagesAreNoEvidence) {
  const std::string python =
      "import torch\n\n\ndef check(e):\n    if 'HIP out of memory. Tried to allocate 2.00 GiB' in str(e):\n"
      "        raise RuntimeError('HIP error: an illegal memory access was encountered')\n"
      "    # amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n"
      "    print(\"\"\"Traceback (most recent call last):\nImportError: libamdhip64.so.6: cannot open shared object file\"\"\")\n";
  EXPECT_EQ(first("library.py", python), "");
  EXPECT_EQ(first("check.sh", "#!/bin/bash\ndmesg | grep -q 'amdgpu: GPU reset(2) failed' && echo 'HIP out of memory. Tried to allocate 2.00 GiB'\n"),
            "");
  EXPECT_EQ(first("README.md", "# Tool\nIf you see `HIP error: out of memory`:\n\n    [ 1.0] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n"),
            "");
  EXPECT_NE(first("output.txt", "RuntimeError: HIP error: an illegal memory access was encountered\n"), "");
  EXPECT_NE(first("issue.md", "After an hour:\n\n    [ 1.0] amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed\n"), "");
}

TEST(SourceText, FaultsInTheCodeItselfAreFound) {
  EXPECT_EQ(first("train.py", "import os\nimport torch\n\nx = torch.zeros(1, device='cuda')\nos.environ['HIP_VISIBLE_DEVICES'] = '1'\n"),
            "runtime.environment-late");
}

TEST(SourceText, PassingTestsAreNotUnexplained) {
  for (const char* line :
       {"tests/test_gpu.py::test_hip_error_handling PASSED", "PASSED tests/test_gpu.py::test_amdgpu_ring_timeout_failed_reset",
        "tests/test_kernel_fault.py::test_amdgpu_page_fault_parser[error] PASSED [ 50%]", "tests/test_amdgpu_error.py ....   [ 12%]",
        "test_amdgpu_reset_failed (tests.test_gpu.TestReset) ... ok", "[       OK ] Amdgpu.reset_failed_is_reported (3 ms)",
        "[ RUN      ] Amdgpu.reset_failed_is_reported", " 3/9 Test  #3: amdgpu_error_fault ...............   Passed    0.02 sec",
        "SKIPPED [1] tests/test_amdgpu.py:12: amdgpu error fault not available", "tests/test_amdgpu.py::test_error XFAIL"})
    EXPECT_EQ(first("pytest.txt", std::string(line) + "\n"), "") << line;
  EXPECT_NE(first("pytest.txt", "amdgpu: unheard of error 77 of the ring\n"), "");
}

}  // namespace
}  // namespace ff::diagnosis
