#include "model/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/readable.h"
#include "base/text.h"
#include "check/could_not_read.h"
#include "model/device_scan.h"
#include "model/shared.h"
#include "model/survey.h"
#include "model/training_state.h"

namespace ff::model {
namespace {

std::string_view plural(std::size_t n) { return n == 1 ? "" : "s"; }

constexpr std::string_view not_readable = "permission.path-not-readable";

using Good = CheckResult (*)(const Survey&, const CheckInputs&);

/// The findings of one check as its result: the first fault speaks, the others are evidence.
CheckResult collect(const CheckContext& context, std::string_view id, Good good) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("there is no model");
  const Survey& s = **all->survey;
  std::size_t count = 0;
  const Finding* first = nullptr;
  for (const auto& f : s.findings) {
    if (f.check != id) continue;
    ++count;
    const auto rank = [](const Finding& one) { return !one.fails ? 0 : one.cause == not_readable ? 1 : 2; };
    if (first == nullptr || rank(f) > rank(*first)) first = &f;
  }
  if (first == nullptr) return good(s, context.inputs);
  CheckResult result = first->fails ? CheckResult::fail(first->cause, first->summary, first->measured)
                                    : CheckResult::warn(first->cause, first->summary, first->measured);
  if (first->cause == not_readable) result = could_not_read(Error{first->summary, s.root, "", 3});
  if (count > 1) result.summary += fmt::format(" (and {} more)", count - 1);
  for (const auto& f : s.findings) {
    if (f.check != id || result.evidence.size() >= 30) continue;
    if (f.fails && std::find(result.causes.begin(), result.causes.end(), f.cause) == result.causes.end()) result.causes.push_back(f.cause);
    result.evidence.push_back({f.file.empty() ? s.root : f.file, 0, f.text.empty() || &f != first ? f.summary : f.text});
  }
  result.measured.set("findings", static_cast<unsigned long>(count));
  return result;
}

CheckResult present(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) {
    const Error& e = all->survey.error();
    if (is_unreadable(e)) return could_not_read(e);
    return CheckResult::fail("model.config-missing", e.to_string()).because({e.where, 0, e.what});
  }
  const Survey& s = **all->survey;
  const std::string kind = !s.is_directory                    ? std::string("model file")
                           : s.is_lerobot                     ? fmt::format("LeRobot policy \"{}\"", s.config["type"].as_text())
                           : s.config["model_type"].is_text() ? fmt::format("model \"{}\"", s.config["model_type"].as_text())
                                                              : std::string("model directory");
  return CheckResult::pass(fmt::format("{}: {} file{}, {} tensor{}, {}", kind, s.files.size(), plural(s.files.size()), s.tensors, plural(s.tensors),
                                       human_bytes(s.value_bytes)),
                           Value::object({{"root", s.root}, {"files", s.files.size()}, {"tensors", s.tensors}, {"value_bytes", s.value_bytes}}));
}

/// What a finite model's values are like.
CheckResult finite(const Survey& s, const CheckInputs&) {
  std::uint64_t values = 0, over = 0, subnormal = 0, zero_count = 0, equal_count = 0, weight_tensors = 0;
  double largest = 0, largest_weight = 0;
  std::string largest_name;
  Value zeros = Value::list(), overs = Value::list(), equals = Value::list();
  constexpr std::size_t shown = 20;
  for (const auto& f : s.files)
    for (std::size_t i = 0; i < f.values.size(); ++i) {
      const auto& v = f.values[i];
      const std::string name = f.safetensors                         ? f.safetensors->tensors[i].name
                               : f.torch->storages[i].tensor.empty() ? "storage " + f.torch->storages[i].key
                                                                     : f.torch->storages[i].tensor;
      if (!v.any_finite) continue;
      values += v.elements;
      if (f.role != Role::weights) continue;
      ++weight_tensors;
      // Masks are kept with the least number of their type, or with one such value throughout.
      if (!v.all_equal && !contains(name, "mask") && v.absmax() < 3e38) largest_weight = std::max(largest_weight, v.absmax());
      if (v.absmax() > largest) {
        largest = v.absmax();
        largest_name = name;
      }
      subnormal += v.subnormal;
      if (v.over_f16 > 0) {
        over += v.over_f16;
        if (overs.items().size() < shown) overs.push(Value(name));
      }
      if (v.all_zero()) {
        ++zero_count;
        if (zeros.items().size() < shown) zeros.push(Value(name));
      } else if (v.all_equal) {
        ++equal_count;
        if (equals.items().size() < shown) equals.push(Value(name));
      }
    }
  std::string summary = fmt::format("no NaN or Inf in {} floating-point values", values);
  if (!largest_name.empty()) summary += fmt::format("; largest magnitude {:.4g} in \"{}\"", largest, largest_name);
  if (over > 0) summary += fmt::format("; {} values become infinite in FP16", over);
  if (subnormal > 0) summary += fmt::format("; {} are subnormal", subnormal);
  if (zero_count > 0) summary += fmt::format("; {} tensor{} all zero", zero_count, zero_count == 1 ? " is" : "s are");
  const bool empty = weight_tensors > 1 && zero_count == weight_tensors;
  // Trained weights lie around 1; 32-bit activations of what lies beyond overflow after a few layers.
  constexpr double senseless = 1e15;
  if (empty) summary = fmt::format("all {} tensors of weights are zero: the model was never trained, or its values were never written", zero_count);
  if (largest_weight > senseless) summary += ": no training leaves such a value";
  auto result = CheckResult::pass(
      std::move(summary), Value::object({{"values", values},
                                         {"absmax", largest},
                                         {"absmax_tensor", largest_name},
                                         {"over_f16", over},
                                         {"over_f16_fraction", values == 0 ? 0.0 : static_cast<double>(over) / static_cast<double>(values)},
                                         {"subnormal", subnormal},
                                         {"subnormal_fraction", values == 0 ? 0.0 : static_cast<double>(subnormal) / static_cast<double>(values)},
                                         {"over_f16_tensors", std::move(overs)},
                                         {"all_zero", zero_count},
                                         {"all_zero_tensors", std::move(zeros)},
                                         {"all_equal", equal_count},
                                         {"all_equal_tensors", std::move(equals)}}));
  if (!empty && largest_weight <= senseless) return result;
  return empty ? CheckResult::fail("model.not-loaded", std::move(result.summary), std::move(result.measured))
               : CheckResult::warn("model.nonfinite", std::move(result.summary), std::move(result.measured));
}

CheckResult pickles(const Survey& s, const CheckInputs&) {
  std::size_t files = 0;
  for (const auto& f : s.files) files += f.torch ? 1 : 0;
  if (files == 0) return CheckResult::skip("no PyTorch file: safetensors hold no code");
  std::string formats;
  for (const auto& f : s.files)
    if (f.torch && f.torch->format != TorchFormat::zip) formats = fmt::format("; {} is a {}", f.name, torch_format_name(f.torch->format));
  return CheckResult::pass(
      fmt::format("{} PyTorch file{} rebuild{} tensors and nothing else{}", files, plural(files), files == 1 ? "s" : "", formats));
}

Check make(std::string_view id, std::string_view question, std::string_view how, std::vector<std::string_view> causes, Good good) {
  std::vector<std::string_view> needs{"model.present"};
  // What depends on the tensors of all files is not judged when some are not there.
  if (id != "model.files-whole" && id != "model.config" && id != "model.pickle-safe") needs.emplace_back("model.files-whole");
  if (id == "model.normalization" || id == "model.features" || id == "model.architecture") {
    needs.emplace_back("model.header");
    needs.emplace_back("model.config");
  }
  return {id,
          Rung::model,
          question,
          how,
          std::move(causes),
          std::move(needs),
          [id, good](const CheckContext& context) { return collect(context, id, good); }};
}

/// The host has counted already; the device counts again what arrived on it.
CheckResult device_finite(const CheckContext& context) {
  const auto all = shared(context);
  if (!all->survey) return CheckResult::skip("there is no model");
  const bool asked = context.scratch != nullptr && context.scratch->contains(std::string(device_scan_key));
  const auto& device = context.inputs.device;
  if (device.empty() || (device == "cpu" && !asked)) return CheckResult::skip("no --device to copy the weights to");
  if (!context.inputs.live) return CheckResult::skip("the device of another machine's capture is not here");
  if (!context.inputs.allow_probes) return CheckResult::skip("no work on a device may be started");
  context.progress("the device scans the weights");
  const auto scan = scan_on_device(**all->survey, device);
  if (!scan) return CheckResult::error(scan.error());
  const auto rate = [&](double seconds) { return seconds > 0 ? static_cast<double>(scan->bytes) / seconds / 1e9 : 0.0; };
  Value measured = Value::object({{"device", scan->device},
                                  {"tensors", scan->tensors},
                                  {"bytes", scan->bytes},
                                  {"seconds", scan->seconds},
                                  {"scan_gb_per_s", rate(scan->scan_seconds)},
                                  {"copy_and_scan_gb_per_s", rate(scan->seconds)},
                                  {"different", scan->different.size()}});
  if (scan->different.empty())
    return CheckResult::pass(fmt::format("{} counts the same NaN and Inf in {} tensors as the host ({:.3g} GB/s, {:.3g} GB/s with the copy)",
                                         scan->device["name"].as_text(), scan->tensors, rate(scan->scan_seconds), rate(scan->seconds)),
                             std::move(measured));
  const auto sentence = [](const DeviceDifference& d) {
    return fmt::format("{}: \"{}\" has {} NaN and Inf in the file and {} on the device", d.file, d.tensor, d.in_file, d.on_device);
  };
  auto result = CheckResult::fail("model.load-altered", sentence(scan->different.front()), std::move(measured));
  for (const auto& d : scan->different)
    if (result.evidence.size() < 30) result.because({d.file, 0, sentence(d)});
  return result;
}

std::vector<Check> table() {
  return {
      {"model.present",
       Rung::model,
       "Is there a model?",
       "Opens a model file, a Hugging Face or LeRobot directory, a checkpoint (its pretrained_model/) or a run (its newest checkpoint). It is an "
       "error, and nothing is judged, when a file of it, or of the metadata of --dataset, cannot be read by this account.",
       {"model.config-missing", "permission.path-not-readable"},
       {},
       &present},
      make("model.files-whole", "Is each file what its name says, and complete?",
           "Compares each file's size with what its header or zip directory calls for: truncated and empty files, Git LFS pointers, error pages, "
           "and changed bytes in PyTorch zips.",
           {"model.truncated", "model.lfs-pointer", "model.header-invalid"},
           [](const Survey& s, const CheckInputs&) {
             return CheckResult::pass(s.files.size() == 1 ? std::string("the file is complete")
                                                          : fmt::format("{} files are complete", s.files.size()));
           }),
      make("model.header", "Do the headers describe valid files?",
           "Every rule of the safetensors format: header length, JSON, types, shapes, sizes, offsets without overlap or hole; of PyTorch files the "
           "zip members, checksums and storages. Says at which byte the first violation stands.",
           {"model.header-invalid", "model.dtype-unsupported"},
           [](const Survey& s, const CheckInputs&) {
             return CheckResult::pass(fmt::format("{} tensor{} where the headers say", s.tensors, s.tensors == 1 ? " lies" : "s lie"));
           }),
      make("model.shards", "Do the shards and their index agree?",
           "Every shard that the index names is there, each tensor is in its shard and in no other, and the sizes add up. Skipped for a model in one "
           "file.",
           {"model.truncated", "model.key-mismatch", "model.config-missing", "model.header-invalid"},
           [](const Survey& s, const CheckInputs&) {
             return s.has("model.safetensors.index.json") || s.has("pytorch_model.bin.index.json")
                        ? CheckResult::pass("every tensor is in the shard that the index gives it")
                        : CheckResult::skip("the model is not sharded");
           }),
      make("model.finite", "Are all weights finite?",
           "Looks at every floating-point value of every tensor, also of the optimiser's: NaN and Inf with count and first position. Masks of minus "
           "infinity are no fault; normalisation statistics are judged by model.normalization.",
           {"model.nonfinite", "model.not-loaded"}, &finite),
      {"model.device-finite",
       Rung::model,
       "Does the device count the same NaN and Inf?",
       "With --device: copies every F64, F32, F16, BF16 and FP8 tensor to the device and counts there, with a kernel compiled at run time, in a "
       "child "
       "process; fails when a count differs from the host's. Skipped without --device.",
       {"model.load-altered"},
       {"model.present", "model.files-whole", "model.header"},
       &device_finite},
      make("model.pickle-safe", "Can the PyTorch files be loaded without running code?",
           "Follows the pickle instructions as data, never executed, and compares every class and function that they name with the list that "
           "torch.load(weights_only=True) takes.",
           {"model.unsafe-pickle"}, &pickles),
      make("model.config", "Is the configuration there?",
           "A directory needs config.json (or adapter_config.json, model_index.json) and weights beside it.", {"model.config-missing"},
           [](const Survey& s, const CheckInputs&) {
             return s.is_directory ? CheckResult::pass("configuration and weights are there")
                                   : CheckResult::skip("a single file has no configuration");
           }),
      make("model.normalization", "Are the normalisation statistics there?",
           "For LeRobot policies: each feature whose mode is not IDENTITY has its statistics, in the processor files (from 0.4) or in the weights "
           "(before); finite, of the right width, and, with --dataset, those of the dataset.",
           {"model.normalization-missing", "model.shape-mismatch"},
           [](const Survey& s, const CheckInputs&) {
             return s.is_lerobot ? CheckResult::pass("every normalised feature has its statistics") : CheckResult::skip("no LeRobot policy");
           }),
      make("model.features", "Do the policy's features fit its weights and the dataset?",
           "Compares config.json's input and output features with the weights' action head (ACT) and, with --dataset, with the dataset's "
           "meta/info.json: names, cameras, widths. Executed actions against the chunk; the tokenizer step that language policies need.",
           {"model.shape-mismatch", "model.key-mismatch", "model.config-missing", "model.normalization-missing"},
           [](const Survey& s, const CheckInputs& inputs) {
             if (!s.is_lerobot) return CheckResult::skip("no LeRobot policy");
             if (inputs.dataset.empty() && s.config["type"].as_text() != "act")
               return CheckResult::skip("no --dataset to compare with; the configuration fits itself");
             return CheckResult::pass(inputs.dataset.empty() ? "the weights have the configuration's action dimensions and chunk length"
                                                             : "policy and dataset have the same features");
           }),
      make("model.architecture", "Do the weights have the names and shapes that the configuration calls for?",
           "Compares config.json's architecture (ACT, Diffusion, SmolVLA, Pi0, Pi0.5, GPT-2, Llama, Mistral, Gemma, Qwen2, Qwen3, ViT, SigLIP, "
           "DINOv2) with the files: missing, unexpected and otherwise shaped tensors, prefixes of wrappers, tied embeddings; a LoRA adapter's ranks, "
           "pairs and targets, and "
           "its base "
           "where that lies on this machine; norm layers that no training has moved. Skipped for an architecture that is not known.",
           {"model.key-mismatch", "model.shape-mismatch", "model.not-loaded", "model.config-missing", "permission.path-not-readable"},
           [](const Survey& s, const CheckInputs&) {
             if (s.has("adapter_config.json")) return CheckResult::pass("the adapter's matrices fit each other and its configuration");
             return s.architecture.empty() ? CheckResult::skip("no architecture that is known here")
                                           : CheckResult::pass(fmt::format("every tensor that {} needs is there, in its shape", s.architecture));
           }),
      make("model.training-state", "Do weights, optimiser, scheduler and step belong together?",
           "For a checkpoint with a training state (LeRobot's training_state/, the Hugging Face Trainer's files): the step against the directory's "
           "name, "
           "the optimiser's own steps and the scheduler's; learning rates; moments that are negative or never moved; parameters that lag behind.",
           {"training.resume-state-missing", "training.resume-reset", "training.gradient-zero", "training.learning-rate"},
           [](const Survey& s, const CheckInputs&) {
             const auto state = read_training_state(s);
             if (!state.present) return CheckResult::skip("no training state beside the weights");
             return CheckResult::pass(fmt::format("step {}; optimiser and scheduler agree", state.step.value_or(0)), to_value(state));
           }),
  };
}

}  // namespace

std::shared_ptr<const Shared> shared(const CheckContext& context) {
  const auto make_survey = [&] { return std::make_shared<Shared>(Shared{survey(context.inputs.policy, context.inputs.dataset, context.knowledge)}); };
  if (context.scratch == nullptr) return make_survey();
  auto& slot = (*context.scratch)["model"];
  if (slot == nullptr) slot = make_survey();
  return std::static_pointer_cast<const Shared>(slot);
}

std::span<const Check> checks() {
  static const std::vector<Check> all = [] {
    auto out = table();
    for (auto& check : load_checks()) out.push_back(std::move(check));
    return out;
  }();
  return all;
}

}  // namespace ff::model
