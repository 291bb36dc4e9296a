// Exceptions of Python programs that run policies, datasets or simulators: what kind, what words, whose code.
//
//   exception.text       "ValueError: Unknown suite", of each distinct exception whose frames, text or words are of this field
//   exception.code       the source line of the last frame ("assert key in CONFIGS"), exception.place the functions of the frames
//   exception.other      the words of one that has frames, none of them of this field
//   exception.file       the file of its innermost frame of this field, from the package on ("lerobot/cameras/opencv/camera_opencv.py")
//   exception.stack[i]   packages of this field among the frames: lerobot, openpi, transformers, …
//
// They serve rules that judge by the words of a message that nobody has seen before; such rules score low.

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

constexpr std::size_t max_exceptions = 8;
constexpr std::size_t max_message = 500;
constexpr std::uint64_t reach_of_frame = 12;  ///< lines between the last frame (its source lines, carets) and the exception

struct Raised {
  std::uint64_t line = 0;
  bool framed = false;
  std::string text;
  std::string code;   ///< source line of the last frame
  std::string place;  ///< functions of its frames, outermost first
  std::string file;   ///< its innermost frame of this field
};

const RE2& frame_pattern() {
  static const RE2 pattern(R"re(File "([^"]{1,400})", line \d+)re");
  return pattern;
}

/// The package of this field that a path or a text names; empty: none.
std::string package_in(std::string_view s) {
  static const RE2 pattern(
      R"((?i)(?:\b|_)(lerobot|openpi|gr00t|starvla|openvla|octo|robotwin|libero|robosuite|robomimic|robocasa|mujoco|dm_control|sapien|mani_?skill|isaac\w*|diffusion_policy|smolvla|lingbot\w*|rlinf|strands_robots|physicalai|metaworld|gymnasium|gym_aloha|gym_pusht|transformers|tokenizers|huggingface_hub|diffusers|trl|flax|orbax|timm|accelerate|peft|deepspeed|datasets|safetensors|decord|imageio|h5py|zarr|torchcodec|draccus|rsl_rl|dexbotic|xvla|rdt|act_policy|\w*vla|polic(?:y|ies)|(?:eval|deploy|train|serve)_\w*policy|policy_server|aloha|act(?:-plus-plus)?/)(?:/|_|-|\b))");
  std::string name;
  return RE2::PartialMatch(piece(s), pattern, &name) ? lower(name) : std::string();
}

/// "/home/u/venv/lib/python3.12/site-packages/lerobot/motors/motors_bus.py" is "lerobot/motors/motors_bus.py"; of other paths the last parts.
std::string within_package(std::string_view path) {
  for (const std::string_view root : {"site-packages/", "dist-packages/", "/src/"})
    if (const auto at = path.rfind(root); at != std::string_view::npos) return std::string(path.substr(at + root.size()));
  std::size_t begin = path.size();
  for (int parts = 0; parts < 4 && begin != 0 && begin != std::string_view::npos; ++parts) begin = path.rfind('/', begin - 1);
  return std::string(begin == std::string_view::npos ? path : path.substr(begin + (path[begin] == '/' ? 1 : 0)));
}

bool of_this_field(std::string_view message) {
  return mentions_any(message, {"action", "observation", "policy", "episode", "camera", "robot", "checkpoint", "dataset", "state_dict", "tensor",
                                "motor", "gripper", "timestamp", "norm_stats", "normaliz", "tokenizer", "safetensors", "parquet", "simulat"});
}

/// A source line that works with an environment, a policy or a robot: a user's own script is of this field by that.
bool code_of_this_field(const std::string& code) {
  static const RE2 pattern(R"(\b(?:envs?|policy|robot|obs|observations?|actions?|episodes?|dataset|cameras?)\b)");
  return RE2::PartialMatch(piece(code), pattern);
}

/// Cheap and true of every line on which the pattern of exceptions can match.
bool names_exception(std::string_view line) {
  constexpr std::array<std::string_view, 11> parts = {"Error",   "Exception", "Mismatch", "NotFound", "NotConnected", "Timeout",
                                                      "Failure", "Refused",   "Closed",   "Invalid",  "Missing"};
  return line.find(':') != std::string_view::npos &&
         std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return line.find(part) != std::string_view::npos; });
}

std::vector<Raised> raised_in(std::string_view text, std::set<std::string>& packages) {
  static const RE2 raise(
      R"((?:^|[\s|\]])((?:[A-Za-z_]\w*\.)+Error|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Mismatch|NotFound|NotConnected|Timeout|Failure|Refused|Closed\w*|Invalid\w*|Missing\w*)): ?(\S.*)$)");
  static const RE2 starts_with_name(
      R"(^(?:\[rank\d+\]:\s+|[\w.-]+\s+\|\s+|\d{4}-\d\d-\d\dT\S+\s+(?:std(?:err|out) [FP] )?|\[\d{4}-\d\d-\d\d[ T][\d:.,]+Z?\]\s+)?(?:[A-Za-z_]\w*\.)*[A-Z]\w+: )");
  static const RE2 function(R"(, line \d+, in (\S{1,80}))");
  static const RE2 bare(R"((?:^|[\s|\]])(AssertionError|NotImplementedError|RuntimeError|ValueError|KeyError):?\s*$)");
  std::vector<Raised> out;
  std::uint64_t last_frame = 0;
  std::string place, code, file;
  std::size_t column = 0;  // where the frame's line begins behind a prefix of rank, container or CI
  bool open = false;       // the lines below an exception belong to its message until a blank one
  bool ignored = false;    // Python says of the next exception that it was raised while an object was taken down
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 4096) return;
    std::string path, type, message;
    if (RE2::PartialMatch(piece(line), frame_pattern(), &path)) {
      if (last_frame != 0 && number - last_frame > reach_of_frame) {
        place.clear();
        file.clear();
      }
      last_frame = number;
      column = line.find("File \"");
      open = false;
      code.clear();
      std::string name_of_function;
      if (RE2::PartialMatch(piece(line), function, &name_of_function) && place.size() < max_message) place += " " + name_of_function;
      if (const std::string name = package_in(path); !name.empty()) {
        packages.insert(name);
        file = within_package(path);
      }
      return;
    }
    if (open && trim(line).empty()) open = false;
    if (line.find("Exception ignored in") != std::string_view::npos) {
      ignored = true;
      open = false;
      return;
    }
    // "raise ValueError(" of a source line is no exception; the exception stands below it.
    if (last_frame != 0 && number == last_frame + 1 && line.find("Error: ") == std::string_view::npos) {
      code = std::string(trim(line.substr(std::min(column, line.size()))).substr(0, 300));
      return;
    }
    if (RE2::PartialMatch(piece(line), bare, &type) && last_frame != 0 && number - last_frame <= reach_of_frame && out.size() < max_exceptions) {
      if (!std::exchange(ignored, false)) out.push_back({number, true, type + ": " + code, code, place, file});
      place.clear();
      file.clear();
      return;
    }
    if (names_exception(line) && RE2::PartialMatch(piece(line), raise, &type, &message)) {
      if (std::exchange(ignored, false)) {
        place.clear();
        file.clear();
        return;
      }
      const bool framed = last_frame != 0 && number - last_frame <= reach_of_frame;
      open = false;
      if (!framed && !RE2::PartialMatch(piece(line), starts_with_name)) return;
      if (out.size() >= max_exceptions) return;
      const std::string name = type.substr(type.rfind('.') == std::string::npos ? 0 : type.rfind('.') + 1);
      out.push_back({number, framed, (name + ": " + message).substr(0, max_message), framed ? code : std::string(), framed ? place : std::string(),
                     framed ? file : std::string()});
      place.clear();
      file.clear();
      open = true;
      return;
    }
    if (open && out.back().text.size() < max_message && number - out.back().line <= 3 && line.find("Traceback") == std::string_view::npos)
      out.back().text += " " + std::string(trim(line).substr(0, max_message));
  });
  return out;
}

}  // namespace

void extract_exception(std::string_view text, std::string_view source, Facts& out) {
  if (text.find("Error") == std::string_view::npos && text.find("Exception") == std::string_view::npos &&
      text.find("NotFound") == std::string_view::npos && text.find("Connect") == std::string_view::npos)
    return;
  std::set<std::string> packages;
  const auto raised = raised_in(text, packages);
  if (raised.empty()) return;
  const bool frames = RE2::PartialMatch(piece(text), frame_pattern());
  FactSink sink(source, out);
  std::set<std::string> said;
  for (const Raised& r : raised) {
    // Without frames of this field its source line must be, or, where no frames were handed over, the words.
    if (!said.insert(r.text).second) continue;
    if (packages.empty() && !code_of_this_field(r.code) && (frames || (package_in(r.text).empty() && !of_this_field(r.text)))) {
      if (frames) sink.add("exception.other", r.text, r.line, r.text);
      continue;
    }
    sink.add("exception.text", r.text, r.line, r.text);
    if (!r.code.empty()) sink.add("exception.code", r.code, r.line, r.code);
    if (!r.place.empty()) sink.add("exception.place", r.place, r.line, r.text);
    if (!r.file.empty()) sink.add("exception.file", r.file, r.line, r.text);
  }
  std::size_t i = 0;
  for (const std::string& name : packages) sink.add("exception.stack[" + std::to_string(i++) + "]", name);
}

}  // namespace ff::diagnosis
