#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "reference/checkpoint.h"
#include "reference/episode.h"
#include "reference/policy.h"

namespace ff::reference {
namespace {

std::shared_ptr<const Dataset> small() {
  static const auto data = std::make_shared<const Dataset>(record_demonstrations(12));
  return data;
}

std::size_t successes(Network& network, const Statistics& statistics, LoopFault fault, std::size_t episodes) {
  std::size_t count = 0;
  LoopState state;
  for (std::size_t i = 0; i < episodes; ++i) {
    EpisodeOptions options;
    options.seed = first_held_out_seed + i;
    options.fault = fault;
    count += run_episode(network, statistics, options, &state).success ? 1 : 0;
  }
  return count;
}

std::string file_of(const std::vector<PolicyFile>& files, std::string_view name) {
  for (const auto& file : files)
    if (file.name == name) return file.bytes;
  return {};
}

TEST(Reference, TheShippedPolicyIsSmallAndSucceeds) {
  std::size_t size = 0;
  for (const auto& file : shipped_policy()) size += file.bytes.size();
  EXPECT_LT(size, 1'000'000U);
  auto policy = read_policy(shipped_policy(), "");
  ASSERT_TRUE(policy) << policy.error().to_string();
  EXPECT_GT(successes(policy->network, policy->statistics, LoopFault::none, 100), 90U);
}

TEST(Reference, APolicyWithoutAFileOrWithACutOneIsRefusedByName) {
  for (const std::string_view name : {"model.safetensors", "policy_preprocessor_step_0_normalizer_processor.safetensors"}) {
    auto files = shipped_policy();
    auto& file = *std::ranges::find(files, name, &PolicyFile::name);
    const std::string whole = file.bytes;
    for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
      file.bytes = whole.substr(0, size);
      const auto read = read_policy(files, "policy");
      ASSERT_FALSE(read) << name << " " << size;
      EXPECT_NE(read.error().where.find(name), std::string::npos) << read.error().to_string();
    }
    std::erase_if(files, [&](const PolicyFile& f) { return f.name == name; });
    EXPECT_FALSE(read_policy(files, ""));
  }
}

TEST(Reference, TheExpertSucceedsFromEveryStart) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Simulator world(seed);
    while (world.steps() < step_limit && !world.success()) world.step(world.expert());
    EXPECT_TRUE(world.success()) << "seed " << seed;
  }
}

TEST(Reference, ThePolicyLearnsAndAnUntrainedOneDoesNot) {
  const auto data = std::make_shared<const Dataset>(record_demonstrations(200));
  TrainerOptions options;
  options.steps = 2000;
  Trainer trainer(options, data);
  EXPECT_LT(successes(trainer.network, data->statistics, LoopFault::none, 50), 3U);
  for (std::uint64_t i = 0; i < options.steps; ++i) trainer.step();
  EXPECT_GT(successes(trainer.network, data->statistics, LoopFault::none, 100), 90U);
  for (const auto fault : {LoopFault::axes_swapped, LoopFault::gripper_inverted, LoopFault::camera_flipped, LoopFault::clipped, LoopFault::scaled})
    EXPECT_LT(successes(trainer.network, data->statistics, fault, 20), 6U) << loop_fault_name(fault);
  // The policy that is part of the program is this one: made by `train reference --episodes 200 --steps 2000`, to the bit.
  // Sanitizers come with another compiler, whose mathematics may differ in the last bit.
  if (std::getenv("FIRSTFAULT_SANITIZED") != nullptr) return;
  for (const auto& file : policy_files(trainer.network, data->statistics)) EXPECT_EQ(file_of(shipped_policy(), file.name), file.bytes) << file.name;
}

TEST(Reference, TheGradientIsThatOfTheLoss) {
  Network network(3);
  const auto data = small();
  std::vector<float> input(Network::input_size);
  normalize(data->frames[20].seen, data->statistics, input.data());
  const auto value = [&] {
    double sum = 0;
    const auto out = network.forward(input, 1);
    for (std::size_t i = 0; i < out.size(); ++i) sum += 0.5 * out[i] * out[i] * static_cast<double>(i + 1);
    return sum;
  };
  auto of_output = network.forward(input, 1);
  for (std::size_t i = 0; i < of_output.size(); ++i) of_output[i] *= static_cast<float>(i + 1);
  network.clear_gradients();
  network.backward(input, 1, of_output);
  for (auto& p : network.parameters) {
    if (!p.trainable) continue;
    const std::size_t at = p.value.size() / 2;
    const float keep = p.value[at];
    constexpr float h = 1e-2F;
    p.value[at] = keep + h;
    const double up = value();
    p.value[at] = keep - h;
    const double down = value();
    p.value[at] = keep;
    const double expected = (up - down) / (2 * h);
    EXPECT_NEAR(p.gradient[at], expected, 0.02 * std::abs(expected) + 0.05) << p.name;
  }
}

TEST(Reference, TheSameSeedGivesTheSameBitsAndAnotherDoesNot) {
  TrainerOptions options;
  options.steps = 10;
  Trainer a(options, small()), b(options, small());
  options.seed = 7;
  Trainer c(options, small());
  for (int i = 0; i < 10; ++i) {
    const auto one = a.step(), two = b.step();
    EXPECT_EQ(one.loss, two.loss);
    c.step();
  }
  EXPECT_EQ(first_difference(a, b), "");
  EXPECT_NE(first_difference(a, c), "");
}

TEST(Reference, ARestoredRunContinuesToTheBit) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  TrainerOptions options;
  options.steps = 60;
  options.batch = 64;  // goes past the end of an epoch
  Trainer straight(options, small()), first(options, small());
  for (int i = 0; i < 60; ++i) straight.step();
  for (int i = 0; i < 25; ++i) first.step();
  const auto saved = save_checkpoint(first, directory->path());
  ASSERT_TRUE(saved) << saved.error().to_string();
  auto restored = restore_checkpoint(directory->path(), small());
  ASSERT_TRUE(restored) << restored.error().to_string();
  for (int i = 0; i < 35; ++i) (*restored)->step();
  EXPECT_EQ(first_difference(straight, **restored), "");
}

TEST(Reference, WhatIsNotRestoredIsTheFirstDifference) {
  const auto directory = TemporaryDirectory::make();
  ASSERT_TRUE(directory);
  TrainerOptions options;
  options.steps = 40;
  Trainer run(options, small());
  for (int i = 0; i < 20; ++i) run.step();
  ASSERT_TRUE(save_checkpoint(run, directory->path()));
  const auto difference = [&](Fault fault) {
    const auto restored = restore_checkpoint(directory->path(), small(), fault);
    return restored ? first_difference(run, **restored) : restored.error().to_string();
  };
  EXPECT_EQ(difference(Fault::none), "");
  EXPECT_TRUE(difference(Fault::restore_no_optimizer).starts_with("optimizer exp_avg of"));
  EXPECT_TRUE(difference(Fault::restore_no_scheduler).starts_with("scheduler step: 20 and 0"));
  EXPECT_TRUE(difference(Fault::restore_no_random).starts_with("random state"));
  EXPECT_TRUE(difference(Fault::restore_no_sampler).starts_with("sampler position"));
  EXPECT_TRUE(difference(Fault::restore_step_zero).starts_with("step: 20 and 0"));
}

TEST(Reference, EveryTruncationOfACheckpointsWeightsIsRefused) {
  TrainerOptions options;
  Trainer run(options, small());
  std::vector<SavedTensor> tensors{{"a", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"b", {1}, {7}}};
  const std::string bytes = safetensors_bytes(tensors);
  ASSERT_TRUE(read_safetensors(bytes, "x"));
  EXPECT_EQ((*read_safetensors(bytes, "x"))[1].values[0], 7);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(read_safetensors(std::string_view(bytes).substr(0, size), "x")) << size;
}

TEST(Reference, AnEpisodeIsOneHeaderItsFramesAndAClosingLine) {
  Network network(1);
  EpisodeOptions options;
  const auto episode = run_episode(network, small()->statistics, options);
  const std::string text = episode_jsonl(episode, small()->statistics, options, "r", 3, Value::object({{"id", "untrained"}}));
  const auto all = lines(text);
  ASSERT_EQ(all.size(), episode.frames.size() + 2);
  const auto header = parse_json(all.front());
  ASSERT_TRUE(header);
  EXPECT_EQ((*header)["format"].as_text(), "firstfault/episode/1");
  EXPECT_EQ((*header)["split"].as_text(), "held-out");
  EXPECT_EQ((*parse_json(all[1]))["cameras"].members().size(), 2U);
  EXPECT_EQ((*parse_json(all.back()))["result"]["reason"].as_text(), "timeout");
}

}  // namespace
}  // namespace ff::reference
