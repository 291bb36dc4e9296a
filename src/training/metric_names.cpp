#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/python_json.h"
#include "base/text.h"
#include "training/series.h"

namespace ff::training {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024, mib = 1024.0 * 1024;

struct Spelling {
  std::string_view key;
  Quantity quantity;
  double factor = 1;
};

// Lower case, without the prefix of the training set ("train/", "train_", "training/").
constexpr std::array spellings{
    Spelling{"loss", Quantity::loss},
    Spelling{"total_loss", Quantity::loss},
    Spelling{"lm_loss", Quantity::loss},
    Spelling{"loss_step", Quantity::loss},
    Spelling{"loss/train", Quantity::loss},
    Spelling{"lr", Quantity::learning_rate},
    Spelling{"learning_rate", Quantity::learning_rate},
    Spelling{"learning-rate", Quantity::learning_rate},
    Spelling{"grdn", Quantity::gradient_norm},
    Spelling{"grad_norm", Quantity::gradient_norm},
    Spelling{"gradnorm", Quantity::gradient_norm},
    Spelling{"grad-norm", Quantity::gradient_norm},
    Spelling{"gnorm", Quantity::gradient_norm},
    Spelling{"gradient_norm", Quantity::gradient_norm},
    Spelling{"param_norm", Quantity::parameter_norm},
    Spelling{"params_norm", Quantity::parameter_norm},
    Spelling{"prmn", Quantity::parameter_norm},
    Spelling{"parameter_norm", Quantity::parameter_norm},
    Spelling{"step_s", Quantity::step_s},
    Spelling{"steptime", Quantity::step_s},
    Spelling{"step_time", Quantity::step_s},
    Spelling{"iter_time", Quantity::step_s},
    Spelling{"data_s", Quantity::data_s},
    Spelling{"data_time", Quantity::data_s},
    Spelling{"dataloading_s", Quantity::data_s},
    Spelling{"updt_s", Quantity::update_s},
    Spelling{"update_s", Quantity::update_s},
    Spelling{"mem_gb", Quantity::allocated, gib},
    Spelling{"gpu_mem_gb", Quantity::allocated, gib},
    Spelling{"memory_allocated_gb", Quantity::allocated, gib},
    Spelling{"memory_allocated_mb", Quantity::allocated, mib},
    Spelling{"memory_allocated", Quantity::allocated},
    Spelling{"max_memory_allocated", Quantity::allocated},
    Spelling{"memory_reserved_gb", Quantity::reserved, gib},
    Spelling{"memory_reserved_mb", Quantity::reserved, mib},
    Spelling{"memory_reserved", Quantity::reserved},
    Spelling{"rss_gb", Quantity::host_memory, gib},
    Spelling{"rss_mb", Quantity::host_memory, mib},
    Spelling{"host_mem_gb", Quantity::host_memory, gib},
    Spelling{"proc.memory.rssmb", Quantity::host_memory, mib},
    Spelling{"epoch", Quantity::epoch},
    Spelling{"epch", Quantity::epoch},
    Spelling{"smp/s", Quantity::samples_per_s},
    Spelling{"samples_per_second", Quantity::samples_per_s},
    Spelling{"samples_per_s", Quantity::samples_per_s},
};

constexpr std::array<std::string_view, quantity_count> names{"loss",         "learning rate",   "gradient norm",    "parameter norm",  "step time",
                                                             "loading time", "update time",     "memory allocated", "memory reserved", "host memory",
                                                             "epoch",        "samples a second"};

}  // namespace

std::string_view quantity_name(Quantity quantity) { return names[static_cast<std::size_t>(quantity)]; }

std::optional<Named> known_metric(std::string_view key) {
  std::string name = lower(key);
  for (const std::string_view prefix : {"train/", "training/", "train_", "train."})
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      break;
    }
  if (name == "step" || name == "global_step" || name == "_step" || name == "iteration" || name == "iter") return Named{true};
  const auto found = std::ranges::find(spellings, name, &Spelling::key);
  if (found == spellings.end()) return std::nullopt;
  return Named{false, found->quantity, found->factor};
}

const std::pair<std::string, double>* broken_part(const Record& record) {
  const auto found = std::ranges::find_if(record.other, [](const auto& part) { return !std::isfinite(part.second); });
  return found == record.other.end() ? nullptr : &*found;
}

bool training_loss_name(std::string_view name) {
  if (!name.ends_with("loss") && !name.ends_with("loss_epoch")) return false;
  for (const std::string_view set : {"eval", "val", "test", "dev", "best", "min_", "lowest", "prev"})
    if (name.starts_with(set)) return false;
  return !contains(name, "best") && !contains(name, "/val");
}

std::optional<double> to_metric(std::string_view word) {
  word = trim(word);
  if (word.empty() || word.size() > 40) return std::nullopt;
  const char c = word[word[0] == '-' || word[0] == '+' ? 1 : 0];
  if (c == 'n' || c == 'N' || c == 'i' || c == 'I') {
    const std::string low = lower(word);
    if (low == "nan" || low == "-nan") return std::numeric_limits<double>::quiet_NaN();
    if (low == "inf" || low == "infinity" || low == "+inf") return std::numeric_limits<double>::infinity();
    if (low == "-inf" || low == "-infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  if (c != '.' && (c < '0' || c > '9')) return std::nullopt;
  if (const auto real = to_real(word)) return real;
  // 1e400 is infinite, as Python reads it.
  const std::string infinite = without_nonfinite(word[0] == '+' ? word.substr(1) : word, Nonfinite::quoted);
  if (infinite == "\"Infinity\"") return std::numeric_limits<double>::infinity();
  if (infinite == "\"-Infinity\"") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

bool Log::has(EventKind kind) const { return first(kind) != nullptr; }

const Event* Log::first(EventKind kind) const {
  const auto found = std::ranges::find(events, kind, &Event::kind);
  return found == events.end() ? nullptr : &*found;
}

}  // namespace ff::training
