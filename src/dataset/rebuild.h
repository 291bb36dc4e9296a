#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/survey.h"

namespace ff::dataset {

/// One episode of a dataset that is to be written: whose it was and which rows it takes, in frame order.
struct EpisodePlan {
  std::size_t source = 0;                    ///< position in Plan::sources
  std::int64_t old_index = -1;               ///< episode_index of its rows there
  const Episode* meta = nullptr;             ///< its metadata there; nothing: it had none
  std::vector<std::int64_t> rows;            ///< physical rows of the source
  std::map<std::string, VideoSpan> windows;  ///< v3.0: where its videos lie in the source's files, by camera
};

/// A dataset to be written from rows of others of the same format. Index, frame_index, episode_index, task_index,
/// episode metadata, totals and statistics are made anew; everything else is taken over.
struct Plan {
  std::vector<std::shared_ptr<const Survey>> sources;
  std::vector<EpisodePlan> episodes;
  std::vector<std::string> tasks;                                  ///< by new task_index
  std::vector<std::map<std::int64_t, std::int64_t>> task_numbers;  ///< by source: old task_index to new
  Value info;                                                      ///< info.json; totals and splits are set by the writer
  bool rewrite_timestamps = false;                                 ///< timestamp = frame / fps
  bool keep_splits = false;                                        ///< of info
  bool link_videos = false;                                        ///< hard links instead of copies
  bool picture_statistics = false;                                 ///< of videos: made anew from their frames where ffmpeg is
  std::vector<std::string> drop_columns;
  std::vector<std::string> other_files;  ///< of the first source, taken over as they are (paths relative to its root)
};

/// What was written.
struct Written {
  std::int64_t episodes = 0, rows = 0, data_files = 0, video_files = 0;
  std::vector<std::string> notes;  ///< what could not be recomputed and was taken over
};

/// Writes the dataset below `root`, which must not exist. Errors: a file cannot be read or written; nothing is cleaned up.
Result<Written> write_dataset(
    const Plan& plan, const std::string& root, const Parquet& parquet,
    const std::function<void(std::string_view)>& progress = [](std::string_view) {});

}  // namespace ff::dataset
