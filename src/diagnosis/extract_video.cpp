// Numbers that loaders, decoders and ffprobe print about videos and their times.
//
//   video.index_excess        frame asked for minus number of frames: 0 means one frame short at the end
//   video.{frames,fps,width,height,duration_s,codec}   of ffprobe
//   dataset.query.{error_s,one_frame}   distance of the nearest frame; true: as long as one frame of a usual rate
//   dataset.time_check.{entries,resets,zero,small,large}
//     Entries of "timestamps violate the tolerance inside episode range". `resets`: the time falls to 0, so two
//     episodes were compared (boundaries are shifted); `zero`: the same time twice; `small`: off by less than a second.

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

bool about_one_frame(double seconds) {
  for (double fps : {10.0, 12.0, 15.0, 20.0, 24.0, 25.0, 30.0, 50.0, 60.0})
    if (std::abs(seconds * fps - 1) < 0.04) return true;
  return false;
}

/// "tensor([471.6333])", "[np.float32(1.2), np.float32(0.0)]", "31.2": the numbers in it.
std::vector<double> loose_numbers(std::string_view text) {
  static const RE2 number(R"((?:^|[^\w.])(-?\d+\.?\d*(?:[eE][+-]?\d+)?))");
  std::vector<double> out;
  re2::StringPiece rest = piece(text);
  std::string word;
  while (out.size() < max_vector && RE2::FindAndConsume(&rest, number, &word))
    if (const auto value = to_real(word.back() == '.' ? word + "0" : word)) out.push_back(*value);
  return out;
}

void read_time_check(std::string_view text, FactSink& sink) {
  double entries = 0, resets = 0, zero = 0, small = 0, large = 0;
  std::optional<double> difference;
  static const RE2 value(R"('diff':\s*(?:np\.float\d+\(|tensor\(\[?|array\(\[?)?(-?[\d.]+(?:[eE][+-]?\d+)?))");
  for_each_line(text, [&](std::uint64_t, std::string_view line) {
    std::string word;
    if (RE2::PartialMatch(piece(line), value, &word)) {
      if (word.back() == '.') word += '0';
      difference = to_real(word);
      if (difference) {
        ++entries;
        if (*difference == 0)
          ++zero;
        else if (std::abs(*difference) < 1)
          ++small;
        else if (*difference > 0)
          ++large;
      }
    }
    const auto at = line.find("'timestamps':");
    if (at == std::string_view::npos || !difference) return;
    const auto times = loose_numbers(replace_all(std::string(line.substr(at + 13)), "float32", "f"));
    if (times.size() >= 2 && *difference <= -1 && std::abs(times[1]) < 0.5) ++resets;
    difference.reset();
  });
  if (entries < 1) return;
  sink.number("dataset.time_check.entries", entries);
  sink.number("dataset.time_check.resets", resets);
  sink.number("dataset.time_check.zero", zero);
  sink.number("dataset.time_check.small", small);
  sink.number("dataset.time_check.large", large);
}

void read_query(std::string_view text, FactSink& sink) {
  std::vector<double> asked;
  double error = -1;
  std::uint64_t at_line = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (const auto at = line.find("violate the tolerance ("); at != std::string_view::npos && error < 0) {
      // Only what stands before the comparison sign is the distance.
      const auto numbers =
          loose_numbers(line.substr(at, line.find('>', at) == std::string_view::npos ? std::string_view::npos : line.find('>', at) - at));
      if (!numbers.empty()) {
        error = *std::max_element(numbers.begin(), numbers.end());
        at_line = number;
      }
    }
    if (const auto at = line.find("queried timestamps:"); at != std::string_view::npos) asked = loose_numbers(line.substr(at + 19));
    if (const auto at = line.find("loaded timestamps:"); at != std::string_view::npos) {
      const auto loaded = loose_numbers(line.substr(at + 18));
      double worst = -1;
      for (double want : asked) {
        double nearest = -1;
        for (double have : loaded) nearest = nearest < 0 ? std::abs(want - have) : std::min(nearest, std::abs(want - have));
        worst = std::max(worst, nearest);
      }
      if (worst >= 0) {
        error = std::max(error, worst);
        at_line = number;
      }
    }
  });
  if (error < 0) return;
  sink.number("dataset.query.error_s", error, at_line);
  sink.add("dataset.query.one_frame", about_one_frame(error), at_line);
}

void read_ffprobe(std::string_view text, FactSink& sink) {
  static const RE2 pair(
      R"(^\s*\"?(nb_read_frames|nb_frames|nb_read_packets|width|height|codec_name|pix_fmt|r_frame_rate|avg_frame_rate|duration)\"?\s*[=:]\s*\"?([\w./]+))");
  bool count_asked = false;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::string key, value;
    if (RE2::PartialMatch(piece(line), pair, &key, &value)) {
      if (key == "codec_name") sink.add("video.codec", value, number, line);
      if (key == "pix_fmt") sink.add("video.pix_fmt", value, number, line);
      const auto real = to_real(value);
      if (real && (key == "width" || key == "height")) sink.number("video." + key, *real, number, line);
      if (real && key == "duration") sink.number("video.duration_s", *real, number, line);
      if (real && (key == "nb_read_frames" || key == "nb_frames" || key == "nb_read_packets")) sink.number("video.frames", *real, number, line);
      if (key == "avg_frame_rate" || key == "r_frame_rate") {
        const auto slash = value.find('/');
        const auto top = to_real(value.substr(0, slash));
        const auto bottom = slash == std::string::npos ? std::optional<double>(1) : to_real(value.substr(slash + 1));
        if (top && bottom && *bottom > 0) sink.number("video.fps", *top / *bottom, number, line);
      }
      return;
    }
    // `ffprobe … -show_entries stream=nb_read_frames -of csv=p=0 FILE` answers with a bare number.
    if (line.find("ffprobe") != std::string_view::npos) {
      count_asked = line.find("nb_read_frames") != std::string_view::npos || line.find("nb_frames") != std::string_view::npos ||
                    line.find("nb_read_packets") != std::string_view::npos;
      return;
    }
    if (count_asked) {
      if (const auto frames = to_integer(trim(line)); frames && *frames >= 0) sink.number("video.frames", static_cast<double>(*frames), number, line);
      count_asked = false;
    }
  });
}

}  // namespace

void extract_video(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (text.find("Invalid frame index=") != std::string_view::npos) {
    static const RE2 index(R"(Invalid frame index=(-?\d{1,18}) for stream_?[iI]ndex=\d+(?:; must be less than | num_?[fF]rames=)(\d{1,18}))");
    for_each_line(text, [&](std::uint64_t number, std::string_view line) {
      std::int64_t asked = 0, frames = 0;
      if (RE2::PartialMatch(piece(line), index, &asked, &frames))
        sink.number("video.index_excess", static_cast<double>(asked - frames), number, line);
    });
  }
  if (text.find("'diff':") != std::string_view::npos) read_time_check(text, sink);
  if (text.find("query timestamps") != std::string_view::npos || text.find("loaded timestamps:") != std::string_view::npos) read_query(text, sink);
  if (text.find("nb_frames") != std::string_view::npos || text.find("nb_read_") != std::string_view::npos ||
      text.find("codec_name") != std::string_view::npos || text.find("frame_rate") != std::string_view::npos)
    read_ffprobe(text, sink);
}

}  // namespace ff::diagnosis
