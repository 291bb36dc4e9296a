// Is a video whole, does it play everywhere, and does something move in it?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "check/could_not_read.h"
#include "check/table.h"
#include "rollout/checks.h"
#include "rollout/linear.h"
#include "rollout/shared.h"
#include "rollout/video.h"

namespace ff::rollout {
namespace {

constexpr std::size_t most_videos = 50;  ///< decoded of one evaluation

struct Videos {
  std::vector<VideoFile> files;
  std::size_t not_looked_at = 0;
};

/// The file that was asked for, or the videos that lie with the results.
std::shared_ptr<const Videos> videos(const CheckContext& context) {
  const auto make = [&] {
    auto out = std::make_shared<Videos>();
    std::vector<std::string> paths;
    if (context.scratch != nullptr && context.scratch->contains("rollout")) {
      const auto all = shared(context);
      if (all->survey) paths = (*all->survey)->videos;
    } else {
      paths.push_back(context.inputs.results);
    }
    for (const auto& p : paths) {
      if (out->files.size() == most_videos) {
        out->not_looked_at = paths.size() - most_videos;
        break;
      }
      out->files.push_back(open_video(p));
    }
    return out;
  };
  if (context.scratch == nullptr) return make();
  auto& slot = (*context.scratch)["videos"];
  if (slot == nullptr) slot = make();
  return std::static_pointer_cast<const Videos>(slot);
}

/// Evidence of one kind from several files.
struct Seen {
  std::vector<Evidence> evidence;
  std::size_t files = 0;
  void add(const VideoFile& v, std::string text) {
    ++files;
    if (evidence.size() < 20) evidence.push_back({v.path, 0, std::move(text)});
  }
  CheckResult result(bool fails, const char* cause, const Videos& all, Value measured) {
    std::string text =
        all.files.size() == 1 ? evidence.front().text : fmt::format("{} of {} videos: {}", files, all.files.size(), evidence.front().text);
    auto r = fails ? CheckResult::fail(cause, std::move(text), std::move(measured)) : CheckResult::warn(cause, std::move(text), std::move(measured));
    r.evidence = std::move(evidence);
    return r;
  }
};

std::string seen_as(const VideoFile& v) {
  if (!v.mp4) return v.container;
  return fmt::format("{} {}, {}x{}, {} frames at {:.3g} a second ({:.3g} s)", media::codec_name(v.mp4->codec), v.mp4->pixel_format, v.mp4->width,
                     v.mp4->height, v.mp4->frames, v.mp4->fps, v.mp4->duration_s);
}

CheckResult none(const Videos& all) { return all.files.empty() ? CheckResult::skip("no video") : CheckResult::pass(""); }

CheckResult whole(const CheckContext& context) {
  const auto all = videos(context);
  if (all->files.empty()) return none(*all);
  Seen broken, other;
  const char* cause = nullptr;
  Value measured = Value::list();
  std::size_t decoded = 0;
  for (const auto& v : all->files) {
    if (v.unread) return could_not_read(*v.unread);
    Value m = Value::object({{"path", v.path}});
    if (v.mp4)
      m.set("codec", media::codec_name(v.mp4->codec))
          .set("pixel_format", v.mp4->pixel_format)
          .set("profile", v.mp4->profile)
          .set("width", v.mp4->width)
          .set("height", v.mp4->height)
          .set("frames", v.mp4->frames)
          .set("fps", v.mp4->fps)
          .set("duration_s", v.mp4->duration_s)
          .set("faststart", v.mp4->moov_first);
    if (v.decoded.tried) m.set("decoded_frames", v.decoded.frames.size());
    measured.push(std::move(m));
    decoded += v.decoded.tried && v.decoded.error.empty() ? 1 : 0;
    if (!v.problem.empty()) {
      broken.add(v, v.problem);
      // One file has its own cause; of several the general one.
      cause = cause == nullptr || cause == v.cause ? v.cause.c_str() : "data.video-undecodable";
    } else if (!v.decoded.error.empty())
      broken.add(v, fmt::format("{}decoding ends after {}{} frames: {}", v.mp4 ? "" : "is " + v.container + "; ", v.decoded.frames.size(),
                                v.mp4 ? fmt::format(" of {}", v.mp4->frames) : "", v.decoded.error));
    else if (!v.mp4)
      other.add(v, fmt::format("is {}, not MP4, so that its index is not read here{}", v.container,
                               v.decoded.tried ? fmt::format("; {} frames decode to the end", v.decoded.frames.size()) : ""));
    else if (v.decoded.tried && !v.mp4->fragmented && static_cast<std::int64_t>(v.decoded.frames.size()) < v.mp4->frames)
      broken.add(v, fmt::format("only {} of {} frames can be decoded", v.decoded.frames.size(), v.mp4->frames));
  }
  const Value m = Value::object({{"videos", std::move(measured)}, {"not_looked_at", all->not_looked_at}});
  if (broken.files > 0) return broken.result(true, cause != nullptr ? cause : "data.video-undecodable", *all, m);
  if (other.files > 0) return other.result(false, "render.video-encode", *all, m);
  const std::string what = all->files.size() == 1 ? seen_as(all->files.front()) : fmt::format("{} videos are whole", all->files.size());
  return CheckResult::pass(what + (decoded == all->files.size() ? "; decoded to the end" : "; not decoded: there is no ffmpeg (FIRSTFAULT_FFMPEG)"),
                           m);
}

CheckResult playable(const CheckContext& context) {
  const auto all = videos(context);
  if (all->files.empty()) return none(*all);
  Seen bad, slow;
  for (const auto& v : all->files) {
    if (!v.container.empty()) slow.add(v, fmt::format("{} does not play in every browser", v.container));
    if (!v.mp4) continue;
    const auto codec = media::codec_name(v.mp4->codec);
    if (codec != "h264" && codec != "av1" && codec != "vp9")
      bad.add(v,
              codec == "mpeg4" ? std::string("MPEG-4 Part 2 (mp4v) plays in no browser") : fmt::format("{} does not play in every browser", codec));
    else if (!v.mp4->pixel_format.empty() && v.mp4->pixel_format != "yuv420p")
      bad.add(v, fmt::format("{} {} ({}): browsers play yuv420p", codec, v.mp4->pixel_format, v.mp4->profile));
    else if (v.mp4->width % 2 != 0 || v.mp4->height % 2 != 0)
      slow.add(v, fmt::format("{}x{} is an odd size", v.mp4->width, v.mp4->height));
    else if (codec == "av1")
      slow.add(v, "AV1 plays in new browsers only");
    else if (!v.mp4->moov_first)
      slow.add(v, "the index stands at the end (no faststart): it plays only when it is loaded whole");
    else if (!v.mp4->constant_rate)
      slow.add(v, "the frame rate varies");
  }
  if (bad.files > 0) return bad.result(true, "render.video-encode", *all, {});
  if (slow.files > 0) return slow.result(false, "render.video-encode", *all, {});
  return CheckResult::pass("H.264 (or VP9), yuv420p, index first: plays everywhere");
}

CheckResult moves(const CheckContext& context) {
  const auto all = videos(context);
  if (all->files.empty()) return none(*all);
  Seen black, frozen, small;
  std::size_t decoded = 0, guessed = 0;
  for (const auto& v : all->files) {
    if (!v.mp4 && v.container.empty()) continue;
    const auto& frames = v.decoded.frames;
    if (frames.size() >= 3) {
      ++decoded;
      const auto n = static_cast<double>(frames.size());
      const auto dark =
          static_cast<double>(std::count_if(frames.begin(), frames.end(), [](const FrameStatistics& f) { return f.mean < 20 && f.std < 3; }));
      const auto plain = static_cast<double>(std::count_if(frames.begin(), frames.end(), [](const FrameStatistics& f) { return f.std < 0.5; }));
      const auto still =
          static_cast<double>(std::count_if(frames.begin() + 1, frames.end(), [](const FrameStatistics& f) { return f.change < 0.02; }));
      if (dark > 0.9 * n)
        black.add(v, fmt::format("{:.0f} of {:.0f} frames are black", dark, n));
      else if (plain > 0.9 * n)
        black.add(v, fmt::format("{:.0f} of {:.0f} frames are one plain colour", plain, n));
      else if (still > 0.95 * (n - 1))
        frozen.add(v, fmt::format("the picture stands still in {:.0f} of {:.0f} frames", still, n - 1));
      else if (still > 0.5 * (n - 1))
        frozen.add(v, fmt::format("the picture stands still in {:.0f} of {:.0f} frames: it freezes, or frames are doubled", still, n - 1));
      continue;
    }
    // Without a decoder: a still picture's frames are a few bytes each, and a black one's key frame is tiny too.
    if (!v.mp4) continue;
    const auto& sizes = v.mp4->sample_bytes;
    if (sizes.size() < 10 || v.mp4->width <= 0) continue;
    ++guessed;
    std::vector<double> all_sizes(sizes.begin(), sizes.end());
    const double middle = median(all_sizes), largest = *std::max_element(all_sizes.begin(), all_sizes.end());
    const double pixels = static_cast<double>(v.mp4->width) * static_cast<double>(v.mp4->height);
    if (middle < 60 && middle < pixels / 400) {
      // x264's text about itself stands in the first frame: about 700 bytes.
      if (largest < 1500 + pixels / 200)
        small.add(v, fmt::format("not decoded; frames have {:.0f} bytes (median), the largest {:.0f}, as those of a black or plain picture", middle,
                                 largest));
      else
        small.add(v, fmt::format("not decoded; frames have {:.0f} bytes (median), as those of a picture that stands still", middle));
    }
  }
  if (black.files > 0) return black.result(true, "render.backend-differs", *all, {});
  if (frozen.files > 0) return frozen.result(true, "closed-loop.observation-mismatch", *all, {});
  if (small.files > 0) return small.result(false, "closed-loop.observation-mismatch", *all, {});
  // Sizes can show a fault and never its absence.
  if (decoded == 0)
    return CheckResult::skip(guessed > 0 ? "not decoded (no ffmpeg; FIRSTFAULT_FFMPEG names one): whether it is black or frozen is not known"
                                         : "too few frames to tell, or no ffmpeg to decode them");
  return CheckResult::pass(decoded == all->files.size() ? std::string("neither black nor frozen")
                                                        : fmt::format("neither black nor frozen: {} of {} videos, the others could not be decoded",
                                                                      decoded, all->files.size()));
}

std::vector<Check> table() {
  constexpr Rung r = Rung::episode;
  return {
      {"episode.video-whole",
       r,
       "Is the video complete, and does it decode to its end?",
       "Reads the boxes of the file (index, frames, rate, duration, codec) and, where an ffmpeg is, decodes every frame in a child process.",
       {"data.video-undecodable", "data.lfs-pointer", "data.truncated", "render.video-encode", "permission.path-not-readable"},
       {},
       &whole},
      {"episode.video-playable",
       r,
       "Does it play in a browser?",
       "Codec, pixel format, even size, index first (faststart), constant rate.",
       {"render.video-encode"},
       {"episode.video-whole"},
       &playable},
      {"episode.video-moves",
       r,
       "Is it black or frozen?",
       "Mean, deviation and change of each decoded frame. Without a decoder the frames' sizes in bytes, which can only warn.",
       {"render.backend-differs", "closed-loop.observation-mismatch"},
       {"episode.video-whole"},
       &moves},
  };
}

}  // namespace

std::span<const Check> video_checks() { return made_once<table>(); }

}  // namespace ff::rollout
