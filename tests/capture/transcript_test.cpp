#include "capture/transcript.h"

#include <gtest/gtest.h>

namespace ff::capture {
namespace {

TEST(Transcript, SplitsAtPromptsAndCountsLines) {
  const auto pieces = split_transcript("$ uname -r\n6.8.0\n$ rocminfo | grep Name\n  Name: gfx1100\n  Name: gfx1036\n");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].command, "uname -r");
  EXPECT_EQ(pieces[0].output, "6.8.0\n");
  EXPECT_EQ(pieces[0].command_line, 1u);
  EXPECT_EQ(pieces[1].command, "rocminfo | grep Name");
  EXPECT_EQ(pieces[1].output_line, 4u);
  EXPECT_EQ(pieces[1].output, "  Name: gfx1100\n  Name: gfx1036\n");
}

TEST(Transcript, KnowsTheUsualPrompts) {
  for (const char* line : {"user@host:~$ rocminfo", "root@host:/var# dmesg", "[user@host dir]$ rocminfo", "[root@host ~]# rocminfo",
                           "(venv) user@host:~/x$ rocminfo", "(base) $ rocminfo", "[toolbox]$ id", "% rocminfo", "\u276f rocminfo", "$ ./run.sh",
                           "$ HSA_OVERRIDE_GFX_VERSION=10.3.0 rocminfo", "root@101acc334128:/var/lib# ls"})
    EXPECT_TRUE(is_transcript(line)) << line;
}

TEST(Transcript, KnowsThePromptsOfWindows) {
  for (const char* text : {"C:\\sd> where amdhip64_7.dll\n1\n", "PS D:\\a b>where amdhip64_7.dll\n1\n", "(venv) C:\\sd>where amdhip64_7.dll\n1\n"}) {
    const auto pieces = split_transcript(text);
    ASSERT_EQ(pieces.size(), 1u) << text;
    EXPECT_EQ(pieces[0].command, "where amdhip64_7.dll") << text;
  }
  EXPECT_FALSE(is_transcript("C:\\Windows\\System32\\amdhip64_7.dll\nC:\\x > 5\n"));
}

TEST(Transcript, TakesNothingElseForAPrompt) {
  for (const char* line :
       {"# a comment in a script", "#include <hip/hip_runtime.h>", "$ 5.00", "price $ 5", "user@host.example", "mail: user@host: $5 off",
        "100% of it", "# nThread: 1 nGpus: 2", ">>> import torch", "[   12.3] amdgpu: x # y", "$", "$ "})
    EXPECT_FALSE(is_transcript(line)) << line;
}

TEST(Transcript, CommentsInsideOutputAreOutput) {
  const auto pieces = split_transcript("$ all_reduce_perf\n# nThread: 1 nGpus: 2\n# dmesg of it\n");
  ASSERT_EQ(pieces.size(), 2u) << "the second is root's dmesg, the first is the program's heading";
  EXPECT_EQ(pieces[0].output, "# nThread: 1 nGpus: 2\n");
}

TEST(Transcript, RemembersUserAndHost) {
  const auto pieces = split_transcript("root@node7:~# id\nuid=0(root)\n");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].user, "root");
  EXPECT_EQ(pieces[0].host, "node7");
}

TEST(Transcript, JoinsContinuedCommands) {
  const auto pieces = split_transcript("$ docker run \\\n>   --device=/dev/kfd \\\n    image\nout\n");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].command, "docker run  --device=/dev/kfd  image");
  EXPECT_EQ(pieces[0].output, "out\n");
  EXPECT_EQ(pieces[0].output_line, 4u);
}

TEST(Transcript, KeepsTextBeforeTheFirstPrompt) {
  const auto pieces = split_transcript("My GPU is broken.\n$ id\nuid=1\n");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].command, "");
  EXPECT_EQ(pieces[0].output, "My GPU is broken.\n");
}

TEST(Transcript, TextWithoutPromptIsOnePiece) {
  const auto pieces = split_transcript("a\nb\n");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].output, "a\nb\n");
  EXPECT_EQ(split_transcript("").size(), 1u);
}

TEST(Transcript, ACommandWithoutOutputHasEmptyOutput) {
  const auto pieces = split_transcript("$ true\n$ false");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].output, "");
  EXPECT_EQ(pieces[1].command, "false");
  EXPECT_EQ(pieces[1].output, "");
}

TEST(Transcript, prompts_of_other_shells) {
  for (const std::string prompt : {"me@node7 ~/work> ", "root@node7 /x (main)> ", "node7% ", "bash-5.2$ ", "+ ", "++ "}) {
    const std::string text = prompt + "rocminfo\nROCk module is NOT loaded\n" + prompt + "my-own-tool --all\ndone\n";
    const auto pieces = split_transcript(text);
    ASSERT_EQ(pieces.size(), 2u) << prompt;
    EXPECT_EQ(pieces[0].command, "rocminfo") << prompt;
    EXPECT_EQ(pieces[0].output, "ROCk module is NOT loaded\n") << prompt;
    EXPECT_EQ(pieces[1].command, "my-own-tool --all") << prompt;
    EXPECT_EQ(pieces[1].command_line, 3u) << prompt;
  }
}

TEST(Transcript, what_only_looks_like_a_prompt_is_none) {
  for (const char* text :
       {"--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-export A=1\n+ export A=2\n", "progress 100% of it\n100% done\n", "US$ 5 a piece\n",
        "Bob <bob@example.com> wrote> hello\n", "bob@example.com wrote> hello\n", "+ more speed\n+ less memory\n", "a b> c\n"})
    EXPECT_FALSE(is_transcript(text)) << text;
}

TEST(Transcript, the_last_line_of_script_is_no_output) {
  const auto pieces = split_transcript("Script started on 2026-11-30 15:21:10+00:00\n$ cat busy\n99\nScript done on 2026-11-30 15:22:40+00:00\n");
  ASSERT_GE(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].command, "cat busy");
  EXPECT_EQ(pieces[1].output, "99\n");
}

TEST(Transcript, is_written_plainly) {
  EXPECT_EQ(plain_transcript("[15:21:10] node7% cat busy\n[15:21:10] 99\n"), "$ cat busy\n99\n");
  EXPECT_EQ(plain_transcript("2026-11-30T15:21:10.123Z me@node7:~$ cat busy\n2026-11-30T15:21:10.125Z 99\n"), "$ cat busy\n99\n");
  EXPECT_EQ(plain_transcript("root@node7:/x# cat busy\n99"), "$ cat busy\n99\n");
  EXPECT_EQ(plain_transcript("[15:21:10] $ cat busy\n99\n"), std::nullopt) << "only where every line has a stamp";
  EXPECT_EQ(plain_transcript("no prompt\n"), std::nullopt);
  EXPECT_EQ(without_times("[   12.345678] amdgpu 0000:03:00.0: ready\n"), std::nullopt) << "seconds since start are no time of day";
  // Cut at every byte, nothing happens.
  const std::string text = "Script started on 2026\n[15:21:10] ++ cat a\\\n> b\nme@node7 ~> ls\nScript done on 2026\n";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const auto plain = plain_transcript(std::string_view(text).substr(0, n));
    EXPECT_TRUE(!plain || plain->size() <= text.size() + 2) << n;
  }
}

}  // namespace
}  // namespace ff::capture
