#include "ladder/built_in_inputs.h"

#include <filesystem>

#include "base/file.h"
#include "dataset/record.h"
#include "reference/policy.h"

namespace ff::ladder {

Result<void> add_built_in_inputs(CheckInputs& inputs, std::optional<Rung> only, const std::string& directory) {
  // Results that the user names are judged with what the user names, never with our dataset.
  if (inputs.workload != "reference" || !inputs.live || !inputs.results.empty()) return {};
  if (only && *only != Rung::dataset && *only != Rung::model) return {};
  namespace fs = std::filesystem;
  std::error_code error;
  if (inputs.dataset.empty()) {
    inputs.dataset = (fs::path(directory) / "dataset").string();
    if (const auto parquet = dataset::Parquet::load())
      if (auto written = dataset::write_demonstrations(reference::record_demonstrations(reference::shipped_episodes), inputs.dataset, *parquet);
          !written)
        return written;
  }
  if (inputs.policy.empty()) {
    inputs.policy = (fs::path(directory) / "policy").string();
    fs::create_directories(inputs.policy, error);
    if (error) return fail("cannot be created: " + error.message(), inputs.policy);
    for (const auto& file : reference::shipped_policy())
      if (auto written = write_file(fs::path(inputs.policy) / file.name, file.bytes); !written) return written;
  }
  return {};
}

}  // namespace ff::ladder
