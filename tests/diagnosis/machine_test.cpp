// What the engine says of whole recorded machines.
#include <gtest/gtest.h>

#include "base/value.h"
#include "diagnosis/explain.h"
#include "knowledge/knowledge.h"
#include "support/host_file.h"

namespace ff::diagnosis {
namespace {

constexpr std::string_view refused = R"(
== probe access
{"/dev/kfd": {"errno": 13, "how": "open"}, "/dev/dri/renderD128": {"errno": 13, "how": "open"}}
)";

std::vector<std::string> causes(std::string_view host, std::string_view variant) {
  const auto explanation = explain_capture(test::host(host, variant), knowledge::Knowledge::built_in());
  std::vector<std::string> out;
  if (!explanation) return {explanation.error().to_string()};
  const Value document = to_document(*explanation, knowledge::Knowledge::built_in());
  for (const auto& diagnosis : document["diagnoses"].items())
    if (!diagnosis["benign"].as_bool()) out.emplace_back(diagnosis["cause"].as_text());
  return out;
}

TEST(MachineDiagnosis, BlamesNoContainerWhereThereIsNone) {
  for (const char* host : {"rx7900xtx", "rx9070", "strix-halo", "mi210-xgmi", "mi300x", "no-gpu", "ubuntu-24.04-rocm"})
    for (const std::string_view variant : {std::string_view(), refused})
      for (const auto& cause : causes(host, variant)) EXPECT_FALSE(cause.starts_with("container.")) << host << ": " << cause;
}

TEST(MachineDiagnosis, NamesTheGroupOfAUserWhoIsRefused) {
  const auto found = causes("rx7900xtx", refused);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), "permission.not-in-render-group");
}

TEST(MachineDiagnosis, BlamesTheContainerWhereThereIsOne) {
  const auto found = causes("mi300x-render-group", {});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), "container.group-not-mapped");
}

}  // namespace
}  // namespace ff::diagnosis
