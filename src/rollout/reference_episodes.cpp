#include "rollout/reference_episodes.h"

#include <filesystem>

#include "base/file.h"
#include "reference/episode.h"
#include "reference/policy.h"

namespace ff::rollout {
namespace {

constexpr std::size_t held_out = 40, trained_on = 20;

}  // namespace

Result<ReferenceEpisodes> write_reference_episodes(const CheckContext& context) {
  context.progress("running the built-in policy");
  auto policy = reference::read_policy(reference::shipped_policy(), "built-in policy");
  if (!policy) return std::unexpected(policy.error());
  // The policy's own statistics normalise; the range of the training data, for the header, comes from the demonstrations.
  const auto data = reference::record_demonstrations(reference::shipped_episodes);
  ReferenceEpisodes out;
  out.untrained.name = "untrained";
  reference::Network untrained(0);
  std::string text;
  reference::LoopState state;
  for (std::size_t i = 0; i < held_out + trained_on; ++i) {
    reference::EpisodeOptions options;
    options.seed = i < held_out ? reference::first_held_out_seed + i : data.seeds[i - held_out];
    const auto episode = reference::run_episode(policy->network, policy->statistics, options, &state);
    text +=
        reference::episode_jsonl(episode, data.statistics, options, "reference", i,
                                 Value::object({{"id", "firstfault/reference-policy"}, {"step", static_cast<long long>(reference::shipped_steps)}}));
    if (i >= held_out) continue;
    ++out.untrained.n;
    out.untrained.successes += reference::run_episode(untrained, policy->statistics, options).success ? 1 : 0;
  }
  const std::string directory = context.artifacts + "/episodes";
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail("cannot be made: " + error.message(), directory);
  out.path = directory + "/reference.jsonl";
  if (auto written = write_file(out.path, text); !written) return std::unexpected(written.error());
  return out;
}

}  // namespace ff::rollout
