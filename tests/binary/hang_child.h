#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "binary/hang.h"

namespace ff::binary {

/// A child that hangs in a known way; killed with its own children and collected at the end.
class Hung {
 public:
  explicit Hung(const std::function<void()>& how) : pid_(::fork()) {
    if (pid_ == 0) {
      ::setpgid(0, 0);
      how();
      ::_exit(0);
    }
    ::usleep(300'000);
  }
  ~Hung() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Hung(const Hung&) = delete;
  Hung& operator=(const Hung&) = delete;
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] HangVerdict verdict(double seconds = 0.5) const {
    const auto seen = view(seconds);
    return judge(seen);
  }
  [[nodiscard]] HangView view(double seconds = 0.5) const {
    auto seen = look_at({.pid = pid_, .seconds = seconds});
    EXPECT_TRUE(seen);
    return seen ? std::move(*seen) : HangView{.threads = {HangThread{}}};
  }

 private:
  pid_t pid_;
};

}  // namespace ff::binary
