#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ff::media {

/// The ffmpeg to use: $FIRSTFAULT_FFMPEG, or the first in PATH. Empty: none, also when the variable names no file.
std::string find_ffmpeg();

/// Which frames are decoded.
struct FrameRequest {
  std::optional<double> from_s;      ///< of the first; nothing: the start of the file
  std::optional<double> from_end_s;  ///< so much before the end instead
  int most = 0;                      ///< 0: to the end
  std::chrono::milliseconds time_limit{20'000};
};

/// What ffmpeg made of it.
struct DecodedTimes {
  std::vector<double> times_s;  ///< of the decoded frames, on the file's own clock
  std::string problem;          ///< empty when it ended well: the first line that it said, or how it ended
  std::string said;             ///< first line on stderr, also when it ended well
};

/// Decodes in a child process; pictures are not kept. Errors that ffmpeg only mentions are no problem: the frames tell.
DecodedTimes decode_times(const std::string& ffmpeg, const std::string& path, const FrameRequest& request);

/// The times in the text of ffmpeg's framecrc format.
std::vector<double> framecrc_times(std::string_view text);

}  // namespace ff::media
