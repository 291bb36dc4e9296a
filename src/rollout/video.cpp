#include "rollout/video.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/file_kind.h"
#include "base/impostor.h"
#include "base/interrupt.h"
#include "base/mapped_file.h"
#include "base/process.h"
#include "base/readable.h"
#include "base/text.h"
#include "media/ffmpeg.h"

namespace ff::rollout {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t side = 16, frame_bytes = side * side, most_frames = 200'000;

std::string first_line(std::string_view text) {
  const auto all = lines(trim(text));
  return all.empty() ? std::string() : std::string(all.back().substr(0, 400));
}

}  // namespace

std::string find_ffmpeg() { return media::find_ffmpeg(); }

Decoded decode_video(const std::string& path) {
  Decoded out;
  const auto ffmpeg = find_ffmpeg();
  if (ffmpeg.empty()) return out;
  out.tried = true;
  ChildOptions options;
  // -xerror: the first undecodable frame ends it instead of being concealed. The path may begin with a dash: file: keeps it one.
  options.argv = {ffmpeg,
                  "-nostdin",
                  "-v",
                  "error",
                  "-xerror",
                  "-i",
                  "file:" + path,
                  "-map",
                  "0:v:0",
                  "-vf",
                  fmt::format("scale={}:{}:flags=area", side, side),
                  "-pix_fmt",
                  "gray",
                  "-f",
                  "rawvideo",
                  "-fps_mode",
                  "passthrough",
                  "pipe:1"};
  options.time_limit = std::chrono::minutes(5);
  options.output_limit_bytes = most_frames * frame_bytes;
  const auto child = run_child(options);
  const std::string_view bytes(child.out);
  for (std::size_t at = 0; at + frame_bytes <= bytes.size(); at += frame_bytes) {
    FrameStatistics f;
    double squares = 0;
    for (std::size_t i = 0; i < frame_bytes; ++i) {
      const double v = static_cast<unsigned char>(bytes[at + i]);
      f.mean += v / frame_bytes;
      squares += v * v / frame_bytes;
      if (at > 0) f.change += std::abs(v - static_cast<unsigned char>(bytes[at - frame_bytes + i])) / frame_bytes;
    }
    f.std = std::sqrt(std::max(0.0, squares - f.mean * f.mean));
    out.frames.push_back(f);
  }
  if (!child.ok() || !trim(child.err).empty()) out.error = trim(child.err).empty() ? child.describe() : first_line(child.err);
  return out;
}

VideoFile open_video(const std::string& path) {
  VideoFile out;
  out.path = path;
  const auto mapped = MappedFile::open(path);
  if (!mapped) {
    if (is_unreadable(mapped.error()))
      out.unread = mapped.error();
    else
      out.problem = mapped.error().what;
    return out;
  }
  const auto bytes = mapped->bytes();
  if (const auto wrong = common_impostor(bytes.substr(0, 512), bytes.size())) {
    out.problem = "is " + wrong->what;
    out.cause = wrong->kind == Impostor::Kind::lfs_pointer ? "data.lfs-pointer" : "data.truncated";
    return out;
  }
  if (const auto kind = file_kind(bytes.substr(0, 512)); !kind.what.empty()) {
    if (kind.other_video) {
      out.container = kind.what;
      out.decoded = decode_video(path);
      return out;
    }
    out.problem = fmt::format("is {}, no video", kind.what);
    out.cause = "data.truncated";
    return out;
  }
  auto mp4 = media::read_mp4(bytes, path);
  if (mp4)
    out.mp4 = std::move(*mp4);
  else
    out.problem = mp4.error().what;
  out.decoded = decode_video(path);
  return out;
}

Result<void> encode_video(const EncodeOptions& o) {
  if (auto unread = unreadable(o.input)) return std::unexpected(std::move(*unread));
  std::error_code error;
  if (fs::exists(o.output, error) && !o.overwrite) return usage_error("exists already", o.output, "--force replaces it");
  const auto ffmpeg = find_ffmpeg();
  if (ffmpeg.empty())
    return fail("there is no ffmpeg", "PATH", "apt-get install ffmpeg, or set FIRSTFAULT_FFMPEG to one (the PyPI package imageio-ffmpeg brings one)");
  if (!fs::exists(o.input, error)) return usage_error("does not exist", o.input);
  const auto temporary = temporary_beside(o.output).string() + ".mp4";
  const RemovedOnInterrupt unfinished(temporary), unread(temporary + ".txt");
  ChildOptions options;
  options.argv = {ffmpeg, "-nostdin", "-y", "-v", "error"};
  std::string listing;
  const double fps = o.fps > 0 ? o.fps : 10;
  if (fs::is_directory(o.input, error)) {
    // A list keeps any names in order, without a pattern.
    std::set<std::string> pictures;
    for (fs::directory_iterator it(o.input, error), end; !error && it != end; it.increment(error)) {
      const auto extension = lower(it->path().extension().string());
      if (extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".ppm")
        pictures.insert(fs::absolute(it->path()).string());
    }
    if (pictures.empty()) return fail("holds no pictures (.png, .jpg, .ppm)", o.input);
    listing = temporary + ".txt";
    std::string text;
    for (const auto& p : pictures) text += fmt::format("file '{}'\nduration {:.6f}\n", replace_all(p, "'", "'\\''"), 1 / fps);
    if (auto written = write_file(listing, text); !written) return written;
    options.argv.insert(options.argv.end(), {"-f", "concat", "-safe", "0", "-i", listing, "-r", fmt::format("{}", fps)});
  } else {
    options.argv.insert(options.argv.end(), {"-i", "file:" + o.input});
    if (o.fps > 0) options.argv.insert(options.argv.end(), {"-r", fmt::format("{}", o.fps)});
  }
  options.argv.insert(options.argv.end(), {"-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-crf", "20",
                                           "-movflags", "+faststart", "file:" + temporary});
  options.time_limit = std::chrono::minutes(30);
  const auto child = run_child(options);
  if (!listing.empty()) fs::remove(listing, error);
  if (!child.ok()) {
    fs::remove(temporary, error);
    return fail("could not be encoded: " + (trim(child.err).empty() ? child.describe() : first_line(child.err)), o.input);
  }
  fs::rename(temporary, o.output, error);
  if (error) return fail("could not be put in its place: " + error.message(), o.output);
  return {};
}

}  // namespace ff::rollout
