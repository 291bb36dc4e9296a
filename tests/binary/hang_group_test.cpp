#include "binary/hang_group.h"

#include <sys/socket.h>

#include "hang_child.h"

namespace ff::binary {
namespace {

HangMember member(int pid, int parent, const std::string& rank, const std::string& verdict, const std::string& what) {
  HangMember out{{pid, parent}, rank, {}, {verdict, what, {}}};
  out.view.pid = pid;
  out.view.program = "python3";
  return out;
}

TEST(HangGroup, TheRankThatIsNotInTheCollectiveIsNamed) {
  const auto group =
      judge_group({member(10, 1, "", "sleep", "it sleeps"), member(11, 10, "0", "waits-for-rank", "it waits in gloo"),
                   member(12, 10, "1", "pipe", "it waits to read from a pipe"), member(13, 10, "2", "waits-for-rank", "it waits in gloo")});
  EXPECT_EQ(group.verdict.id, "waits-for-rank");
  EXPECT_NE(group.verdict.what.find("it waits to read from a pipe"), std::string::npos) << group.verdict.what;
  const auto lost =
      judge_group({member(10, 1, "", "sleep", "it sleeps"), member(11, 10, "0", "waits-for-rank", "it waits in gloo"),
                   member(12, 10, "1", "busy-loop", "thread 12 uses a CPU"), member(13, 10, "2", "waits-for-rank", "it waits in gloo")});
  EXPECT_EQ(lost.verdict.id, "waits-for-rank");
  EXPECT_EQ(lost.about, 2U);
  EXPECT_NE(lost.verdict.what.find("ranks 0, 2 wait"), std::string::npos) << lost.verdict.what;
  EXPECT_NE(lost.verdict.what.find("rank 1, python3 (pid 12)"), std::string::npos) << lost.verdict.what;
  const auto all = judge_group(
      {member(10, 1, "", "sleep", "it sleeps"), member(11, 10, "0", "waits-for-rank", "gloo"), member(12, 10, "1", "waits-for-rank", "gloo")});
  EXPECT_NE(all.verdict.what.find("all 2 ranks"), std::string::npos) << all.verdict.what;
}

TEST(HangGroup, AWrapperOfARankIsNotTheRank) {
  const auto group = judge_group({member(10, 1, "", "child", "it waits"), member(11, 10, "0", "child", "bash waits"),
                                  member(12, 11, "0", "stopped", "stopped"), member(13, 10, "1", "moving", "it moves")});
  EXPECT_EQ(group.verdict.id, "stopped");
  EXPECT_EQ(group.about, 2U);
}

TEST(HangGroup, ALauncherIsAsHealthyAsItsChildren) {
  const auto sick = judge_group({member(10, 1, "", "child", "it waits"), member(11, 10, "", "lock", "it waits for a lock")});
  EXPECT_EQ(sick.verdict.id, "lock");
  EXPECT_NE(sick.verdict.what.find("(pid 11)"), std::string::npos);
  EXPECT_EQ(judge_group({member(10, 1, "", "child", "it waits"), member(11, 10, "", "moving", "it moves")}).verdict.id, "moving");
  // Workers of a trainer that moves wait for their next order.
  EXPECT_EQ(judge_group({member(10, 1, "", "moving", "it moves"), member(11, 10, "", "pipe", "it waits to read")}).verdict.id, "moving");
  EXPECT_EQ(judge_group({member(10, 1, "", "waits-for-work", "it listens"), member(11, 10, "", "lock", "a pool")}).verdict.id, "waits-for-work");
}

TEST(HangGroup, TheTreeOfARealLauncherIsFound) {
  const Hung hung([] {
    const pid_t child = ::fork();
    if (child == 0) {
      pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
      pthread_mutex_lock(&mutex);
      pthread_mutex_lock(&mutex);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  });
  std::size_t left_out = 0;
  const auto tree = process_tree(hung.pid(), 10, left_out);
  ASSERT_EQ(tree.size(), 2U);
  EXPECT_EQ(tree[0].pid, hung.pid());
  EXPECT_EQ(tree[1].parent, hung.pid());
  const auto views = look_at_all({{.pid = tree[0].pid, .seconds = 0.2}, {.pid = tree[1].pid, .seconds = 0.2}, {.pid = -1}});
  ASSERT_TRUE(views[0] && views[1]);
  EXPECT_FALSE(views[2]);
  EXPECT_EQ(judge(*views[0]).id, "child");
  EXPECT_EQ(judge(*views[1]).id, "lock");
  EXPECT_EQ(process_tree(hung.pid(), 1, left_out).size(), 1U);
  EXPECT_EQ(left_out, 1U);
}

TEST(HangGroup, SlurmsListIsRead) {
  // What scontrol of Slurm 22.05 prints.
  const auto rows = parse_listpids(
      "PID      JOBID    STEPID   LOCALID GLOBALID\n4811     7        batch    0       0\n4815     7        0        0       0\n4816     7        0  "
      "      1       1\n4809     7        extern   -       -\n");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 4U);
  EXPECT_EQ((*rows)[2].pid, 4816);
  EXPECT_EQ((*rows)[2].step, "0");
  EXPECT_EQ((*rows)[2].global, 1);
  EXPECT_EQ((*rows)[3].local, -1);
  EXPECT_FALSE(parse_listpids("slurm_load_jobs error: Invalid job id specified\n"));
  EXPECT_TRUE(parse_listpids("PID JOBID STEPID LOCALID GLOBALID\nx y z - -\n-4 1 2 3 4\n")->empty());
}

}  // namespace
}  // namespace ff::binary
