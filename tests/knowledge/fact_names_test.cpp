// Names of facts: a rule that asks for one that does not exist can never hold.
#include "knowledge/fact_names.h"

#include <gtest/gtest.h>

#include "knowledge/knowledge.h"
#include "knowledge/load.h"

namespace ff::knowledge {
namespace {

FactNames names() { return FactNames(Knowledge::built_in().table("facts")); }

TEST(FactNames, FitWithIndicesAddressesAndKeys) {
  for (const char* name : {"gpus[*].gfx", "gpus[0].gfx", "env.HSA_OVERRIDE_GFX_VERSION", "pythons[*].packages.torch", "gpus[*].ras[umc].correctable",
                           "access.nodes[/dev/kfd].mode", "dataset.stats.observation.state.max_abs", "gpu_count"})
    EXPECT_TRUE(names().known(name)) << name;
  for (const char* name : {"gpus[*].ras.correctable", "gpus[*].gfz", "python.torch", "gpus", "env", "env.", "", "pythons[*].torch_arch_list[*]"})
    EXPECT_FALSE(names().known(name)) << name;
  EXPECT_FALSE(names().known(std::string(100'000, '*')));
}

TEST(FactNames, SuggestWhatIsNear) {
  EXPECT_EQ(names().near("gpus[*].vram_total").front(), "gpus[*].vram_total_bytes");
  EXPECT_EQ(names().near("gpus[*].ras.correctable").front(), "gpus[*].ras[*].correctable");
  EXPECT_TRUE(names().near("banana").empty());
}

TEST(FactNames, WithoutATableEveryNameIsKnown) { EXPECT_TRUE(FactNames(Value()).known("anything")); }

}  // namespace
}  // namespace ff::knowledge
