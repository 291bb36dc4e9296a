// What did the policy see? Measured over all frames; judge_observations.cpp and judge_match.cpp say what is wrong in it.
#include "rollout/observed.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ff::rollout {
namespace {

class Observer {
 public:
  explicit Observer(const Survey& s) : s_(s) {}
  Observed run() {
    measure();
    return std::move(o_);
  }

 private:
  /// Does a new picture (or state) stand in the frames within a chunk as well?
  [[nodiscard]] bool written_anew() const {
    double other = 0, n = 0;
    for (const auto& j : s_.episodes)
      for (std::size_t i = 1; i < j.episode.frames.size(); ++i) {
        const auto &a = j.episode.frames[i - 1], &b = j.episode.frames[i];
        if (b.chunk_step <= 0 || (b.cameras.empty() && b.state.empty())) continue;
        bool differs = a.state != b.state;
        for (const auto& [key, view] : b.cameras)
          if (const auto before = a.cameras.find(key); before != a.cameras.end()) differs = differs || !same_picture(before->second, view);
        n += 1;
        other += differs ? 1 : 0;
      }
    return n > 0 && other > 0.3 * n;
  }

  /// Where the tool is seen as in the training: within the training data's own range of it, else where episodes begin. A policy that
  /// runs away takes the tool out of the picture, and what then moves in it says nothing.
  void find_region() {
    std::array<Moments, 3> begins;
    for (const auto& j : s_.episodes) {
      if (j.episode.frames.empty()) continue;
      const auto& tool = j.episode.frames.front().arms[j.stages.arm].tool;
      const auto& h = j.episode.header;
      const auto& trained = h.training.state;
      if (tool.size() < 3) continue;
      const bool known = h.state_tool.size() == 3 &&
                         std::ranges::all_of(h.state_tool, [&](std::size_t d) { return d < trained.min.size() && d < trained.max.size(); });
      for (std::size_t k = 0; k < 3; ++k) {
        begins[k].add(known ? trained.min[h.state_tool[k]] : tool[k]);
        if (known) begins[k].add(trained.max[h.state_tool[k]]);
      }
    }
    // Robots that begin at one place leave the whole of their way.
    if (begins[0].n < 5 || std::max(begins[0].max - begins[0].min, begins[1].max - begins[1].min) < 0.1) return;
    for (std::size_t k = 0; k < 2; ++k) region_[k] = {begins[k].min, begins[k].max};
  }
  [[nodiscard]] bool in_region(const Numbers& tool) const {
    for (std::size_t k = 0; k < 2; ++k)
      if (tool[k] < region_[k].first || tool[k] > region_[k].second) return false;
    return true;
  }

  void measure() {
    fresh_ = written_anew();
    find_region();
    for (const auto& j : s_.episodes) {
      const auto& frames = j.episode.frames;
      std::map<std::string, double> run;
      std::optional<std::size_t> last;
      for (std::size_t i = 0; i < frames.size(); ++i) {
        // Within a chunk the policy does not look: what stands there may be the picture of the chunk's beginning.
        if (frames[i].chunk_step > 0 && !fresh_) continue;
        look(j, i, last, run);
        state_of(j, i, last);
        last = i;
      }
      for (auto& [key, seen] : o_.cameras) {
        if (frames.size() >= 10) seen.first_run.push_back(run[key]);
        const CameraView own = std::exchange(seen.episode, {}).view();
        if (!own.grid.empty()) seen.grids.push_back(own.grid);
        if (auto difference = red_to_blue(own); !difference.empty()) seen.red_to_blue.push_back(std::move(difference));
      }
    }
  }

  void look(const Judged& j, std::size_t i, std::optional<std::size_t> last, std::map<std::string, double>& run) {
    const auto& frames = j.episode.frames;
    const auto tool = [&](std::size_t frame) -> const Numbers& { return frames[frame].arms[j.stages.arm].tool; };
    const auto between = [&](std::size_t from, std::size_t to) {
      const auto &a = tool(from), &b = tool(to);
      return a.size() >= 3 && b.size() >= 3 ? distance3(a, b) : missing;
    };
    for (const auto& [key, view] : frames[i].cameras) {
      auto& seen = o_.cameras[key];
      seen.frames += 1;
      seen.sum.add(view);
      seen.episode.add(view);
      if (std::isfinite(view.t)) {
        seen.late_sum += frames[i].t - view.t;
        seen.late_n += 1;
      }
      if (!last) continue;
      const auto before = frames[*last].cameras.find(key);
      if (before == frames[*last].cameras.end()) continue;
      const bool same = same_picture(before->second, view);
      seen.changes += same ? 0 : 1;
      if (between(*last, i) > still_m && in_region(tool(*last)) && in_region(tool(i))) {
        seen.pairs += 1;
        seen.same += same ? 1 : 0;
        if (same && run[key] == static_cast<double>(*last)) run[key] = static_cast<double>(i);
      }
      follow(j, seen, before->second, view, *last, i);
      const double change = picture_change(before->second, view);
      for (std::size_t lag = 0; lag <= max_lag && lag <= *last; ++lag) seen.change[lag].add(between(*last - lag, i - lag), change);
    }
  }

  void follow(const Judged& j, Seen& seen, const CameraView& a, const CameraView& b, std::size_t from, std::size_t to) {
    const auto first = centre(a.grid), second = centre(b.grid);
    const auto &p = j.episode.frames[from].arms[j.stages.arm].tool, &q = j.episode.frames[to].arms[j.stages.arm].tool;
    if (!first || !second || p.size() < 3 || q.size() < 3 || !in_region(p) || !in_region(q)) return;
    for (std::size_t k = 0; k < 3; ++k) {
      seen.centre[k].add(q[k] - p[k], second->first - first->first);
      seen.centre[3 + k].add(q[k] - p[k], second->second - first->second);
    }
  }

  /// The state that the policy saw against where the tool was, this many steps before.
  void state_of(const Judged& j, std::size_t i, std::optional<std::size_t> last) {
    const auto& h = j.episode.header;
    const auto& frames = j.episode.frames;
    const auto& state = frames[i].state;
    if (h.state_tool.size() != 3) return;
    for (const auto d : h.state_tool)
      if (d >= state.size()) return;
    o_.state_frames += 1;
    for (std::size_t lag = 0; lag <= max_lag && lag <= i; ++lag) {
      const auto& tool = frames[i - lag].arms[j.stages.arm].tool;
      if (tool.size() < 3) return;
      double squares = 0;
      for (std::size_t k = 0; k < 3; ++k) squares += std::pow(state[h.state_tool[k]] - tool[k], 2);
      // Only where the comparison exists for each lag, or the first frames would favour the short ones.
      if (i >= max_lag) o_.state_error[lag].add(std::sqrt(squares));
    }
    if (last) {
      const auto& before = frames[*last].state;
      o_.state_changes += before == state ? 0 : 1;
      const auto &a = frames[*last].arms[j.stages.arm].tool, &b = frames[i].arms[j.stages.arm].tool;
      if (before.size() == state.size() && a.size() >= 3 && b.size() >= 3 && distance3(a, b) > still_m) {
        o_.state_pairs += 1;
        o_.state_same += before == state ? 1 : 0;
      }
    }
  }

  const Survey& s_;
  Observed o_;
  std::array<std::pair<double, double>, 2> region_{{{-INFINITY, INFINITY}, {-INFINITY, INFINITY}}};  ///< x, y of the tool
  bool fresh_ = false;  ///< frames within a chunk have pictures of their own
};

}  // namespace

Numbers red_to_blue(const CameraView& view) {
  if (view.mean.size() < 3) return {};
  Numbers out{view.mean[0] - view.mean[2]};
  if (view.std.size() == view.mean.size()) out.push_back(view.std[0] - view.std[2]);
  return out;
}

Observed observe(const Survey& survey) { return Observer(survey).run(); }

}  // namespace ff::rollout
