#include "model/architecture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "knowledge/knowledge.h"
#include "support/paths.h"

namespace ff::model {
namespace {

std::vector<std::filesystem::path> recorded() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_directory() / "tests/model/architectures"))
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::string shape_of(const Value& list) {
  std::string out = "[";
  for (const auto& n : list.items()) out += (out.size() > 1 ? ", " : "") + std::to_string(n.as_int());
  return out + "]";
}

/// Name and shape of every tensor of real LeRobot and transformers classes, as tests/long/architecture_keys.py wrote them down, and of published
/// checkpoints.
TEST(Architectures, NameEveryTensorOfTheRealClasses) {
  const auto& knowledge = knowledge::Knowledge::built_in();
  std::size_t judged = 0;
  for (const auto& path : recorded()) {
    const auto content = read_file(path);
    ASSERT_TRUE(content) << path;
    const auto record = parse_json(*content, path.string());
    ASSERT_TRUE(record) << path;
    const auto architecture = architecture_of((*record)["config"], knowledge);
    ASSERT_TRUE(architecture) << path << ": " << architecture.error().to_string();
    ASSERT_TRUE(architecture->has_value()) << path << ": no family";
    ++judged;
    std::map<std::string, std::string> real, expected;
    for (const auto& [name, shape] : (*record)["tensors"].members()) real.emplace(name, shape_of(shape));
    const auto unjudged = [&](const std::string& name) {
      for (const auto& prefix : (*(*architecture)->entry)["unjudged"].items())
        if (name.starts_with(prefix.as_text())) return true;
      return false;
    };
    for (const auto& t : (*architecture)->tensors) {
      EXPECT_TRUE(expected.emplace(t.name, t.shape_text()).second) << path << ": " << t.name << " stands twice in the table";
      const auto found = real.find(t.name);
      if (found == real.end()) {
        EXPECT_TRUE(t.optional) << path << ": the class has no " << t.name;
      } else {
        EXPECT_EQ(found->second, t.shape_text()) << path << ": " << t.name;
      }
    }
    for (const auto& [name, shape] : real)
      if (!unjudged(name)) {
        EXPECT_TRUE(expected.contains(name)) << path << ": the table has no " << name << " " << shape;
      }
  }
  EXPECT_GE(judged, 22U);
}

/// Numbers of parameters that training runs printed (num_total_params of their logs).
TEST(Architectures, CountTheParametersThatRealRunsPrinted) {
  const auto& knowledge = knowledge::Knowledge::built_in();
  const std::map<std::string, std::uint64_t> printed{{"act", 51'597'190}, {"smolvla", 450'046'176}, {"pi0", 3'501'372'176}};
  for (const auto& [name, parameters] : printed) {
    const auto content = read_file(test::source_directory() / "tests/model/architectures" / (name + ".json"));
    ASSERT_TRUE(content);
    const auto record = parse_json(*content, name);
    ASSERT_TRUE(record);
    const auto architecture = architecture_of((*record)["config"], knowledge);
    ASSERT_TRUE(architecture && architecture->has_value());
    EXPECT_EQ((*architecture)->parameters(), parameters) << name;
  }
}

}  // namespace
}  // namespace ff::model
