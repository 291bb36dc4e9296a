#pragma once

#include <string>
#include <vector>

namespace ff {

/// What stands behind `--` with `--workload lerobot`: words for lerobot-eval (--env.…, --eval.…, --seed=…), and the rest for
/// lerobot-train. `--env.discover_packages_path` is a plugin's.
struct LerobotWords {
  std::vector<std::string> train, eval;
};
inline LerobotWords lerobot_words(const std::vector<std::string>& words) {
  LerobotWords out;
  for (const auto& word : words) {
    const bool evaluates = word.starts_with("--env.") || word.starts_with("--eval.");
    if (evaluates || word.starts_with("--seed=")) out.eval.push_back(word);
    if (!evaluates) out.train.push_back(word);
  }
  return out;
}

/// Key in CheckContext::scratch under which rung 5 leaves the checkpoint that its workload wrote (a std::string, the
/// directory that a policy is loaded from), for rung 7 to evaluate. It lives as long as the climb.
inline constexpr const char* trained_policy_key = "workload.policy";

}  // namespace ff
