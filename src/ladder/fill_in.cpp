#include "ladder/fill_in.h"

#include <algorithm>

#include "base/shell.h"
#include "base/text.h"

namespace ff::ladder {
namespace {

std::string repaired_copy(std::string dataset) {
  while (dataset.size() > 1 && dataset.ends_with('/')) dataset.pop_back();
  return dataset.empty() ? dataset : dataset + "-repaired";
}

}  // namespace

std::string filled_in(std::string text, std::string_view cause, const CheckInputs& inputs) {
  const auto put = [&](std::string_view place, const std::string& value) {
    if (!value.empty()) text = replace_all(std::move(text), place, value);
  };
  const auto word = [](const std::string& path) { return path.empty() ? std::string() : shell_word(path); };
  const std::string dataset = word(inputs.dataset);
  put("<python>", word(inputs.python));
  if (cause.starts_with("training.")) {
    put("<run>", word(inputs.results));
    put("<log>", word(inputs.results));
    put("data bench <folder>", dataset.empty() ? "" : "data bench " + dataset);
  }
  if (cause.starts_with("closed-loop.")) {
    put("<episodes>", word(inputs.results));
    put("<dataset>", dataset);
  }
  if (cause.starts_with("data.")) {
    put("<new folder>", word(repaired_copy(inputs.dataset)));
    put("<folder>", dataset);
  }
  if (cause.starts_with("model.")) {
    // The dataset first: what is left is the policy.
    put("--dataset <folder>", dataset.empty() ? "" : "--dataset " + dataset);
    if (!contains(text, "--dataset <folder>")) put("<folder>", word(inputs.policy));
  }
  return text;
}

std::string filled_in_proof(std::string text, const knowledge::CauseText& cause, CheckInputs inputs) {
  const bool copied = std::ranges::any_of(cause.fix, [](const std::string& line) { return contains(line, "<new folder>"); });
  if (copied) inputs.dataset = repaired_copy(inputs.dataset);
  return filled_in(std::move(text), cause.id, inputs);
}

}  // namespace ff::ladder
