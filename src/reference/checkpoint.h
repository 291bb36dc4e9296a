#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/trainer.h"

namespace ff::reference {

/// Writes <run>/checkpoints/<step, six digits>/ in LeRobot's layout, then points <run>/checkpoints/last to it:
///
///     pretrained_model/{config.json, model.safetensors, both processors (policy.h), train_config.json}
///     training_state/{training_step.json, optimizer_state.safetensors, optimizer_param_groups.json,
///                     scheduler_state.json, rng_state.json, sampler_state.json}
///
/// Everything is written and flushed to disk under a temporary name and renamed when it is whole; the link is replaced
/// last. So a writer that is killed, or a full disk, leaves the earlier checkpoint as the newest one.
/// Errors: what could not be written, with the errno's text; nothing with the final name is left then.
Result<std::string> save_checkpoint(const Trainer& trainer, const std::string& run_directory);

/// Reads a checkpoint (or <run>, <run>/checkpoints/last) back; the run continues with the next step as if it had never
/// stopped. Errors name the file and what is wrong with it: absent, cut short, other shapes.
Result<std::unique_ptr<Trainer>> restore_checkpoint(const std::string& directory, std::shared_ptr<const Dataset> data, Fault fault = Fault::none);

/// One tensor of a safetensors file, float32.
struct SavedTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> values;
};
/// The bytes of a safetensors file.
std::string safetensors_bytes(const std::vector<SavedTensor>& tensors);
/// Reads float32 tensors; `where` names the file in errors. Every size is checked before it is used.
Result<std::vector<SavedTensor>> read_safetensors(std::string_view bytes, const std::string& where);

}  // namespace ff::reference
