#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "media/mp4.h"

namespace ff::rollout {

/// One frame, decoded and scaled down to 16 x 16 grey values.
struct FrameStatistics {
  double mean = 0, std = 0;  ///< 0 to 255
  double change = 0;         ///< mean absolute difference to the frame before
};

/// What decoding a video to its end gave.
struct Decoded {
  bool tried = false;  ///< false: no ffmpeg
  std::string error;   ///< what the decoder said, or why it ended
  std::vector<FrameStatistics> frames;
};

/// A video file as it is looked at by `video check`.
struct VideoFile {
  std::string path;
  std::optional<media::Mp4Video> mp4;
  std::string problem;                           ///< why its boxes cannot be read
  std::string cause = "data.video-undecodable";  ///< of that problem
  std::string container;                         ///< a video that is no MP4: "a Matroska or WebM video"
  std::optional<Error> unread;                   ///< it could not be opened or read, so nothing is known of it
  Decoded decoded;
};

/// The program of that name in PATH (ffmpeg, ffprobe), or what $FIRSTFAULT_FFMPEG names for ffmpeg; empty when there is none.
std::string find_ffmpeg();

VideoFile open_video(const std::string& path);
/// Decodes with ffmpeg in a child; at most 200,000 frames.
Decoded decode_video(const std::string& path);

/// Writes H.264, yuv420p, index first, even size: what every browser plays. `input`: a video, or a directory of pictures
/// named in order. Errors: no ffmpeg, what ffmpeg said, `output` exists.
struct EncodeOptions {
  std::string input, output;
  double fps = 0;  ///< 0: the input's, 10 for pictures
  bool overwrite = false;
};
Result<void> encode_video(const EncodeOptions& options);

}  // namespace ff::rollout
