#include "dataset/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/readable.h"
#include "base/text.h"
#include "check/could_not_read.h"
#include "check/table.h"
#include "dataset/decode.h"
#include "dataset/judge_pictures.h"
#include "dataset/survey.h"
#include "dataset/urdf.h"

namespace ff::dataset {
namespace {

/// What the checks of one climb share.
struct Shared {
  Result<std::shared_ptr<const Survey>> survey;
};

std::shared_ptr<const Shared> shared(const CheckContext& context) {
  const auto make = [&] { return std::make_shared<Shared>(Shared{survey(context.inputs.dataset)}); };
  if (context.scratch == nullptr) return make();
  auto& slot = (*context.scratch)["dataset"];
  if (slot == nullptr) slot = make();
  return std::static_pointer_cast<const Shared>(slot);
}

/// Findings as a check's result: the first fault speaks, the others are evidence.
CheckResult result_of(const std::vector<Finding>& findings, std::string_view id, const std::string& root, const std::string& good) {
  CheckResult result;
  std::size_t faults = 0, warnings = 0;
  const Finding* first = nullptr;
  for (const auto& f : findings) {
    if (f.check != id) continue;
    (f.fails ? faults : warnings) += 1;
    if (first == nullptr || (f.fails && !first->fails)) first = &f;
  }
  if (first == nullptr) return CheckResult::pass(good);
  result = first->fails ? CheckResult::fail(first->cause, first->summary, first->measured)
                        : CheckResult::warn(first->cause, first->summary, first->measured);
  if (faults + warnings > 1) result.summary += fmt::format(" (and {} more)", faults + warnings - 1);
  for (const auto& f : findings) {
    if (f.check != id || result.evidence.size() >= 30) continue;
    if (f.fails == first->fails && std::find(result.causes.begin(), result.causes.end(), f.cause) == result.causes.end())
      result.causes.push_back(f.cause);
    result.evidence.push_back({f.file.empty() ? root : f.file, f.line, f.text.empty() ? f.summary : f.text});
  }
  result.measured.set("findings", static_cast<unsigned long>(faults + warnings));
  return result;
}

CheckResult collect(const CheckContext& context, std::string_view id, std::string (*good)(const Survey&)) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("the dataset could not be opened");
  return result_of((*all->survey)->findings, id, (*all->survey)->dataset.root, good(**all->survey));
}

CheckResult limits(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("the dataset could not be opened");
  const Survey& s = **all->survey;
  CheckOptions options;
  if (context.scratch != nullptr)
    if (const auto given = context.scratch->find(options_key); given != context.scratch->end())
      options = *std::static_pointer_cast<CheckOptions>(given->second);
  std::vector<Joint> joints;
  if (!options.urdf.empty()) {
    const auto xml = read_file(options.urdf);
    if (!xml) return CheckResult::error(xml.error());
    auto parsed = parse_urdf(*xml, options.urdf);
    if (!parsed) return CheckResult::error(parsed.error());
    joints = std::move(*parsed);
  }
  bool declared = false;
  for (const auto& [name, feature] : s.dataset.info["features"].members())
    declared = declared || (feature["min"].is_list() && feature["max"].is_list()) || (feature["low"].is_list() && feature["high"].is_list());
  if (joints.empty() && !declared) return CheckResult::skip("no robot description given (--urdf), and info.json declares no bounds");
  std::string note;
  const auto findings = judge_limits(s.dataset, s.rows, joints, note);
  auto result = result_of(
      findings, "dataset.limits", s.dataset.root,
      joints.empty() ? "all values lie inside the declared bounds" : fmt::format("all values lie inside the limits of {} joints", joints.size()));
  if (!note.empty()) result.summary += " (" + note + ")";
  return result;
}

CheckResult decodable(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("the dataset could not be opened");
  const Survey& s = **all->survey;
  if (s.dataset.cameras().empty()) return CheckResult::skip("no video");
  if (!context.inputs.allow_probes) return CheckResult::skip("decoding runs other programs, which was not allowed");
  const auto decoding = decode_videos(s.dataset, context.inputs.python, context.progress);
  if (decoding.tried == 0) return CheckResult::skip("no video file is there");
  std::vector<std::string> absent = decoding.absent;
  if (context.inputs.python.empty()) absent.emplace_back("torchcodec and av (no --python given)");
  if (decoding.by.empty() && decoding.findings.empty())
    return CheckResult::skip("no picture was decoded, so whether they can be is not known; not here: " + join(absent, ", "));
  auto result =
      result_of(decoding.findings, "dataset.videos-decodable", s.dataset.root,
                fmt::format("first and last frame of {} of {} files decoded by {}", decoding.tried, decoding.videos, join(decoding.by, ", ")));
  if (!result.measured.is_object()) result.measured = Value::object();
  result.measured.set("files", decoding.videos);
  result.measured.set("tried", decoding.tried);
  result.measured.set("by", Value::list_of(decoding.by));
  result.measured.set("not_here", Value::list_of(absent));
  return result;
}

/// What two checks share.
Result<std::shared_ptr<const PictureJudgement>> judged_pictures(const CheckContext& context, const Survey& survey) {
  const auto parquet = Parquet::load();
  if (!parquet) return std::unexpected(parquet.error());
  const auto make = [&] {
    return std::make_shared<PictureJudgement>(judge_pictures(survey, *parquet, context.inputs.allow_probes, context.progress));
  };
  if (context.scratch == nullptr) return make();
  auto& slot = (*context.scratch)["dataset.pictures"];
  if (slot == nullptr) slot = make();
  return std::static_pointer_cast<const PictureJudgement>(slot);
}

CheckResult images(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("the dataset could not be opened");
  const auto judged = judged_pictures(context, **all->survey);
  if (!judged) return CheckResult::error(judged.error());
  const PictureJudgement& found = **judged;
  if (found.columns == 0) return CheckResult::skip("no pictures in Parquet files");
  if (found.findings.empty() && found.decoded + found.looked_at == 0)
    return CheckResult::skip(found.unread.empty() ? "no picture could be looked at" : "no picture was decoded: " + join(found.unread, ", "));
  auto good = found.looked_at > 0 ? fmt::format("{} pictures begin and end as they should, {} of them were decoded", found.looked_at, found.decoded)
                                  : fmt::format("{} pictures of the first, a middle and the last episode were decoded", found.decoded);
  if (!found.unread.empty()) good += "; not decoded: " + join(found.unread, ", ");
  auto result = result_of(found.findings, "dataset.images", (*all->survey)->dataset.root, good);
  if (!result.measured.is_object()) result.measured = Value::object();
  result.measured.set("looked_at", found.looked_at);
  result.measured.set("decoded", found.decoded);
  return result;
}

CheckResult picture_statistics(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("the dataset could not be opened");
  const auto judged = judged_pictures(context, **all->survey);
  if (!judged) return CheckResult::error(judged.error());
  const PictureJudgement& found = **judged;
  if (found.features == 0) return CheckResult::skip("no pictures");
  const bool faults = std::ranges::any_of(found.findings, [](const Finding& f) { return f.check == "dataset.picture-statistics"; });
  const std::string notes = found.notes.empty() ? "" : "; not looked at: " + join(found.notes, ", ");
  if (!faults && found.episodes == 0)
    return CheckResult::skip(found.notes.empty() ? "no episode states statistics of its pictures"
                                                 : "no picture was looked at: " + join(found.notes, ", "));
  auto result = result_of(found.findings, "dataset.picture-statistics", (*all->survey)->dataset.root,
                          fmt::format("the statistics of {} feature{} fit {} pictures of {} episodes{}", found.features,
                                      found.features == 1 ? "" : "s", found.frames, found.episodes, notes));
  if (!result.measured.is_object()) result.measured = Value::object();
  result.measured.set("pictures", found.frames);
  result.measured.set("not_looked_at", Value::list_of(found.notes));
  return result;
}

CheckResult present(const CheckContext& context) {
  const auto all = shared(context);
  if (all->survey) {
    const Dataset& d = (*all->survey)->dataset;
    return CheckResult::pass(fmt::format("LeRobot {} dataset: {} episodes, {} rows, {} features, {:.4g} fps", format_name(d.format),
                                         d.episodes.size(), d.rows, d.features.size(), d.fps),
                             Value::object({{"format", std::string(format_name(d.format))},
                                            {"episodes", d.episodes.size()},
                                            {"rows", d.rows},
                                            {"fps", d.fps},
                                            {"files", d.files.size()}}));
  }
  const Error& e = all->survey.error();
  if (e.what.starts_with("Parquet files cannot be read")) return CheckResult::error(e);
  if (is_unreadable(e)) return could_not_read(e);
  const bool version = e.what.starts_with("format ") || e.what.starts_with("looks like") || e.what.find("codebase_version") != std::string::npos;
  const bool pointer = e.what.find("LFS") != std::string::npos;
  auto result = CheckResult::fail(version ? "data.format-version" : pointer ? "data.lfs-pointer" : "data.layout", e.to_string());
  result.evidence.push_back({e.where, 0, e.what});
  return result;
}

Check make(std::string_view id, std::string_view question, std::string_view how, std::vector<std::string_view> causes,
           std::string (*good)(const Survey&), std::vector<std::string_view> needs = {}) {
  // Files that are not there or not whole leave nothing to judge: what depends on their content is then a skip that says so.
  needs.insert(needs.begin(), "dataset.present");
  if (id != "dataset.files-whole" && id != "dataset.layout" && id != "dataset.videos-present") needs.emplace_back("dataset.files-whole");
  return {id, Rung::dataset, question, how, std::move(causes), std::move(needs), [id, good](const CheckContext& context) {
            return collect(context, id, good);
          }};
}

std::vector<Check> table() {
  return {
      {"dataset.present",
       Rung::dataset,
       "Is there a LeRobot dataset of a known format?",
       "Reads meta/info.json; formats v2.0, v2.1 and v3.0 are known, others are named and refused. It is an error, and nothing is judged, when a "
       "file of the dataset cannot be read by this account, or Parquet files cannot be read on this installation.",
       {"data.layout", "data.format-version", "data.lfs-pointer", "permission.path-not-readable"},
       {},
       &present},
      make("dataset.files-whole", "Is each file what its name says, and complete?",
           "Looks at the first and last bytes of every metadata, data and video file and decodes every row: Git LFS pointers, error pages, empty and "
           "truncated files.",
           {"data.lfs-pointer", "data.truncated"}, [](const Survey& s) { return fmt::format("{} data files are complete", s.dataset.files.size()); }),
      make("dataset.layout", "Are the files where the metadata says, and no others?",
           "Fills in the path templates for every episode and compares with what is on disk; a data file that no episode names shifts all rows after "
           "it.",
           {"data.layout"}, [](const Survey& s) { return fmt::format("{} data files are where the metadata says", s.dataset.files.size()); }),
      make("dataset.metadata", "Do totals, splits and feature descriptions agree?",
           "Compares info.json with the episode list, the task list and the Parquet footers, and its size limits with the files.",
           {"data.metadata-mismatch"},
           [](const Survey& s) {
             return fmt::format("{} episodes, {} frames and {} tasks as stated", s.dataset.episodes.size(), s.dataset.total_frames,
                                s.dataset.tasks.size());
           }),
      make("dataset.schema", "Do the columns match the features?",
           "Compares names, types and list lengths of the Parquet columns with info.json's features.", {"data.metadata-mismatch"},
           [](const Survey& s) { return fmt::format("columns match the {} features", s.dataset.features.size()); }),
      make("dataset.episodes", "Do the episodes' lengths and positions equal their rows?",
           "Counts the rows of each episode and compares length, from and to in the metadata; the loader takes episodes by position.",
           {"data.metadata-mismatch"},
           [](const Survey& s) { return fmt::format("{} episodes have the rows that the metadata gives them", s.dataset.episodes.size()); }),
      make("dataset.row-order", "Are the physical rows in frame order?",
           "Walks all rows in the loader's order: every episode in one piece, frames ascending, episodes ascending. Otherwise action chunks mix "
           "frames, and no error says so.",
           {"data.row-order"}, [](const Survey& s) { return fmt::format("{} rows are in frame order", s.rows.rows); }),
      make("dataset.frames", "Has every episode each of its frames once?",
           "Frames of an episode must count 0, 1, 2, … without a gap or a repetition.", {"data.frame-gap"},
           [](const Survey&) { return std::string("no frame is missing or repeated"); }, {"dataset.row-order"}),
      make("dataset.global-index", "Does the global index equal the row number?",
           "lerobot from 0.4 uses the value of `index` as a row number; where it differs, the action chunk of a row starts at another row. In v2 "
           "sets this only warns, since their loader does not use it.",
           {"data.global-index"}, [](const Survey&) { return std::string("every action chunk starts at its own row"); }, {"dataset.row-order"}),
      make("dataset.timestamps", "Do the time stamps agree with frame number and rate?",
           "Compares each with frame / fps within 1e-4 s (lerobot's tolerance_s) and tells a constant offset, a wrong rate, drift and jitter apart.",
           {"data.timestamps"}, [](const Survey& s) { return fmt::format("time stamps agree with {:.4g} frames a second", s.dataset.fps); },
           {"dataset.row-order"}),
      make("dataset.tasks", "Do task numbers name tasks?",
           "Checks the range of task_index, the order of the task list (the loader takes tasks by position), and the tasks that the episodes list.",
           {"data.metadata-mismatch"}, [](const Survey& s) { return fmt::format("every row names one of {} tasks", s.dataset.tasks.size()); }),
      make("dataset.finite", "Are all numbers finite?", "Looks at every value of every numeric column.", {"data.nonfinite"},
           [](const Survey& s) { return fmt::format("no NaN, infinity or missing value in {} rows", s.rows.rows); }),
      make("dataset.statistics", "Do the statistics describe the data?",
           "Recomputes mean, standard deviation, minimum, maximum and count of every feature (and of every episode where they are stored), and the 1 "
           "% and 99 % quantiles; says what a wrong one does to the policy's input.",
           {"data.statistics"}, [](const Survey&) { return std::string("statistics equal the data"); }, {"dataset.finite"}),
      {"dataset.images",
       Rung::dataset,
       "Are the pictures in the Parquet files whole?",
       "Reads the first and the last bytes of every picture (where the data files have at most 1 GiB) and decodes those of the first, a middle and "
       "the "
       "last episode: PNG and JPEG that are whole and have the size that info.json gives. Other kinds are named and not decoded. Warns of a camera "
       "that shows black, one picture throughout an episode, or what another camera shows.",
       {"data.picture-undecodable", "data.metadata-mismatch", "closed-loop.observation-mismatch"},
       {"dataset.present", "dataset.files-whole", "dataset.row-order"},
       &images},
      {"dataset.picture-statistics",
       Rung::dataset,
       "Do the statistics of the pictures describe the pictures?",
       "Layout and range of every camera's minimum, maximum, mean and standard deviation; stats.json against the episodes' own; and the first, a "
       "middle and the last episode's against the frames that LeRobot looks at (of v2.0: stats.json against frames from all over the set): PNG and "
       "JPEG pictures in Parquet decoded here, videos by ffmpeg where it is installed. Exchanged red and blue, numbers up to 255 and the deviations "
       "of lerobot 0.4 (squared in 8 bits) are named. Warns only: LeRobot takes ImageNet's statistics unless use_imagenet_stats is false. Depth "
       "maps are left out.",
       {"data.statistics", "closed-loop.observation-mismatch"},
       {"dataset.present", "dataset.files-whole", "dataset.row-order"},
       &picture_statistics},
      make("dataset.values", "Are the values plausible?",
           "Constant dimensions, radians that look like degrees, actions and states of one joint in different units. Warns only: the data alone does "
           "not prove a fault.",
           {"data.bounds"},
           [](const Survey& s) {
             const auto kind = action_kind(s.rows);
             return kind.empty() ? std::string("no constant dimension and no unit mix-up seen")
                                 : fmt::format("no constant dimension and no unit mix-up seen; actions are {} (a guess from a sample of rows)", kind);
           }),
      make("dataset.motion", "Do actions and states move as a robot does?",
           "Looks for one step that stands out from all others of its episode (an encoder that wrapped around, a row of another recording), for "
           "signals that rest at their extreme in most rows, for states that stand exactly still for a second while the action moves, and for "
           "episodes that stand twice; and for episodes unlike the others: idle for most of their length, ten times shorter or longer than usual, or "
           "with a dimension that lies where it never is in the others. Warns only.",
           {"data.bounds", "data.frame-gap", "data.episode-unlike"},
           [](const Survey&) { return std::string("no jump, no frozen or clipped signal, no episode twice or unlike the others"); },
           {"dataset.row-order", "dataset.finite"}),
      {"dataset.limits",
       Rung::dataset,
       "Do the values lie inside the robot's limits?",
       "Compares minimum and maximum of action and observation.state with the joint limits of a URDF (--urdf) by name, and of every feature with the "
       "bounds that info.json declares for it. Skipped when there is neither.",
       {"data.bounds"},
       {"dataset.present", "dataset.finite", "dataset.files-whole"},
       &limits},
      make("dataset.videos-present", "Is every video there?", "Fills in the video path of every camera and episode.",
           {"data.video-missing", "data.metadata-mismatch"},
           [](const Survey& s) { return fmt::format("{} camera{}", s.dataset.cameras().size(), s.dataset.cameras().size() == 1 ? "" : "s"); }),
      make("dataset.videos-whole", "Is every video complete?", "Reads the boxes of each MP4 file; nothing is decoded.", {"data.video-undecodable"},
           [](const Survey&) { return std::string("no incomplete video"); }),
      make("dataset.videos-aligned", "Do frame count, rate and size of the videos agree with rows and metadata?",
           "Compares frame count, frame rate, size and codec of each video, and in v3.0 each episode's window inside its file, with rows and "
           "metadata.",
           {"data.video-misaligned"}, [](const Survey&) { return std::string("videos have a frame for each row"); }),
      make("dataset.videos-playable", "Do the videos play in a browser?",
           "Codec and pixel format of each video: H.264, VP9 or AV1 with yuv420p play in LeRobot's visualiser and the hub's viewer; MPEG-4 Part 2, "
           "HEVC and 4:4:4 do not, though they can be trained on. Warns only; depth maps are left out.",
           {"render.video-encode"},
           [](const Survey& s) { return s.dataset.cameras().empty() ? std::string("no video") : std::string("H.264, VP9 or AV1 with yuv420p"); },
           {"dataset.videos-whole"}),
      {"dataset.videos-decodable",
       Rung::dataset,
       "Can the videos be decoded here?",
       "Decodes the first and the last frame of up to six files a camera, and in v3.0 those of some episodes' windows, with ffmpeg where it is "
       "installed, and with torchcodec and av of the Python that was given (--python). Skipped, and said so, when nothing that decodes is here.",
       {"data.video-undecodable"},
       {"dataset.present", "dataset.videos-present", "dataset.videos-whole"},
       &decodable},
  };
}

}  // namespace

std::span<const Check> checks() { return made_once<table>(); }

}  // namespace ff::dataset
