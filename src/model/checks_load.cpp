#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnosis/explain.h"
#include "knowledge/knowledge.h"
#include "model/shared.h"
#include "python/python.h"

namespace ff::model {
namespace {

constexpr std::size_t shown = 5;

using Answer = CheckResult (*)(const CheckContext&, const Survey&, const LoadOutcome&);

std::string_view plural(std::size_t n) { return n == 1 ? "" : "s"; }

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), shown)));
  return join(first, ", ") + (names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
}
std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.emplace_back(item.as_text());
  return out;
}

std::string loader_name(const LoadOutcome& o) {
  if (!o.built.empty()) return o.built;
  return o.versions["torch"].is_text() ? fmt::format("torch {}", o.versions["torch"].as_text()) : std::string("torch");
}

/// The cause behind the child's error, judged from its own words as any log is; `fallback` when they say nothing known.
void name_causes(const CheckContext& context, CheckResult& result, const LoadOutcome& o, std::string_view fallback) {
  if (const auto explained = diagnosis::explain_texts({{"traceback.txt", o.error_trace}}, context.knowledge))
    for (const auto& d : explained->judgement.diagnoses)
      if (!d.benign && d.score >= diagnosis::likely_score && result.causes.size() < 3) result.causes.push_back(d.cause);
  if (std::find(result.causes.begin(), result.causes.end(), fallback) == result.causes.end()) result.causes.emplace_back(fallback);
}

void add_trace(CheckResult& result, const LoadOutcome& o) {
  // The end of a traceback says what happened.
  const auto all = lines(o.error_trace);
  const std::size_t from = all.size() > 12 ? all.size() - 12 : 0;
  for (std::size_t i = from; i < all.size(); ++i)
    if (!trim(all[i]).empty()) result.because({"the child's traceback", i + 1, std::string(all[i])});
}

Value memory_of(const LoadOutcome& o) {
  std::int64_t host = -1, device = -1, reserved = -1;
  Value stages = Value::list();
  for (const auto& s : o.stages) {
    host = std::max(host, s.host_peak_bytes);
    device = std::max(device, s.device_peak_bytes);
    reserved = std::max(reserved, s.device_reserved_bytes);
    stages.push(Value::object({{"stage", s.name}, {"ended", s.ended}, {"seconds", s.seconds}, {"host_peak_bytes", s.host_peak_bytes}}));
  }
  Value out = Value::object({{"stages", std::move(stages)}});
  if (host >= 0) out.set("host_peak_bytes", host);
  if (device >= 0) out.set("device_peak_bytes", device);
  if (reserved >= 0) out.set("device_reserved_bytes", reserved);
  return out;
}

/// Why the child failed or died in `stage`, as a failing result.
CheckResult broken(const CheckContext& context, const LoadOutcome& o, std::string_view place, bool on_device) {
  const std::string stage = o.stages.empty() ? "start" : o.stages.back().name;
  const std::string what =
      !o.died.empty() ? fmt::format("the child {} in stage {}", o.died, stage)
      : o.error_text.empty()
          ? fmt::format("{} in stage {}", o.error_type, stage)
          : fmt::format("{}: {}", o.error_type, lines(o.error_text).empty() ? std::string() : std::string(lines(o.error_text).front()));
  CheckResult result = CheckResult::fail("", fmt::format("{} fails: {}", place, what), memory_of(o));
  result.causes.clear();
  result.measured.set("stage", stage);
  result.measured.set("died", o.died);
  // The kernel's out-of-memory killer sends SIGKILL and leaves no words.
  name_causes(context, result, o, o.killed && !on_device ? "memory.host-exhausted" : "model.load-failed");
  add_trace(result, o);
  return result;
}

/// The framework itself does not start: that is no fault of the model.
CheckResult no_framework(const LoadOutcome& o, const CheckContext& context) {
  const auto package = between(o.error_text, "No module named '", "'");
  const std::string top(package.value_or("").substr(0, package.value_or("").find('.')));
  Error e{
      fmt::format(
          "{} cannot load {}: {}", context.inputs.python, top.empty() || top == "torch" ? "anything" : "it",
          o.died.empty() ? fmt::format("{}: {}", o.error_type, lines(o.error_text).empty() ? "" : lines(o.error_text).front()) : "it was " + o.died),
      {},
      top.empty() || top == "torch"
          ? std::string("give the interpreter of the environment with torch (--python), and run firstfault check for its state")
          : fmt::format("the environment lacks {}, the model is not judged: {} -m pip install {}, or give the environment that the model was made in",
                        top, context.inputs.python, top)};
  CheckResult result = CheckResult::error(e);
  add_trace(result, o);
  return result;
}

CheckResult loads(const CheckContext& context, const Survey&, const LoadOutcome& o) {
  const auto place = o.failed_place();
  if (place == "framework") return no_framework(o, context);
  if (place == "cpu") return broken(context, o, "loading on the CPU", false);
  Value measured = memory_of(o);
  measured.set("loader", loader_name(o));
  measured.set("versions", o.versions);
  std::int64_t peak = measured["host_peak_bytes"].as_int(-1);
  std::string summary = fmt::format("{} loads it on the CPU", loader_name(o));
  if (peak >= 0) summary += fmt::format(", {} of host memory at the peak", human_bytes(static_cast<std::uint64_t>(peak)));
  if (!o.plain_because.empty()) summary += fmt::format(" ({}: the tensors alone were loaded)", o.plain_because);
  return CheckResult::pass(std::move(summary), std::move(measured));
}

CheckResult equal(const CheckContext&, const Survey&, const LoadOutcome& o) {
  Value measured = Value::object({{"tensors", o.tensors}, {"equal", o.equal}, {"different", o.different.size()}, {"not_read", o.not_read.size()}});
  if (o.different.empty() && o.not_read.empty())
    return CheckResult::pass(fmt::format("all {} tensors have the file's bytes (CRC-32)", o.tensors), std::move(measured));
  CheckResult result =
      CheckResult::fail("model.load-altered",
                        o.different.empty() ? fmt::format("the framework gives {} tensor{} less than the file holds: {}", o.not_read.size(),
                                                          plural(o.not_read.size()), listed(o.not_read))
                                            : fmt::format("{} (and {} more of {})", o.different.front(), o.different.size() - 1, o.tensors),
                        std::move(measured));
  for (const auto& sentence : o.different)
    if (result.evidence.size() < 30) result.because({"comparison", 0, sentence});
  return result;
}

CheckResult keys(const CheckContext&, const Survey&, const LoadOutcome& o) {
  if (o.built.empty()) return CheckResult::skip(o.plain_because.empty() ? "no policy or model class is known for these tensors" : o.plain_because);
  const Value& k = o.keys;
  const auto missing = texts(k["missing"]), unexpected = texts(k["unexpected"]);
  Value measured = Value::object({{"model_tensors", k["model_tensors"]},
                                  {"equal", k["equal"]},
                                  {"cast", k["cast"]},
                                  {"casts", k["casts"]},
                                  {"renamed", k["renamed"]},
                                  {"converted", k["converted"]},
                                  {"tied", k["tied"].items().size()},
                                  {"tied_tensors", k["tied"]},
                                  {"missing", Value::list_of(missing)},
                                  {"unexpected", Value::list_of(unexpected)},
                                  {"different", Value::list_of(o.model_different)}});
  std::string explained;
  if (k["cast"].as_int() > 0) {
    std::vector<std::string> casts;
    for (const auto& [cast, n] : k["casts"].members()) casts.push_back(fmt::format("{} of {}", cast, n.as_int()));
    explained += fmt::format(", {} cast ({})", k["cast"].as_int(), join(casts, ", "));
  }
  if (k["renamed"].as_int() > 0) explained += fmt::format(", {} equal under another name", k["renamed"].as_int());
  if (!k["converted"].items().empty()) explained += fmt::format(", {} rearranged by the loader and not compared", k["converted"].items().size());
  if (!k["tied"].items().empty()) explained += fmt::format(", {} tied to another", k["tied"].items().size());
  CheckResult result;
  if (!missing.empty()) {
    // Nothing of the model came from the file: it runs on what its constructor drew.
    const bool none = k["equal"].as_int() == 0 && k["cast"].as_int() == 0;
    result = CheckResult::fail(none ? "model.not-loaded" : "model.key-mismatch",
                               fmt::format("{} of {} tensors of {} are not in the files and keep their initial values: {}", missing.size(),
                                           k["model_tensors"].as_int(), o.built, listed(missing)),
                               std::move(measured));
    if (!none) result.causes.emplace_back("model.not-loaded");
  } else if (!o.model_different.empty()) {
    const bool shape = contains(o.model_different.front(), "shape");
    result = CheckResult::fail(shape ? "model.shape-mismatch" : "model.load-altered", o.model_different.front(), std::move(measured));
  } else if (!unexpected.empty()) {
    result = CheckResult::warn(
        "model.key-mismatch",
        fmt::format("{} has no place for {} tensor{} of the files: {}", o.built, unexpected.size(), plural(unexpected.size()), listed(unexpected)),
        std::move(measured));
  } else {
    return CheckResult::pass(fmt::format("{}: {} of {} tensors equal{}", o.built, k["equal"].as_int(), k["model_tensors"].as_int(), explained),
                             std::move(measured));
  }
  for (const auto& sentence : o.model_different)
    if (result.evidence.size() < 30) result.because({"comparison", 0, sentence});
  for (const auto& name : unexpected)
    if (result.evidence.size() < 30) result.because({"unexpected", 0, name});
  for (const auto& name : missing)
    if (result.evidence.size() < 30) result.because({"missing", 0, name});
  return result;
}

CheckResult finite(const CheckContext&, const Survey& s, const LoadOutcome& o) {
  const auto bad = o.built.empty() ? o.nonfinite_read : texts(o.model_finite["nonfinite"]);
  if (bad.empty())
    return CheckResult::pass(o.built.empty() ? "every tensor is finite after loading" : "every tensor of the model is finite after loading");
  // Finite in the file and not in the model: the cast did it, or the tensor was never loaded.
  const bool in_file = std::any_of(s.findings.begin(), s.findings.end(), [](const Finding& f) { return f.check == "model.finite"; });
  return CheckResult::fail(in_file ? "model.nonfinite" : "precision.half-overflow",
                           fmt::format("{} tensor{} not finite after loading: {}", bad.size(), bad.size() == 1 ? " is" : "s are", listed(bad)),
                           Value::object({{"nonfinite", Value::list_of(bad)}, {"finite_in_file", !in_file}}));
}

CheckResult transfers(const CheckContext& context, const Survey&, const LoadOutcome& o) {
  if (o.failed_place() == "transfer") return broken(context, o, fmt::format("the way to {}", o.device["name"].as_text("the device")), true);
  if (o.transferred.is_null()) return CheckResult::skip(context.inputs.device == "cpu" ? "CPU asked for" : "torch of this Python sees no GPU");
  const auto total = o.transferred["tensors"].as_int(), equal = o.transferred["equal"].as_int();
  Value measured = memory_of(o);
  measured.set("device", o.device);
  measured.set("tensors", total);
  measured.set("equal", equal);
  if (!o.altered.empty()) {
    CheckResult result = CheckResult::fail("model.load-altered",
                                           fmt::format("{} of {} tensors came back changed from {}: {}", total - equal, total,
                                                       o.device["name"].as_text("the device"), listed(o.altered)),
                                           std::move(measured));
    for (const auto& name : o.altered)
      if (result.evidence.size() < 30) result.because({"comparison", 0, name});
    return result;
  }
  return CheckResult::pass(
      fmt::format("{} tensors went to {} and came back the same, {} of device memory at the peak", total, o.device["name"].as_text("the device"),
                  human_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, measured["device_peak_bytes"].as_int(0))))),
      std::move(measured));
}

Check make(std::string_view id, std::string_view question, std::string_view how, std::vector<std::string_view> causes,
           std::vector<std::string_view> needs, Answer answer) {
  return {id, Rung::model, question, how, std::move(causes), std::move(needs), [answer](const CheckContext& context) {
            if (context.inputs.python.empty()) return CheckResult::skip("no --python to load it with");
            if (!context.inputs.live) return CheckResult::skip("the user's framework is not started for another machine's capture");
            if (!context.inputs.allow_probes) return CheckResult::skip("no processes may be started");
            const auto all = shared(context);
            if (!all->survey) return CheckResult::skip("there is no model");
            const auto outcome = shared_load(context, **all->survey);
            if (!*outcome) return CheckResult::error(outcome->error());
            return answer(context, **all->survey, **outcome);
          }};
}

}  // namespace

std::shared_ptr<const Result<LoadOutcome>> shared_load(const CheckContext& context, const Survey& survey) {
  const auto make_outcome = [&] {
    LoadRequest request;
    request.python = python::interpreter_of(context.inputs.python);
    request.device = context.inputs.device.empty() ? "auto" : context.inputs.device == "cpu" ? "cpu" : "cuda";
    context.progress("the user's framework loads the model");
    return std::make_shared<Result<LoadOutcome>>(load_model(survey, request));
  };
  if (context.scratch == nullptr) return make_outcome();
  auto& slot = (*context.scratch)["model.load"];
  if (slot == nullptr) slot = make_outcome();
  return std::static_pointer_cast<const Result<LoadOutcome>>(slot);
}

std::vector<Check> load_checks() {
  return {
      make("model.loads", "Does the user's framework load it on the CPU?",
           "Starts the interpreter of --python in a child process: a LeRobot policy through its class, a transformers model through the class of "
           "config.json, else the tensors through safetensors or torch.load(weights_only=True). An exception, a crash, a hang (15 minutes) and the "
           "end of memory are answers; the cause is read out of the child's traceback. Skipped without --python.",
           {"model.load-failed", "memory.host-exhausted", "model.unsafe-pickle", "model.shape-mismatch", "version.dependency-conflict"},
           {"model.files-whole", "model.header"}, &loads),
      make("model.load-equal", "Does the framework read what the files hold?",
           "Compares name, type, shape and CRC-32 of each tensor, as FirstFault reads the file, with what the user's framework reads.",
           {"model.load-altered"}, {"model.loads"}, &equal),
      make("model.load-keys", "Does every tensor of the model come from the files?",
           "Compares the built model with the files: missing and unexpected names, shapes, values; casts (the file's values in the model's type) and "
           "tied weights (two names, one storage) are explained. A model that keeps initial values fails.",
           {"model.not-loaded", "model.key-mismatch", "model.shape-mismatch", "model.load-altered"}, {"model.loads"}, &keys),
      make("model.load-finite", "Is everything finite after loading?",
           "Asks the framework about each tensor as it stands in the model, after casts: FP16 makes values from 65520 on infinite.",
           {"precision.half-overflow", "model.nonfinite"}, {"model.loads"}, &finite),
      make("model.load-device", "Does it arrive on the device unchanged?",
           "Moves all tensors to the GPU and back and compares types and CRC-32; gives the peak of device memory. A failure here, after the CPU "
           "held, is "
           "the transfer's. Skipped on --device cpu and where torch sees no GPU.",
           {"model.load-altered", "memory.vram-exhausted", "model.load-failed"}, {"model.loads"}, &transfers),
  };
}

}  // namespace ff::model
