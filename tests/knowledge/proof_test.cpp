// The proofs of the built-in knowledge are commands: `firstfault check --again` offers to run them.
#include "knowledge/proof.h"

#include <gtest/gtest.h>

#include "knowledge/knowledge.h"

namespace ff::knowledge {
namespace {

TEST(Proofs, OfTheBuiltInKnowledgeAreCommands) {
  const Proofs proofs(Knowledge::built_in().table("programs"));
  std::size_t seen = 0;
  for (const auto& text : Knowledge::built_in().causes())
    for (const auto& line : text->verify) {
      ++seen;
      EXPECT_TRUE(proofs.is_command(line)) << text->id << ": " << line;
    }
  EXPECT_GT(seen, 150U);
}

TEST(Proofs, AreToldFromSentences) {
  const Proofs proofs(Knowledge::built_in().table("programs"));
  for (const char* command :
       {"rocminfo | grep gfx", "HSA_ENABLE_SDMA=0 <your command>", "AMD_LOG_LEVEL=3 python3 train.py", "./check.sh", "/opt/mine/bin/probe",
        "our-tool --status", "ourtool status", "sudo dmesg", "ls .", "<your command>", "pumpctl list | grep pump"})
    EXPECT_TRUE(proofs.is_command(command)) << command;
  for (const char* sentence : {"Look whether the pump turns", "Run the training again.", "run it again and see whether it works", "The error is gone",
                               "cat is quiet.", "", "Check dmesg", "it should now work"})
    EXPECT_FALSE(proofs.is_command(sentence)) << sentence;
}

}  // namespace
}  // namespace ff::knowledge
