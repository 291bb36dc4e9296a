// What a run of a user's command tells of its speed and its circumstances.
#include "training/performance.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "check/once.h"
#include "facts/machine.h"
#include "gpu/name.h"
#include "python/python.h"
#include "python/versions.h"
#include "training/statistics.h"
#include "training/weights_file.h"

namespace ff::training {
namespace {

namespace fs = std::filesystem;

std::string plain(std::string_view name) { return replace_all(std::string(name), "-", "_"); }

/// What stands behind a word in a text, up to the next blank, comma, quote or bracket: "cuda" of "'device': 'cuda',".
std::string behind(std::string_view text, std::string_view word) {
  for (auto at = text.rfind(word); at != std::string_view::npos; at = at == 0 ? std::string_view::npos : text.rfind(word, at - 1)) {
    // "batch_size=" is not "effective_batch_size=".
    if (at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_')) continue;
    auto rest = text.substr(at + word.size());
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\'' || rest.front() == '"')) rest.remove_prefix(1);
    return std::string(rest.substr(0, rest.find_first_of(" ,'\"}\n\r)")));
  }
  return {};
}

bool yes(const std::string& word) { return word == "true" || word == "True" || word == "1" || word == "yes"; }

/// Collects what is said, from the surest source to the weakest; the first that says something counts.
class Reader {
 public:
  Reader(const CheckContext& context, const std::vector<std::string>& argv, const Attempt& attempt, const CheckpointTree* checkpoints)
      : context_(context), argv_(argv), log_(attempt.log), text_(attempt.child.out + "\n" + attempt.child.err), peak_(attempt.peak_process_bytes) {
    if (checkpoints == nullptr || checkpoints->checkpoints.empty()) return;
    last_ = checkpoints->checkpoints.back().path;
    config_ = json_of(fs::path(last_) / "pretrained_model/config.json");
    if (config_.is_null()) config_ = json_of(fs::path(last_) / "config.json");
    train_ = json_of(fs::path(last_) / "pretrained_model/train_config.json");
    state_ = json_of(fs::path(last_) / "trainer_state.json");
    if (const StatePart* weights = checkpoints->checkpoints.back().part("weights"); weights != nullptr && weights->file.ends_with(".safetensors"))
      weights_ = (fs::path(last_) / weights->file).string();
  }

  Performance read() {
    out_.peak_process_bytes = peak_;
    times();
    device();
    versions();
    batch();
    precision();
    cameras();
    if (!std::isfinite(out_.per_second) && std::isfinite(out_.batch)) {
      const double step = out_.steps_s.empty() ? out_.step_s : median(out_.steps_s);
      if (step > 0) out_.per_second = out_.batch / step;
    }
    return std::move(out_);
  }

 private:
  void say(double& into, const char* name, double value, const char* who) {
    if (std::isfinite(into) || !(value > 0)) return;
    into = value;
    out_.from[name] = who;
  }
  void say(double& into, const char* name, const std::string& value, const char* who) { say(into, name, to_metric(value).value_or(unknown), who); }

  void times() {
    std::vector<double> data, update;
    for (const auto& r : log_.records) {
      if (r.holds(Quantity::step_s)) out_.steps_s.push_back(r.of(Quantity::step_s));
      if (r.holds(Quantity::data_s)) data.push_back(r.of(Quantity::data_s));
      if (r.holds(Quantity::update_s)) update.push_back(r.of(Quantity::update_s));
      if (r.holds(Quantity::allocated) && !(r.of(Quantity::allocated) <= out_.peak_device_bytes)) out_.peak_device_bytes = r.of(Quantity::allocated);
      if (r.holds(Quantity::samples_per_s)) out_.per_second = r.of(Quantity::samples_per_s);
    }
    if (!data.empty()) out_.data_s = median(data);
    if (!update.empty()) out_.update_s = median(update);
    // HF Trainer tells the mean of all steps at its end.
    if (out_.steps_s.empty())
      if (const auto rate = to_metric(behind(text_, "'train_steps_per_second': ")); rate && *rate > 0)
        say(out_.step_s, "step_median_s", 1 / *rate, "HF Trainer's last line: the mean");
    if (!std::isfinite(out_.per_second))
      say(out_.per_second, "throughput_per_s", behind(text_, "'train_samples_per_second': "), "HF Trainer's last line");
  }

  void device() {
    std::string kind, who;
    const auto take = [&](std::string value, const char* from) {
      if (!kind.empty() || value.empty() || value == "None") return;
      kind = std::move(value);
      who = from;
    };
    take(option_of(argv_, {"policy.device", "device"}), "the command");
    take(option_of(argv_, {"use_cpu", "no_cuda"}).empty() ? "" : "cpu", "the command");
    take(config_["device"].is_text() ? std::string(config_["device"].as_text()) : "", "the checkpoint's config.json");
    take(behind(text_, "'device': "), "the log");
    take(behind(text_, "device="), "the log");
    take(context_.inputs.device, "--device");
    if (kind.empty()) kind = "gpu";
    if (kind.starts_with("cpu")) {
      const auto& model = context_.machine.host.cpu_model;
      out_.device = "cpu" + (model ? ": " + *model : "");
    } else {
      // PyTorch says "cuda" for both vendors' devices.
      const std::string which = kind.starts_with("hip") ? "hip" : context_.inputs.device == "cuda" ? "cuda" : "gpu";
      const std::string name = once(context_, "device name: " + which, [&] { return gpu::device_name(which); });
      if (!name.empty())
        out_.device = name;
      else if (!who.empty())
        out_.device = kind + " (no device answers here)";
      if (who.empty() && !name.empty()) who = "this machine's first device: the command does not say which it uses";
    }
    if (!out_.device.empty() && !who.empty()) out_.from["device"] = who;
  }

  void versions() {
    const std::string own = python::interpreter_of_command(argv_);
    for (const auto& [interpreter, who] :
         {std::pair{own, "the command's interpreter"},
          {context_.inputs.python.empty() ? std::string() : python::interpreter_of(context_.inputs.python), "--python"}}) {
      if (interpreter.empty() || !out_.versions.empty()) continue;
      out_.versions = once(context_, "versions: " + interpreter, [&] { return python::versions_of(interpreter); });
      if (!out_.versions.empty()) out_.from["versions"] = who;
    }
    // A launcher, a shell script or a container: what the program itself printed.
    if (const auto torch = behind(text_, "torch="); !torch.empty() && !out_.versions.contains("torch")) {
      out_.versions["torch"] = torch;
      if (!out_.from.contains("versions")) out_.from["versions"] = "the log";
    }
  }

  void batch() {
    say(out_.batch, "batch", option_of(argv_, {"batch_size", "per_device_train_batch_size", "train_batch_size", "micro_batch_size", "bs"}),
        "the command");
    say(out_.batch, "batch", train_["batch_size"].as_real(unknown), "the checkpoint's train_config.json");
    say(out_.batch, "batch", state_["train_batch_size"].as_real(unknown), "the checkpoint's trainer_state.json");
    say(out_.batch, "batch", log_.settings["batch"].as_real(unknown), "the log");
    for (const char* word : {"batch_size=", "batch size per device = ", "batch_size: "}) say(out_.batch, "batch", behind(text_, word), "the log");
  }

  void precision() {
    std::string mixed = option_of(argv_, {"mixed_precision", "policy.dtype", "dtype", "precision"});
    std::string who = "the command";
    for (const char* name : {"bf16", "fp16", "amp"})
      if (mixed.empty() && yes(option_of(argv_, {name}))) mixed = name;
    if (mixed.empty() && yes(option_of(argv_, {"policy.use_amp", "use_amp"}))) mixed = "amp";
    if (mixed.empty()) {
      who = "the checkpoint's config.json";
      if (config_["use_amp"].as_bool(false)) mixed = "amp";
      if (config_["dtype"].is_text()) mixed = config_["dtype"].as_text();
    }
    if (mixed.empty()) {
      who = "the log";
      mixed = behind(text_, "Training precision: ");  // openpi
    }
    std::string stored;
    if (!weights_.empty())
      if (const auto file = StoredTensors::open(weights_)) {
        std::map<std::string, std::uint64_t> elements;
        for (const auto& [name, tensor] : file->all())
          if (tensor.real()) elements[tensor.type] += tensor.elements;
        const auto most = std::ranges::max_element(elements, {}, [](const auto& e) { return e.second; });
        if (most != elements.end()) stored = most->first + " weights";
      }
    if (mixed.empty() && stored.empty()) return;
    out_.precision = join(std::vector<std::string>(mixed.empty()    ? std::vector{stored}
                                                   : stored.empty() ? std::vector{mixed}
                                                                    : std::vector{mixed, stored}),
                          ", ");
    out_.from["precision"] = mixed.empty() ? "the checkpoint's weights; mixed precision is named nowhere" : who;
  }

  void cameras() {
    std::vector<std::string> sizes;
    double count = 0;
    const auto add = [&](const Value& shape) {
      const std::string size = picture_size(shape);
      if (size.empty()) return;
      count += 1;
      if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    };
    const Value info = context_.inputs.dataset.empty() ? Value() : json_of(fs::path(context_.inputs.dataset) / "meta/info.json");
    const char* who = "the checkpoint's config.json";
    const bool told = config_["input_features"].is_object();
    for (const auto& [name, feature] : config_["input_features"].members())
      if (feature["type"].as_text() == "VISUAL") add(feature["shape"]);
    bool moving = false, still = false;
    for (const auto& [name, feature] : info["features"].members()) {
      const auto kind = feature["dtype"].as_text();
      moving = moving || kind == "video";
      still = still || kind == "image";
      if (!told && (kind == "video" || kind == "image")) add(feature["shape"]);
    }
    if (!told) who = "the dataset";
    if (told || info["features"].is_object()) {
      out_.cameras = count;
      out_.resolution = join(sizes, ", ");
      out_.from["cameras"] = out_.from["resolution"] = who;
      if (count == 0) out_.resolution = "none";
    }
    if (moving) out_.video = "pictures are decoded from video";
    if (still && !moving) out_.video = "without video: single pictures";
    if (moving || still) out_.from["video"] = "the dataset";
  }

  const CheckContext& context_;
  const std::vector<std::string>& argv_;
  const Log& log_;
  std::string text_, last_, weights_;
  double peak_;
  Value config_, train_, state_;
  Performance out_;
};

}  // namespace

std::string option_of(const std::vector<std::string>& argv, const std::vector<std::string_view>& names) {
  for (const auto name : names)
    for (std::size_t i = 0; i < argv.size(); ++i) {
      std::string_view word = argv[i];
      const auto dashes = word.find_first_not_of('-');
      if (dashes == std::string_view::npos) continue;
      const bool dashed = dashes > 0;
      word.remove_prefix(dashes);
      const auto equals = word.find('=');
      if (plain(word.substr(0, equals)) != plain(name)) continue;
      // "name=value" is how hydra and others take it.
      if (equals != std::string_view::npos) return std::string(word.substr(equals + 1));
      if (!dashed) continue;
      return i + 1 < argv.size() && !argv[i + 1].starts_with("-") ? argv[i + 1] : "true";
    }
  return {};
}

Performance performance_of(const CheckContext& context, const std::vector<std::string>& argv, const Attempt& attempt,
                           const CheckpointTree* checkpoints) {
  return Reader(context, argv, attempt, checkpoints).read();
}

}  // namespace ff::training
