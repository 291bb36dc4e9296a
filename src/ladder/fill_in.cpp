#include "ladder/fill_in.h"

#include "base/shell.h"
#include "base/text.h"

namespace ff::ladder {
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
    std::string copy = inputs.dataset;
    while (copy.size() > 1 && copy.ends_with('/')) copy.pop_back();
    put("<new folder>", copy.empty() ? "" : shell_word(copy + "-repaired"));
    put("<folder>", dataset);
  }
  if (cause.starts_with("model.")) {
    // The dataset first: what is left is the policy.
    put("--dataset <folder>", dataset.empty() ? "" : "--dataset " + dataset);
    if (!contains(text, "--dataset <folder>")) put("<folder>", word(inputs.policy));
  }
  return text;
}

}  // namespace ff::ladder
