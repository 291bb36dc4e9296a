// What the order of calls in Python source says.
//
//   code.reset_after_set_state   true: in one function the environment is reset after an initial state was set
//   code.state_number_fixed      true: a number of the initial state is set to a constant, used, and never changed
//   code.policy_not_reset        true: a loop over episodes asks a policy for actions and never clears its queue
//   code.image_turns             number of lines that turn or flip an image
//   code.unprocessed_actions     true: predicted actions go to the environment or robot and no postprocessor is named
//   code.unnormalize_calls       number of lines that un-normalise actions
//   code.first_action_only       true: of a predicted chunk only element 0 is used
//   gripper.{hardware_low,hardware_high}   open and closed positions that constants name
//   gripper.{code_low,code_high}           range that a conversion function of the gripper uses
//   code.act_state_kept          attribute of a policy class that its acting method grows and that nothing sets back
//   code.weights_discarded       a policy whose from_pretrained is called and whose result nobody takes
//   code.default_hz              a rate that a function takes when it is not told one
//   code.slices_differ           true: pictures and states of one instant are cut at different ends
//   gripper.state_mapped         true: an observed gripper value is mapped to -1..1 before it becomes part of the state
//   code.bgr_to_policy           true: OpenCV reads a picture, nothing exchanges its channels, and a policy is asked
//   code.optimizer_not_restored  true: a checkpoint's weights and step are taken up and the optimiser's state is not
//   code.visible_twice           two variables that select devices one within the other, set by the same index
//   code.environ_after_import    name of a variable set after the library that reads it was imported
//   code.action_added_to_state   true: the action is added to the present state before it is carried out
//
// Comments and strings in triple quotes are left out.

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

struct CodeLine {
  std::uint64_t number;
  std::size_t indent;
  std::string text;  ///< without comment
};

std::vector<CodeLine> code_lines(std::string_view text) {
  std::vector<CodeLine> out;
  bool quoted = false;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (out.size() >= 100'000 || line.size() > 4096) return;
    std::size_t marks = 0;
    for (std::string_view quote : {R"(""")", "'''"})
      for (std::size_t at = line.find(quote); at != std::string_view::npos; at = line.find(quote, at + 3)) ++marks;
    const bool was_quoted = quoted;
    if (marks % 2 == 1) quoted = !quoted;
    if (was_quoted || marks > 0) return;
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] == '#') return;
    std::string_view body = line.substr(first);
    // A '#' inside a string is rare in the calls looked for here.
    if (const auto hash = body.find(" #"); hash != std::string_view::npos) body = body.substr(0, hash);
    out.push_back({number, first, std::string(body)});
  });
  return out;
}

struct Patterns {
  const RE2 set_state{R"(\.(?:set_init_state|set_initial_state|set_state_from_flattened)\()"};
  const RE2 env_reset{R"((?:^|[\s=(.])(?:self\.)?_?(?:\w*env\w*|sim|simulator)\.reset\()"};
  const RE2 define{R"(^(?:async )?def \w+)"};
  const RE2 fixed{R"((?:self\.)?(\w*init(?:ial)?_?state_?(?:id|idx|index|number)\w*)\s*(?::\s*int\s*)?=\s*\d+\s*$)"};
  const RE2 turn{
      R"(\[\s*::-1\s*,\s*::-1|rot90\([^)\n]*2\)|ROTATE_180|flipud\(|fliplr\(|cv2\.flip\(|\.rotate\(180|(?:img|image|frame|pixels|rgb)\w*(?:\[[^\]]*\])?\[::-1\])"};
  const RE2 asks{R"(\.(?:select_action|predict_action|predict_action_chunk|get_action)\()"};
  const RE2 episodes{R"(^for (?:(?:ep|\w*(?:episode|trial|rollout)\w*) in |\w+ in .*(?:episode|trial|rollout|init_state|n_eval|num_eval)))"};
  const RE2 clears{R"((?:policy|agent|model|client|actor)\w*\.reset\w*\(|action_plan\.clear\(|queue\w*\.clear\(|action_plan\s*=\s*|reset_queue)"};
  const RE2 acts{R"((?:env\w*\.step\(|robot\w*\.send_action\(|sim\w*\.step\())"};
  const RE2 post{R"((?i)post_?process|\b\w*post\w*\(|unnormali[sz]e|denormali[sz]e|unscale|rescale|output_transform|infer\()"};
  const RE2 calls_network{R"(^action\w*\s*=\s*(?:self\.)?(?:model|net|network|policy|agent|actor)\()"};
  const RE2 scales_observation{R"((?i)(?:obs|state|qpos|proprio)\w*.{0,30}-.{0,40}mean.{0,40}/.{0,40}std)"};
  const RE2 scales_action{R"((?i)action.{0,60}\*.{0,40}(?:std|scale|range|max).{0,40}\+|action.{0,60}\*\s*\w*(?:std|scale))"};
  const RE2 added{
      R"((?i)(?:step|send_action|move\w*|set_\w+|write|apply_action|command)\w*\([^#\n]{0,60}?\b(?:\w+\.)?(?:qpos|q_?current|current_\w+|joint_pos\w*|ee_pos\w*|state|positions?)(?:\[[^\]\n]{0,20}\])?\s*\+\s*(?:\w+\.)?\w*action)"};
  const RE2 unnormalise{
      R"((?i)(?:unnormali[sz]e|denormali[sz]e|postprocessor|post_process\w*)\w*\(\s*\w*action|action\w*\s*\*\s*[^+\n]{0,60}std[^+\n]{0,20}\+\s*[^\n]{0,60}mean|^action\w*\s*=\s*\w*post_?process\w*\(\s*\w*action)"};
  const RE2 environ{
      R"(os\.environ(?:\.setdefault\(|\[)\s*['\"](MUJOCO_GL|PYOPENGL_PLATFORM|MUJOCO_EGL_DEVICE_ID|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|CUDA_VISIBLE_DEVICES|HSA_\w+|PYTORCH_\w+_ALLOC_CONF|MIOPEN_\w+)['\"]\s*(?:\]\s*=|,))"};
  const RE2 first_action{
      R"(\w*(?:action_chunk|actions|chunk)\w*\[0\]|\w*(?:action_chunk|actions|chunk)\w*\[f?["'\w][^\]]*\]\[(?:0|idx)\]|\(\s*\w*(?:action_chunk|actions|chunk)\w*\s*,\s*0\s*\))"};
  const RE2 constant{R"(^(\w*GRIPPER\w*?)_(OPEN|CLOSED?|MIN|MAX)\w*\s*=\s*(-?\d+(?:\.\d+)?)\s*$)"};
  const RE2 converts{R"(\bmin(?:_val)?\s*=\s*(-?\d+(?:\.\d+)?),\s*max(?:_val)?\s*=\s*(-?\d+(?:\.\d+)?))"};
  const RE2 import{
      R"(^(?:import|from) (mujoco|dm_control|robosuite|libero|robocasa|robomimic|OpenGL|torch|gymnasium_robotics|gym_aloha|gym_pusht|metaworld|lerobot)\b)"};
};

const Patterns& patterns() {
  static const Patterns instance;
  return instance;
}

bool finds(const CodeLine& line, const RE2& pattern) { return RE2::PartialMatch(piece(line.text), pattern); }

void call_order(const std::vector<CodeLine>& code, FactSink& sink) {
  const Patterns& p = patterns();
  std::optional<CodeLine> set_state;
  std::vector<std::size_t> functions;  // indents of the open functions
  for (const CodeLine& line : code) {
    while (!functions.empty() && line.indent <= functions.back()) {
      functions.pop_back();
      set_state.reset();
    }
    if (finds(line, p.define)) {
      functions.push_back(line.indent);
      set_state.reset();
      continue;
    }
    // A reset in the next round of an outer loop stands before the set; one deeper in a branch may never run.
    const bool resets = finds(line, p.env_reset);
    if (resets && set_state && line.indent >= set_state->indent) sink.add("code.reset_after_set_state", true, line.number, line.text);
    if (resets) set_state.reset();
    if (finds(line, p.set_state)) set_state = line;
  }
}

void fixed_number(const std::vector<CodeLine>& code, FactSink& sink) {
  for (const CodeLine& line : code) {
    std::string name;
    if (!RE2::PartialMatch(piece(line.text), patterns().fixed, &name)) continue;
    bool used = false, changed = false;
    for (const CodeLine& other : code) {
      const auto at = other.text.find(name);
      if (at == std::string::npos || other.number == line.number) continue;
      const std::string_view after = trim(std::string_view(other.text).substr(at + name.size()));
      if (after.starts_with("+=") || (after.starts_with("=") && !after.starts_with("==")) || after.starts_with(",") || other.text.starts_with("for "))
        changed = true;
      else
        used = true;
    }
    if (used && !changed) sink.add("code.state_number_fixed", true, line.number, line.text);
  }
}

void policy_use(const std::vector<CodeLine>& code, FactSink& sink) {
  const Patterns& p = patterns();
  bool loops = false, clears = false, acts = false, post = false;
  // Indent of the loop over episodes that is open: what stands before it happens once. Asked in a function of its own,
  // a policy may be cleared there.
  std::optional<std::size_t> loop;
  bool clears_inside = false, asks_inside = false, forgets = false;
  std::optional<CodeLine> by_hand;  // a network that is called without a policy's own methods
  bool scales_observation = false, scales_action = false;
  bool raw = false;  // LeRobot's calls give normalised actions; get_action and predict_action of others do not
  std::optional<CodeLine> first_only;
  std::optional<CodeLine> asks;
  double unnormalise = 0, turns = 0;
  for (const CodeLine& line : code) {
    if (loop && line.indent <= *loop) loop.reset();
    if (finds(line, p.episodes)) {
      loops = true;
      loop = line.indent;
      clears_inside = asks_inside = false;
    }
    if (finds(line, p.added) && !line.text.starts_with("def ")) sink.add("code.action_added_to_state", true, line.number, line.text);
    clears |= finds(line, p.clears);
    clears_inside |= loop && finds(line, p.clears);
    asks_inside |= loop && finds(line, p.asks);
    forgets |= asks_inside && !clears_inside;
    acts |= finds(line, p.acts);
    post |= finds(line, p.post);
    raw = raw || (line.text.find(".select_action(") != std::string::npos || line.text.find(".predict_action_chunk(") != std::string::npos);
    if (finds(line, p.calls_network)) by_hand = line;
    scales_observation |= finds(line, p.scales_observation);
    scales_action |= finds(line, p.scales_action);
    if (!asks && finds(line, p.asks) && !line.text.starts_with("def ")) asks = line;
    if (finds(line, p.unnormalise) && !line.text.starts_with("def ")) ++unnormalise;
    if (finds(line, p.turn)) ++turns;
    if (!first_only && finds(line, p.first_action) && !line.text.starts_with("def ") && !line.text.starts_with("assert")) first_only = line;
  }
  if (first_only && asks) sink.add("code.first_action_only", true, first_only->number, first_only->text);
  if (turns > 0) sink.number("code.image_turns", turns);
  if (unnormalise > 0) sink.number("code.unnormalize_calls", unnormalise);
  if (asks && loops && (forgets || !clears)) sink.add("code.policy_not_reset", true, asks->number, asks->text);
  if (by_hand && acts && scales_observation && !scales_action && !post) sink.add("code.unprocessed_actions", true, by_hand->number, by_hand->text);
  if (asks && raw && acts && !post) sink.add("code.unprocessed_actions", true, asks->number, asks->text);
}

/// Constants of the hand, and the ranges that functions named after the gripper convert between.
void gripper_ranges(const std::vector<CodeLine>& code, FactSink& sink) {
  std::map<std::string, double> open;
  bool in_gripper = false;
  std::size_t indent = 0;
  for (const CodeLine& line : code) {
    std::string name, side;
    double value = 0, high = 0;
    if (RE2::PartialMatch(piece(line.text), patterns().constant, &name, &side, &value)) {
      const auto other = open.find(name);
      if (other == open.end()) {
        open[name] = value;
      } else {
        sink.number("gripper.hardware_low", std::min(value, other->second), line.number, line.text);
        sink.number("gripper.hardware_high", std::max(value, other->second), line.number, line.text);
      }
    }
    if (finds(line, patterns().define)) {
      in_gripper = mentions(line.text, "gripper");
      indent = line.indent;
    } else if (line.indent <= indent) {
      in_gripper = false;
    }
    if (in_gripper && mentions(line.text, "unnormalize") && RE2::PartialMatch(piece(line.text), patterns().converts, &value, &high)) {
      sink.number("gripper.code_low", value, line.number, line.text);
      sink.number("gripper.code_high", high, line.number, line.text);
    }
  }
}

/// A counter, queue or history that the acting method of a class grows, that __init__ makes, and that nothing sets back.
void kept_state(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 class_line(R"(^class (\w+))");
  static const RE2 method(R"(^(?:async )?def (\w+))");
  static const RE2 acts(R"(^(?:get_actions?|act|predict\w*|select_action|sample_actions?|infer\w*|forward|__call__|step|next_action)$)");
  static const RE2 made(R"(^self\.(\w+)\s*(?::[^=]+)?=\s*(?:0\b|\[\]|\{\}|None\b|(?:collections\.)?deque\(|torch\.zeros|np\.zeros|\[)\S*)");
  static const RE2 grown(R"(self\.(\w+)(?:\s*\+=|\.(?:append|extend|appendleft)\(|\[[^=]*\]\s*=[^=]))");
  static const RE2 set(R"(self\.(\w+)(?:\s*(?::[^=]+)?=[^=]|\.(?:clear|zero_|fill_)\())");
  std::map<std::string, CodeLine> first_growth;
  std::map<std::string, bool> made_here, set_back;
  std::string function;
  std::size_t class_indent = 0;
  const auto close = [&] {
    for (const auto& [name, line] : first_growth)
      if (made_here.count(name) != 0 && set_back.count(name) == 0) sink.add("code.act_state_kept", name, line.number, line.text);
    first_growth.clear();
    made_here.clear();
    set_back.clear();
    function.clear();
  };
  bool in_class = false;
  for (const CodeLine& line : code) {
    std::string name;
    if (RE2::PartialMatch(piece(line.text), class_line)) {
      close();
      in_class = true;
      class_indent = line.indent;
      continue;
    }
    if (in_class && line.indent <= class_indent) {
      close();
      in_class = false;
    }
    if (!in_class) continue;
    if (RE2::PartialMatch(piece(line.text), method, &name)) {
      function = name;
      continue;
    }
    if (function == "__init__") {
      if (RE2::PartialMatch(piece(line.text), made, &name)) made_here[name] = true;
      continue;
    }
    if (RE2::PartialMatch(piece(line.text), grown, &name)) {
      if (RE2::FullMatch(piece(function), acts)) first_growth.emplace(name, line);
      if (line.text.find("+=") != std::string::npos || line.text.find('[') != std::string::npos || line.text.find("append") != std::string::npos ||
          line.text.find("extend") != std::string::npos)
        continue;
    }
    if (RE2::PartialMatch(piece(line.text), set, &name)) set_back[name] = true;
  }
  close();
}

/// policy.from_pretrained(path) as a statement: the class method gives the policy back, and nobody takes it.
void discarded_weights(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 statement(R"(^(?:self\.)?(\w*(?:policy|model|agent|actor|net|vla))\.from_pretrained\()");
  for (const CodeLine& line : code)
    if (std::string name; RE2::PartialMatch(piece(line.text), statement, &name) && name[0] >= 'a' && name[0] <= 'z')
      sink.add("code.weights_discarded", name, line.number, line.text);
}

/// frames[:-1] beside states[1:]: what was seen at one instant is cut at different ends.
void slices(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 pictures(R"((?i)\b\w*(?:frames?|images?|imgs?|video|pixels|rgb)\w*\s*=.*\[(:-1|1:)\])");
  static const RE2 states(R"((?i)\b\w*(?:states?|qpos|proprio|joint_pos\w*)\w*\s*=.*\[(:-1|1:)\])");
  std::string picture, state;
  for (const CodeLine& line : code) {
    std::string cut;
    if (RE2::PartialMatch(piece(line.text), states, &cut)) {
      state = cut;
    } else if (RE2::PartialMatch(piece(line.text), pictures, &cut)) {
      picture = cut;
    } else {
      continue;
    }
    if (!picture.empty() && !state.empty() && picture != state) sink.add("code.slices_differ", true, line.number, line.text);
  }
}

void default_rate(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 parameter(R"((?i)^(?:async )?def .*\b(?:fps|hz|control_freq\w*|frequency|rate_hz)\s*(?::\s*\w+\s*)?=\s*(\d+(?:\.\d+)?))");
  double hz = 0;
  for (const CodeLine& line : code)
    if (RE2::PartialMatch(piece(line.text), parameter, &hz)) sink.number("code.default_hz", hz, line.number, line.text);
}

/// x = 1 - x * 2 and 2 * x - 1 of a gripper value that comes from an observation.
void gripper_state(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 mapped(
      R"(^(\w*grip\w*)\s*=\s*(?:1(?:\.0?)?\s*-\s*(?:2(?:\.0?)?\s*\*\s*)?(\w+)(?:\s*\*\s*2(?:\.0?)?)?|(?:2(?:\.0?)?\s*\*\s*)?(\w+)(?:\s*\*\s*2(?:\.0?)?)?\s*-\s*1(?:\.0?)?)\s*$)");
  static const RE2 observed(R"(^(\w*grip\w*)\s*=.*(?:obs|endpose|qpos|state|proprio|get_))");
  std::map<std::string, bool> from_observation;
  for (const CodeLine& line : code) {
    std::string name, first, second;
    if (RE2::PartialMatch(piece(line.text), mapped, &name, &first, &second)) {
      const std::string of = first.empty() ? second : first;
      if (line.text.find('2') != std::string::npos && from_observation.count(of) != 0) sink.add("gripper.state_mapped", true, line.number, line.text);
      continue;
    }
    if (RE2::PartialMatch(piece(line.text), observed, &name)) from_observation[name] = true;
  }
}

/// cv2 gives blue, green, red; datasets and policies of this field hold red, green, blue.
void colour_order(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 reads(R"(\b(?:cv2\.imread\(|cap\w*\.(?:read|retrieve)\(|camera\w*\.read\(\)|video\w*\.read\(\)))");
  static const RE2 opens(R"(cv2\.(?:VideoCapture|imread)\()");
  static const RE2 exchanges(
      R"(COLOR_BGR2RGB|cvtColor\(|\[\s*\.\.\.\s*,\s*(?:::-1|\[2,\s*1,\s*0\])|\[:,\s*:,\s*(?:::-1|\[2,\s*1,\s*0\])|::-1|IMREAD_COLOR_RGB|ColorMode|swapRB)");
  bool opened = false, exchanged = false, asked = false;
  std::optional<CodeLine> read;
  for (const CodeLine& line : code) {
    opened |= finds(line, opens);
    exchanged |= finds(line, exchanges);
    asked |=
        finds(line, patterns().asks) || line.text.find("policy.infer(") != std::string::npos || line.text.find("client.infer(") != std::string::npos;
    if (!read && finds(line, reads)) read = line;
  }
  if (opened && read && asked && !exchanged) sink.add("code.bgr_to_policy", true, read->number, read->text);
}

/// A run that takes up weights and step and begins with a fresh optimiser.
void optimizer_restored(const std::vector<CodeLine>& code, FactSink& sink) {
  static const RE2 loads(R"(\b(?:model|policy|net|module|agent)\w*\.load_state_dict\()");
  static const RE2 resumes(
      R"((?i)(?:ckpt|checkpoint|state)\w*(?:\[["'](?:step|epoch|global_step|iteration)["']\]|\.get\(["'](?:step|epoch|global_step|iteration)["']))");
  static const RE2 restores(
      R"((?i)(?:optim\w*|opt|trainer|accelerator|engine)\.(?:load_state_dict|load_state|load_checkpoint)\(|load_(?:training_state|optimizer)|set_optimizer_state_dict|optim_state_dict)");
  static const RE2 steps(R"((?i)\b(?:optim\w*|opt)\.step\()");
  std::optional<CodeLine> weights;
  bool resumed = false, restored = false, stepped = false;
  for (const CodeLine& line : code) {
    if (!weights && finds(line, loads)) weights = line;
    resumed |= finds(line, resumes);
    restored |= finds(line, restores);
    stepped |= finds(line, steps);
  }
  if (weights && resumed && stepped && !restored) sink.add("code.optimizer_not_restored", true, weights->number, weights->text);
}

/// ROCR_VISIBLE_DEVICES leaves one device, which the runtime then numbers 0; HIP_VISIBLE_DEVICES with the same number hides it.
void visible_twice(std::string_view text, FactSink& sink) {
  static const RE2 set(R"(\b(ROCR|HIP|CUDA)_VISIBLE_DEVICES(?:["']\]\s*=|["']\s*,|\s*[:=])\s*["']?\\?(\$?\{?\w+\}?(?:,\d+)*)["']?)");
  std::map<std::string, std::string> outer;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 4096 || line.substr(0, line.find_first_not_of(" \t") + 1).ends_with('#')) return;
    re2::StringPiece rest = piece(line);
    std::string layer, value;
    while (RE2::FindAndConsume(&rest, set, &layer, &value)) {
      const bool number_zero = value == "0" || value.starts_with("0,");
      if (layer == "ROCR") {
        outer[value] = value;
      } else if (outer.count(value) != 0 && !number_zero) {
        sink.add("code.visible_twice", "ROCR_VISIBLE_DEVICES and " + layer + "_VISIBLE_DEVICES are both " + value, number, line);
      }
    }
  });
}

void environment_order(const std::vector<CodeLine>& code, FactSink& sink) {
  // The runtime's own variables are read when the device is first used, so an import before them does no harm.
  bool graphics = false;
  for (const CodeLine& line : code) {
    std::string name;
    if (line.indent == 0 && RE2::PartialMatch(piece(line.text), patterns().import, &name)) {
      graphics = graphics || (name != "torch" && name != "lerobot");
      continue;
    }
    if (!RE2::PartialMatch(piece(line.text), patterns().environ, &name)) continue;
    const bool gl = name.starts_with("MUJOCO") || name.starts_with("PYOPENGL");
    if (gl && graphics) sink.add("code.environ_after_import", name, line.number, line.text);
  }
}

}  // namespace

void extract_code(std::string_view text, std::string_view source, Facts& out) {
  if (text.find("ROCR_VISIBLE_DEVICES") != std::string_view::npos) {
    FactSink sink(source, out);
    visible_twice(text, sink);
  }
  const bool calls = text.find(".reset(") != std::string_view::npos || text.find("_action(") != std::string_view::npos ||
                     text.find("::-1") != std::string_view::npos || text.find("os.environ") != std::string_view::npos ||
                     text.find("ROTATE_180") != std::string_view::npos || text.find("rot90(") != std::string_view::npos ||
                     text.find("normalize") != std::string_view::npos || text.find("init_state") != std::string_view::npos ||
                     text.find("GRIPPER") != std::string_view::npos || text.find("[1:]") != std::string_view::npos ||
                     text.find("grip") != std::string_view::npos || text.find("fps") != std::string_view::npos ||
                     text.find("from_pretrained(") != std::string_view::npos || text.find("self.") != std::string_view::npos ||
                     text.find("flip") != std::string_view::npos || text.find(".step(") != std::string_view::npos ||
                     text.find("cv2.") != std::string_view::npos || text.find("load_state_dict(") != std::string_view::npos ||
                     text.find("send_action") != std::string_view::npos;
  const bool python = text.find("def ") != std::string_view::npos || text.find("import ") != std::string_view::npos ||
                      text.find("for ") != std::string_view::npos || text.find(" = ") != std::string_view::npos || source.ends_with(".py");
  if (!calls || !python) return;
  const auto code = code_lines(text);
  FactSink sink(source, out);
  call_order(code, sink);
  fixed_number(code, sink);
  policy_use(code, sink);
  environment_order(code, sink);
  gripper_ranges(code, sink);
  kept_state(code, sink);
  slices(code, sink);
  gripper_state(code, sink);
  default_rate(code, sink);
  discarded_weights(code, sink);
  colour_order(code, sink);
  optimizer_restored(code, sink);
}

}  // namespace ff::diagnosis
