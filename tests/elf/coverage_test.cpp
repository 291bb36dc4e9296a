#include "elf/coverage.h"

#include <gtest/gtest.h>

namespace ff::elf {
namespace {

Coverage ask(std::string_view device, std::vector<std::string> targets) {
  const auto answer = covers(device, targets);
  EXPECT_TRUE(answer) << device;
  return answer.value_or(Coverage{});
}

TEST(Coverage, PrefersNativeThenGenericThenSpirv) {
  EXPECT_EQ(ask("gfx1151", {"amdgcnspirv", "gfx11-generic", "gfx1151"}).cover, Cover::native);
  EXPECT_EQ(ask("gfx1151", {"amdgcnspirv", "gfx11-generic", "gfx1100"}).cover, Cover::generic);
  EXPECT_EQ(ask("gfx1151", {"amdgcnspirv", "gfx1100"}).cover, Cover::spirv);
  EXPECT_TRUE(ask("gfx1151", {"amdgcnspirv"}).works());
}

TEST(Coverage, AGenericTargetCoversItsOwnFamilyOnly) {
  EXPECT_EQ(ask("gfx90a", {"gfx9-generic"}).cover, Cover::none) << "gfx90a and gfx908 are no members";
  EXPECT_EQ(ask("gfx942", {"gfx9-generic"}).cover, Cover::none);
  EXPECT_EQ(ask("gfx950", {"gfx9-4-generic"}).cover, Cover::generic);
  EXPECT_EQ(ask("gfx1170", {"gfx11-generic"}).cover, Cover::none);
}

TEST(Coverage, SaysWhetherAnOverrideIsSafe) {
  const auto safe = ask("gfx1031", {"gfx1030", "gfx1100"});
  EXPECT_EQ(safe.cover, Cover::override_ok);
  EXPECT_EQ(safe.override_version, "10.3.0");
  EXPECT_EQ(safe.by, "gfx1030");
  const auto unsafe = ask("gfx1151", {"gfx1030", "gfx1100"});
  EXPECT_EQ(unsafe.cover, Cover::override_unsafe);
  EXPECT_EQ(unsafe.override_version, "11.0.0");
  EXPECT_FALSE(unsafe.why.empty());
  EXPECT_FALSE(unsafe.works());
  EXPECT_EQ(ask("gfx1103", {"gfx1100", "gfx1102"}).override_version, "11.0.2") << "the safe one is offered first";
}

TEST(Coverage, AnOverrideToCodeThatIsNotThereIsNoAnswer) {
  EXPECT_EQ(ask("gfx1031", {"gfx1100"}).cover, Cover::none);
  EXPECT_EQ(ask("gfx803", {"gfx900", "gfx1030"}).cover, Cover::none);
  EXPECT_EQ(ask("gfx1100", {}).cover, Cover::none);
}

TEST(Coverage, SettingsMustFit) {
  EXPECT_EQ(ask("gfx90a:xnack-", {"gfx90a:xnack+", "gfx90a:xnack-"}).by, "gfx90a:xnack-");
  EXPECT_EQ(ask("gfx90a:xnack+", {"gfx90a"}).cover, Cover::native) << "code for any setting";
  const auto wrong = ask("gfx90a:sramecc+:xnack-", {"gfx90a:xnack+"});
  EXPECT_EQ(wrong.cover, Cover::setting);
  EXPECT_NE(wrong.why.find("HSA_XNACK=1"), std::string::npos);
  EXPECT_EQ(ask("gfx906:sramecc-", {"gfx906:sramecc+"}).cover, Cover::setting);
  EXPECT_EQ(ask("gfx90a", {"gfx90a:xnack+"}).cover, Cover::native) << "nobody said how the device is set";
}

TEST(Coverage, EveryOverrideNamesItsOwnTarget) {
  for (const auto& rule : override_rules()) {
    ASSERT_NE(mach(rule.processor), nullptr) << rule.processor;
    ASSERT_NE(mach(rule.as), nullptr) << rule.as;
    // "9.0.10" is gfx90a: major and minor in decimal, the step as one hexadecimal digit of the name.
    const std::string version(rule.version);
    const auto last = version.rfind('.');
    const int step = std::stoi(version.substr(last + 1));
    std::string digits = version.substr(0, last);
    digits.erase(digits.find('.'), 1);
    EXPECT_EQ("gfx" + digits + "0123456789abcdef"[step], rule.as) << rule.processor;
  }
}

TEST(Coverage, RefusesADeviceThatIsNone) { EXPECT_FALSE(covers("RX 7900", std::vector<std::string>{"gfx1100"})); }

}  // namespace
}  // namespace ff::elf
