// The metric records of a training log: lerobot-train, HF Trainer (console and trainer_state.json), openpi, LingBot-VLA,
// and plain "step N loss x" lines.
//
//   train.{records,step_first,step_last}
//   train.loss.{first,last,min,nonfinite,nonfinite_at,explosion}   nonfinite_at: number of the first bad record, from 0
//   train.grad.runaway        the smaller of the last two over the larger of the first two
//   train.grad.{nonfinite,zero_run,repeat_run,spike}               spike: largest over the median of the 20 before
//   train.lr.{first,last,max,zero_records,dead_share,restarts}   restarts: rises from under a hundredth to over a half; dead_share: share of the run
//   at under a hundredth of the highest rate train.{step_falls,mem_slope,data_share,slowest_step} train.resume.step_last    last step of a log whose
//   run was told to resume train.resume.{jump,first_third}   of the first loss after a line that says the run resumes: over the last loss before it
//                             in the same log; divided by three (to be compared with train.loss.last of another log)
//   train.resume.{step_said,step_first,behind}   the step that this line names; the first step recorded after it; how far that is
//                             behind (0 unless it is less than half)
//   train.{gap_s,gap_ratio}   longest time between two dated records, and over the median
//     step_falls: the step goes back by more than rounding; mem_slope: growth of the printed memory per record over its
//     level when it grows all the time; data_share: median share of loading time; slowest_step: longest step over median.

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

inline constexpr std::size_t max_csv_line = 4096;

struct Record {
  std::uint64_t line = 0;
  std::optional<double> clock;  ///< seconds, from the line's date
  std::optional<double> step, loss, grad, lr, memory, data_s, update_s, total_s;
};

/// "200", "1K", "6.2K", "nan", "-inf".
std::optional<double> metric(std::string_view word) {
  word = trim(word);
  while (!word.empty() && (word.back() == ',' || word.back() == '\'' || word.back() == '}' || word.back() == ';')) word.remove_suffix(1);
  while (!word.empty() && word.front() == '\'') word.remove_prefix(1);
  const std::string low = lower(word);
  if (low == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (low == "inf" || low == "infinity") return std::numeric_limits<double>::infinity();
  if (low == "-inf" || low == "-infinity") return -std::numeric_limits<double>::infinity();
  double factor = 1;
  if (!word.empty() && (word.back() == 'K' || word.back() == 'M' || word.back() == 'B')) {
    factor = word.back() == 'K' ? 1e3 : word.back() == 'M' ? 1e6 : 1e9;
    word.remove_suffix(1);
  }
  const auto value = to_real(word);
  return value ? std::optional<double>(*value * factor) : std::nullopt;
}

void take(Record& record, std::string_view key, std::optional<double> value) {
  if (!value) return;
  const std::string name = lower(key);
  if (name == "step" || name == "global_step") record.step = value;
  if (name == "loss" || name == "train/loss" || name == "train_loss") record.loss = value;
  if (name == "grdn" || name == "grad_norm" || name == "gradnorm") record.grad = value;
  if (name == "lr" || name == "learning_rate") record.lr = value;
  if (name == "mem_gb" || name == "allocated" || name == "mem") record.memory = value;
  if (name == "data_s" || name == "data_time" || name == "data_t" || name == "load_time" || name == "dataload_time" || name == "dataloading_s")
    record.data_s = value;
  if (name == "step_time" || name == "iter_time" || name == "batch_time" || name == "total_time") record.total_s = value;
  if (name == "updt_s" || name == "time" || name == "steptime" || name == "model_time" || name == "compute_time") record.update_s = value;
}

/// Seconds of "2026-01-22 09:04:58" on a clock that only serves for differences.
std::optional<double> clock_of(std::string_view line) {
  static const RE2 date(R"((\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2}))");
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  re2::StringPiece rest = piece(line);
  bool found = false;  // behind the date of a container or of CI stands the program's own
  while (RE2::FindAndConsume(&rest, date, &year, &month, &day, &hour, &minute, &second)) found = true;
  if (!found) return std::nullopt;
  if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  // Days since 1970 by the proleptic Gregorian calendar, months counted from March.
  const int y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
  const double days = 365.0 * y + std::floor(y / 4.0) - std::floor(y / 100.0) + std::floor(y / 400.0) + std::floor((153.0 * m + 2) / 5) + day;
  return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

std::vector<Record> records_of(std::string_view text) {
  // A key, a separator, a value. The keys are few, so that prose does not become a record.
  static const RE2 pair(
      R"((?i)(?:^|[^\w./-])'?(step|global_step|loss|train/loss|train_loss|grdn|grad_?norm|lr|learning_rate|mem_gb|data_s|data_time|data_t|load_time|dataload_time|dataloading_s|step_time|iter_time|batch_time|total_time|model_time|compute_time|updt_s|steptime)'?(?:\s*[:=]\s*|\s+)'?(-?(?:\d[\d.]*(?:e[+-]?\d+)?[KMB]?|nan|inf(?:inity)?))\b)");
  std::vector<Record> out;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (out.size() >= 1'000'000 || line.size() > 1u << 20) return;
    if (!mentions(line, "loss")) return;
    // Progress bars and records may stand on one line: each "step:" begins a record.
    std::size_t begin = 0;
    const auto clock = clock_of(line);
    while (begin < line.size()) {
      std::size_t end = line.find("step:", begin + 5);
      if (end == std::string_view::npos) end = line.size();
      std::string_view part = line.substr(begin, end - begin);
      Record record;
      record.line = number;
      record.clock = clock;
      re2::StringPiece rest = piece(part);
      std::string key, value;
      while (RE2::FindAndConsume(&rest, pair, &key, &value)) take(record, key, metric(value));
      // "120/25000: loss=0.4": the step of a bar that names no step.
      static const RE2 counted(R"((?:^|[\s:])(\d{1,8})/(\d{2,9})(?:\s*\]?\s*[:,|]\s*|\s+)loss\b)");
      double done = 0, all = 0;
      if (!record.step && RE2::PartialMatch(piece(part), counted, &done, &all) && done <= all) record.step = done;
      // A number alone after "loss" is no metric record ("loss 0.4 (see below)"): want the step or a second quantity.
      if ((record.loss && (record.step || record.grad || record.lr)) || (record.step && record.grad)) out.push_back(record);
      begin = end;
    }
  });
  return out;
}

std::vector<Record> records_of_state(std::string_view text) {
  std::vector<Record> out;
  for (const Document& document : json_documents(text))
    for (const Value& entry : document.value["log_history"].items()) {
      if (entry.find("loss") == nullptr) continue;
      Record record;
      record.line = document.line;
      for (std::string_view key : {"step", "loss", "grad_norm", "learning_rate"})
        if (entry.find(key) != nullptr) take(record, key, scalar(entry[key]));
      out.push_back(record);
    }
  return out;
}

/// A CSV log: a header that names step and loss, then rows of numbers (nan and inf among them).
std::vector<Record> records_of_csv(std::string_view text) {
  std::vector<Record> out;
  std::vector<std::string> columns;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > max_csv_line || out.size() >= 1'000'000 || line.find(',') == std::string_view::npos) return;
    std::vector<std::string> cells;
    for (std::size_t begin = 0; begin <= line.size() && cells.size() < max_columns;) {
      const std::size_t comma = std::min(line.find(',', begin), line.size());
      cells.emplace_back(trim(line.substr(begin, comma - begin)));
      begin = comma + 1;
    }
    if (columns.empty()) {
      bool step = false, loss = false;
      for (const std::string& cell : cells) {
        step = step || cell == "step" || cell == "global_step" || cell == "epoch";
        loss = loss || cell == "loss" || cell == "train/loss" || cell == "train_loss";
      }
      if (step && loss) columns = cells;
      return;
    }
    if (cells.size() != columns.size()) return;
    Record record;
    record.line = number;
    for (std::size_t i = 0; i < cells.size(); ++i) take(record, columns[i], metric(cells[i]));
    if (record.loss) out.push_back(record);
  });
  return out;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void loss_facts(const std::vector<Record>& records, FactSink& sink) {
  std::optional<double> first, last, least;
  double bad = 0, explosion = 0;
  double high_run = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i].loss) continue;
    const double loss = *records[i].loss;
    if (!std::isfinite(loss)) {
      if (bad++ == 0) sink.number("train.loss.nonfinite_at", static_cast<double>(i), records[i].line);
      continue;
    }
    if (!first) first = loss;
    last = loss;
    least = std::min(least.value_or(loss), loss);
    // Loss above three times its minimum for ten records, or a thousandfold at once.
    high_run = *least > 0 && loss > 3 * *least ? high_run + 1 : 0;
    if (high_run >= 10 || (*least > 0 && loss > 1000 * *least)) explosion = std::max(explosion, loss / *least);
  }
  sink.number("train.loss.nonfinite", bad);
  if (first) sink.number("train.loss.first", *first);
  if (last) sink.number("train.loss.last", *last);
  if (least) sink.number("train.loss.min", *least);
  sink.number("train.loss.explosion", explosion);
}

void gradient_facts(const std::vector<Record>& records, FactSink& sink) {
  std::vector<double> window;
  double bad = 0, zero = 0, zero_longest = 0, same = 0, same_longest = 0, spike = 0;
  std::optional<double> previous;
  bool any = false;
  for (const Record& record : records) {
    if (!record.grad) continue;
    any = true;
    const double grad = *record.grad;
    if (!std::isfinite(grad)) {
      ++bad;
      zero = same = 0;
      continue;
    }
    zero = grad == 0 ? zero + 1 : 0;
    zero_longest = std::max(zero_longest, zero);
    same = previous && *previous == grad && grad != 0 ? same + 1 : 0;
    same_longest = std::max(same_longest, same);
    previous = grad;
    if (window.size() >= 10) {
      const double typical = median(window);
      if (typical > 0) spike = std::max(spike, grad / typical);
    }
    window.push_back(grad);
    if (window.size() > 20) window.erase(window.begin());
  }
  if (!any) return;
  // A short log: the last two norms are a hundred times the first ones.
  std::vector<double> norms;
  for (const Record& record : records)
    if (record.grad && std::isfinite(*record.grad)) norms.push_back(*record.grad);
  if (norms.size() >= 4) {
    const double early = std::max(norms[0], norms[1]);
    const double late = std::min(norms[norms.size() - 1], norms[norms.size() - 2]);
    if (early > 0) sink.number("train.grad.runaway", late / early);
  } else if (norms.size() == 3 && norms[0] > 0 && norms[1] > 5 * norms[0] && norms[2] > 5 * norms[1] && norms[2] > 100) {
    // Of three records only a steady growth to a large norm counts: the first norm of a run may be small.
    sink.number("train.grad.runaway", norms[2] / norms[0]);
  }
  sink.number("train.grad.nonfinite", bad);
  sink.number("train.grad.zero_run", zero_longest);
  sink.number("train.grad.repeat_run", same_longest);
  sink.number("train.grad.spike", spike);
}

/// Share of the run that was trained at less than a hundredth of the highest rate.
void dead_rate(const std::vector<Record>& records, double most, FactSink& sink) {
  std::optional<double> begin, end;
  std::uint64_t at = 0;
  for (const Record& record : records) {
    if (!record.lr || !record.step) continue;
    if (*record.lr < 0.01 * most) {
      if (!begin) {
        begin = record.step;
        at = record.line;
      }
    } else {
      begin.reset();
    }
    end = record.step;
  }
  // Up again from almost nothing: the schedule was passed and began anew.
  bool low = false;
  double restarts = 0;
  for (const Record& record : records) {
    if (!record.lr) continue;
    if (low && *record.lr > 0.5 * most) {
      ++restarts;
      low = false;
    }
    low = low || (*record.lr < 0.01 * most && &record != &records.front());
  }
  if (restarts > 0) sink.number("train.lr.restarts", restarts);
  if (begin && end && *end > 0) sink.number("train.lr.dead_share", (*end - *begin) / *end, at);
}

void rate_facts(const std::vector<Record>& records, FactSink& sink) {
  std::optional<double> first, last, most;
  double zeros = 0;
  std::vector<double> shares, updates;
  std::vector<double> memory;
  double slowest = 0;
  for (const Record& record : records) {
    if (record.lr) {
      if (!first) first = record.lr;
      last = record.lr;
      most = std::max(most.value_or(0), *record.lr);
      if (*record.lr == 0) ++zeros;
    }
    if (record.data_s && record.update_s && *record.data_s + *record.update_s > 0)
      shares.push_back(*record.data_s / (*record.data_s + *record.update_s));
    if (record.data_s && !record.update_s && record.total_s && *record.total_s > 0 && *record.data_s <= *record.total_s)
      shares.push_back(*record.data_s / *record.total_s);
    if (record.update_s && *record.update_s > 0) {
      updates.push_back(*record.update_s);
      slowest = std::max(slowest, *record.update_s);
    }
    if (record.memory && *record.memory > 0) memory.push_back(*record.memory);
  }
  if (first) {
    sink.number("train.lr.first", *first);
    sink.number("train.lr.last", *last);
    sink.number("train.lr.max", *most);
    sink.number("train.lr.zero_records", zeros);
    dead_rate(records, *most, sink);
  }
  if (!shares.empty()) sink.number("train.data_share", median(shares));
  if (updates.size() >= 5) sink.number("train.slowest_step", slowest / median(updates));
  if (memory.size() >= 6) {
    // Growth counts when the memory rises from record to record nearly always; a plateau after warm-up does not.
    double rises = 0;
    for (std::size_t i = 1; i < memory.size(); ++i) rises += memory[i] > memory[i - 1] ? 1 : 0;
    const double slope = (memory.back() - memory.front()) / static_cast<double>(memory.size() - 1) / memory.front();
    sink.number("train.mem_slope", rises >= 0.8 * static_cast<double>(memory.size() - 1) ? slope : 0);
  }
}

void gap_facts(const std::vector<Record>& records, FactSink& sink) {
  std::vector<double> gaps;
  double longest = 0;
  std::uint64_t line = 0;
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (!records[i].clock || !records[i - 1].clock || *records[i].clock < *records[i - 1].clock) continue;
    if (records[i].step && records[i - 1].step && *records[i].step < *records[i - 1].step) continue;  // another run
    const double gap = *records[i].clock - *records[i - 1].clock;
    gaps.push_back(gap);
    if (gap > longest) {
      longest = gap;
      line = records[i].line;
    }
  }
  if (gaps.size() < 5 || median(gaps) <= 0) return;
  sink.number("train.gap_s", longest, line);
  sink.number("train.gap_ratio", longest / median(gaps), line);
}

/// The first word of a line: records of one run begin alike, and a note about another run ("same with lr 1e-5: …") does not.
std::string first_word(std::string_view line) {
  const auto begin = std::ranges::find_if(line, [](unsigned char c) { return std::isalpha(c) != 0; });
  return {begin, std::find_if(begin, line.end(), [](unsigned char c) { return std::isalpha(c) == 0; })};
}

void step_facts(std::string_view text, const std::vector<Record>& records, FactSink& sink) {
  std::optional<double> first, last;
  double falls = 0;
  std::uint64_t last_line = 0;
  const auto same_run = [&](std::uint64_t a, std::uint64_t b) {
    std::string one, other;
    for_each_line(text, [&](std::uint64_t number, std::string_view line) {
      if (number == a) one = first_word(line);
      if (number == b) other = first_word(line);
    });
    return one == other;
  };
  for (const Record& record : records) {
    if (!record.step) continue;
    if (!first) first = record.step;
    // "1K" after "999" and repeated "1K" are rounding; less than half of the step before is not.
    if (last && *record.step < 0.5 * *last && *last >= 200 && (falls > 0 || same_run(last_line, record.line))) {
      ++falls;
      sink.number("train.step_fell_from", *last, record.line);
      sink.number("train.step_fell_to", *record.step, record.line);
    }
    last = record.step;
    last_line = record.line;
  }
  if (first) {
    sink.number("train.step_first", *first);
    sink.number("train.step_last", *last);
    sink.number("train.step_falls", falls);
  }
}

void resume_facts(std::string_view text, const std::vector<Record>& records, FactSink& sink) {
  static const RE2 resumes(R"((?i)\bresum(?:ing|ed) (?:training|from|run|at)|\bloaded? checkpoint (?:from|at) |\brestored? (?:from|checkpoint))");
  static const RE2 names_step(R"((?i)(?:checkpoints?[-_/\\]0*|(?:step|iter(?:ation)?)s?[\s=:_-]{1,3}0*)(\d{1,9})\b)");
  std::uint64_t at = 0;
  std::optional<double> said;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (at != 0 || line.size() > 4096 || !RE2::PartialMatch(piece(line), resumes)) return;
    at = number;
    double step = 0;
    if (RE2::PartialMatch(piece(line), names_step, &step)) said = step;
  });
  static const RE2 asked(R"(--resume[= ]true|--resume\s*$|"resume":\s*true|resume_from_checkpoint)");
  bool resumed = at != 0;
  if (!resumed) resumed = RE2::PartialMatch(piece(text), asked);
  std::optional<double> last_step;
  for (const Record& record : records)
    if (record.step) last_step = record.step;
  if (resumed && last_step) sink.number("train.resume.step_last", *last_step);
  if (at == 0) return;
  if (said) sink.number("train.resume.step_said", *said, at);
  // A progress bar begins at 0 before it jumps to where the run goes on: only a record with a loss is a step.
  const auto trained = std::ranges::find_if(records, [&](const Record& r) { return r.line > at && r.step && r.loss; });
  if (trained != records.end()) {
    sink.number("train.resume.step_first", *trained->step, trained->line);
    if (said) sink.number("train.resume.behind", *trained->step < 0.5 * *said ? *said - *trained->step : 0, trained->line);
  }
  std::optional<double> before;
  for (const Record& record : records) {
    if (!record.loss || !std::isfinite(*record.loss) || *record.loss <= 0) continue;
    if (record.line < at) {
      before = record.loss;
      continue;
    }
    if (before) sink.number("train.resume.jump", *record.loss / *before, record.line);
    sink.number("train.resume.first_third", *record.loss / 3, record.line);
    return;
  }
}

}  // namespace

void extract_training(std::string_view text, std::string_view source, Facts& out) {
  if (!mentions(text, "loss")) return;
  auto records = text.find("\"log_history\"") != std::string_view::npos ? records_of_state(text) : records_of(text);
  if (records.empty()) records = records_of_csv(text);
  if (records.empty()) return;
  FactSink sink(source, out);
  sink.number("train.records", static_cast<double>(records.size()));
  step_facts(text, records, sink);
  gap_facts(records, sink);
  loss_facts(records, sink);
  gradient_facts(records, sink);
  rate_facts(records, sink);
  resume_facts(text, records, sink);
}

}  // namespace ff::diagnosis
