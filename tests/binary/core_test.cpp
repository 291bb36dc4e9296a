#include "binary/core.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/process.h"
#include "base/text.h"
#include "support.h"
#include "support/paths.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

/// Core files of tests/binary/fixtures/crash.c, made while the test runs. Skipped where the machine writes none into
/// the working directory (a pipe in core_pattern).
class CoreTest : public WithDirectory {
 protected:
  std::string bytes;
  Core core;
  CoreVerdict verdict;

  void SetUp() override {
    WithDirectory::SetUp();
    if (std::system("command -v gcc >/dev/null 2>&1") != 0) GTEST_SKIP() << "no gcc here";
    ChildOptions child;
    child.argv = {
        "gcc", "-g", "-O0", "-pthread", "-o", directory + "/crash", ff::test::source_directory().string() + "/tests/binary/fixtures/crash.c"};
    child.time_limit = std::chrono::seconds(100);
    const auto done = run_child(child);
    ASSERT_TRUE(done.ok()) << done.err;
  }

  /// False when no core file came.
  bool crash(const std::string& how) {
    ChildOptions child;
    child.argv = {"/bin/sh", "-c", "ulimit -c unlimited && exec ./crash " + how + " data"};
    child.directory = directory;
    child.time_limit = std::chrono::seconds(60);
    const auto done = run_child(child);
    EXPECT_FALSE(done.ok());
    std::string path;
    for (const auto& entry : fs::directory_iterator(directory))
      if (entry.path().filename().string().starts_with("core")) path = entry.path().string();
    if (path.empty()) return false;
    bytes = read_file(path);
    auto read = read_core(bytes);
    EXPECT_TRUE(read) << read.error().what;
    if (!read) return false;
    core = std::move(*read);
    add_backtraces(core, path, {}, 60);
    EXPECT_EQ(core.problems, std::vector<std::string>{});
    verdict = judge(core, bytes);
    return true;
  }
  [[nodiscard]] bool in_backtrace(std::string_view function) const {
    for (const auto& frame : core.threads.at(0).frames)
      if (frame.function == function) return true;
    return false;
  }
};
#define CRASH_OR_SKIP(how) \
  if (!crash(how)) GTEST_SKIP() << "this machine leaves no core file in the working directory"

TEST_F(CoreTest, ANullPointerIsNamedWithItsFunctionAndLine) {
  CRASH_OR_SKIP("null");
  EXPECT_EQ(core.signal, SIGSEGV);
  EXPECT_EQ(signal_code_name(core.signal, core.code), "SEGV_MAPERR");
  EXPECT_EQ(core.address, 8U);
  EXPECT_NE(verdict.what.find("null pointer"), std::string::npos) << verdict.what;
  ASSERT_GE(core.threads.at(0).frames.size(), 2U);
  EXPECT_EQ(core.threads[0].frames[0].function, "null_pointer");
  EXPECT_NE(core.threads[0].frames[0].source.find("crash.c:"), std::string::npos);
  EXPECT_EQ(core.threads[0].frames[1].function, "main");
  EXPECT_EQ(verdict.owner, Owner::program);
  // gdb's answer, where gdb is.
  if (std::system("command -v gdb >/dev/null 2>&1") == 0) {
    ChildOptions gdb;
    gdb.argv = {"sh", "-c", "gdb -batch -ex bt " + directory + "/crash " + directory + "/core* 2>/dev/null"};
    gdb.time_limit = std::chrono::seconds(100);
    const auto told = run_child(gdb);
    EXPECT_TRUE(contains(told.out, "null_pointer") && contains(told.out, "in main")) << told.out;
  }
}

TEST_F(CoreTest, AnAssertionGivesItsText) {
  CRASH_OR_SKIP("assert");
  EXPECT_EQ(core.signal, SIGABRT);
  EXPECT_NE(core.abort_message.find("Assertion `argc == 77' failed"), std::string::npos) << core.abort_message;
  EXPECT_TRUE(in_backtrace("main"));
  EXPECT_EQ(verdict.owner, Owner::program) << "abort() itself is not who is to blame";
}

TEST_F(CoreTest, AnExhaustedStackIsNoWildPointer) {
  CRASH_OR_SKIP("stack");
  EXPECT_EQ(verdict.what, "the stack is exhausted");
  EXPECT_TRUE(in_backtrace("deep"));
}

TEST_F(CoreTest, ALocalArrayLargerThanTheStackExhaustsIt) {
  CRASH_OR_SKIP("large");
  EXPECT_EQ(verdict.what, "the stack is exhausted");
}

TEST_F(CoreTest, ABusErrorNamesTheFileThatWasShortened) {
  CRASH_OR_SKIP("bus");
  EXPECT_EQ(core.signal, SIGBUS);
  EXPECT_EQ(signal_code_name(core.signal, core.code), "BUS_ADRERR");
  EXPECT_NE(verdict.what.find(directory + "/data"), std::string::npos) << verdict.what;
}

TEST_F(CoreTest, AnIllegalInstructionAndADivisionAreTold) {
  CRASH_OR_SKIP("illegal");
  EXPECT_EQ(core.signal, SIGILL);
  EXPECT_EQ(core.threads.at(0).frames.at(0).function, "main");
  EXPECT_FALSE(verdict.next.empty());
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("core")) fs::remove(entry.path());
  ASSERT_TRUE(crash("divide"));
  EXPECT_EQ(verdict.what, "an integer was divided by zero");
}

TEST_F(CoreTest, ACalledNullPointerAndASentSignalAreTold) {
  CRASH_OR_SKIP("call");
  EXPECT_EQ(verdict.what, "a null function pointer was called");
  ASSERT_GE(core.threads.at(0).frames.size(), 2U);
  EXPECT_EQ(core.threads[0].frames[1].function, "main") << "who called it stands on the stack";
  EXPECT_TRUE(core.threads[0].frames[1].source.ends_with("crash.c:22")) << core.threads[0].frames[1].source;
  EXPECT_EQ(verdict.owner, Owner::program);
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("core")) fs::remove(entry.path());
  ASSERT_TRUE(crash("kill"));
  EXPECT_EQ(core.sender, core.pid);
  EXPECT_FALSE(verdict.next.empty());
}

TEST_F(CoreTest, TheThreadThatCrashedComesFirst) {
  CRASH_OR_SKIP("threads");
  EXPECT_EQ(core.threads.size(), 3U);
  EXPECT_TRUE(in_backtrace("worker"));
  EXPECT_NE(core.threads[0].id, core.pid);
  bool waiting = false;
  for (const auto& thread : core.threads)
    for (const auto& frame : thread.frames) waiting = waiting || frame.function == "waiter";
  EXPECT_TRUE(waiting) << "the other threads are unwound as well";
}

TEST_F(CoreTest, BuildIdsAreThoseOfTheFilesAndACutFileSaysSo) {
  CRASH_OR_SKIP("null");
  bool found = false;
  for (const auto& module : core.modules)
    if (module.path == directory + "/crash") {
      found = true;
      EXPECT_EQ(module.build_id.size(), 40U);
      EXPECT_EQ(module.remark, "");
    }
  EXPECT_TRUE(found);
  EXPECT_TRUE(read_core(std::string(bytes, 0, bytes.size() / 2))->truncated);
  // Before the first note nothing says how it died; with the notes alone the program is known by its name.
  const auto headless = read_core(std::string(bytes, 0, 1000));
  ASSERT_FALSE(headless);
  EXPECT_NE(headless.error().what.find("cut short after 1000 bytes"), std::string::npos) << headless.error().what;
  EXPECT_FALSE(headless.error().remedy.empty());
  const std::string notes(bytes, 0, 5000);
  const auto stackless = read_core(notes);
  ASSERT_TRUE(stackless);
  if (!stackless->files.empty()) {
    const auto answer = judge(*stackless, notes);
    EXPECT_EQ(answer.place, "crash");
    EXPECT_EQ(answer.owner, Owner::program);
  }
  // Every truncation within the headers and notes is an error or a smaller answer.
  for (std::size_t size = 0; size < std::min<std::size_t>(bytes.size(), 6000); ++size) (void)read_core(std::string(bytes, 0, size));
}

TEST(Owners, AreToldByPath) {
  EXPECT_EQ(owner_of("/opt/rocm/lib/libamdhip64.so.7", ""), Owner::gpu_runtime);
  EXPECT_EQ(owner_of("/venv/lib/python3.12/site-packages/torch/lib/librocblas.so", ""), Owner::gpu_runtime);
  EXPECT_EQ(owner_of("/venv/lib/python3.12/site-packages/torch/lib/libtorch_hip.so", ""), Owner::torch);
  EXPECT_EQ(owner_of("/usr/lib/x86_64-linux-gnu/libdrm_amdgpu.so.1", ""), Owner::gpu_driver);
  EXPECT_EQ(owner_of("/usr/bin/python3.11", ""), Owner::python);
  EXPECT_EQ(owner_of("/venv/lib/python3.12/site-packages/numpy/_core/_multiarray_umath.cpython-312-x86_64-linux-gnu.so", ""),
            Owner::python_extension);
  EXPECT_EQ(owner_of("/lib/x86_64-linux-gnu/libc.so.6", ""), Owner::system);
  EXPECT_EQ(owner_of("/home/me/app", "/home/me/app"), Owner::program);
  EXPECT_EQ(owner_of("", ""), Owner::nowhere);
}

/// No GPU core file exists here: this one is built from the layout that ROCr's amd_core_dump.cpp writes.
std::string gpu_core(bool note_version) {
  std::string note;
  const auto u32 = [&](std::uint32_t v) { note.append(reinterpret_cast<const char*>(&v), 4); };
  const auto u64 = [&](std::uint64_t v) { note.append(reinterpret_cast<const char*>(&v), 8); };
  u32(7);
  u32(0);
  u32(33);
  note.append("AMDGPU\0\0", 8);
  const std::size_t start = note.size();
  if (note_version) u64(1);
  u32(1);
  u32(18);
  u64(16);
  u32(1);
  u32(128);
  u32(1);
  u32(64);
  note.append(16, '\0');
  std::string agent(128, '\0'), queue(64, '\0');
  const std::uint64_t violation = std::uint64_t{1} << 4, ring = 0x7f0000000000;
  const std::uint32_t gpu = 4660, target = 110000, queue_id = 3, ring_size = 65536, aql = 2;
  std::memcpy(agent.data() + 56, &gpu, 4);
  std::memcpy(agent.data() + 88, &target, 4);
  std::memcpy(queue.data(), &violation, 8);
  std::memcpy(queue.data() + 8, &ring, 8);
  std::memcpy(queue.data() + 40, &queue_id, 4);
  std::memcpy(queue.data() + 44, &gpu, 4);
  std::memcpy(queue.data() + 48, &ring_size, 4);
  std::memcpy(queue.data() + 52, &aql, 4);
  note += agent + queue;
  const auto content = static_cast<std::uint32_t>(note.size() - start);
  std::memcpy(note.data() + 4, &content, 4);
  std::string out(
      "\x7f"
      "ELF\2\1\1\x40",
      8);
  out.resize(64 + 56, '\0');
  const auto at = [&](std::size_t offset, auto value) { std::memcpy(out.data() + offset, &value, sizeof(value)); };
  at(16, std::uint16_t{4});
  at(18, std::uint16_t{224});
  at(32, std::uint64_t{64});
  at(54, std::uint16_t{56});
  at(56, std::uint16_t{1});
  at(64, std::uint32_t{4});
  at(72, std::uint64_t{120});
  at(96, std::uint64_t{note.size()});
  return out + note;
}

TEST(GpuCore, AgentsQueuesAndTheirExceptionsAreReadFromBothLayouts) {
  for (const bool note_version : {true, false}) {
    const std::string bytes = gpu_core(note_version);
    const auto core = read_core(bytes);
    ASSERT_TRUE(core) << core.error().what;
    EXPECT_TRUE(core->gpu_only);
    ASSERT_TRUE(core->gpu) << note_version;
    EXPECT_EQ(core->gpu->kfd_minor, 18U);
    ASSERT_EQ(core->gpu->agents.size(), 1U);
    EXPECT_EQ(core->gpu->agents[0].gfx_target_version, 110000U);
    ASSERT_EQ(core->gpu->queues.size(), 1U);
    EXPECT_EQ(core->gpu->queues[0].exceptions, std::vector<std::string>{"wave memory violation"});
    for (std::size_t size = 0; size < bytes.size(); ++size) (void)read_core(std::string(bytes, 0, size));
  }
}

TEST(Core, OtherFilesAreErrors) {
  EXPECT_FALSE(read_core(std::string("hello")));
  EXPECT_FALSE(read_core(read_file(fixture_path("library.so"))));
}

}  // namespace
}  // namespace ff::binary
