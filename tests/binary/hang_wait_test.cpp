// Servers and others that wait for somebody: told from a hang by what their system call waits for.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>

#include <fstream>

#include "hang_child.h"
#include "support.h"

namespace ff::binary {
namespace {

/// A socket that listens on a free port of this machine.
struct Server {
  int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;
  Server() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(descriptor, 4), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  ~Server() { ::close(descriptor); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] int connect() const {
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return client;
  }
  [[nodiscard]] std::string name() const { return "127.0.0.1:" + std::to_string(port); }
};

void expect_idle(const Hung& hung, const Server& server) {
  const auto verdict = hung.verdict();
  EXPECT_EQ(verdict.id, "waits-for-work") << verdict.what;
  EXPECT_NE(verdict.what.find(server.name()), std::string::npos) << verdict.what;
}

TEST(HangWait, AServerWithoutRequestsIsNotHung) {
  const Server server;
  expect_idle(Hung([&] { ::accept(server.descriptor, nullptr, nullptr); }), server);
  expect_idle(Hung([&] {
                pollfd rows[2] = {{server.descriptor, POLLIN, 0}, {::eventfd(0, 0), POLLIN, 0}};
                ::poll(rows, 2, -1);
              }),
              server);
  expect_idle(Hung([&] {
                fd_set set;
                FD_ZERO(&set);
                FD_SET(server.descriptor, &set);
                ::select(server.descriptor + 1, &set, nullptr, nullptr, nullptr);
              }),
              server);
  // One client is connected and silent: the server still waits for work.
  const int client = server.connect();
  expect_idle(Hung([&] {
                const int epoll = ::epoll_create1(0), accepted = ::accept(server.descriptor, nullptr, nullptr);
                for (const int descriptor : {server.descriptor, accepted}) {
                  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
                  ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
                }
                epoll_event event{};
                ::epoll_wait(epoll, &event, 1, -1);
              }),
              server);
  ::close(client);
}

TEST(HangWait, AClientThatWaitsForItsAnswerIsAndNamesTheOtherSide) {
  const Server server;
  const int client = server.connect();
  for (const bool polls : {true, false}) {
    const Hung hung([&] {
      char c = 0;
      pollfd row{client, POLLIN, 0};
      if (polls)
        ::poll(&row, 1, -1);
      else
        (void)::recv(client, &c, 1, 0);
    });
    const auto verdict = hung.verdict();
    EXPECT_EQ(verdict.id, "socket") << verdict.what;
    EXPECT_NE(verdict.what.find(server.name()), std::string::npos) << verdict.what;
  }
  ::close(client);
}

TEST(HangWait, AnEventLoopOverConnectionsAloneIsNotJudged) {
  const Server server;
  const int first = server.connect(), second = server.connect();
  const Hung hung([&] {
    pollfd rows[2] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
    ::poll(rows, 2, 100'000);
  });
  const auto verdict = hung.verdict();
  EXPECT_EQ(verdict.id, "unknown");
  EXPECT_NE(verdict.what.find("2 connections"), std::string::npos) << verdict.what;
  EXPECT_NE(verdict.what.find("100 s at most"), std::string::npos) << verdict.what;
  ::close(first);
  ::close(second);
}

TEST(HangWait, APollOfNothingIsASleepAndATerminalIsWaitedFor) {
  EXPECT_EQ(Hung([] { ::poll(nullptr, 0, 60'000); }).verdict().id, "sleep");
  EXPECT_EQ(Hung([] { ::select(0, nullptr, nullptr, nullptr, nullptr); }).verdict().id, "unknown") << "nothing can wake it";
  const int controller = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(controller, 0);
  ASSERT_EQ(::grantpt(controller), 0);
  ASSERT_EQ(::unlockpt(controller), 0);
  const std::string name = ::ptsname(controller);
  const Hung hung([&] {
    char c = 0;
    (void)!::read(::open(name.c_str(), O_RDWR | O_NOCTTY), &c, 1);
  });
  const auto verdict = hung.verdict();
  EXPECT_EQ(verdict.id, "waits-for-input") << verdict.what;
  EXPECT_NE(verdict.what.find("/dev/pts/"), std::string::npos) << verdict.what;
  ::close(controller);
}

TEST(HangWait, SocketTablesAreReadAsTheKernelWritesThem) {
  std::vector<std::pair<std::uint64_t, Watched>> out;
  parse_socket_table(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0\n"
      "   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 20 4 30 10 -1\n"
      "   2: cut\n",
      "tcp", out);
  parse_socket_table("head\n 0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 103 1\n", "tcp6", out);
  parse_socket_table("head\nffff: 00000002 00000000 00010000 0001 01 104 /run/x.sock\nffff: 00000003 00000000 00000000 0001 03 105\n", "unix", out);
  ASSERT_EQ(out.size(), 5U);
  EXPECT_EQ(out[0].second.kind, "listening");
  EXPECT_EQ(out[0].second.what, "127.0.0.1:8080");
  EXPECT_EQ(out[1].second.kind, "connected");
  EXPECT_EQ(out[1].second.what, "127.0.0.1:8080 (from 127.0.0.1:40000)");
  EXPECT_EQ(out[2].second.what, "[0:0:0:0:0:0:0:1]:8080");
  EXPECT_EQ(out[3].second.kind, "listening");
  EXPECT_EQ(out[3].second.what, "/run/x.sock");
  EXPECT_EQ(out[4].second.kind, "local");
}

class HangOutput : public WithDirectory {};

TEST_F(HangOutput, WhatTheLogSaysOfALostRankIsBelievedWhenNothingMoves) {
  const std::string log =
      write("train.log",
            "step 41 loss 0.31\n[rank1]:[E1130 12:00:00.000 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=512, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600043 "
            "milliseconds before timing out.\n");
  const Hung hung([&] {
    const int file = ::open(log.c_str(), O_WRONLY | O_APPEND);
    ::dup2(file, 1);
    ::dup2(file, 2);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  });
  const auto view = hung.view();
  ASSERT_FALSE(view.output.empty());
  EXPECT_TRUE(view.output[0].cause.starts_with("communication.")) << view.output[0].cause;
  const auto verdict = judge(view);
  EXPECT_EQ(verdict.id, "waits-for-rank");
  EXPECT_NE(verdict.next.at(0).find("ALLREDUCE"), std::string::npos) << verdict.next[0];
}

}  // namespace
}  // namespace ff::binary
