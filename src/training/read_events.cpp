// TensorBoard's event files: TFRecord frames of tensorflow.Event (tensorboard/compat/proto/event.proto, summary.proto).
#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "training/series.h"
#include "training/wire.h"

namespace ff::training {
namespace {

constexpr Crc castagnoli(0x82F63B78U);

std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t c = castagnoli.of(bytes);
  return ((c >> 15U) | (c << 17U)) + 0xa282ead8U;
}

/// The number of a TensorProto: float_val (5), double_val (6), int_val (7) or tensor_content (4) of one element.
std::optional<double> tensor_number(std::string_view tensor) {
  std::uint64_t dtype = 0;
  std::optional<double> out;
  Fields fields(tensor);
  while (const auto f = fields.next()) {
    if (f->number == 1) dtype = f->varint;
    if (f->number == 4 && dtype == 1)
      if (const auto v = little<float>(f->bytes, 0)) out = *v;
    if (f->number == 4 && dtype == 2)
      if (const auto v = little<double>(f->bytes, 0)) out = *v;
    if (f->number == 5) {
      if (f->type == 5)
        out = f->real();
      else if (const auto v = little<float>(f->bytes, 0))
        out = *v;
    }
    if (f->number == 6) {
      if (f->type == 1)
        out = f->real();
      else if (const auto v = little<double>(f->bytes, 0))
        out = *v;
    }
  }
  return out;
}

void add(Log& log, std::map<std::int64_t, std::size_t>& by_step, std::uint32_t source, std::uint64_t entry, std::int64_t step, double time,
         std::string_view tag, double number) {
  const auto named = known_metric(tag);
  const bool loss_part = !named && training_loss_name(lower(tag));
  if (!named && !loss_part) return;
  auto [place, fresh] = by_step.emplace(step, log.records.size());
  if (fresh || (named && !named->step && log.records[place->second].holds(named->quantity))) {
    // The same quantity twice at one step: written again after a resumption.
    Record record;
    record.source = source;
    record.line = entry;
    record.step = static_cast<double>(step);
    record.time = time;
    place->second = log.records.size();
    log.records.push_back(std::move(record));
  }
  Record& record = log.records[place->second];
  if (loss_part) {
    if (record.other.size() < 16) record.other.emplace_back(std::string(tag), number);
  } else if (!named->step) {
    record.set(named->quantity, number * named->factor);
  }
}

}  // namespace

Result<void> read_event_file(std::string_view bytes, std::uint32_t source, Log& log) {
  const std::string& where = log.sources[source];
  std::map<std::int64_t, std::size_t> by_step;
  std::uint64_t entry = 0;
  bool any = false;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = little<std::uint64_t>(bytes, at);
    const auto length_sum = little<std::uint32_t>(bytes, at + 8);
    if (!length || !length_sum) {
      log.notes.push_back(fmt::format("{}: the last {} bytes are a torn frame: its writer was stopped", where, bytes.size() - at));
      break;
    }
    if (masked(bytes.substr(at, 8)) != *length_sum)
      return fail("is no TFRecord frame (wrong checksum of its length)", fmt::format("{}: byte {}", where, at),
                  any ? "the file is damaged from here on" : "is this a TensorBoard event file?");
    if (*length > bytes.size() - at - 12 || bytes.size() - at - 12 - *length < 4) {
      log.notes.push_back(fmt::format("{}: the last frame is torn at byte {}: its writer was stopped", where, at));
      break;
    }
    const std::string_view event = bytes.substr(at + 12, *length);
    if (masked(event) != little<std::uint32_t>(bytes, at + 12 + *length))
      return fail("has a wrong checksum", fmt::format("{}: frame {} at byte {}", where, entry + 1, at), "the file is damaged from here on");
    at += 12 + *length + 4;
    ++entry;
    any = true;
    double time = unknown;
    std::int64_t step = 0;
    std::string_view summary;
    Fields fields(event);
    while (const auto f = fields.next()) {
      if (f->number == 1 && f->type == 1) time = f->real();
      if (f->number == 2 && f->type == 0) step = static_cast<std::int64_t>(f->varint);
      if (f->number == 5 && f->type == 2) summary = f->bytes;
    }
    Fields values(summary);
    while (const auto value = values.next()) {
      if (value->number != 1 || value->type != 2) continue;
      std::string_view tag;
      std::optional<double> number;
      Fields parts(value->bytes);
      while (const auto f = parts.next()) {
        if (f->number == 1 && f->type == 2) tag = f->bytes;
        if (f->number == 2 && f->type == 5) number = f->real();
        if (f->number == 8 && f->type == 2) number = tensor_number(f->bytes);
      }
      if (number) add(log, by_step, source, entry, step, time, tag, *number);
    }
  }
  log.formats.emplace_back("TensorBoard");
  return {};
}

}  // namespace ff::training
