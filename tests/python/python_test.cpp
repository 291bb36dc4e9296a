#include "python/python.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace ff::python {
namespace {

Call about() {
  Call call;
  call.interpreter = "/usr/bin/python3";
  call.probe = "about.py";
  return call;
}

TEST(Python, ProbesAreWholeFiles) {
  for (const Probe& probe : probes()) {
    EXPECT_TRUE(probe.source.starts_with("\"\"\"")) << probe.name;  // each begins with its docstring
    EXPECT_TRUE(probe.source.ends_with("\n")) << probe.name;
  }
}

TEST(Python, RecordsArriveApartFromOutput) {
  const auto answer = run(about());
  ASSERT_TRUE(answer) << answer.error().to_string();
  ASSERT_TRUE(answer->child.ok()) << answer->child.err;
  ASSERT_EQ(answer->records.size(), 1u);
  EXPECT_TRUE(answer->records[0]["version"].as_text().starts_with("3."));
  EXPECT_EQ(answer->child.out, "");
}

TEST(Python, EnvironmentIsSetBeforeTheStart) {
  Call call = about();
  call.environment = {"PYTHONHOME=/nonexistent"};
  const auto answer = run(call);
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->child.ok());
  EXPECT_TRUE(answer->records.empty());
  call.unset = {"PYTHONHOME"};
  call.environment.clear();
  EXPECT_EQ(run(call)->records.size(), 1u);
}

TEST(Python, AnInterpreterThatCrashesOrIsNoneIsAnAnswer) {
  Call call = about();
  call.interpreter = "/nonexistent/python";
  EXPECT_EQ(run(call)->child.start_errno, ENOENT);
  auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const auto fake = directory->path() / "python";
  // Stands for an interpreter that dies half-way through its second record.
  std::ofstream(fake) << "#!/bin/sh\nprintf '{\"a\": 1}\\n{\"b\": ' > \"$FIRSTFAULT_RECORDS\"\nkill -SEGV $$\n";
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  call.interpreter = fake.string();
  const auto answer = run(call);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->child.signal, SIGSEGV);
  ASSERT_EQ(answer->records.size(), 1u);
  EXPECT_EQ(answer->records[0]["a"].as_int(), 1);
}

// Images and uv's environments often hold packages without __pycache__; that must not cost every child a compilation of all of PyTorch.
TEST(Python, APyTorchWithoutBytecodeIsCompiledOnceAndNothingIsWrittenBesideIt) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  const auto package = directory->path() / "torch", said = directory->path() / "said";
  std::filesystem::create_directory(package);
  std::ofstream(package / "__init__.py")
      << "import os, sys\n"
         "with open(os.environ['SAID'], 'a') as file:\n"
         "    file.write('%s %s %s\\n' % (sys.pycache_prefix, sys.dont_write_bytecode, os.path.exists(__cached__)))\n"
         "raise ImportError('a stand-in')\n";
  Call call = about();
  call.probe = "torch_basic.py";
  call.arguments = {"cpu"};
  call.environment = {"PYTHONPATH=" + directory->path().string(), "SAID=" + said.string()};
  call.unset = {"PYTHONPYCACHEPREFIX"};
  const auto lines_of = [&] {
    std::vector<std::string> out;
    std::ifstream file(said);
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  };
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(run(call));
  auto seen = lines_of();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[0].find("firstfault-bytecode"), std::string::npos) << seen[0];
  EXPECT_TRUE(seen[1].ends_with(" False True")) << seen[1];
  EXPECT_EQ(seen[0].substr(0, seen[0].find(' ')), seen[1].substr(0, seen[1].find(' ')));
  EXPECT_FALSE(std::filesystem::exists(package / "__pycache__"));

  // Where the environment has its own, it is used, and nothing is written.
  ChildOptions compile;
  compile.argv = {"/usr/bin/python3", "-m", "compileall", "-q", package.string()};
  ASSERT_TRUE(run_child(compile).ok());
  ASSERT_TRUE(run(call));
  seen = lines_of();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[2], "None True True");
}

TEST(Python, UnknownProbeIsAnError) {
  Call call = about();
  call.probe = "../about.py";
  EXPECT_FALSE(run(call));
}

}  // namespace
}  // namespace ff::python
