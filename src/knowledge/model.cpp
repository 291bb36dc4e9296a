#include "knowledge/model.h"

#include <array>

namespace ff::knowledge {

namespace {
constexpr std::array<std::string_view, 15> kind_table = {"kernel-log", "program",   "traceback",  "shell",  "rocminfo",
                                                         "smi",        "lspci",     "pip-list",   "env",    "config",
                                                         "code",       "train-log", "evaluation", "stacks", "text"};
constexpr std::array<std::string_view, 18> layer_table = {"device",  "permission",   "container", "driver", "runtime",     "library-coverage",
                                                          "version", "kernel-fault", "hardware",  "memory", "precision",   "communication",
                                                          "data",    "model",        "training",  "render", "closed-loop", "performance"};
}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "error";
}

std::uint32_t kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kind_table.size(); ++i)
    if (kind_table[i] == name) return 1u << i;
  return 0;
}

std::vector<std::string_view> kind_names(std::uint32_t kinds) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < kind_table.size(); ++i)
    if ((kinds >> i) & 1u) out.push_back(kind_table[i]);
  return out;
}

bool known_layer(std::string_view layer) {
  for (std::string_view known : layer_table)
    if (known == layer) return true;
  return false;
}

}  // namespace ff::knowledge
