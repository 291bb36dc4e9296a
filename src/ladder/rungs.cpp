#include <array>

#include "capture/capture.h"
#include "compute/checks.h"
#include "dataset/checks.h"
#include "device/checks.h"
#include "facts/machine.h"
#include "ladder/ladder.h"
#include "model/checks.h"
#include "rollout/checks.h"
#include "training/checks.h"

namespace ff::ladder {
namespace {

std::string device_input(const CheckInputs& inputs) {
  if (inputs.device == "cpu") return "CPU asked for (--device cpu)";
  if (inputs.device == "cuda") return "CUDA asked for (--device cuda): this rung looks at AMD devices";
  return "";
}

/// A list of packages or a kernel log passes checks of its own and says nothing about a GPU.
std::string no_gpu_shown(const CheckContext& context) {
  if (context.inputs.live || context.capture.kind() != "loose" || !context.machine.gpus.empty()) return "";
  return "nothing that was given shows a GPU; firstfault snapshot -o machine.tar.zst on that machine, or its /sys/class/kfd/kfd/topology, "
         "rocminfo or lspci -vvv, would";
}

std::string compute_input(const CheckInputs& inputs) {
  if (!inputs.live) return "needs a live machine (--from reads a recorded one)";
  return "";
}

std::string dataset_input(const CheckInputs& inputs) { return inputs.dataset.empty() ? "no --dataset given" : ""; }
std::string model_input(const CheckInputs& inputs) { return inputs.policy.empty() ? "no --policy given" : ""; }

std::string workload_input(const CheckInputs& inputs) {
  if (inputs.workload.empty()) return "no --workload given";
  if (!inputs.live) return "needs a live machine (--from reads a recorded one)";
  return "";
}

std::string results_input(const CheckInputs& inputs) {
  if (!inputs.results.empty()) return "";
  if (inputs.workload == "reference" || inputs.workload == "lerobot") return inputs.live ? "" : "needs a live machine (--from reads a recorded one)";
  return inputs.workload.empty() ? "no --results and no --workload given" : "no --results given: the directory that the evaluation wrote";
}

}  // namespace

std::span<const RungEntry> rungs() {
  static constexpr std::array<RungEntry, rung_count> ladder{{
      {Rung::device, &device::checks, &device_input, &no_gpu_shown},
      {Rung::compute, &compute::checks, &compute_input},
      {Rung::dataset, &dataset::checks, &dataset_input},
      {Rung::model, &model::checks, &model_input},
      {Rung::step, &training::step_checks, &workload_input},
      {Rung::resume, &training::resume_checks, &workload_input},
      {Rung::episode, &rollout::episode_checks, &results_input},
      {Rung::evaluation, &rollout::evaluation_checks, &results_input},
  }};
  return ladder;
}

}  // namespace ff::ladder
