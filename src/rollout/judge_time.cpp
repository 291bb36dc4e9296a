// At which rate did the loop run, and how were chunks carried out?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/judge.h"
#include "rollout/linear.h"

namespace ff::rollout {
namespace {

class Judge : ActionJudge {
 public:
  explicit Judge(Survey& s) : ActionJudge(s) {}

  void run() {
    measure();
    s_.time = Value::object({{"step_s_median", median(steps_)}});
    rate();
    held();
    chunks();
  }

 private:
  void measure() {
    for (const auto& j : s_.episodes) {
      const auto& h = j.episode.header;
      if (h.fps > 0) fps_ = h.fps;
      if (h.training.fps > 0) trained_fps_ = h.training.fps;
      if (h.chunk_size > 0) chunk_size_ = h.chunk_size;
      if (h.chunk_executed > 0) chunk_executed_ = h.chunk_executed;
      const auto& frames = j.episode.frames;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        highest_chunk_step_ = std::max(highest_chunk_step_, frames[i].chunk_step);
        if (i == 0) continue;
        if (steps_.size() < 1'000'000) steps_.push_back(frames[i].t - frames[i - 1].t);
        const auto &a = frames[i - 1].sent, &b = frames[i].sent;
        if (a.empty() || a.size() != b.size()) continue;
        pairs_ += 1;
        const bool equal = a == b;
        equal_ += equal ? 1 : 0;
        const auto &ra = frames[i - 1].raw, &rb = frames[i].raw;
        if (equal && !ra.empty() && ra.size() == rb.size()) {
          with_raw_ += 1;
          raw_moves_ += ra != rb ? 1 : 0;
        }
        if (frames[i].chunk_step < 0) continue;
        double jump = 0;
        for (std::size_t d = 0; d < a.size(); ++d)
          if (!action_.gripper || *action_.gripper != d) jump += std::abs(b[d] - a[d]);
        (frames[i].chunk_step == 0 ? border_ : inside_).add(jump);
      }
    }
  }

  void add(const char* source, double score, std::string summary, std::vector<Evidence> evidence, bool fails = true) {
    s_.findings.push_back(
        {"episode.control-rate", source, "closed-loop.control-rate", score, fails, std::move(summary), s_.time, std::move(evidence)});
  }

  void rate() {
    const double step = median(steps_);
    if (steps_.size() >= static_cast<std::size_t>(few) && step > 0 && fps_ > 0) {
      const double real = 1 / step;
      s_.time.set("rate_measured", real).set("rate_declared", fps_);
      if (std::abs(real / fps_ - 1) > 0.15)
        add("control-rate", 0.92, fmt::format("the loop runs at {:.3g} steps a second instead of {:.3g}: {}", real, fps_, times(real / fps_)),
            {{"t", 0, fmt::format("median of the time from step to step: {:.4f} s", step)}});
      std::vector<double> sorted = steps_;
      std::sort(sorted.begin(), sorted.end());
      const double p99 = sorted[static_cast<std::size_t>(0.99 * static_cast<double>(sorted.size() - 1))];
      s_.time.set("step_s_p99", p99);
      if (sorted.front() < 0)
        add("time-backwards", 0.6, "t goes backwards within an episode", {{"t", 0, fmt::format("smallest step {:.4f} s", sorted.front())}}, false);
      else if (p99 > 3 * step)
        add("jitter", 0.4, fmt::format("1 step in 100 takes {:.1f} times as long as the median", p99 / step),
            {{"t", 0, fmt::format("median {:.4f} s, 99th percentile {:.4f} s", step, p99)}}, false);
    }
    if (fps_ > 0 && trained_fps_ > 0 && std::abs(fps_ / trained_fps_ - 1) > 0.05) {
      s_.time.set("rate_of_training", trained_fps_);
      add("control-rate", 0.9,
          fmt::format("the environment runs at {:.3g} steps a second, the training data at {:.3g}: {}", fps_, trained_fps_,
                      times(fps_ / trained_fps_)),
          {{"fps, training.fps", 0, fmt::format("{:.3g} and {:.3g}", fps_, trained_fps_)}});
    }
  }

  static std::string times(double ratio) {
    return ratio < 1 ? fmt::format("each action lasts {:.3g} times as long", 1 / ratio)
                     : fmt::format("each action lasts only {:.3g} of its time", 1 / ratio);
  }

  /// One action sent for several steps although the policy gave new ones.
  void held() {
    if (pairs_ < few) return;
    const double share = equal_ / pairs_;
    s_.time.set("share_of_repeated_actions", share);
    if (share < 0.4 || share > 0.98) return;
    if (with_raw_ >= few && raw_moves_ > 0.5 * with_raw_) {
      const double times_sent = std::round(1 / (1 - share));
      add("action-held", 0.93, fmt::format("each action is sent {:.0f} times in a row, while the policy gives new ones", times_sent),
          {{"action.sent", 0,
            fmt::format("equal to the one before it in {:.0f} % of the steps; the raw action changes in {:.0f} % of these", 100 * share,
                        100 * raw_moves_ / with_raw_)}});
    } else if (with_raw_ == 0 && share < 0.9) {
      add("action-held", 0.6, fmt::format("{:.0f} % of the actions repeat the one before them exactly", 100 * share),
          {{"action.sent", 0, "a control rate below the environment's repeats actions"}});
    }
  }

  void chunks() {
    if (chunk_size_ > 0 && chunk_executed_ > chunk_size_)
      add("chunk-execution", 0.9, fmt::format("{} actions of a chunk are carried out, and it has {}", chunk_executed_, chunk_size_),
          {{"chunk", 0, ""}});
    else if (chunk_size_ > 0 && highest_chunk_step_ >= chunk_size_)
      add("chunk-execution", 0.9, fmt::format("action {} of a chunk was sent, and it has {}", highest_chunk_step_, chunk_size_),
          {{"chunk_step", 0, ""}});
    if (border_.n < 10 || inside_.n < few || !(inside_.mean() > 0)) return;
    const double ratio = border_.mean() / inside_.mean();
    s_.time.set("jump_at_chunk_borders", ratio);
    if (ratio > 6)
      add("chunk-border", 0.5,
          fmt::format("the action jumps where a new chunk begins, {:.1f} times as far as inside a chunk: the chunk's end is too far ahead", ratio),
          {{"chunk_step, action.sent", 0, fmt::format("mean change {:.3g} at borders, {:.3g} inside", border_.mean(), inside_.mean())}}, false);
  }

  std::vector<double> steps_;
  Moments border_, inside_;
  double fps_ = missing, trained_fps_ = missing;
  std::int64_t chunk_size_ = 0, chunk_executed_ = 0, highest_chunk_step_ = -1;
  double pairs_ = 0, equal_ = 0, with_raw_ = 0, raw_moves_ = 0;
};

}  // namespace

void judge_time(Survey& survey) { Judge(survey).run(); }

}  // namespace ff::rollout
