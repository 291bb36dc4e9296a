// Text logs. A log is cut into segments (lines; carriage returns; a bar and a record that a collector glued together),
// and each segment is either a record of metrics, an event, or nothing to us. Formats: the messages of lerobot
// (utils/logging_utils.py, scripts/lerobot_train.py), transformers (trainer_callback.py), openpi (scripts/train.py,
// train_pytorch.py), LingBot-VLA (train_lingbotvla.py), tqdm.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "training/scan_line.h"

namespace ff::training {
namespace {

std::string without_colors(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '\x1b' && i + 1 < s.size() && s[i + 1] == '[') {
      i += 2;
      while (i < s.size() && (digit(s[i]) || s[i] == ';')) ++i;
      continue;  // the final letter is skipped by the loop
    }
    out += s[i];
  }
  return out;
}

/// Days since 1970-01-01 (Hinnant's algorithm).
double days(int y, int m, int d) {
  y -= m <= 2 ? 1 : 0;
  const int era = (y >= 0 ? y : y - 399) / 400;
  const int year = y - era * 400, day = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  return static_cast<double>(era) * 146097 + year * 365 + year / 4 - year / 100 + day - 719468;
}

std::optional<int> digits(std::string_view s, std::size_t at, std::size_t n) {
  if (at + n > s.size()) return std::nullopt;
  int out = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!digit(s[at + i])) return std::nullopt;
    out = out * 10 + (s[at + i] - '0');
  }
  return out;
}

/// "HH:MM:SS" and its fraction.
std::optional<double> clock_at(std::string_view s, std::size_t at) {
  const auto h = digits(s, at, 2), m = digits(s, at + 3, 2), sec = digits(s, at + 6, 2);
  if (!h || !m || !sec || s[at + 2] != ':' || s[at + 5] != ':' || *h > 23 || *m > 59 || *sec > 60) return std::nullopt;
  double out = *h * 3600 + *m * 60 + *sec;
  if (at + 8 < s.size() && (s[at + 8] == '.' || s[at + 8] == ','))
    if (const auto ms = digits(s, at + 9, 3)) out += *ms / 1000.0;
  return out;
}

/// "2026-01-22 09:04:58" at this place.
std::optional<double> date_at(std::string_view s, std::size_t at) {
  if (at + 19 > s.size() || s[at + 4] != '-' || s[at + 7] != '-' || (s[at + 10] != ' ' && s[at + 10] != 'T')) return std::nullopt;
  const auto y = digits(s, at, 4), m = digits(s, at + 5, 2), d = digits(s, at + 8, 2);
  const auto clock = clock_at(s, at + 11);
  if (!y || !m || !d || !clock || *m < 1 || *m > 12 || *d < 1 || *d > 31) return std::nullopt;
  return days(*y, *m, *d) * 86400 + *clock;
}

double time_of(std::string_view s) {
  const std::size_t to = std::min<std::size_t>(s.size(), 60);
  for (std::size_t i = 0; i < to; ++i)
    if (digit(s[i])) {
      if (const auto t = date_at(s, i)) return *t;
      if (i == 0 || s[i - 1] == '[' || s[i - 1] == ' ')
        if (const auto t = clock_at(s, i); t && (i == 0 || s[i - 1] == '[')) return *t;
      while (i + 1 < to && digit(s[i + 1])) ++i;
    }
  return unknown;
}

struct Phrase {
  std::string_view text;
  EventKind kind;
};
// The first that matches is taken; more exact ones come first. Case as printed.
constexpr std::array phrases{
    Phrase{"Start offline training", EventKind::start},
    Phrase{"***** Running training *****", EventKind::start},
    Phrase{"Resumed training from step", EventKind::resumed},
    Phrase{"Resuming data order at epoch", EventKind::resumed},
    Phrase{"Resuming training from", EventKind::resumed},
    Phrase{"Continuing training from global step", EventKind::resumed},
    Phrase{"Resuming with settings that differ", EventKind::settings_changed},
    Phrase{"Starting training from scratch", EventKind::from_scratch},
    Phrase{"No checkpoints in", EventKind::from_scratch},
    Phrase{"Trying older one", EventKind::older_checkpoint},
    Phrase{"Checkpoint policy after step", EventKind::checkpoint},
    Phrase{"Saved checkpoint at step", EventKind::checkpoint},
    Phrase{"Saving model checkpoint to", EventKind::checkpoint},
    Phrase{"End of training", EventKind::end},
    Phrase{"Training completed", EventKind::end},
    Phrase{"'train_runtime'", EventKind::end},
    Phrase{"Eval policy at step", EventKind::evaluation},
    Phrase{"***** Running Evaluation *****", EventKind::evaluation},
    Phrase{"eval_loss", EventKind::evaluation},
    Phrase{"Missing key(s) when loading model: [']", EventKind::missing_keys},
    Phrase{"OutOfMemoryError", EventKind::device_memory},
    Phrase{"HIP out of memory", EventKind::device_memory},
    Phrase{"CUDA out of memory", EventKind::device_memory},
    Phrase{"oom-kill", EventKind::host_memory},
    Phrase{"oom_kill", EventKind::host_memory},
    Phrase{"Out of memory: Killed process", EventKind::host_memory},
    Phrase{"insufficient shared memory", EventKind::shared_memory},
    Phrase{"No space left on device", EventKind::disk_full},
    Phrase{"Disk quota exceeded", EventKind::disk_full},
    Phrase{"exited unexpectedly", EventKind::worker_died},
    Phrase{"Memory access fault by GPU", EventKind::gpu_fault},
    Phrase{"HSA_STATUS_ERROR", EventKind::gpu_fault},
    Phrase{"hipErrorLaunchFailure", EventKind::gpu_fault},
    Phrase{"Watchdog caught collective operation timeout", EventKind::rank_lost},
    Phrase{"ChildFailedError", EventKind::rank_lost},
    Phrase{"DUE TO TIME LIMIT", EventKind::scheduler},
    Phrase{"DUE TO PREEMPTION", EventKind::scheduler},
    Phrase{"DUE TO NODE FAILURE", EventKind::scheduler},
    Phrase{"TERM_RUNLIMIT", EventKind::scheduler},
    Phrase{"=>> PBS: job killed", EventKind::scheduler},
    Phrase{"SIGTERM death signal", EventKind::killed},
    Phrase{"Received SIGTERM", EventKind::killed},
    Phrase{"SIGTERM received", EventKind::killed},
    Phrase{"Signal 15 (SIGTERM)", EventKind::killed},
    Phrase{"exitcode : -15", EventKind::killed},
    Phrase{"KeyboardInterrupt", EventKind::interrupted},
    Phrase{"Signal 9 (SIGKILL)", EventKind::killed},
    Phrase{"exitcode : -9", EventKind::killed},
    Phrase{"(core dumped)", EventKind::killed},
    Phrase{"slurmstepd: error: *** JOB", EventKind::cancelled},
    Phrase{"slurmstepd: error: *** STEP", EventKind::cancelled},
    Phrase{"Gradient overflow. Skipping step", EventKind::skipped_step},
    Phrase{"Traceback (most recent call last)", EventKind::traceback},
};

/// "ValueError: …", "torch.OutOfMemoryError: …" at the beginning of a line.
bool names_exception(std::string_view s) {
  const auto colon = s.find(": ");
  const std::string_view name = colon == std::string_view::npos ? s : s.substr(0, colon);
  if (name.size() < 5 || name.size() > 80 || !letter(name[0])) return false;
  if (!std::ranges::all_of(name, [](char c) { return letter(c) || digit(c) || c == '.' || c == '_'; })) return false;
  return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt");
}

std::optional<EventKind> event_kind(std::string_view s) {
  // The list of missing keys is printed empty in a healthy run.
  if (const auto at = s.find("Missing key(s) when loading model: "); at != std::string_view::npos)
    return contains(s.substr(at), "[]") ? std::nullopt : std::optional(EventKind::missing_keys);
  if (const auto at = s.find("Missing keys when loading state dict: "); at != std::string_view::npos)
    return s.substr(at + 38).starts_with("0 ") ? std::nullopt : std::optional(EventKind::missing_keys);
  for (const auto& p : phrases)
    if (contains(s, p.text)) return p.kind;
  if (trim(s) == "Killed") return EventKind::killed;
  if (names_exception(s)) return EventKind::exception;
  return std::nullopt;
}

/// The number after the last "step " (or "checkpoint-") of an event's line.
double step_in(std::string_view s) {
  for (const std::string_view word : {"step ", "step=", "step: ", "checkpoint-"}) {
    const auto at = s.rfind(word);
    if (at == std::string_view::npos) continue;
    std::size_t end = at + word.size(), begin = end;
    while (end < s.size() && digit(s[end])) ++end;
    if (const auto n = to_integer<std::int64_t>(s.substr(begin, end - begin))) return static_cast<double>(*n);
  }
  return unknown;
}

struct Setting {
  std::string_view text;
  const char* name;
};
constexpr std::array settings{Setting{"cfg.steps=", "steps"},
                              Setting{"dataset.num_frames=", "frames"},
                              Setting{"dataset.num_episodes=", "episodes"},
                              Setting{"num_learnable_params=", "learnable"},
                              Setting{"num_total_params=", "total"},
                              Setting{"'log_freq': ", "log_freq"},
                              Setting{"'save_freq': ", "save_freq"},
                              Setting{"'num_warmup_steps': ", "warmup_steps"},
                              Setting{"'num_decay_steps': ", "decay_steps"},
                              Setting{"'peak_lr': ", "peak_lr"},
                              Setting{"'num_workers': ", "num_workers"},
                              Setting{"'batch_size': ", "batch"},
                              Setting{"Total optimization steps = ", "steps"}};

void read_settings(std::string_view s, Log& log) {
  for (const auto& setting : settings) {
    const auto at = s.find(setting.text);
    if (at == std::string_view::npos) continue;
    std::size_t begin = at + setting.text.size();
    std::string text;
    while (begin < s.size() && (digit(s[begin]) || s[begin] == '.' || s[begin] == 'e' || s[begin] == '-' || s[begin] == ',') && text.size() < 24) {
      if (s[begin] == ',') {
        if (begin + 1 >= s.size() || !digit(s[begin + 1])) break;
      } else {
        text += s[begin];
      }
      ++begin;
    }
    if (const auto value = to_metric(text)) {
      // A resumed run may have other settings: the last ones count, the change is kept.
      if (log.settings.find(setting.name) != nullptr && log.settings[setting.name].as_real() != *value)
        log.settings.set(std::string(setting.name) + "_before", log.settings[setting.name]);
      log.settings.set(setting.name, *value);
    }
  }
}

void add_format(Log& log, std::string_view name) {
  if (std::ranges::find(log.formats, name) == log.formats.end()) log.formats.emplace_back(name);
}

/// Where new messages begin inside a line ("INFO 2026-01-22 09:", "Training:  41%|"), and the carriage returns, in order.
/// Collected once, so that a log of one line of megabytes is read in linear time.
std::vector<std::size_t> cuts(std::string_view s) {
  std::vector<std::size_t> out;
  const auto each = [&](std::string_view word, auto&& begins) {
    for (auto at = s.find(word); at != std::string_view::npos; at = s.find(word, at + 1))
      if (begins(at)) out.push_back(at);
  };
  for (const std::string_view level : {"INFO ", "WARNING ", "ERROR ", "DEBUG ", "CRITICAL "})
    each(level, [&](std::size_t at) {
      std::size_t date = at + level.size();
      if (s.substr(date).starts_with("[PID: ")) {
        const auto close = s.substr(0, std::min(s.size(), date + 20)).find(']', date);
        if (close == std::string_view::npos) return false;
        date = close + 2;
      }
      return date < s.size() && date_at(s, date).has_value();
    });
  each("Training: ", [&](std::size_t at) { return s.substr(at, 24).find("%|") != std::string_view::npos; });
  each("\r", [](std::size_t) { return true; });
  std::ranges::sort(out);
  return out;
}

class Reader {
 public:
  Reader(std::uint32_t source, Log& log) : source_(source), log_(log) {
    if (!log.records.empty()) part_ = log.records.back().part + 1;
  }

  void line(std::string_view raw, std::uint64_t number) {
    constexpr std::size_t most = 16U << 20U;
    if (raw.size() > most) raw = raw.substr(0, most);
    std::string clean;
    std::string_view text = raw;
    if (text.find('\x1b') != std::string_view::npos) {
      clean = without_colors(text);
      text = clean;
    }
    std::size_t from = 0;
    for (const std::size_t cut : cuts(text)) {
      if (cut > from) segment(text.substr(from, cut - from), number);
      from = cut;
    }
    segment(text.substr(from), number);
  }

 private:
  void segment(std::string_view s, std::uint64_t number) {
    s = trim(s);
    if (s.size() < 3) return;
    if (s.front() == '{' && s.size() > 2 && s[1] == '"') {
      const auto object = parse_json(quote_nonfinite(s));
      if (!object) {
        if (++torn_ <= 5) log_.notes.push_back(fmt::format("{}, line {}: begins as JSON and is none; it is left out", log_.sources[source_], number));
      } else if (read_json_record(*object, source_, number, log_)) {
        log_.records.back().part = part_;
        add_format(log_, "JSON lines");
      }
      return;
    }
    const double time = time_of(s);
    if (const auto kind = event_kind(s)) {
      if (*kind == EventKind::start || *kind == EventKind::resumed || *kind == EventKind::from_scratch) {
        // A start and what it says about itself are one beginning.
        if (log_.records.size() != begun_at_ || !begun_) ++part_;
        begun_ = true;
        begun_at_ = log_.records.size();
      }
      log_.events.push_back({*kind, source_, number, part_, log_.records.size(), step_in(s), time, std::string(s.substr(0, 400))});
      read_settings(s, log_);
      if (*kind != EventKind::gpu_fault && *kind != EventKind::skipped_step) return;
    }
    read_settings(s, log_);
    Record bar;
    if (read_bar(s, bar)) {
      if (bar.has.any()) {
        add_format(log_, "progress bar");
        push(bar, number, bar.time);
      }
      return;
    }
    if (const auto next = next_record(s); next != std::string_view::npos) {
      glued(s, next, number, time);
      return;
    }
    record(s, number, time);
  }

  /// Records that stand on one line, each from its step on.
  void glued(std::string_view s, std::size_t next, std::uint64_t number, double time) {
    for (; next != std::string_view::npos; next = next_record(s)) {
      record(s.substr(0, next), number, time);
      s.remove_prefix(next);
    }
    record(s, number, time);
  }

  void record(std::string_view s, std::uint64_t number, double time) {
    Scan found = scan(s);
    if (!found.any) return;
    const bool broken =
        broken_part(found.record) != nullptr || (found.record.holds(Quantity::loss) && !std::isfinite(found.record.of(Quantity::loss)));
    const bool measures =
        broken || found.record.holds(Quantity::loss) || found.record.holds(Quantity::gradient_norm) || found.record.holds(Quantity::allocated);
    const bool dictionary = s.front() == '{';
    // A "loss: 0.3" in a sentence is no record; a step, a dictionary, two metrics or a line of its own make one, and so does "loss: nan".
    const bool alone = !std::isfinite(found.record.step) && !dictionary && found.record.has.count() < 2;
    if (!measures || (alone && !found.lone && !broken)) return;
    found.record.lone = alone;
    if (found.record.holds(Quantity::allocated) && !found.record.holds(Quantity::loss) && std::isfinite(found.record.step) && !log_.records.empty() &&
        log_.records.back().source == source_ && log_.records.back().step == found.record.step) {
      for (const auto q : {Quantity::allocated, Quantity::reserved})
        if (found.record.holds(q)) log_.records.back().set(q, found.record.of(q));
      return;
    }
    if (contains(s, " smpl:"))
      add_format(log_, "lerobot-train");
    else if (dictionary)
      add_format(log_, "HF Trainer");
    else if (contains(s, "GradNorm ") && contains(s, "StepTime"))
      add_format(log_, "LingBot-VLA");
    else if (contains(s, "param_norm="))
      add_format(log_, "openpi (JAX)");
    else if (const auto spent = between(s, " time=", "s"); spent && contains(s, "step=") && to_metric(*spent)) {
      // What all steps since the record before took together; of the first record nobody knows how many they were.
      add_format(log_, "openpi (PyTorch)");
      if (const double steps = found.record.step - interval_from_; interval_part_ == part_ && steps > 0)
        found.record.set(Quantity::step_s, *to_metric(*spent) / steps);
      interval_from_ = found.record.step;
      interval_part_ = part_;
    } else
      add_format(log_, "plain lines");
    push(found.record, number, time);
  }

  void push(Record record, std::uint64_t number, double time) {
    record.source = source_;
    record.line = number;
    record.part = part_;
    record.time = time;
    // A total that the run itself prints beside its step; steps of an epoch have none.
    if (std::isfinite(record.step_total) && record.holds(Quantity::loss) && !record.holds(Quantity::epoch) && record.step <= record.step_total &&
        (log_.settings.find("steps") == nullptr || log_.settings["steps_from_record"].as_bool())) {
      log_.settings.set("steps", record.step_total);
      log_.settings.set("steps_from_record", true);
    }
    log_.records.push_back(std::move(record));
  }

  std::uint32_t source_;
  Log& log_;
  std::uint32_t part_ = 0;
  double interval_from_ = unknown;  ///< openpi: step of the record before, in this part
  std::uint32_t interval_part_ = 0;
  std::size_t begun_at_ = 0, torn_ = 0;
  bool begun_ = false;
};

}  // namespace

void read_text(std::string_view text, std::uint32_t source, Log& log) {
  Reader reader(source, log);
  std::uint64_t number = 0;
  for (std::size_t from = 0; from < text.size();) {
    auto end = text.find('\n', from);
    if (end == std::string_view::npos) end = text.size();
    reader.line(text.substr(from, end - from), ++number);
    from = end + 1;
  }
}

}  // namespace ff::training
