#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/clock.h"
#include "base/file.h"
#include "base/parallel.h"

namespace ff {
namespace {

using std::chrono::milliseconds;

TEST(Process, ReturnsOutputAndStatus) {
  const ChildResult result = run_child({.argv = {"sh", "-c", "echo out; echo err >&2; exit 3"}});
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_status, 3);
  EXPECT_FALSE(result.signal);
  EXPECT_EQ(result.describe(), "exit status 3");
}

TEST(Process, SaysWhenAProgramIsNotThere) {
  const ChildResult result = run_child({.argv = {"no-such-program-here"}});
  EXPECT_EQ(result.start_errno, ENOENT);
  EXPECT_FALSE(result.exit_status);
  EXPECT_EQ(result.describe(), "not installed");
}

TEST(Process, SaysWhenThereIsNothingToRun) { EXPECT_EQ(run_child({}).start_errno, EINVAL); }

TEST(Process, SaysWhichSignalEndedIt) {
  const ChildResult result = run_child({.argv = {"sh", "-c", "kill -SEGV $$"}});
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.describe(), "killed by SIGSEGV");
}

TEST(Process, GivesNoStandardInput) {
  const ChildResult result = run_child({.argv = {"cat"}, .time_limit = milliseconds(5000)});
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.out, "");
}

TEST(Process, UsesTheGivenEnvironmentAndDirectory) {
  const ChildResult result =
      run_child({.argv = {"/bin/sh", "-c", "echo $A; pwd"}, .environment = std::vector<std::string>{"A=b"}, .directory = "/usr"});
  EXPECT_EQ(result.out, "b\n/usr\n");
}

TEST(Process, KillsTheWholeGroupWhenTheTimeIsOver) {
  const Monotonic start = monotonic_now();
  const ChildResult result = run_child({.argv = {"sh", "-c", "echo before; sleep 30 & echo $!; wait"}, .time_limit = milliseconds(300)});
  EXPECT_LT(milliseconds_since(start), 3000);
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.abandoned);
  EXPECT_EQ(result.signal, SIGKILL);
  ASSERT_TRUE(result.out.starts_with("before\n")) << result.out;
  const pid_t grandchild = std::stoi(result.out.substr(7));
  for (int i = 0; i < 100 && ::kill(grandchild, 0) == 0; ++i) {
    // Killed, but perhaps not yet collected by init; a zombie is dead enough.
    const auto state = read_file("/proc/" + std::to_string(grandchild) + "/stat");
    if (state && state->find(") Z") != std::string::npos) return;
    ::usleep(10'000);
  }
  EXPECT_NE(::kill(grandchild, 0), 0);
}

TEST(Process, LeavesBehindAChildThatDoesNotDie) {
  // SIGTERM that the child ignores plays the part of SIGKILL, which an uninterruptible sleep "ignores".
  const Monotonic start = monotonic_now();
  const ChildResult result = run_child({.body =
                                            [](int out) {
                                              ::signal(SIGTERM, SIG_IGN);
                                              write_all(out, "first answer");
                                              while (true) ::pause();
                                            },
                                        .time_limit = milliseconds(300),
                                        .kill_signal = SIGTERM});
  EXPECT_LT(milliseconds_since(start), 2000);
  EXPECT_TRUE(result.timed_out);
  EXPECT_TRUE(result.abandoned);
  EXPECT_EQ(result.out, "first answer");
  ASSERT_GT(result.pid, 0);
  EXPECT_EQ(::kill(result.pid, SIGKILL), 0) << "it still runs";
  ::waitpid(result.pid, nullptr, 0);
}

TEST(Process, KeepsOutputUpToTheLimit) {
  const ChildResult exact = run_child({.argv = {"sh", "-c", "printf 12345"}, .output_limit_bytes = 5});
  EXPECT_EQ(exact.out, "12345");
  EXPECT_FALSE(exact.truncated);
  const ChildResult more = run_child({.argv = {"sh", "-c", "printf 123456; exit 4"}, .output_limit_bytes = 5});
  EXPECT_EQ(more.out, "12345");
  EXPECT_TRUE(more.truncated);
  EXPECT_EQ(more.exit_status, 4) << "it was not held up by the full limit";
}

TEST(Process, TakesLargeOutputWhole) {
  const ChildResult result = run_child({.argv = {"sh", "-c", "head -c 3000000 /dev/zero"}});
  EXPECT_EQ(result.out.size(), 3'000'000u);
}

TEST(Process, TurnsAnExceptionOfTheBodyIntoAStatus) {
  const ChildResult result = run_child({.body = [](int) { throw std::runtime_error("broken"); }});
  EXPECT_EQ(result.exit_status, 125);
  EXPECT_EQ(result.err, "broken");
}

TEST(Process, DoesNotWaitForAGrandchildThatHoldsThePipe) {
  const Monotonic start = monotonic_now();
  const ChildResult result = run_child({.argv = {"sh", "-c", "sleep 30 & echo done"}});
  EXPECT_LT(milliseconds_since(start), 5000);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_EQ(result.exit_status, 0);
}

TEST(Parallel, RunsAtTheSameTimeAndKeepsTheOrder) {
  std::vector<ChildOptions> tasks;
  for (int i = 0; i < 6; ++i) tasks.push_back({.argv = {"sh", "-c", "sleep 0.5; echo " + std::to_string(i)}});
  const Monotonic start = monotonic_now();
  const std::vector<ChildResult> results = run_children(tasks);
  EXPECT_LT(milliseconds_since(start), 2500) << "one after the other would take 3 s";
  ASSERT_EQ(results.size(), 6u);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].out, std::to_string(i) + "\n");
}

TEST(Parallel, EndsAllWhenTheWholeTimeIsOver) {
  std::vector<ChildOptions> tasks(3, {.argv = {"sleep", "30"}});
  const Monotonic start = monotonic_now();
  const std::vector<ChildResult> results = run_children(tasks, milliseconds(300), 2);
  EXPECT_LT(milliseconds_since(start), 5000);
  for (const ChildResult& result : results) EXPECT_TRUE(result.timed_out);
}

TEST(Parallel, OneThatHangsDoesNotHoldTheOthers) {
  const std::vector<ChildResult> results =
      run_children({{.argv = {"sleep", "30"}, .time_limit = milliseconds(200)}, {.argv = {"echo", "here"}}, {.argv = {"no-such-program-here"}}});
  EXPECT_TRUE(results[0].timed_out);
  EXPECT_EQ(results[1].out, "here\n");
  EXPECT_EQ(results[2].start_errno, ENOENT);
}

TEST(Parallel, NothingToDoIsDoneAtOnce) { EXPECT_TRUE(run_children({}).empty()); }

}  // namespace
}  // namespace ff
