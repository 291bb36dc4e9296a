#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "rollout/judge.h"
#include "rollout/linear.h"
#include "rollout/pictures.h"

namespace ff::rollout {

inline constexpr double still_m = 0.002;  ///< the tool moves when it moves further than this
inline constexpr std::size_t max_lag = 16;

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

/// What the policy saw, over all episodes.
struct Observed {
  std::map<std::string, Seen> cameras;
  std::array<Moments, max_lag + 1> state_error;  ///< the state's tool against where the tool was, this many steps before
  double state_frames = 0, state_pairs = 0, state_same = 0, state_changes = 0;
};
[[nodiscard]] Observed observe(const Survey& survey);

/// Mean and deviation of red less those of blue; empty without three channels.
[[nodiscard]] Numbers red_to_blue(const CameraView& view);

/// Live pictures against the training's. Adds findings, and what cannot be told.
void judge_match(Survey& survey, const Observed& observed);

}  // namespace ff::rollout
