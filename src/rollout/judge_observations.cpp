// What did the policy see? Pictures that stand still, come late or are black; pictures that are not those of the training: turned,
// exchanged, with other colours, another scale or another renderer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rollout/judge.h"
#include "rollout/linear.h"
#include "rollout/pictures.h"
#include "rollout/signs.h"

namespace ff::rollout {
namespace {

constexpr double still_m = 0.002;
constexpr std::size_t max_lag = 16;

/// One camera over all frames.
struct Seen {
  PictureSum sum;
  double pairs = 0, same = 0;            ///< looks in a row between which the tool moved; of these with the same picture
  double changes = 0;                    ///< looks with another picture than the one before, moved or not
  double late_sum = 0, late_n = 0;       ///< t of the frame minus t of the picture
  std::vector<double> first_run;         ///< by episode: frames until the picture changes for the first time
  std::array<Line, max_lag + 1> change;  ///< motion of the tool against change of the picture, this many steps later
  std::array<Line, 6> centre;            ///< motion of the tool along x, y, z against that of the centre's column, then row
  double frames = 0;
  PictureSum episode;                ///< of the episode that is being read
  std::vector<Grid> grids;           ///< average picture of each episode
  std::vector<Numbers> red_to_blue;  ///< of each episode: how much brighter, and how much more varied, red is than blue
  [[nodiscard]] Numbers motion() const {
    Numbers out;
    for (const auto& l : centre) out.push_back(l.n >= 20 ? l.r() : missing);
    return out;
  }
};

class Judge : ActionJudge {
 public:
  explicit Judge(Survey& s) : ActionJudge(s) {}

  void run() {
    measure();
    state();
    for (auto& [key, seen] : cameras_) alive(key, seen);
    matches();
    renderer();
    if (s_.fails()) mirrored();
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
      for (auto& [key, seen] : cameras_) {
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
      auto& seen = cameras_[key];
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
    state_frames_ += 1;
    for (std::size_t lag = 0; lag <= max_lag && lag <= i; ++lag) {
      const auto& tool = frames[i - lag].arms[j.stages.arm].tool;
      if (tool.size() < 3) return;
      double squares = 0;
      for (std::size_t k = 0; k < 3; ++k) squares += std::pow(state[h.state_tool[k]] - tool[k], 2);
      // Only where the comparison exists for each lag, or the first frames would favour the short ones.
      if (i >= max_lag) state_error_[lag].add(std::sqrt(squares));
    }
    if (last) {
      const auto& before = frames[*last].state;
      state_changes_ += before == state ? 0 : 1;
      const auto &a = frames[*last].arms[j.stages.arm].tool, &b = frames[i].arms[j.stages.arm].tool;
      if (before.size() == state.size() && a.size() >= 3 && b.size() >= 3 && distance3(a, b) > still_m) {
        state_pairs_ += 1;
        state_same_ += before == state ? 1 : 0;
      }
    }
  }

  void add(const char* check, const char* source, const char* cause, double score, std::string summary, std::vector<Evidence> evidence,
           Value measured = Value::object()) {
    s_.findings.push_back({check, source, cause, score, true, std::move(summary), std::move(measured), std::move(evidence)});
  }

  void state() {
    if (state_frames_ < few) return;
    if (state_pairs_ >= few && state_same_ > 0.9 * state_pairs_ && state_changes_ < 0.05 * state_frames_)
      return add("episode.observations-alive", "observation-frozen", "closed-loop.observation-mismatch", 0.92,
                 "the state that the policy sees stands still while the tool moves",
                 {{"state", 0, fmt::format("unchanged in {:.0f} of {:.0f} steps in which the tool moved", state_same_, state_pairs_)}});
    std::size_t best = 0;
    for (std::size_t lag = 1; lag <= max_lag; ++lag)
      if (state_error_[lag].n >= few && state_error_[lag].mean() < state_error_[best].mean()) best = lag;
    if (best == 0 || state_error_[0].n < few || state_error_[0].mean() < 0.002 || state_error_[best].mean() > 0.3 * state_error_[0].mean()) return;
    add("episode.observations-alive", "observation-late", "closed-loop.control-rate", 0.93,
        fmt::format("the state that the policy sees is {} step{} old", best, best == 1 ? "" : "s"),
        {{"state, tool", 0,
          fmt::format("distance to the tool now {:.4f} m, to where it was {} steps before {:.4f} m", state_error_[0].mean(), best,
                      state_error_[best].mean())}},
        Value::object({{"delay_steps", static_cast<unsigned long>(best)}}));
  }

  void alive(const std::string& key, const Seen& seen) {
    if (seen.frames < few) return;
    const auto mean = seen.sum.mean(), deviation = seen.sum.std();
    if (!mean.empty() && !deviation.empty() && std::ranges::max(mean) < 0.02 && std::ranges::max(deviation) < 0.02)
      return add("episode.observations-alive", "camera-black", "render.backend-differs", 0.95,
                 fmt::format("the pictures of camera {} are black", key),
                 {{"cameras." + key, 0, fmt::format("mean {:.3f}, standard deviation {:.3f}", std::ranges::max(mean), std::ranges::max(deviation))}});
    // Late pictures stand still while the tool moves, and change afterwards.
    if (seen.pairs >= few && seen.same > 0.95 * seen.pairs && seen.changes < 0.05 * seen.frames)
      return add("episode.observations-alive", "observation-frozen", "closed-loop.observation-mismatch", 0.95,
                 fmt::format("camera {} is frozen: the picture does not change while the tool moves", key),
                 {{"cameras." + key, 0, fmt::format("the same picture in {:.0f} of {:.0f} steps in which the tool moved", seen.same, seen.pairs)}});
    if (late(key, seen)) return;
    if (seen.pairs >= few && seen.same > 0.3 * seen.pairs) {
      add("episode.observations-alive", "observation-held", "closed-loop.control-rate", 0.8,
          fmt::format("camera {} gives a new picture only in {:.0f} % of the steps in which the tool moves", key, 100 * (1 - seen.same / seen.pairs)),
          {{"cameras." + key, 0, fmt::format("the same picture in {:.0f} of {:.0f} steps", seen.same, seen.pairs)}});
      s_.findings.back().by_motion = true;  // a slow tool does not change a small picture either
    }
  }

  bool late(const std::string& key, const Seen& seen) {
    const double period = period_s();
    if (seen.late_n >= few && period > 0 && seen.late_sum / seen.late_n > 1.5 * period) {
      const double age = seen.late_sum / seen.late_n;
      add("episode.observations-alive", "observation-late", "closed-loop.control-rate", 0.95,
          fmt::format("the picture of camera {} is {:.2f} s old when the policy gets it ({:.1f} steps)", key, age, age / period),
          {{"cameras." + key + ".t", 0, fmt::format("{:.3f} s before the frame's t on average", age)}}, Value::object({{"age_s", age}}));
      return true;
    }
    // A buffer of old pictures begins with the first one several times.
    if (seen.first_run.size() >= 3) {
      const double run = median(seen.first_run);
      double equal = 0;
      for (const double r : seen.first_run) equal += r == run ? 1 : 0;
      if (run >= 2 && equal >= 0.7 * static_cast<double>(seen.first_run.size()) && seen.same < 0.5 * seen.pairs) {
        add("episode.observations-alive", "observation-late", "closed-loop.control-rate", 0.9,
            fmt::format(
                "the picture of camera {} is {:.0f} steps old: in each episode it stands still for the first {:.0f} steps while the tool moves", key,
                run, run),
            {{"cameras." + key + ".hash", 0,
              fmt::format("unchanged for the first {:.0f} steps in {:.0f} of {} episodes", run, equal, seen.first_run.size())}},
            Value::object({{"delay_steps", run}}));
        return true;
      }
    }
    // The picture changes when the tool moves; with old pictures it changes later.
    std::size_t best = 0;
    for (std::size_t lag = 1; lag <= max_lag; ++lag)
      if (seen.change[lag].n >= 100 && seen.change[lag].r() > seen.change[best].r()) best = lag;
    if (best >= 2 && seen.change[best].r() > 0.5 && seen.change[best].r() > seen.change[0].r() + 0.25 &&
        seen.change[best].r() > seen.change[1].r() + 0.15) {
      add("episode.observations-alive", "observation-late", "closed-loop.control-rate", 0.8,
          fmt::format("the picture of camera {} follows the tool {} steps late", key, best),
          {{"cameras." + key, 0,
            fmt::format("correlation of the picture's change with the tool's motion: {:.2f} at once, {:.2f} after {} steps", seen.change[0].r(),
                        seen.change[best].r(), best)}},
          Value::object({{"delay_steps", static_cast<unsigned long>(best)}}));
      return true;
    }
    return false;
  }

  [[nodiscard]] double period_s() const {
    for (const auto& j : s_.episodes)
      if (j.episode.header.fps > 0) return 1 / j.episode.header.fps;
    return 0;
  }

  /// Live pictures against the training's.
  void matches() {
    const auto& training = action_.training.cameras;
    if (exchanged(training)) return;
    std::vector<std::string> unlike;
    std::size_t compared = 0;
    for (const auto& [key, seen] : cameras_) {
      const auto* own = find_camera(training, key);
      if (own == nullptr || seen.frames < few) continue;
      ++compared;
      const auto live = seen.sum.view();
      if (scaled(key, live, *own) || turned_(key, seen, live, *own) || coloured(key, seen, live, *own)) continue;
      const double difference = picture_distance(live, *own), level = picture_level(*own);
      if (difference > std::max(0.12 * level, 0.06) || difference > 0.35 * level)
        unlike.push_back(fmt::format("{} (mean {}, in the training data {})", key, numbers(live.mean), numbers(own->mean)));
    }
    missing_cameras(training);
    if (unlike.empty()) return;
    const bool all = unlike.size() == compared;
    add("episode.observations-match", "renderer", all ? "render.backend-differs" : "closed-loop.observation-mismatch", 0.7,
        fmt::format("pictures are not like those of the training data: {}", list(unlike, 2)), {{"cameras", 0, list(unlike, 8)}});
  }

  bool scaled(const std::string& key, const CameraView& live, const CameraView& own) {
    const auto scale = other_scale(live, own);
    if (!scale) return false;
    add("episode.observations-match", "image-normalisation", "closed-loop.observation-mismatch", 0.95, fmt::format("camera {}: {}", key, *scale),
        {{"cameras." + key, 0, fmt::format("mean {}; in the training data {}", numbers(live.mean), numbers(own.mean))}});
    return true;
  }

  bool turned_(const std::string& key, const Seen& seen, const CameraView& live, const CameraView& own) {
    const auto flip = [&](double score, const std::string& how, const char* fields, std::string shown, Value measured = Value::object()) {
      add("episode.observations-match", "camera-flip", "closed-loop.observation-mismatch", score,
          fmt::format("the picture of camera {} is {}", key, how), {{"cameras." + key + fields, 0, std::move(shown)}}, std::move(measured));
      if (how.find(" or ") != std::string::npos)
        s_.unanswered.push_back({"camera-flip", "training.cameras." + key + (own.motion.empty() ? ".motion" : ".grid"),
                                 "which way the picture of camera " + key + " is turned", "the training's average picture is symmetric one way"});
      return true;
    };
    if (const auto turn = turned_by_motion(seen.motion(), own.motion))
      return flip(0.96, *turn, ".grid, tool",
                  fmt::format("how the picture follows the tool (column, row with x, y, z): {}; in the training data {}", numbers(seen.motion()),
                              numbers(own.motion)));
    const auto follows = motion_signs(seen.motion(), own.motion);
    if (follows[0] > 0 && follows[1] > 0) return false;
    const OddSigns odd = odd_signs(seen.grids, own.grid);
    if (const auto turn = turned(live, own)) {
      // Pictures that are symmetric one way fit two turns alike; then only what is odd in the episodes may choose.
      const char* by_episodes = turn->alone ? nullptr : odd.turn();
      return flip(0.95,
                  by_episodes != nullptr ? by_episodes
                  : turn->alone          ? turn->name
                                         : turn->name + ", or another turn that fits as well",
                  ".grid",
                  fmt::format("difference to the training's picture {:.3f}; {:.3f} when it is {} back", turn->before, turn->after, turn->name),
                  Value::object({{"difference", turn->before}, {"difference_turned_back", turn->after}}));
    }
    // Pictures that are nearly symmetric: what is odd in the training's average, looked for in each episode.
    if (const char* turn = odd.turn(); turn != nullptr && follows[0] + follows[1] == 0) {
      const auto shown = [](const char* what, const Along& a) {
        return std::isfinite(a.share) ? fmt::format("{} {:.2f} +- {:.2f} (its size in the training {:.4f})", what, a.share, a.error, a.size) : "";
      };
      return flip(
          0.85, turn, ".grid",
          fmt::format("what is odd in the training's average picture stands turned round in the episodes' (1: as there, -1: turned round): {}, "
                      "{}, {}",
                      shown("left to right", odd.columns), shown("top to bottom", odd.rows), shown("both", odd.both)));
    }
    undecided(key, seen, own, odd, follows);
    return false;
  }

  /// Says which turn of the picture would not be seen, and what would show it.
  void undecided(const std::string& key, const Seen& seen, const CameraView& own, const OddSigns& odd, const std::array<int, 2>& follows) {
    // Mirrored left to right leaves columns and both turned round: one of them, as in the training, excludes it.
    const bool columns = follows[0] > 0 || odd.columns.sign > 0 || odd.both.sign > 0;
    const bool rows = follows[1] > 0 || odd.rows.sign > 0 || odd.both.sign > 0;
    const bool half_turn = follows[0] > 0 || follows[1] > 0 || odd.columns.sign > 0 || odd.rows.sign > 0;
    std::vector<std::string> open;
    if (!columns) open.emplace_back("mirrored left to right");
    if (!rows) open.emplace_back("upside down");
    if (!half_turn) open.emplace_back("turned by 180 degrees");
    if (open.empty()) return;
    const std::string what = fmt::format("whether the picture of camera {} is {}", key, fmt::join(open, ", "));
    if (seen.grids.empty())
      s_.unanswered.push_back({"camera-flip", "cameras." + key + ".grid", what, "the frames have no \"grid\" of it"});
    else if (!own.motion.empty())
      s_.unanswered.push_back(
          {"camera-flip", "training.cameras." + key + ".grid", what, "in these episodes the picture does not follow the tool clearly"});
    else if (own.grid.empty())
      s_.unanswered.push_back({"camera-flip", "training.cameras." + key + ".motion", what, "of the training's pictures only colours are known"});
    else
      s_.unanswered.push_back({"camera-flip", "training.cameras." + key + ".motion", what,
                               seen.grids.size() < 5 ? "there are fewer than 5 episodes"
                                                     : "the training's average picture is too symmetric, or the episodes' too unlike it"});
  }

  /// Mean and deviation of red less those of blue; empty without three channels.
  static Numbers red_to_blue(const CameraView& view) {
    if (view.mean.size() < 3) return {};
    Numbers out{view.mean[0] - view.mean[2]};
    if (view.std.size() == view.mean.size()) out.push_back(view.std[0] - view.std[2]);
    return out;
  }

  bool coloured(const std::string& key, const Seen& seen, const CameraView& live, const CameraView& own) {
    const auto swapped = [&](double score, const char* field, std::string shown) {
      add("episode.observations-match", "colour-order", "closed-loop.observation-mismatch", score,
          fmt::format("camera {} gives blue where the training had red (BGR instead of RGB)", key),
          {{"cameras." + key + field, 0, std::move(shown)}});
      return true;
    };
    if (const auto swap = channels_swapped(live, own))
      return swapped(0.93, ".mean",
                     fmt::format("{}; in the training data {}: difference {:.3f}, with exchanged channels {:.3f}", numbers(live.mean),
                                 numbers(own.mean), swap->first, swap->second));
    // Nearly grey pictures: the small difference between red and blue, looked for in each episode.
    const Numbers trained = red_to_blue(own);
    const bool deviations = trained.size() == 2 && !seen.red_to_blue.empty() && seen.red_to_blue.front().size() == 2;
    std::vector<Numbers> episodes = seen.red_to_blue;
    if (!deviations)
      for (auto& e : episodes) e.resize(1);
    const Along difference = along(episodes, deviations || trained.empty() ? trained : Numbers{trained[0]});
    if (difference.sign < 0)
      return swapped(0.85, deviations ? ".mean, .std" : ".mean",
                     fmt::format("red less blue is {:.2f} +- {:.2f} of what it is in the training data (1: as there, -1: exchanged)",
                                 difference.share, difference.error));
    const std::string color = live_color(key);
    if (!color.empty() && !own.color.empty()) {
      if (color == own.color) return false;
      return swapped(0.8, ".color", fmt::format("declared {}; in the training {}", color, own.color));
    }
    if (difference.sign == 0 && own.mean.size() >= 3 && live.mean.size() >= 3)
      s_.unanswered.push_back({"colour-order", "training.cameras." + key + ".color",
                               fmt::format("whether camera {} gives BGR where the training had RGB", key),
                               fmt::format("red and blue of the training's pictures are too alike ({:.3f} and {:.3f}); \"color\" there and in "
                                           "\"cameras\" declares it",
                                           own.mean[0], own.mean[2])});
    return false;
  }

  [[nodiscard]] std::string live_color(const std::string& key) const {
    for (const auto& j : s_.episodes)
      if (const auto found = j.episode.header.camera_colors.find(key); found != j.episode.header.camera_colors.end()) return found->second;
    return {};
  }

  /// Two cameras in each other's place: each is like the other's training pictures, in brightness or in how it follows the tool.
  bool exchanged(const std::map<std::string, CameraView>& training) {
    for (const auto& [a, seen_a] : cameras_)
      for (const auto& [b, seen_b] : cameras_) {
        const auto *own_a = find_camera(training, a), *own_b = find_camera(training, b);
        if (a >= b || own_a == nullptr || own_b == nullptr || own_a == own_b || seen_a.frames < few || seen_b.frames < few) continue;
        const auto live_a = seen_a.sum.view(), live_b = seen_b.sum.view();
        const double as_they_are = picture_distance(live_a, *own_a) + picture_distance(live_b, *own_b);
        const double crosswise = picture_distance(live_a, *own_b) + picture_distance(live_b, *own_a);
        const double level = picture_level(*own_a) + picture_level(*own_b);
        const bool by_mean = crosswise < 0.35 * as_they_are && as_they_are > 0.02 * level;
        const auto move_a = motion_distance(seen_a.motion(), own_a->motion), move_b = motion_distance(seen_b.motion(), own_b->motion);
        const auto cross_a = motion_distance(seen_a.motion(), own_b->motion), cross_b = motion_distance(seen_b.motion(), own_a->motion);
        const bool moves = move_a && move_b && cross_a && cross_b;
        const bool by_motion = moves && *cross_a + *cross_b < 0.5 * (*move_a + *move_b) && *move_a + *move_b > 0.6;
        if (moves ? !by_motion : !by_mean) continue;
        std::string shown = fmt::format("{}: mean {}, the training's {} has {}", a, numbers(live_a.mean), b, numbers(own_b->mean));
        if (moves)
          shown = fmt::format("{} follows the tool as the training's {} does: {} (column, row with x, y, z); the training's {} {}", a, b,
                              numbers(seen_a.motion()), a, numbers(own_a->motion));
        add("episode.observations-match", "camera-order", "closed-loop.observation-mismatch", 0.95,
            fmt::format("the cameras {} and {} are exchanged", a, b), {{"cameras", 0, std::move(shown)}});
        return true;
      }
    return false;
  }

  void missing_cameras(const std::map<std::string, CameraView>& training) {
    for (const auto& [key, view] : training) {
      if (cameras_.empty()) return;
      bool there = false;
      for (const auto& [own, seen] : cameras_) there = there || own == key || own.ends_with("." + key) || key.ends_with("." + own);
      if (!there)
        add("episode.observations-match", "camera-missing", "closed-loop.observation-mismatch", 0.85,
            "the policy was trained with camera " + key + ", and the episodes have none of that name", {{"cameras", 0, "no " + key}});
    }
  }

  /// "observation.images.top" of a dataset is "top" in an episode, and the other way round.
  static const CameraView* find_camera(const std::map<std::string, CameraView>& training, const std::string& key) {
    for (const auto& [name, view] : training)
      if (name == key || name.ends_with("." + key) || key.ends_with("." + name)) return &view;
    return nullptr;
  }

  void renderer() {
    for (const auto& j : s_.episodes) {
      const auto& h = j.episode.header;
      if (h.renderer.empty() || h.training.renderer.empty() || h.renderer == h.training.renderer) continue;
      add("episode.observations-match", "renderer", "render.backend-differs", 0.75,
          fmt::format("pictures are drawn by \"{}\"; the training data by \"{}\"", h.renderer, h.training.renderer),
          {{j.episode.file, j.episode.line, "environment.renderer, training.renderer"}});
      return;
    }
  }

  /// Without statistics of the training's pictures: the tool goes to the mirror image of the object's place.
  void mirrored() {
    std::array<std::array<Line, 2>, 2> ends;  // [axis of the tool][axis of the object]
    for (const auto& j : s_.episodes) {
      if (j.episode.frames.size() < 10) continue;
      const auto& first = j.episode.frames.front();
      // Where it was when it came nearest to the height of the object: where it wanted to take it.
      std::size_t lowest = 0;
      double height = INFINITY;
      for (std::size_t i = 0; i < j.episode.frames.size(); ++i) {
        const auto& tool = j.episode.frames[i].arms[j.stages.arm].tool;
        if (tool.size() >= 3 && tool[2] < height) {
          height = tool[2];
          lowest = i;
        }
      }
      const auto& tool = j.episode.frames[lowest].arms[j.stages.arm].tool;
      if (tool.size() < 3 || first.object.size() < 3) continue;
      for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t b = 0; b < 2; ++b) ends[a][b].add(first.object[b], tool[a]);
    }
    if (ends[0][0].n < 8) return;
    s_.reach =
        Value::object({{"x_with_x", ends[0][0].r()}, {"y_with_y", ends[1][1].r()}, {"x_with_y", ends[0][1].r()}, {"y_with_x", ends[1][0].r()}});
    for (std::size_t a = 0; a < 2; ++a) {
      const auto& own = ends[a][a];
      const auto& other = ends[1 - a][1 - a];
      if (own.std_x() < 0.01 || own.r() > -0.7 || own.slope() > -0.4 || (other.r() < 0.3 && other.r() > -0.7)) continue;
      add("episode.observations-match", "camera-flip", "closed-loop.observation-mismatch", 0.6,
          fmt::format("the tool goes to the mirror image of the object along {}: the picture that the policy sees is turned round",
                      a == 0 ? "x" : "y"),
          {{"tool, object", 0,
            fmt::format("where the tool goes against where the object stands, over {:.0f} episodes: correlation {:.2f} along x, {:.2f} along y",
                        own.n, ends[0][0].r(), ends[1][1].r())}},
          s_.reach);
      s_.findings.back().by_motion = true;
      return;
    }
  }

  std::map<std::string, Seen> cameras_;
  std::array<std::pair<double, double>, 2> region_{{{-INFINITY, INFINITY}, {-INFINITY, INFINITY}}};  ///< x, y of the tool
  bool fresh_ = false;  ///< frames within a chunk have pictures of their own
  std::array<Moments, max_lag + 1> state_error_;
  double state_frames_ = 0, state_pairs_ = 0, state_same_ = 0, state_changes_ = 0;
};

}  // namespace

void judge_observations(Survey& survey) { Judge(survey).run(); }

}  // namespace ff::rollout
