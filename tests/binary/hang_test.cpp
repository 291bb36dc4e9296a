#include "binary/hang.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hang_child.h"
#include "support.h"

namespace ff::binary {
namespace {

TEST(Hang, ALockThatNobodyReleases) {
  const Hung hung([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  });
  EXPECT_EQ(hung.verdict().id, "lock");
}

TEST(Hang, AFullPipeAndAnEmptyOne) {
  int full[2], empty[2];
  ASSERT_EQ(::pipe(full), 0);
  ASSERT_EQ(::pipe(empty), 0);
  {
    const Hung hung([&] {
      const std::string piece(65536, 'x');
      while (::write(full[1], piece.data(), piece.size()) > 0) {
      }
    });
    const auto verdict = hung.verdict();
    EXPECT_EQ(verdict.id, "pipe");
    EXPECT_NE(verdict.what.find("full"), std::string::npos) << verdict.what;
  }
  const Hung hung([&] {
    char c = 0;
    (void)!::read(empty[0], &c, 1);
  });
  const auto verdict = hung.verdict();
  EXPECT_EQ(verdict.id, "pipe");
  EXPECT_NE(verdict.what.find("writes nothing"), std::string::npos) << verdict.what;
}

TEST(Hang, APeerThatDoesNotAnswer) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const Hung hung([&] {
    char c = 0;
    (void)::recv(pair[0], &c, 1, 0);
  });
  EXPECT_EQ(hung.verdict().id, "socket");
}

TEST(Hang, AStoppedProcessAndOneThatWaitsForItsChild) {
  {
    const Hung hung([] { ::raise(SIGSTOP); });
    EXPECT_EQ(hung.verdict().id, "stopped");
  }
  const Hung hung([] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::sleep(20);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  });
  EXPECT_EQ(hung.verdict().id, "child");
}

TEST(Hang, OneThatSleepsOfItsOwnWill) {
  const Hung hung([] { ::sleep(30); });
  EXPECT_EQ(hung.verdict().id, "sleep");
}

TEST(Hang, AZombieHasEndedAndANumberWithoutAProcessIsAnError) {
  const Hung hung([] {});
  EXPECT_EQ(hung.verdict(0.1).id, "ended");
  EXPECT_EQ(look_at({.pid = 0}).error().exit_code, 2);
  EXPECT_FALSE(look_at({.pid = -5}));
}

// What cannot be seeded on every machine is judged from a view: a loaded machine gives a spinning thread no full CPU,
// and nothing can be put to uninterruptible sleep at will.
HangView view_of(HangThread thread) {
  HangView view;
  view.pid = 4242;
  thread.id = 4242;
  view.threads.push_back(std::move(thread));
  return view;
}

TEST(Hang, ABusyThreadIsNoWaitingOne) {
  HangThread thread;
  thread.state = 'R';
  thread.cpu_share = 0.97;
  auto view = view_of(thread);
  EXPECT_EQ(judge(view).id, "busy-loop");
  EXPECT_EQ(judge(view).next.size(), 1U);
  view.holds_kfd = true;
  EXPECT_EQ(judge(view).next.size(), 2U) << "a GPU process may spin for the GPU";
  view.written = 12;
  EXPECT_EQ(judge(view).id, "moving") << "a loop that writes is no hang";
}

TEST(Hang, AProcessThatComputesAndWritesMoves) {
  const Hung busy([] {
    const int out = ::open("/dev/null", O_WRONLY);
    for (unsigned i = 0;; ++i)
      if (i % 100'000 == 0 && ::write(out, "x", 1) != 1) ::_exit(1);
  });
  const auto view = busy.view(1);
  EXPECT_GT(view.written, 0U);
  EXPECT_EQ(judge(view).id, "moving");
}

TEST(Hang, ALoopIsSeenOnALoadedMachineToo) {
  const Hung hung([] {
    for (;;) asm volatile("" ::: "memory");
  });
  const auto view = hung.view(1);
  EXPECT_EQ(judge(view).id, "busy-loop") << view.threads[0].cpu_share << " " << view.threads[0].wants_cpu;
  EXPECT_TRUE(view.threads[0].frames.empty()) << "a running thread has no stack that stands still";
}

TEST(Hang, AParentOfVforkSleepsUninterruptiblyAndDoesNotStopUs) {
  const Hung hung([] {
    // The parent waits in the kernel, state D, until the child of vfork ends.
    const pid_t child = ::vfork();  // NOLINT: what this test is about
    if (child == 0) {
      for (int i = 0; i < 40; ++i) ::usleep(500'000);
      ::_exit(0);
    }
  });
  const auto view = hung.view(0.2);
  EXPECT_EQ(view.threads.at(0).state, 'D');
  EXPECT_EQ(judge(view).id, "uninterruptible");
}

TEST(Hang, TheStackOfAWaitingThreadIsReadWithoutStoppingIt) {
  int empty[2];
  ASSERT_EQ(::pipe(empty), 0);
  const Hung hung([&] {
    char c = 0;
    (void)!::read(empty[0], &c, 1);
  });
  const auto view = hung.view(0.2);
  if (view.threads.at(0).frames.empty()) GTEST_SKIP() << "memory of a child may not be read here";
  std::string names;
  for (const auto& frame : view.threads[0].frames) names += frame.function + " ";
  EXPECT_NE(names.find("read"), std::string::npos) << names;
  EXPECT_GE(view.threads[0].frames.size(), 3U) << names;
  EXPECT_EQ(view.threads[0].state, 'S') << "not T: it was not stopped";
}

TEST(Hang, AnotherUsersProcessIsNotCalledHealthy) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  int empty[2], answer[2];
  ASSERT_EQ(::pipe(empty), 0);
  ASSERT_EQ(::pipe(answer), 0);
  const Hung hung([&] {
    char c = 0;
    (void)!::read(empty[0], &c, 1);
  });
  const pid_t other = ::fork();
  if (other == 0) {
    constexpr uid_t nobody = 65534;
    if (::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0) ::_exit(2);
    const auto view = look_at({.pid = hung.pid(), .seconds = 0.2});
    const std::string text = view ? judge(*view).id + "|" + judge(*view).what : "error";
    (void)!::write(answer[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(answer[1]);
  std::string text(4096, '\0');
  const auto size = ::read(answer[0], text.data(), text.size());
  ::waitpid(other, nullptr, 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  EXPECT_TRUE(text.starts_with("not-readable|")) << text;
  EXPECT_NE(text.find("belongs to user 0"), std::string::npos) << text;
}

TEST(Hang, WhyTheKernelRefusesIsReadFromItsRules) {
  const auto status = [](const char* users, const char* permitted, const char* effective) {
    return std::string("Name:\tx\nUid:\t") + users + "\nCapPrm:\t" + permitted + "\nCapEff:\t" + effective + "\n";
  };
  const std::string all = status("0\t0\t0\t0", "000001ffffffffff", "000001ffffffffff"),
                    fewer = status("0\t0\t0\t0", "000001fffeffffff", "000001fffeffffff");
  const std::string user = status("1000\t1000\t1000\t1000", "0000000000000000", "0000000000000000");
  const std::string other = status("1001\t1001\t1001\t1001", "0000000000000000", "0000000000000000");
  const std::string setuid = status("1000\t0\t0\t0", "000001ffffffffff", "000001ffffffffff");
  const auto reason = [](const std::string& theirs, const std::string& ours, const char* scope) { return why_refused(theirs, ours, scope).first; };
  EXPECT_EQ(reason(other, user, "0\n"), "the process belongs to user 1001");
  EXPECT_EQ(reason(setuid, user, ""), "the process belongs to user 0") << "by its effective user";
  EXPECT_TRUE(reason(user, user, "1\n").starts_with("kernel.yama.ptrace_scope is 1")) << reason(user, user, "1\n");
  EXPECT_TRUE(reason(user, user, "2\n").starts_with("kernel.yama.ptrace_scope is 2"));
  EXPECT_TRUE(reason(all, all, "3\n").starts_with("kernel.yama.ptrace_scope is 3"));
  // Process 1 of a machine seen by root of a container: the user is the same, and that is not why.
  EXPECT_EQ(reason(all, fewer, "0\n"),
            "the process holds rights that even root lacks here (capabilities 0x1000000): it was started outside of this container");
  EXPECT_NE(reason(all, all, "").find("namespace"), std::string::npos);
  EXPECT_NE(reason(user, user, "").find("PR_SET_DUMPABLE"), std::string::npos);
  EXPECT_FALSE(why_refused("", "", "").first.empty());
}

TEST(Hang, KernelStacksLoseTheirOffsets) {
  EXPECT_EQ(parse_kernel_stack("[<0>] futex_wait_queue+0x60/0x90\n[<0>] do_syscall_64+0x55/0xb0\nnoise\n"),
            (std::vector<std::string>{"futex_wait_queue", "do_syscall_64"}));
}

TEST(Hang, UninterruptibleSleepInTheGpuDriverAndElsewhere) {
  HangThread thread;
  thread.state = 'D';
  thread.wait_channel = "amdgpu_fence_wait_empty";
  EXPECT_NE(judge(view_of(thread)).next.at(0).find("GPU driver"), std::string::npos);
  thread.wait_channel = "nfs_wait_bit_killable";
  EXPECT_NE(judge(view_of(thread)).next.at(0).find("network file system"), std::string::npos);
  EXPECT_EQ(judge(view_of(thread)).id, "uninterruptible");
}

/// A tree of the GPU driver's files as Linux lays them out, with values made for the test.
class GpuTree : public WithDirectory {
 protected:
  void gpu(const std::string& busy) const {
    write("sys/class/kfd/kfd/proc/4242/queues/0/gpuid", "41234\n");
    write("sys/class/kfd/kfd/proc/4242/queues/0/type", "0\n");
    write("sys/class/kfd/kfd/proc/4242/queues/0/size", "1048576\n");
    write("sys/class/drm/card1/device/vendor", "0x1002\n");
    write("sys/class/drm/card1/device/gpu_busy_percent", busy + "\n");
    write("sys/class/drm/card1/device/hwmon/hwmon3/power1_average", "92000000\n");
    write("sys/class/drm/card1/device/hwmon/hwmon3/freq1_input", "1900000000\n");
    write("sys/class/drm/card1-DP-1/status", "connected\n");
  }
};

TEST_F(GpuTree, QueuesAndSensorsAreReadAtEachLook) {
  gpu("99");
  HangView view;
  view.pid = 4242;
  sample_gpus(view, directory);
  gpu("100");
  sample_gpus(view, directory);
  ASSERT_EQ(view.queues.size(), 1U);
  EXPECT_EQ(view.queues[0].gpu_id, 41234U);
  EXPECT_EQ(view.queues[0].type, 0);
  ASSERT_EQ(view.gpus.size(), 1U);
  EXPECT_EQ(view.gpus[0].busy_percent, (std::vector<double>{99, 100}));
  EXPECT_DOUBLE_EQ(view.gpus[0].power_watts.at(0), 92);
  EXPECT_DOUBLE_EQ(view.gpus[0].clock_mhz.at(0), 1900);
}

TEST_F(GpuTree, ASleepingGpuIsNotWoken) {
  gpu("50");
  write("sys/class/drm/card1/device/power/runtime_status", "suspended\n");
  HangView view;
  sample_gpus(view, directory);
  EXPECT_TRUE(view.gpus.at(0).asleep);
  EXPECT_TRUE(view.gpus[0].busy_percent.empty());
}

TEST(Hang, TheGpusLoadTellsARunningKernelFromALostCompletion) {
  HangThread thread;
  thread.state = 'R';
  thread.cpu_share = 0.99;
  auto view = view_of(thread);
  view.holds_kfd = true;
  HangGpu gpu;
  gpu.busy_percent = {100, 99, 100};
  view.gpus = {gpu};
  EXPECT_EQ(judge(view).id, "kernel-runs");
  view.gpus[0].busy_percent = {0, 0, 1};
  EXPECT_EQ(judge(view).id, "completion-lost");
  view.gpus[0].busy_percent = {40, 60, 50};
  EXPECT_EQ(judge(view).id, "busy-loop") << "in between nothing can be said";
  view.kernel_log.push_back({"driver.ring-timeout", "a ring of the GPU timed out", "amdgpu: ring gfx timeout"});
  EXPECT_EQ(judge(view).id, "driver-dead");
}

TEST(Hang, TheKernelLogCountsFromTheStartOfTheProcess) {
  const std::string log =
      "<3>[  100.000000] amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=10, emitted seq=12\n"
      "<6>[  101.000000] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"
      "<3>[  105.000000] amdgpu 0000:03:00.0: amdgpu: GPU reset end with ret = -110\n"
      "<6>[  500.000000] usb 1-1: new device\n";
  EXPECT_TRUE(kernel_log_since(log, 300).empty());
  const auto seen = kernel_log_since(log, 50);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen[0].cause, "driver.reset-loop");
  EXPECT_NE(seen[0].text.find("reset"), std::string::npos) << seen[0].text;
}

TEST(Hang, GlooAndFlightRecorderNameTheWaitForARank) {
  HangThread thread;
  thread.state = 'S';
  thread.system_call = 202;  // futex
  auto view = view_of(thread);
  EXPECT_EQ(judge(view).id, "lock");
  view.threads[0].frames.push_back({.function = "gloo::transport::tcp::UnboundBuffer::waitRecv(int*, std::chrono::duration<long>)"});
  const auto verdict = judge(view);
  EXPECT_EQ(verdict.id, "waits-for-rank");
  EXPECT_NE(verdict.what.find("UnboundBuffer::waitRecv"), std::string::npos);
  view.ranks = FlightAnswer{"rank-missing", "ranks 0, 1 wait; rank 2 has not come to it", "0", {2}, {0, 1}, {}};
  EXPECT_NE(judge(view).what.find("rank 2"), std::string::npos);
}

}  // namespace
}  // namespace ff::binary
