#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "check/check.h"

namespace ff::training {

/// One thing that a training run needs to go on.
struct StatePart {
  std::string name;  ///< "weights", "optimizer", "scheduler", "random state", "sampler", "step"
  bool present = false;
  bool needed = true;  ///< false: this program does not save it, or the run has none
  std::string file;    ///< where it is, or would be
  std::string note;    ///< why it is not needed, or what follows from its absence
};

struct FileProblem {
  std::string file, what;  ///< "ends at byte 5 of 9"
  std::string cause;       ///< cause id
};

/// One checkpoint directory, read without loading it.
struct CheckpointState {
  std::string path;
  std::string kind;                 ///< "lerobot", "HF Trainer", "accelerate", "openpi"
  std::int64_t named_step = -1;     ///< from the directory's name
  std::int64_t recorded_step = -1;  ///< from the state's own file
  std::int64_t scheduler_step = -1;
  std::vector<StatePart> parts;
  std::vector<FileProblem> problems;
  [[nodiscard]] bool whole() const { return problems.empty(); }
  [[nodiscard]] std::int64_t step() const { return recorded_step >= 0 ? recorded_step : named_step; }
  [[nodiscard]] const StatePart* part(std::string_view name) const;
};

/// All checkpoints of a run, oldest first.
struct CheckpointTree {
  std::string root;
  std::vector<CheckpointState> checkpoints;
  bool has_last = false;    ///< a link (or directory) "last" is there
  std::string last_target;  ///< where it points
  bool last_dangling = false;
  std::vector<std::string> leftovers;  ///< unfinished saves: temporary names
};

/// Reads <run>, <run>/checkpoints, or one checkpoint. Nothing is loaded or executed: file sizes, headers, JSON.
/// Errors: no such directory, no checkpoint in it, a file of one cannot be read.
Result<CheckpointTree> read_checkpoints(const std::string& directory);

/// A JSON file of a checkpoint, NaN and Infinity as Python writes them among it; null when there is none, or it cannot be read.
[[nodiscard]] Value json_of(const std::filesystem::path& path);

/// Is this file what its name says, from its first byte to its last? Empty: yes. Safetensors (header, offsets, size), zip
/// (end record), JSON, Git LFS pointers, empty files. Errors: it cannot be read.
Result<std::string> file_problem(const std::string& path);
/// The same for bytes in memory; `name` decides the format.
std::string content_problem(std::string_view name, std::string_view bytes, std::uint64_t file_size);

CheckResult judge_checkpoint_whole(const CheckpointTree& tree);
CheckResult judge_checkpoint_state(const CheckpointTree& tree);
CheckResult judge_checkpoint_step(const CheckpointTree& tree);
CheckResult judge_checkpoint_last(const CheckpointTree& tree);

}  // namespace ff::training
