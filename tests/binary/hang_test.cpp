#include "binary/hang.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace ff::binary {
namespace {

/// A child that hangs in a known way; killed and collected at the end.
class Hung {
 public:
  explicit Hung(const std::function<void()>& how) : pid_(::fork()) {
    if (pid_ == 0) {
      how();
      ::_exit(0);
    }
    ::usleep(300'000);
  }
  ~Hung() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Hung(const Hung&) = delete;
  Hung& operator=(const Hung&) = delete;
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] HangVerdict verdict(double seconds = 0.5) const {
    const auto view = look_at(pid_, seconds);
    EXPECT_TRUE(view);
    return view ? judge(*view) : HangVerdict{};
  }

 private:
  pid_t pid_;
};

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
  EXPECT_NE(verdict.what.find("nobody writes"), std::string::npos) << verdict.what;
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
  EXPECT_FALSE(look_at(0, 0.1));
  EXPECT_FALSE(look_at(-5, 0.1));
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

}  // namespace
}  // namespace ff::binary
