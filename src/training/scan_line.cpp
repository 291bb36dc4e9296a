// Numbers with names in a piece of a text log, however the program separates them.
#include "training/scan_line.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace ff::training {
namespace {

bool key_part(char c) { return letter(c) || digit(c) || c == '_' || c == '/' || c == '.' || c == '-'; }

/// "h:mm:ss" or "mm:ss".
double duration_of(std::string_view s) {
  double out = 0;
  for (const auto part : split(s, ':')) {
    const auto n = to_integer<std::int64_t>(part);
    if (!n || *n < 0 || *n > 100'000) return unknown;
    out = out * 60 + static_cast<double>(*n);
  }
  return out;
}

struct Number {
  double value = 0, unit = 1;
  std::size_t end = 0;
};

/// A number at this place, with what stands behind it: K, M, B, T (lerobot's big numbers), s, ms, MB, GB.
std::optional<Number> number_at(std::string_view s, std::size_t at, bool big) {
  std::size_t end = at;
  while (end < s.size() && (digit(s[end]) || letter(s[end]) || s[end] == '.' || s[end] == '-' || s[end] == '+') && end - at < 40) ++end;
  std::string_view word = s.substr(at, end - at);
  Number out;
  // Microsoft's runtime prints "1.#INF", "-1.#IND", "1.#QNAN".
  if ((word == "1." || word == "-1.") && s.substr(end).starts_with("#")) {
    const std::string_view kind = s.substr(end + 1);
    for (const std::string_view name : {"INF", "IND", "QNAN", "SNAN"})
      if (kind.starts_with(name)) {
        const double infinite = word == "1." ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
        out.value = name == "INF" ? infinite : std::numeric_limits<double>::quiet_NaN();
        out.end = end + 1 + name.size();
        return out;
      }
  }
  while (!word.empty() && (word.back() == '.' || word.back() == '-')) word.remove_suffix(1);
  out.end = at + word.size();
  if (const auto plain = to_metric(word)) {
    out.value = *plain;
    return out;
  }
  std::size_t suffix = word.size();
  while (suffix > 0 && letter(word[suffix - 1])) --suffix;
  const auto value = to_metric(word.substr(0, suffix));
  if (!value) return std::nullopt;
  const std::string_view tail = word.substr(suffix);
  double factor = 0;
  if (big && tail.size() == 1) {
    factor = tail == "K" ? 1e3 : tail == "M" ? 1e6 : tail == "B" ? 1e9 : tail == "T" ? 1e12 : 0;
    const auto point = word.find('.');
    out.unit = factor / (point == std::string_view::npos ? 1.0 : std::pow(10.0, static_cast<double>(suffix - point - 1)));
  }
  if (tail == "s") factor = 1;
  if (tail == "ms") factor = 1e-3;
  if (tail == "GB" || tail == "GiB") factor = 1024.0 * 1024 * 1024;
  if (tail == "MB" || tail == "MiB") factor = 1024.0 * 1024;
  if (factor == 0) return std::nullopt;
  out.value = *value * factor;
  return out;
}

/// Behind "tensor(", "array(", "np.float32(": values printed without .item() ("loss: tensor(0.1234, device='cuda:0')").
std::size_t behind_call(std::string_view s, std::size_t at) {
  for (const std::string_view call : {"tensor(", "array(", "Array(", "np.float64(", "np.float32(", "np.float16(", "jnp.float32("})
    if (s.substr(at).starts_with(call)) return at + call.size();
  return at;
}

/// Names that may stand before a bare blank and a number ("Loss 0.12", "step 100").
bool may_stand_alone(std::string_view key) {
  const std::string k = lower(key);
  return k == "step" || k == "loss" || k == "lr" || k == "gradnorm" || k == "grad_norm" || k == "steptime" || k == "epoch" || k == "iteration" ||
         k == "iter" || k == "train/loss" || k == "train_loss";
}

/// Losses of another set: "val loss: 0.3", "best loss 0.2". A mean repeats what its records said.
enum class Whose { own, mean, other };
Whose whose(std::string_view before) {
  const auto all = words(before);
  if (all.empty()) return Whose::own;
  const auto other = [](std::string_view word) { return !training_loss_name(lower(word) + "_loss"); };
  const std::string word = lower(all.back());
  if (other(word)) return Whose::other;
  if (word != "mean" && word != "average" && word != "avg") return Whose::own;
  return all.size() > 1 && other(all[all.size() - 2]) ? Whose::other : Whose::mean;
}

/// What may stand behind a lone loss: the rest of a tensor that was printed whole.
bool ends_there(std::string_view rest) {
  rest = trim(rest);
  if (rest.empty()) return true;
  return (rest.front() == ')' || rest.front() == ',') && rest.back() == ')' && rest.find(':') == rest.rfind(':');
}

}  // namespace

Scan scan(std::string_view s) {
  Scan out;
  for (std::size_t i = 0; i < s.size();) {
    if (!letter(s[i]) && s[i] != '_' && static_cast<unsigned char>(s[i]) < 0x80) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < s.size() && (key_part(s[end]) || static_cast<unsigned char>(s[end]) >= 0x80)) ++end;
    std::string key(s.substr(i, end - i));
    const std::size_t key_begin = i;
    i = end;
    std::size_t at = end;
    bool separator = false;
    if (at < s.size() && (s[at] == '\'' || s[at] == '"')) ++at;
    while (at < s.size() && s[at] == ' ' && at - end < 4) ++at;
    if (at < s.size() && (s[at] == ':' || s[at] == '=')) {
      separator = true;
      ++at;
      while (at < s.size() && s[at] == ' ' && at - end < 8) ++at;
    } else if (end < s.size() && s[end] == ' ' && may_stand_alone(key)) {
      // Columns are padded: "iteration      100/    8000".
      at = std::min(s.find_first_not_of(' ', end), s.size());
      if (at - end > 16) continue;
    } else if (key != "ms") {
      continue;
    }
    if (at < s.size() && (s[at] == '\'' || s[at] == '"')) ++at;
    auto set = Whose::own;
    // Two words: "grad norm: 1.2", "learning rate: 1e-4", "lm loss: 2.3".
    if (key == "norm" || key == "rate" || key == "loss" || key == "Loss") {
      const std::string_view before = trim(s.substr(0, key_begin));
      if (key == "norm" && lower(before).ends_with("grad")) key = "grad_norm";
      if (key == "norm" && lower(before).ends_with("param")) key = "param_norm";
      if (key == "rate" && lower(before).ends_with("learning")) key = "learning_rate";
      if (key == "loss" || key == "Loss") set = whose(before.substr(before.size() > 24 ? before.size() - 24 : 0));
      if (set == Whose::other) continue;
    }
    // Megatron: "elapsed time per iteration (ms): 123.4"; its "iteration" is the step only where a number follows at once.
    if (key == "ms" && lower(s.substr(0, key_begin)).ends_with("per iteration (") && s.substr(end).starts_with("): ")) {
      if (const auto time = number_at(s, end + 3, false)) {
        if (!out.record.holds(Quantity::step_s)) out.record.set(Quantity::step_s, time->value / 1000);
        i = time->end;
      }
      continue;
    }
    const auto named = known_metric(key);
    at = behind_call(s, at);
    const auto number = number_at(s, at, named && named->step);
    if (!number || (set == Whose::mean && std::isfinite(number->value))) continue;
    if (!separator && number->end < s.size() && (letter(s[number->end]) || s[number->end] == '_')) continue;
    i = number->end;
    if (!named) {
      const std::string low = lower(key);
      if (low == "allocated" || low == "peak_allocated") {
        if (low == "allocated" && number->value > 4096) out.record.set(Quantity::allocated, number->value);
      } else if (low == "reserved") {
        if (number->value > 4096) out.record.set(Quantity::reserved, number->value);
      } else if (training_loss_name(low)) {
        if (out.record.other.size() < 16) out.record.other.emplace_back(key, number->value);
      } else {
        continue;
      }
      out.any = true;
      continue;
    }
    out.any = true;
    if (named->step) {
      if (!std::isfinite(out.record.step)) {
        out.record.step = number->value;
        out.record.step_unit = number->unit;
        // "step 300/1000"
        auto slash = number->end;
        while (slash < s.size() && s[slash] == ' ') ++slash;
        if (slash < s.size() && s[slash] == '/') {
          const std::string_view rest = trim(s.substr(slash + 1, 16));
          if (const auto total = to_integer<std::int64_t>(rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()))); total)
            out.record.step_total = static_cast<double>(*total);
        }
      }
      continue;
    }
    if (out.record.holds(named->quantity)) continue;
    out.lone = named->quantity == Quantity::loss && key_begin == 0 && ends_there(s.substr(number->end));
    out.record.set(named->quantity, number->value * named->factor);
    if (const auto text = s.substr(at, number->end - at);
        named->quantity == Quantity::learning_rate && text.find_first_of("eE") == std::string_view::npos && text.find('.') != std::string_view::npos)
      out.record.rate_decimals = static_cast<int>(text.size() - text.find('.') - 1);
  }
  return out;
}

/// "Epoch 3:", "epoch [3/10]": the number behind the word.
std::optional<double> epoch_before(std::string_view s) {
  constexpr std::size_t between = 3;
  const std::string low = lower(s.substr(0, 200));
  const auto at = low.find("epoch");
  if (at == std::string::npos) return std::nullopt;
  auto begin = at + std::string_view("epoch").size();
  for (std::size_t i = 0; i < between && begin < low.size() && !digit(low[begin]); ++i) ++begin;
  auto end = begin;
  while (end < low.size() && digit(low[end])) ++end;
  if (end == begin) return std::nullopt;
  return to_real(low.substr(begin, end - begin));
}

bool read_bar(std::string_view s, Record& record) {
  const auto percent = s.find("%|");
  if (percent == std::string_view::npos) return false;
  const auto bar_end = s.find('|', percent + 2);
  if (bar_end == std::string_view::npos) return false;
  const auto open = s.find('[', bar_end);
  if (open == std::string_view::npos) return false;
  const auto counts = split(trim(s.substr(bar_end + 1, open - bar_end - 1)), '/');
  const auto less = s.find('<', open);
  if (counts.size() != 2 || less == std::string_view::npos) return false;
  const auto n = to_integer<std::int64_t>(counts[0]);
  if (!n) return false;
  const auto close = s.find(']', less);
  const std::string_view postfix = s.substr(less, close == std::string_view::npos ? std::string_view::npos : close - less);
  Scan values = scan(postfix);
  record = values.record;
  // tqdm's set_description: "loss 0.53:  41%|####".
  if (!record.holds(Quantity::loss))
    if (const Scan before = scan(s.substr(0, percent)); before.record.holds(Quantity::loss))
      record.set(Quantity::loss, before.record.of(Quantity::loss));
  record.bar = true;
  // Lightning's "Epoch 3:  41%|####": its bar begins anew in each.
  if (const auto epoch = epoch_before(s.substr(0, percent)); epoch && !record.holds(Quantity::epoch)) record.set(Quantity::epoch, *epoch);
  if (const auto total = to_integer<std::int64_t>(trim(counts[1])); total && !record.holds(Quantity::epoch))
    record.step_total = static_cast<double>(*total);
  if (!std::isfinite(record.step)) record.step = static_cast<double>(*n);
  record.time = duration_of(s.substr(open + 1, less - open - 1));
  for (const auto part : split(postfix, ',')) {
    const auto text = trim(part);
    for (const std::string_view unit : {"s/step", "s/it"})
      if (text.ends_with(unit))
        if (const auto v = to_metric(text.substr(0, text.size() - unit.size()))) record.set(Quantity::step_s, *v);
    for (const std::string_view unit : {"step/s", "it/s"})
      if (text.ends_with(unit))
        if (const auto v = to_metric(text.substr(0, text.size() - unit.size())); v && *v > 0) record.set(Quantity::step_s, 1 / *v);
  }
  return true;
}

std::size_t next_record(std::string_view s) {
  constexpr std::size_t longest = 1000;  // of one record: a line of megabytes is read in linear time
  s = s.substr(0, longest);
  for (const std::string_view key : {"step", "Step", "iteration", "iter"}) {
    const auto first = s.find(key);
    constexpr std::size_t farthest = 40;
    if (first > farthest) continue;  // npos is
    for (auto at = s.find(key, first + key.size()); at != std::string_view::npos; at = s.find(key, at + key.size())) {
      if (key_part(s[at - 1])) continue;
      const Scan before = scan(s.substr(0, at)), behind = scan(s.substr(at, 160));
      const bool two = before.record.holds(Quantity::loss) && behind.record.holds(Quantity::loss);
      if (two && std::isfinite(behind.record.step) && before.record.step != behind.record.step) return at;
      break;
    }
  }
  return std::string_view::npos;
}

}  // namespace ff::training
