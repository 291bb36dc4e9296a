#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/check.h"
#include "rollout/episode.h"
#include "rollout/results.h"
#include "rollout/stages.h"

namespace ff::rollout {

/// Something that is wrong, found while judging; the checks collect what belongs to them.
struct Finding {
  std::string check;   ///< "episode.action-effect"
  std::string source;  ///< what tells it from the others: "axis-order", "gripper-direction"
  std::string cause;   ///< "closed-loop.action-convention"
  double score = 0.5;  ///< how sure; the likeliest source of a failed stage has the highest
  bool fails = true;   ///< false: a warning
  std::string summary;
  Value measured = Value::object();
  std::vector<Evidence> evidence = {};  ///< the fields that show it
  bool by_motion = false;               ///< only how the tool moves tells of it, which every other fault changes as well
};

/// A question that cannot be answered for want of a field, or of evidence in it.
struct Unanswered {
  std::string source;  ///< that would not be seen: "camera-flip"
  std::string field;   ///< which would decide: "training.cameras.top.motion"
  std::string what;    ///< "whether the picture of camera top is mirrored left to right"
  std::string why;     ///< "it is not written", "the training's average picture is too symmetric"
};

/// One episode with what was made of it.
struct Judged {
  Episode episode;  ///< without frames beyond max_frames_kept of the whole survey
  Segmentation stages;
  Outcome outcome;
  std::size_t frames = 0;  ///< that the file has
};

struct SurveyOptions {
  std::vector<std::string> paths;
  std::string dataset;                       ///< root of a LeRobot dataset: what the policy was trained on; empty: none
  std::optional<std::int64_t> start_seed;    ///< of lerobot-eval, whose files drop the seeds from 0.4 on
  std::vector<std::int64_t> training_seeds;  ///< seeds that were in the training data
};

/// Everything that was read below some paths, and what is wrong in it.
struct Survey {
  std::vector<std::string> paths;
  std::vector<Judged> episodes;
  std::vector<ResultFile> results;
  std::vector<std::string> videos;  ///< files found
  std::vector<std::string> unread;  ///< result or episode files that could not be read, with why
  std::vector<Outcome> outcomes;    ///< what the rates are computed from: the episodes', else the result files'
  std::vector<Finding> findings;
  std::vector<Unanswered> unanswered;
  Value bounds;                    ///< by dimension of the action: how often it sits at its extremes
  Value effect;                    ///< what an action does to the tool
  Value gripper;                   ///< its commands
  Value time;                      ///< step times, repeated actions, jumps at chunk borders
  Value resets;                    ///< what episodes leave for the next
  std::size_t seeds_repeated = 0;  ///< seeds with more than one episode
  Value reach;                     ///< where the tool goes against where the object stands
  std::size_t frames_kept = 0, frames_dropped = 0;
  bool training_known = false;  ///< from headers or --dataset
  std::string training_from;    ///< where from
  [[nodiscard]] std::int64_t successes() const;
  [[nodiscard]] double rate() const;  ///< 0 for no outcomes
  /// Does the batch fail as a whole, so that a difference can be the reason? Success below one half.
  [[nodiscard]] bool fails() const { return !outcomes.empty() && rate() < 0.5; }
};

inline constexpr std::size_t max_frames_kept = 400'000, max_episodes = 100'000, max_files = 50'000;

/// Reads episodes, result files and the names of videos below the paths; judges. The error says that there is nothing.
Result<std::shared_ptr<const Survey>> survey(const SurveyOptions& options);

/// Training statistics of a LeRobot dataset: meta/info.json and meta/stats.json (or v2.1's episodes_stats.jsonl).
Result<Training> read_training_of_dataset(const std::string& root);

// The parts, in the order in which they are made. Each adds findings.
Result<void> open_rollouts(Survey& survey, const SurveyOptions& options);
void judge_actions(Survey& survey);  ///< alive, traced, within bounds
void judge_effect(Survey& survey);   ///< what an action does to the tool
void judge_gripper(Survey& survey);
void judge_observations(Survey& survey);  ///< alive, in time, as in training
void judge_time(Survey& survey);          ///< rate and chunks
void judge_reset(Survey& survey);         ///< what one episode leaves for the next
void judge_recorded(Survey& survey);      ///< what cannot be told, for want of fields
void judge_stage(Survey& survey);         ///< where the episodes fail, and what explains it
void judge_results(Survey& survey);       ///< result files and videos

/// How often each stage was reached, over the episodes in which it can be seen.
struct StageCount {
  std::int64_t seen = 0, reached = 0, first_missing = 0;
  bool in_task = true;  ///< false: successful episodes do not reach it either, so the task does not have it
  double median_step = 0;
};
std::array<StageCount, stage_count> count_stages(const Survey& survey);

}  // namespace ff::rollout
