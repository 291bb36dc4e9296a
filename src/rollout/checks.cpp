#include "rollout/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "check/table.h"
#include "rollout/evaluation.h"
#include "rollout/judge.h"
#include "rollout/linear.h"
#include "rollout/performance.h"
#include "rollout/shared.h"

namespace ff::rollout {
namespace {

constexpr const char* no_episodes = "no episodes as docs/episode-format.md describes them: rates alone do not tell what happened inside";

CheckResult present(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) {
    if (all->failed) return *all->failed;
    // A training run writes none; whoever names results alone wants them judged.
    if (context.inputs.workload == "command") return CheckResult::skip("no episodes: " + all->survey.error().to_string());
    return CheckResult::error(all->survey.error());
  }
  const Survey& s = **all->survey;
  std::size_t frames = 0;
  for (const auto& j : s.episodes) frames += j.frames;
  std::string text = s.episodes.empty() ? "no episodes" : fmt::format("{}, {} steps", count_of(s.episodes.size(), "episode"), frames);
  if (!s.results.empty()) text += fmt::format("; {} ({})", count_of(s.results.size(), "result file"), s.results.front().format);
  if (s.frames_dropped > 0) text += fmt::format("; only the first {} steps were judged beyond their stages", s.frames_kept);
  Value measured = Value::object({{"episodes", s.episodes.size()},
                                  {"steps", frames},
                                  {"result_files", s.results.size()},
                                  {"videos", s.videos.size()},
                                  {"training_statistics", s.training_from}});
  if (!s.unread.empty()) {
    CheckResult result;
    result = CheckResult::error(Error{fmt::format("{} could not be read: {}", count_of(s.unread.size(), "file"), s.unread.front()), "", "", 3});
    for (const auto& line : s.unread) result.evidence.push_back({"file", 0, line});
    result.measured = std::move(measured);
    return result;
  }
  return CheckResult::pass(std::move(text), std::move(measured));
}

CheckResult finished(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("there are no results");
  const Survey& s = **all->survey;
  if (s.episodes.empty()) return CheckResult::skip(no_episodes);
  std::size_t cut = 0, raised = 0;
  std::vector<Evidence> evidence;
  for (const auto& j : s.episodes) {
    if (j.outcome.finished) continue;
    const bool exception = j.episode.ending.has_value();
    (exception ? raised : cut) += 1;
    if (evidence.size() < 10)
      evidence.push_back({j.episode.file, j.episode.line,
                          exception
                              ? fmt::format("episode {}: {}", j.outcome.index, j.outcome.error.empty() ? "an exception" : j.outcome.error)
                              : fmt::format("episode {} has no closing line{}", j.outcome.index, j.episode.torn ? "; its last line is torn" : "")});
  }
  if (cut + raised == 0) return CheckResult::pass(fmt::format("all {} came to their end", count_of(s.episodes.size(), "episode")));
  auto result = CheckResult::warn("",
                                  fmt::format("{} of {} did not come to their end ({} cut off, {} by an exception); they count as no success",
                                              cut + raised, count_of(s.episodes.size(), "episode"), cut, raised),
                                  Value::object({{"cut_off", cut}, {"exceptions", raised}}));
  result.evidence = std::move(evidence);
  return result;
}

template <class Say>
CheckResult with_episodes(const Survey& s, Say&& say) {
  return s.episodes.empty() ? CheckResult::skip(no_episodes) : say();
}

bool has_actions(const Survey& s) {
  return std::any_of(s.episodes.begin(), s.episodes.end(), [](const Judged& j) {
    return std::any_of(j.episode.frames.begin(), j.episode.frames.end(),
                       [](const Frame& f) { return !f.sent.empty() || !f.raw.empty() || !f.normalized.empty(); });
  });
}

CheckResult actions_good(const Survey& s, const char* text) {
  return with_episodes(s, [&] { return has_actions(s) ? CheckResult::pass(text) : CheckResult::skip("no \"action\" in the frames"); });
}

CheckResult bounds_good(const Survey& s) {
  return with_episodes(s, [&] {
    if (!s.bounds.is_list() || s.bounds.items().empty()) return CheckResult::skip("no \"action\" in the frames, or too few");
    double worst = 0;
    std::string name;
    for (const auto& d : s.bounds.items())
      if (d["share_beyond_one"].as_real() > worst) {
        worst = d["share_beyond_one"].as_real();
        name = d["dimension"].as_text();
      }
    return CheckResult::pass(worst > 0 ? fmt::format("nothing is cut; a clip of all dimensions to [-1, 1] would cut {} of {}", percent(worst), name)
                                       : std::string("nothing is cut; a clip to [-1, 1] would cut nothing either"),
                             Value::object({{"dimensions", s.bounds}}));
  });
}

CheckResult effect_good(const Survey& s) {
  return with_episodes(s, [&] {
    if (s.effect.is_null()) return CheckResult::skip("needs \"tool\", and \"action.tool\" in the header (an action in the tool's own axes)");
    return CheckResult::pass(fmt::format("each dimension moves the tool along its own axis, with its own sign ({:.0f} % of the motion explained)",
                                         100 * s.effect["explained"].as_real()),
                             s.effect);
  });
}

CheckResult gripper_good(const Survey& s) {
  return with_episodes(s, [&] {
    if (s.gripper.is_null()) return CheckResult::skip("no gripper command in the frames");
    return CheckResult::pass(fmt::format("the gripper's command has the environment's range and direction ({:.3g}..{:.3g})",
                                         s.gripper["command_low"].as_real(), s.gripper["command_high"].as_real()),
                             s.gripper);
  });
}

bool has_observations(const Survey& s) {
  return std::any_of(s.episodes.begin(), s.episodes.end(), [](const Judged& j) {
    return std::any_of(j.episode.frames.begin(), j.episode.frames.end(), [](const Frame& f) { return !f.cameras.empty() || !f.state.empty(); });
  });
}

CheckResult alive_good(const Survey& s) {
  return with_episodes(s, [&] {
    return has_observations(s) ? CheckResult::pass("pictures and state change with the robot, and are not late")
                               : CheckResult::skip("no \"cameras\" and no \"state\" in the frames");
  });
}

CheckResult match_good(const Survey& s) {
  return with_episodes(s, [&] {
    if (!has_observations(s)) return CheckResult::skip("no \"cameras\" in the frames");
    return s.training_known ? CheckResult::pass("pictures are like those of the training data (" + s.training_from + ")")
                            : CheckResult::skip("nothing is known of the training data: --dataset DIR, or \"training\" in the header");
  });
}

CheckResult rate_good(const Survey& s) {
  return with_episodes(s, [&] {
    if (!(s.time["step_s_median"].as_real() > 0)) return CheckResult::skip("fewer than two frames an episode");
    return CheckResult::pass(fmt::format("{:.3g} steps a second", 1 / s.time["step_s_median"].as_real()), s.time);
  });
}

CheckResult reset_good(const Survey& s) {
  return with_episodes(s, [&] {
    if (s.resets["episodes_after_another"].as_real() < 2) return CheckResult::skip("fewer than three episodes in a row");
    return CheckResult::pass("no episode goes on with what the one before left", s.resets);
  });
}

CheckResult stage_good(const Survey& s) {
  return with_episodes(s, [&] {
    const auto counts = count_stages(s);
    std::vector<std::string> seen, blind;
    for (std::size_t i = 0; i < stage_count; ++i) (counts[i].seen > 0 ? seen : blind).emplace_back(stage_name(all_stages[i]));
    if (seen.empty()) return CheckResult::skip("no stage can be seen: needs \"tool\", \"object\", \"gripper\", \"goal\" in the frames");
    std::string text = s.successes() == static_cast<std::int64_t>(s.outcomes.size()) ? "every episode goes through its stages"
                                                                                     : "no failed episode misses a stage that can be seen";
    if (!blind.empty()) text += "; not observable: " + fmt::format("{}", fmt::join(blind, ", "));
    return CheckResult::pass(std::move(text));
  });
}

/// Of a batch that fails, what is missing may hide the reason: then it is a warning.
CheckResult recorded(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("there are no results");
  const Survey& s = **all->survey;
  if (s.episodes.empty()) return CheckResult::skip(no_episodes);
  if (s.unanswered.empty()) return CheckResult::pass("every field is there that the sources are told by");
  Value open = Value::list();
  std::vector<std::string> fields, said;
  for (const auto& u : s.unanswered) {
    open.push(Value::object({{"source", u.source}, {"field", u.field}, {"what", u.what}, {"why", u.why}}));
    if (std::ranges::find(fields, u.field) == fields.end()) fields.push_back(u.field);
    if (said.size() < 2) said.push_back(u.what + " (" + u.why + ")");
  }
  std::string text = fmt::format("{} cannot be told: {}{}; {} would decide: {}", count_of(s.unanswered.size(), "thing"), fmt::join(said, "; "),
                                 s.unanswered.size() > said.size() ? fmt::format(" and {} more", s.unanswered.size() - said.size()) : "",
                                 count_of(fields.size(), "field"), list(fields, 6));
  Value measured = Value::object({{"unanswered", std::move(open)}});
  auto result = s.fails() ? CheckResult::warn("", std::move(text), std::move(measured)) : CheckResult::pass(std::move(text), std::move(measured));
  for (const auto& u : s.unanswered)
    if (result.evidence.size() < 30) result.evidence.push_back({u.field, 0, fmt::format("{}: {}; {}", u.source, u.what, u.why)});
  return result;
}

CheckResult performance(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("there are no results");
  const Performance p = performance_of(context, *all);
  return CheckResult::pass(p.text("episodes"), p.to_value());
}

Check make(std::string_view id, Rung rung, std::string_view question, std::string_view how, std::vector<std::string_view> causes, Good good) {
  const std::string_view first = rung == Rung::episode ? "episode.present" : "evaluation.present";
  return {id, rung, question, how, std::move(causes), {first}, [id, good](const CheckContext& context) { return collect(context, id, good); }};
}

std::vector<Check> file_table() {
  constexpr Rung r = Rung::episode;
  return {
      {"episode.present",
       r,
       "Are there episodes?",
       "Reads episodes as docs/episode-format.md describes them, eval_info.json of lerobot-eval and RoboTwin's results below the given directory. A "
       "file "
       "that cannot be read is an error with its line.",
       {},
       {},
       &present},
      {"episode.finished",
       r,
       "Did each episode come to its end?",
       "An episode without its closing line was cut off; one with an error ended by an exception. Both count as no success.",
       {},
       {"episode.present"},
       &finished},
      // Along the chain observation, policy, action, environment: a policy that sees a mirrored picture runs into the action's bounds, and what
      // follows from a fault must not be the first one.
      make("episode.observations-alive", r, "Are observations alive and in time?",
           "Pictures or states that stand still, are black, or show where the tool was some steps ago (time stamps, hashes, changes against the "
           "tool's motion).",
           {"closed-loop.observation-mismatch", "closed-loop.control-rate", "render.backend-differs"}, &alive_good),
      make("episode.observations-match", r, "Does the policy see what it was trained on?",
           "Compares live pictures with the training data's: mirrored or turned, exchanged cameras, exchanged colours, another scale, another "
           "renderer; without "
           "statistics of pictures, whether the tool goes to the object's mirror image.",
           {"closed-loop.observation-mismatch", "render.backend-differs"}, &match_good),
      make("episode.actions-alive", r, "Does the policy answer?",
           "NaN, zeros, one and the same action, noise without memory, far less variation than in the training data, or a header that says that no "
           "weights "
           "were loaded.",
           {"model.not-loaded", "model.nonfinite"}, [](const Survey& s) { return actions_good(s, "the actions are finite and change"); }),
      make("episode.actions-traced", r, "Does an action reach the environment as the policy means it?",
           "Follows each dimension from the network's answer over un-normalisation to what was sent: order, sign, factor; compares with the training "
           "data's statistics.",
           {"closed-loop.action-scale", "closed-loop.action-convention"},
           [](const Survey& s) { return actions_good(s, "actions come through in order, with their sign and size"); }),
      make("episode.actions-bounds", r, "Are actions cut?",
           "By dimension: how often the sent value sits exactly at its extreme while the policy's (or the training data's) goes on, and what a clip "
           "of all "
           "dimensions to [-1, 1] would cut.",
           {"closed-loop.action-clipped"}, &bounds_good),
      make("episode.action-effect", r, "Does the tool move as the action says?",
           "Fits a linear map from the action to the tool's motion: order of axes, sign, a turned frame; and whether the environment adds the action "
           "or takes "
           "it for a target. Needs an action in the tool's axes.",
           {"closed-loop.action-convention"}, &effect_good),
      make("episode.gripper", r, "Does the gripper do what the policy means?",
           "Range and direction of its command against the environment's open and closed, the training data, the fingers' motion, and where on the "
           "way it closes.",
           {"closed-loop.gripper-scale"}, &gripper_good),
      make("episode.control-rate", r, "Does the loop run at its rate?",
           "Measured steps a second against the declared rate and the training data's; actions that are sent several times or take effect late; "
           "chunks that are "
           "carried out beyond their length or jump at their borders.",
           {"closed-loop.control-rate"}, &rate_good),
      make("episode.reset", r, "Does each episode begin afresh?",
           "Looks in the first frame for what the episode before left: the rest of its chunk, its last picture, its pose.",
           {"closed-loop.episode-state"}, &reset_good),
      make("episode.stage", r, "At which stage do episodes fail?",
           "Segments each episode into approach, contact, grasp, lift, transport, place and release, names the stage at which most failed ones get "
           "stuck and "
           "the likeliest of the sources above. With none of them it is the policy itself.",
           {"closed-loop.undertrained", "training.configuration"}, &stage_good),
      {"episode.recorded",
       r,
       "Is everything written that tells one source from another?",
       "Lists what cannot be told for want of a field or of evidence in it (a picture that is too symmetric to see it mirrored), and the field that "
       "would decide. A warning when the batch fails.",
       {},
       {"episode.present"},
       &recorded},
      {"episode.performance",
       r,
       "How fast is the loop, and with what?",
       "Records device, versions, precision, cameras, resolution, the time from step to step (median, 95 %, 99 %), episodes a second, memory and "
       "videos, each with who says it, and \"not stated\" for the rest. Never fails.",
       {},
       {"episode.present"},
       &performance},
  };
}

std::vector<Check> with_videos() {
  auto out = file_table();
  for (const auto& check : video_checks()) out.push_back(check);
  return out;
}

/// Rendering matters where a workload draws on this machine: the built-in one draws with its own code.
std::vector<Check> episode_table() {
  std::vector<Check> out;
  for (const auto& check : render_checks()) {
    out.push_back(check);
    out.back().run = [run = check.run](const CheckContext& context) {
      const auto& in = context.inputs;
      if (!in.live || !in.allow_probes || (in.workload != "lerobot" && in.workload != "command"))
        return CheckResult::skip("nothing is drawn on this machine: firstfault render check tries it");
      auto result = run(context);
      // Nobody knows what a command draws with, or whether it draws: missing is a fault where it was asked for.
      if (in.workload == "command" && result.status == Status::fail && std::getenv("MUJOCO_GL") == nullptr &&
          std::getenv("PYOPENGL_PLATFORM") == nullptr) {
        result.status = Status::warn;
        result.summary += "; a fault only if the command draws with it";
      }
      return result;
    };
  }
  for (auto& check : with_videos()) out.push_back(std::move(check));
  return out;
}

}  // namespace

std::span<const Check> episode_file_checks() { return made_once<with_videos>(); }

std::span<const Check> episode_checks() { return made_once<episode_table>(); }

}  // namespace ff::rollout
