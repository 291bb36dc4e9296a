#pragma once

#include <string>
#include <vector>

#include "rollout/survey.h"

namespace ff::rollout {

// What the judges share.

/// Calls `use(judged, frame index)` for every frame that is kept.
template <class Use>
void each_frame(const Survey& survey, Use&& use) {
  for (const auto& j : survey.episodes)
    for (std::size_t i = 0; i < j.episode.frames.size(); ++i) use(j, i);
}

/// What the headers say about the action. Taken from the first episode that has actions; the others are of the same run.
struct ActionShape {
  std::size_t dimensions = 0;
  std::vector<std::string> names;
  std::vector<std::size_t> tool;  ///< three dimensions, or none
  std::optional<std::size_t> gripper;
  std::string convention;
  Training training;
  [[nodiscard]] std::string name(std::size_t dimension) const;
};
ActionShape action_shape(const Survey& survey);

/// Frames below which nothing is said.
inline constexpr double few = 20;

/// What a judge of actions has at hand: the survey that it reads and adds its findings to, and what the headers say of the action.
class ActionJudge {
 protected:
  explicit ActionJudge(Survey& survey) : s_(survey), action_(action_shape(survey)) {}
  Survey& s_;
  ActionShape action_;
};

/// "x, y and 3 more".
std::string list(const std::vector<std::string>& items, std::size_t shown = 4);

}  // namespace ff::rollout
