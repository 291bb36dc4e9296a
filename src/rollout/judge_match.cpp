// Does the policy see what it was trained on? Pictures that are turned, exchanged, with other colours, another scale or another renderer.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rollout/observed.h"
#include "rollout/signs.h"

namespace ff::rollout {
namespace {

class Judge : ActionJudge {
 public:
  Judge(Survey& s, const Observed& o) : ActionJudge(s), o_(o) {}

  void run() {
    matches();
    renderer();
    if (s_.fails()) mirrored();
  }

 private:
  void add(const char* source, const char* cause, double score, std::string summary, std::vector<Evidence> evidence,
           Value measured = Value::object()) {
    s_.findings.push_back({"episode.observations-match", source, cause, score, true, std::move(summary), std::move(measured), std::move(evidence)});
  }

  /// Live pictures against the training's.
  void matches() {
    const auto& training = action_.training.cameras;
    if (exchanged(training)) return;
    std::vector<std::string> unlike;
    std::size_t compared = 0;
    for (const auto& [key, seen] : o_.cameras) {
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
    add("renderer", all ? "render.backend-differs" : "closed-loop.observation-mismatch", 0.7,
        fmt::format("pictures are not like those of the training data: {}", list(unlike, 2)), {{"cameras", 0, list(unlike, 8)}});
  }

  bool scaled(const std::string& key, const CameraView& live, const CameraView& own) {
    const auto scale = other_scale(live, own);
    if (!scale) return false;
    add("image-normalisation", "closed-loop.observation-mismatch", 0.95, fmt::format("camera {}: {}", key, *scale),
        {{"cameras." + key, 0, fmt::format("mean {}; in the training data {}", numbers(live.mean), numbers(own.mean))}});
    return true;
  }

  bool turned_(const std::string& key, const Seen& seen, const CameraView& live, const CameraView& own) {
    const auto flip = [&](double score, const std::string& how, const char* fields, std::string shown, Value measured = Value::object()) {
      add("camera-flip", "closed-loop.observation-mismatch", score, fmt::format("the picture of camera {} is {}", key, how),
          {{"cameras." + key + fields, 0, std::move(shown)}}, std::move(measured));
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

  bool coloured(const std::string& key, const Seen& seen, const CameraView& live, const CameraView& own) {
    const auto swapped = [&](double score, const char* field, std::string shown) {
      add("colour-order", "closed-loop.observation-mismatch", score,
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
    for (const auto& [a, seen_a] : o_.cameras)
      for (const auto& [b, seen_b] : o_.cameras) {
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
        add("camera-order", "closed-loop.observation-mismatch", 0.95, fmt::format("the cameras {} and {} are exchanged", a, b),
            {{"cameras", 0, std::move(shown)}});
        return true;
      }
    return false;
  }

  void missing_cameras(const std::map<std::string, CameraView>& training) {
    for (const auto& [key, view] : training) {
      if (o_.cameras.empty()) return;
      bool there = false;
      for (const auto& [own, seen] : o_.cameras) there = there || own == key || own.ends_with("." + key) || key.ends_with("." + own);
      if (!there)
        add("camera-missing", "closed-loop.observation-mismatch", 0.85,
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
      add("renderer", "render.backend-differs", 0.75,
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
      add("camera-flip", "closed-loop.observation-mismatch", 0.6,
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

  const Observed& o_;
};

}  // namespace

void judge_match(Survey& survey, const Observed& observed) { Judge(survey, observed).run(); }

}  // namespace ff::rollout
