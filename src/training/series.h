#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::training {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// What one record can say. Memory is in bytes, times in seconds.
enum class Quantity {
  loss,
  learning_rate,
  gradient_norm,
  parameter_norm,
  step_s,
  data_s,
  update_s,
  allocated,
  reserved,
  host_memory,
  epoch,
  samples_per_s
};
inline constexpr std::size_t quantity_count = 12;
[[nodiscard]] std::string_view quantity_name(Quantity quantity);  ///< "loss", "learning rate", ...

/// One line of metrics. A value may be NaN or infinite: `has` tells absent from not finite.
struct Record {
  std::uint32_t source = 0;
  std::uint64_t line = 0;  ///< 1-based; number of the entry in binary files
  std::uint32_t part = 0;  ///< grows at each start or resumption within the files
  double step = unknown;
  double step_unit = 1;         ///< what the printed step was rounded to ("2K": 1000)
  double step_total = unknown;  ///< "300/1000": how many there will be
  double time = unknown;        ///< seconds; of the Unix epoch or of the run
  std::array<double, quantity_count> value{};
  std::bitset<quantity_count> has;
  std::vector<std::pair<std::string, double>> other;  ///< further losses
  bool lone = false;                                  ///< a loss on a line of its own, without a step; counts where there is nothing else
  bool bar = false;                                   ///< from a progress bar's postfix
  int rate_decimals = -1;                             ///< that the learning rate is printed with; -1: with an exponent, or from no text
  [[nodiscard]] bool holds(Quantity q) const { return has[static_cast<std::size_t>(q)]; }
  [[nodiscard]] double of(Quantity q) const { return holds(q) ? value[static_cast<std::size_t>(q)] : unknown; }
  void set(Quantity q, double x) {
    value[static_cast<std::size_t>(q)] = x;
    has.set(static_cast<std::size_t>(q));
  }
};

enum class EventKind {
  start,             ///< training begins (again)
  resumed,           ///< it says that it continues; step when told
  from_scratch,      ///< no checkpoint could be taken
  older_checkpoint,  ///< a damaged one was skipped
  checkpoint,        ///< saved; step and path when told
  end,               ///< the regular end
  evaluation,
  missing_keys,  ///< weights that the checkpoint does not have
  settings_changed,
  traceback,      ///< the first line of one
  exception,      ///< the line that names it
  device_memory,  ///< out of GPU memory
  host_memory,    ///< killed for memory
  killed,         ///< by a signal
  scheduler,      ///< the batch system ended the job and says why (time limit, preemption, lost node)
  cancelled,      ///< it ended the job's processes, which also follows a failure of their own
  disk_full,
  shared_memory,
  worker_died,
  rank_lost,
  gpu_fault,
  interrupted,   ///< by a person
  told_to_end,   ///< by a signal that `train watch` was sent and passed on
  skipped_step,  ///< loss scaling left a step out
};

struct Event {
  EventKind kind{};
  std::uint32_t source = 0;
  std::uint64_t line = 0;
  std::uint32_t part = 0;
  std::size_t after_record = 0;  ///< number of records before it
  double step = unknown, time = unknown;
  std::string text;  ///< the line, cut
};

/// Everything that the files of one training run say.
struct Log {
  std::vector<std::string> sources, formats;  ///< file names; "lerobot-train", "HF Trainer", ...
  std::vector<Record> records;
  std::vector<Event> events;
  Value settings = Value::object();  ///< steps, log_freq, save_freq, batch, frames, learnable, total, warmup_steps, peak_lr …
  std::vector<std::string> notes;    ///< damaged or unread parts, in plain words
  std::vector<std::string> without;  ///< files that were named and hold neither metrics nor anything of a run's course
  double log_every = unknown;        ///< steps between records
  std::optional<int> exit_status;    ///< of a command that was watched to its end (128 + signal); nothing: of a log nobody knows
  [[nodiscard]] bool has(EventKind kind) const;
  [[nodiscard]] const Event* first(EventKind kind) const;
};

/// Reads a text log: lerobot-train, HF Trainer dictionaries, openpi, LingBot-VLA, accelerate and tqdm bars (also where
/// carriage returns were dropped), and plain "step=… loss=…" lines; JSON lines among them. Adds to `log`.
void read_text(std::string_view text, std::uint32_t source, Log& log);

/// trainer_state.json, wandb-summary.json or a list of metric objects. Literal NaN and Infinity are taken.
Result<void> read_json_document(std::string_view text, std::uint32_t source, Log& log);
/// One metric object: a line of JSONL, an entry of log_history. False: it holds no metric.
bool read_json_record(const Value& object, std::uint32_t source, std::uint64_t line, Log& log);
/// JSON as Python writes it: bare NaN, Infinity and -Infinity become texts.
std::string quote_nonfinite(std::string_view json);

/// TensorBoard's event file: TFRecord frames (length, data, each with a masked CRC-32C) of protobuf Events with scalar
/// summaries. A torn last frame (the writer was killed) is a note; a wrong checksum before it is an error.
Result<void> read_event_file(std::string_view bytes, std::uint32_t source, Log& log);
/// Offline run of wandb (run-*.wandb): LevelDB's log format of protobuf Records; history, system statistics, exit code.
Result<void> read_wandb_file(std::string_view bytes, std::uint32_t source, Log& log);

/// A file, or a directory with any of them. Errors: nothing there, nothing readable, larger than 4 GiB.
Result<Log> read_log(const std::vector<std::string>& paths);
/// After all sources: recovers rounded steps, sorts records of binary files, fills in what follows from others.
void finish(Log& log);

/// A metric's name in any of the known spellings ("grdn", "train/grad_norm", "GradNorm"); nothing: none of them.
struct Named {
  bool step = false;
  Quantity quantity = Quantity::loss;
  double factor = 1;
};
[[nodiscard]] std::optional<Named> known_metric(std::string_view key);
/// A further loss that is not finite; null: none. Where no total stands beside it, it is the record's loss.
[[nodiscard]] const std::pair<std::string, double>* broken_part(const Record& record);
/// Is this lower-case name of a metric a loss of training, not of evaluation, and no best or lowest so far?
[[nodiscard]] bool training_loss_name(std::string_view name);
/// "0.5", "1.2e-3", "nan", "-inf", "NaN", "Infinity"; the whole text.
[[nodiscard]] std::optional<double> to_metric(std::string_view word);

}  // namespace ff::training
