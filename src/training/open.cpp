#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/readable.h"
#include "base/text.h"
#include "base/utf16.h"
#include "diagnosis/unpack.h"
#include "training/series.h"

namespace ff::training {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t most_bytes = 4ULL << 30U;

enum class Kind { none, text, json, events, wandb };

Kind kind_of(const fs::path& path) {
  const std::string whole = path.filename(), name(diagnosis::unpacked_name(whole)), low = lower(name);
  if (contains(name, ".tfevents.")) return Kind::events;
  if (low.ends_with(".wandb")) return Kind::wandb;
  if (name == "trainer_state.json") return Kind::json;
  if (low.ends_with(".jsonl") || low.ends_with(".log") || low.ends_with(".out") || low.ends_with(".err") || name == "stdout" || name == "stderr" ||
      name == "nohup.out")
    return Kind::text;
  if (low.ends_with(".txt") && (contains(low, "log") || contains(low, "train") || contains(low, "output"))) return Kind::text;
  return Kind::none;
}

/// Which files of a directory belong to its log. Of several trainer_state.json the newest checkpoint's holds all history.
std::vector<fs::path> files_of(const fs::path& root) {
  std::vector<fs::path> out, states;
  std::error_code error;
  std::size_t seen = 0;
  for (auto it = fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (++seen > 200'000 || it.depth() > 8) break;
    if (it->is_symlink(error) || !it->is_regular_file(error)) continue;
    const Kind kind = kind_of(it->path());
    if (kind == Kind::json)
      states.push_back(it->path());
    else if (kind != Kind::none)
      out.push_back(it->path());
  }
  // A packed copy beside the log says nothing new.
  std::erase_if(out, [&](const fs::path& p) {
    const std::string name = p.string();
    const std::string_view plain = diagnosis::unpacked_name(name);
    return plain != name && std::ranges::find(out, fs::path(plain)) != out.end();
  });
  if (!states.empty()) {
    const auto step = [](const fs::path& p) {
      const std::string parent = p.parent_path().filename();
      return parent.starts_with("checkpoint-") ? to_integer<std::int64_t>(parent.substr(11)).value_or(0) : std::int64_t{1} << 62;
    };
    out.push_back(*std::ranges::max_element(states, {}, step));
  }
  std::ranges::sort(out);
  // Older parts first: names sort by date for TensorBoard and wandb; text logs by the time they were last written.
  std::ranges::stable_sort(out, {}, [](const fs::path& p) {
    std::error_code ignored;
    return kind_of(p) == Kind::text ? fs::last_write_time(p, ignored).time_since_epoch().count() : 0;
  });
  return out;
}

Result<void> read_one(const fs::path& path, Log& log) {
  auto bytes = diagnosis::whole_unpacked(path.string(), most_bytes);
  if (!bytes) return std::unexpected(bytes.error());
  const auto source = static_cast<std::uint32_t>(log.sources.size());
  log.sources.push_back(path.string());
  Kind kind = kind_of(path);
  if (bytes->starts_with(":W&B")) kind = Kind::wandb;
  if (kind != Kind::events && kind != Kind::wandb)
    if (const Utf16 form = utf16_of(*bytes); form != Utf16::no) *bytes = utf16_to_utf8(*bytes, form == Utf16::big);
  const std::string_view begin = trim(std::string_view(*bytes).substr(0, 4096));
  if (kind == Kind::none && begin.starts_with("{") && !begin.starts_with("{'")) {
    // One document, or one object a line: the first line alone is whole in the second case.
    const auto first = std::string_view(*bytes).substr(0, bytes->find('\n'));
    const auto object = parse_json(quote_nonfinite(first));
    if (!object || (*object)["log_history"].is_list()) kind = Kind::json;
  }
  // A list of metric objects, as json.dump writes it.
  if (kind == Kind::none && begin.starts_with("[") && trim(begin.substr(1)).starts_with("{\"") && parse_json(quote_nonfinite(*bytes)))
    kind = Kind::json;
  switch (kind) {
    case Kind::events:
      return read_event_file(*bytes, source, log);
    case Kind::wandb:
      return read_wandb_file(*bytes, source, log);
    case Kind::json:
      return read_json_document(*bytes, source, log);
    default:
      read_text(*bytes, source, log);
      return {};
  }
}

/// lerobot prints steps with three digits ("1K"). The record's place in the sequence gives the number back.
void recover_steps(Log& log) {
  auto& all = log.records;
  std::vector<double> gaps;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].part == all[i - 1].part && !all[i].bar && all[i].step_unit == 1 && all[i - 1].step_unit == 1 && all[i].step > all[i - 1].step)
      gaps.push_back(all[i].step - all[i - 1].step);
  double every = log.settings["log_freq"].as_real(0);
  if (every <= 0 && !gaps.empty()) {
    std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2));
    every = gaps[gaps.size() / 2];
  }
  if (every > 0) log.log_every = every;
  double before = unknown;
  std::uint32_t part = 0;
  for (auto& r : all) {
    if (r.bar) continue;
    if (r.part != part) before = unknown;
    part = r.part;
    if (r.step_unit > 1 && every > 0 && std::isfinite(before) && std::abs(before + every - r.step) <= 0.55 * r.step_unit + 1) {
      r.step = before + every;
      r.step_unit = 1;
    }
    if (std::isfinite(r.step)) before = r.step;
  }
}

/// HF's console has no step: with the logging interval it is the number of the record.
void number_steps(Log& log) {
  const double every = log.settings["log_freq"].as_real(0);
  std::size_t n = 0;
  for (auto& r : log.records) {
    if (r.bar) continue;
    ++n;
    if (!std::isfinite(r.step) && every > 0) r.step = static_cast<double>(n) * every;
  }
}

/// "{value:.4f}" prints a rate of 2e-5 as 0.0000: where all rates have the same few decimals, a zero among them is no zero, and
/// where that leaves hardly a digit, nothing is known of the rate.
void drop_rounded_rates(Log& log) {
  constexpr auto rate = Quantity::learning_rate;
  int decimals = -1;
  double most = 0, least = INFINITY;
  for (const auto& r : log.records) {
    if (!r.holds(rate)) continue;
    if (r.rate_decimals < 2 || r.rate_decimals > 5 || (decimals >= 0 && decimals != r.rate_decimals)) return;
    decimals = r.rate_decimals;
    most = std::max(most, r.of(rate));
    least = std::min(least, r.of(rate));
  }
  if (decimals < 0 || least != 0) return;
  const double unit = std::pow(10.0, -decimals);
  const bool all = most < 20 * unit;
  bool dropped = false;
  for (auto& r : log.records)
    if (r.holds(rate) && (all || r.of(rate) == 0)) {
      r.has.reset(static_cast<std::size_t>(rate));
      dropped = true;
    }
  if (dropped)
    log.notes.push_back("the learning rate is printed with " + std::to_string(decimals) +
                        " decimals: " + (all ? "too few to judge it by" : "where it prints as 0 it is not known"));
}

}  // namespace

/// Takes records out; events keep their place.
template <class Drop>
void drop_records(Log& log, Drop&& drop) {
  std::vector<std::size_t> kept_before(log.records.size() + 1, 0);
  for (std::size_t i = 0; i < log.records.size(); ++i) kept_before[i + 1] = kept_before[i] + (drop(log.records[i]) ? 0 : 1);
  for (auto& e : log.events) e.after_record = kept_before[std::min(e.after_record, log.records.size())];
  std::erase_if(log.records, drop);
}

void finish(Log& log) {
  for (auto& r : log.records)
    if (const auto* part = broken_part(r); part != nullptr && !r.holds(Quantity::loss)) r.set(Quantity::loss, part->second);
  // What is not finite counts wherever it stands.
  const auto broken = [](const Record& r) { return r.holds(Quantity::loss) && !std::isfinite(r.of(Quantity::loss)); };
  if (std::ranges::any_of(log.records, [](const Record& r) { return !r.lone && r.holds(Quantity::loss); }))
    drop_records(log, [&](const Record& r) { return r.lone && !broken(r); });
  // Bars repeat what the records say, more often and less exactly; they count only where there is nothing else.
  const bool real =
      std::ranges::any_of(log.records, [](const Record& r) { return !r.bar && (r.holds(Quantity::loss) || r.holds(Quantity::gradient_norm)); });
  if (real) drop_records(log, [&](const Record& r) { return r.bar && !broken(r); });
  recover_steps(log);
  number_steps(log);
  drop_rounded_rates(log);
  for (auto& r : log.records)
    if (!r.holds(Quantity::step_s) && r.holds(Quantity::update_s))
      r.set(Quantity::step_s, r.of(Quantity::update_s) + (r.holds(Quantity::data_s) ? r.of(Quantity::data_s) : 0));
}

Result<Log> read_log(const std::vector<std::string>& paths) {
  Log log;
  for (const auto& name : paths) {
    std::error_code error;
    const fs::path path(name);
    if (auto unread = unreadable(path)) return std::unexpected(std::move(*unread));
    if (!fs::exists(path, error)) return usage_error("does not exist", name, "name a log file, or a directory that holds logs");
    if (!fs::is_directory(path, error)) {
      const std::size_t records = log.records.size(), events = log.events.size();
      if (auto read = read_one(path, log); !read) return std::unexpected(read.error());
      if (log.records.size() == records && log.events.size() == events) log.without.push_back(name);
      continue;
    }
    // A log of which a part cannot be read would seem to have a gap, or to have ended.
    if (auto unread = unreadable_below(path, [](const fs::path& file) { return kind_of(file) != Kind::none; }))
      return std::unexpected(std::move(*unread));
    const auto files = files_of(path);
    if (files.empty())
      return fail(
          "no training log is in this directory", name,
          "looked for *.log, *.jsonl, *.out, trainer_state.json, events.out.tfevents.*, *.wandb; name the file itself if it is called otherwise");
    for (const auto& file : files)
      if (auto read = read_one(file, log); !read) {
        if (is_unreadable(read.error())) return std::unexpected(read.error());
        log.notes.push_back(read.error().to_string());
      }
  }
  finish(log);
  return log;
}

}  // namespace ff::training
