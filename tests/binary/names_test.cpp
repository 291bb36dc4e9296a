#include "binary/names.h"

#include <gtest/gtest.h>

namespace ff::binary {
namespace {

std::string target(std::string_view name) {
  const auto found = target_in_name(name);
  return found ? found->to_string() : "none";
}
std::string miopen(std::string_view name) {
  const auto found = miopen_name(name);
  return found ? found->processor + "/" + std::to_string(found->compute_units) : "none";
}

TEST(Names, ReadTheTargetOfTensileFiles) {
  EXPECT_EQ(target("TensileLibrary_lazy_gfx942.dat"), "gfx942");
  EXPECT_EQ(target("TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback_gfx1030.hsaco"), "gfx1030");
  EXPECT_EQ(target("Kernels.so-000-gfx90a-xnack-.hsaco"), "gfx90a:xnack-");
  EXPECT_EQ(target("Kernels.so-000-gfx90a-xnack+.hsaco"), "gfx90a:xnack+");
  EXPECT_EQ(target("TensileLibrary_Type_BB_gfx11-generic.co"), "gfx11-generic");
  EXPECT_EQ(target("TensileLibrary_gfx9-4-generic.dat"), "gfx9-4-generic");
  EXPECT_EQ(target("hipblasltTransform.hsaco"), "none");
  EXPECT_EQ(target("TensileLibrary.dat"), "none");
}

TEST(Names, ReadMiopenDatabasesWithTheirComputeUnits) {
  EXPECT_EQ(miopen("gfx942130.HIP.fdb.txt"), "gfx942/304");
  EXPECT_EQ(miopen("gfx90878.db"), "gfx908/120");
  EXPECT_EQ(miopen("gfx90a6e.kdb"), "gfx90a/110");
  EXPECT_EQ(miopen("gfx90a68.db.txt"), "gfx90a/104");
  EXPECT_EQ(miopen("gfx1030_36.db"), "gfx1030/36");
  EXPECT_EQ(miopen("gfx906_60.HIP.fdb.txt"), "gfx906/60");
  EXPECT_EQ(miopen("gfx90a.kdb"), "gfx90a/0");
  EXPECT_EQ(miopen("gfx90a.co"), "none");
  EXPECT_EQ(miopen("gfx9999.db"), "none");
  EXPECT_EQ(miopen("miopen.db"), "none");
}

TEST(Names, ExpandAotritonFamilies) {
  EXPECT_EQ(processors_like("gfx942"), std::vector<std::string>{"gfx942"});
  EXPECT_EQ(processors_like("gfx120x"), (std::vector<std::string>{"gfx1200", "gfx1201"}));
  EXPECT_TRUE(processors_like("gfx77x").empty());
}

}  // namespace
}  // namespace ff::binary
