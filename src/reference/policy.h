#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "reference/network.h"

namespace ff::reference {

/// One file of a policy's directory.
struct PolicyFile {
  std::string name;
  std::string bytes;
};

/// The policy as LeRobot lays policies out: config.json (features, normalisation modes), model.safetensors, and the two
/// processors with their statistics. This is what a checkpoint holds under pretrained_model/.
std::vector<PolicyFile> policy_files(const Network& network, const Statistics& statistics);

struct Policy {
  Network network{0};
  Statistics statistics;  ///< only means and deviations: what the processors hold
};
/// Reads such files back. Errors name the file and what is wrong with it; `where` stands before the names.
Result<Policy> read_policy(const std::vector<PolicyFile>& files, const std::string& where);

/// The trained policy that is part of the program (reference/policy/, docs/training.md says how it was made).
const std::vector<PolicyFile>& shipped_policy();

/// How the shipped policy was trained: `firstfault train reference --episodes 200 --steps 2000`.
inline constexpr std::size_t shipped_episodes = 200;
inline constexpr std::uint64_t shipped_steps = 2000;

/// A file that was compiled in (CMakeLists.txt).
struct EmbeddedFile {
  std::string_view name, bytes;
};
std::span<const EmbeddedFile> embedded_policy();

}  // namespace ff::reference
