#include "facts/kernel_log.h"

#include <array>
#include <cmath>

namespace ff::facts {
namespace {

constexpr std::size_t most_records = 2'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<int> month_of(std::string_view s) {
  constexpr std::array<std::string_view, 12> names{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (s == names[i]) return static_cast<int>(i) + 1;
  return std::nullopt;
}

/// Days since 1970-01-01 in the Gregorian calendar (Howard Hinnant's published formula).
std::int64_t days_from_civil(std::int64_t y, int m, int d) {
  y -= m <= 2 ? 1 : 0;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t yoe = y - era * 400;
  const std::int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const std::int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + doe - 719468;
}

/// "15:21:08" or "15:21:08.123456" (or ",123456").
std::optional<double> clock_seconds(std::string_view s) {
  if (s.size() < 8 || s[2] != ':' || s[5] != ':') return std::nullopt;
  const auto h = to_integer<int>(s.substr(0, 2));
  const auto m = to_integer<int>(s.substr(3, 2));
  const auto sec = to_integer<int>(s.substr(6, 2));
  if (!h || !m || !sec || *h > 24 || *m > 59 || *sec > 60 || *h < 0 || *m < 0 || *sec < 0) return std::nullopt;
  double out = *h * 3600 + *m * 60 + *sec;
  if (s.size() > 9 && (s[8] == '.' || s[8] == ',')) {
    double unit = 0.1;
    for (const char c : s.substr(9)) {
      if (!is_digit(c)) return std::nullopt;
      out += (c - '0') * unit;
      unit /= 10;
    }
  } else if (s.size() > 8) {
    return std::nullopt;
  }
  return out;
}

/// "2026-11-30T15:21:08.123456+01:00", "...Z", "...+0100", "2026-11-30 15:21:08"; seconds since 1970.
std::optional<double> iso_time(std::string_view s) {
  if (s.size() < 19 || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != ' ')) return std::nullopt;
  const auto year = to_integer<int>(s.substr(0, 4));
  const auto month = to_integer<int>(s.substr(5, 2));
  const auto day = to_integer<int>(s.substr(8, 2));
  if (!year || !month || !day || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  const std::string_view rest = s.substr(11);
  const auto zone_at = rest.find_first_of("Z+-");
  const auto clock = clock_seconds(rest.substr(0, zone_at));
  if (!clock) return std::nullopt;
  double offset = 0;
  if (zone_at != std::string_view::npos && rest[zone_at] != 'Z') {
    std::string digits;
    for (const char c : rest.substr(zone_at + 1))
      if (c != ':') digits += c;
    const auto number = to_integer<int>(digits);
    if (!number || digits.size() != 4) return std::nullopt;
    offset = (*number / 100 * 3600 + *number % 100 * 60) * (rest[zone_at] == '-' ? -1 : 1);
  }
  return static_cast<double>(days_from_civil(*year, *month, *day)) * 86400 + *clock - offset;
}

struct Cursor {
  std::string_view rest;
  KernelRecord record;
  bool kmsg = false;  ///< a record of /dev/kmsg: continuation lines may follow

  std::string_view word() const { return rest.substr(0, rest.find(' ')); }
  void skip(std::size_t count) {
    rest.remove_prefix(std::min(count, rest.size()));
    while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
  }
};

/// "<6>" or syslog's "<190>": level in the low three bits.
void take_level(Cursor& c) {
  if (c.rest.size() < 3 || c.rest[0] != '<' || !is_digit(c.rest[1])) return;
  const auto end = c.rest.find('>');
  if (end == std::string_view::npos || end > 4) return;
  const auto number = to_integer<int>(c.rest.substr(1, end - 1));
  if (!number) return;
  c.record.level = *number & 7;
  c.skip(end + 1);
}

/// `dmesg -x`: "kern  :info  : ".
void take_decoded_level(Cursor& c) {
  constexpr std::array<std::string_view, 8> names{"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"};
  const auto first = c.rest.find(':');
  if (first == std::string_view::npos || first > 8) return;
  const auto second = c.rest.find(':', first + 1);
  if (second == std::string_view::npos || second - first > 9) return;
  const auto facility = trim(c.rest.substr(0, first));
  if (facility != "kern" && facility != "user" && facility != "daemon" && facility != "syslog") return;
  const auto name = trim(c.rest.substr(first + 1, second - first - 1));
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) {
      c.record.level = static_cast<int>(i);
      c.skip(second + 1);
      return;
    }
}

/// "[   12.345678]", "[Mon Nov 30 15:21:08 2026]", "[Nov30 15:21]", "[  +0.000012]", then an optional caller "[ T123]".
bool take_bracket(Cursor& c) {
  if (c.rest.empty() || c.rest[0] != '[') return false;
  const auto end = c.rest.find(']');
  if (end == std::string_view::npos || end > 40) return false;
  const auto inside = trim(c.rest.substr(1, end - 1));
  if (inside.empty()) return false;
  const auto parts = words(inside);
  if (is_digit(inside[0]) && contains(inside, ".") && inside.find_first_not_of("0123456789.") == std::string_view::npos) {
    const auto seconds = to_real(inside);
    if (!seconds) return false;
    c.record.seconds = *seconds;
  } else if (parts.size() == 5 && month_of(parts[1])) {
    const auto day = to_integer<int>(parts[2]);
    const auto clock = clock_seconds(parts[3]);
    const auto year = to_integer<int>(parts[4]);
    if (!day || !clock || !year) return false;
    c.record.wall_clock = static_cast<double>(days_from_civil(*year, *month_of(parts[1]), *day)) * 86400 + *clock;
  } else if (inside[0] == '+' || (parts.size() == 2 && parts[0].size() == 5 && month_of(parts[0].substr(0, 3)))) {
    // dmesg -H: relative or to the minute; nothing to compute with.
  } else if (const auto iso = iso_time(inside)) {
    c.record.wall_clock = *iso;
  } else {
    return false;
  }
  c.skip(end + 1);
  if (!c.rest.empty() && c.rest[0] == '[') {
    const auto caller = c.rest.find(']');
    if (caller != std::string_view::npos && caller < 16) {
      const auto id = trim(c.rest.substr(1, caller - 1));
      if (id.size() > 1 && (id[0] == 'T' || id[0] == 'C') && id.substr(1).find_first_not_of("0123456789") == std::string_view::npos)
        c.skip(caller + 1);
    }
  }
  return true;
}

/// "host kernel: " or "host name[pid]: "; anything else could be the message itself ("usb 1-2: ...").
bool take_host_and_tag(Cursor& c) {
  const auto host = c.word();
  if (host.empty() || host.size() > 253 || host.back() == ':') return false;
  const auto after = trim(c.rest.substr(std::min(host.size() + 1, c.rest.size())));
  const auto tag = after.substr(0, after.find(' '));
  if (tag.size() < 2 || tag.back() != ':' || host[0] == '[') return false;
  if (tag != "kernel:" && !tag.ends_with("]:")) return false;
  c.rest = after;
  c.skip(tag.size());
  return true;
}

/// A date at the start: ISO, or "Nov 30 15:21:08[.123456]".
bool take_date(Cursor& c) {
  const auto first = c.word();
  if (const auto iso = iso_time(first)) {
    c.record.wall_clock = *iso;
    c.skip(first.size());
    return true;
  }
  if (c.rest.size() > 19 && is_digit(c.rest[0]) && c.rest[10] == ' ') {
    const auto end = c.rest.find(' ', 11);
    if (const auto iso = iso_time(c.rest.substr(0, end))) {
      c.record.wall_clock = *iso;
      c.skip(end == std::string_view::npos ? c.rest.size() : end);
      return true;
    }
  }
  if (month_of(first)) {
    Cursor ahead{c.rest, {}, false};
    ahead.skip(first.size());
    const auto day = ahead.word();
    if (!to_integer<int>(day)) return false;
    ahead.skip(day.size());
    const auto clock = ahead.word();
    if (!clock_seconds(clock)) return false;
    ahead.skip(clock.size());
    c.rest = ahead.rest;
    return true;
  }
  return false;
}

/// "gpu-node-1  | text" of docker compose.
void take_compose_prefix(Cursor& c) {
  const auto bar = c.rest.find(" | ");
  if (bar == std::string_view::npos || bar > 64) return;
  const auto name = trim(c.rest.substr(0, bar));
  if (name.empty() || name.find_first_of(" [<") != std::string_view::npos) return;
  c.skip(bar + 3);
}

/// Kubernetes' CRI: "stdout F " behind the date.
void take_stream(Cursor& c) {
  for (const std::string_view stream : {"stdout F ", "stderr F ", "stdout P ", "stderr P "})
    if (c.rest.starts_with(stream)) c.skip(stream.size());
}

/// "6,1234,5678901,-;text": level in the low bits, time in microseconds.
bool take_kmsg(Cursor& c) {
  const auto semicolon = c.rest.find(';');
  if (semicolon == std::string_view::npos || semicolon > 64 || !is_digit(c.rest[0])) return false;
  const auto parts = split(c.rest.substr(0, semicolon), ',');
  if (parts.size() < 3) return false;
  const auto level = to_integer<int>(parts[0]);
  const auto sequence = to_integer<std::uint64_t>(parts[1]);
  const auto micros = to_integer<std::uint64_t>(parts[2]);
  if (!level || !sequence || !micros) return false;
  c.record.level = *level & 7;
  c.record.seconds = static_cast<double>(*micros) / 1e6;
  c.rest.remove_prefix(semicolon + 1);
  c.kmsg = true;
  return true;
}

std::optional<std::uint64_t> json_number(const Value& v) {
  if (v.is_text()) return to_integer<std::uint64_t>(v.as_text());
  if (v.kind() == Value::Kind::integer && v.as_int() >= 0) return static_cast<std::uint64_t>(v.as_int());
  return std::nullopt;
}

/// journalctl -o json. Returns false when it is no such line or not of the kernel.
bool take_json(Cursor& c, std::string& message) {
  auto value = parse_json(c.rest, "journal");
  if (!value || !value->is_object() || value->find("MESSAGE") == nullptr) return false;
  message = (*value)["MESSAGE"].as_text();
  if (const auto priority = json_number((*value)["PRIORITY"]); priority && *priority < 8) c.record.level = static_cast<int>(*priority);
  if (const auto micros = json_number((*value)["__REALTIME_TIMESTAMP"])) c.record.wall_clock = static_cast<double>(*micros) / 1e6;
  if (const auto micros = json_number((*value)["_SOURCE_MONOTONIC_TIMESTAMP"])) c.record.seconds = static_cast<double>(*micros) / 1e6;
  return true;
}

/// "amdgpu 0000:03:00.0: ...": the device that speaks, or one word later ("[drm] amdgpu 0000:...").
std::string device_of(std::string_view message) {
  std::size_t start = 0;
  for (int i = 0; i < 4 && start < message.size(); ++i) {
    const auto end = std::min(message.find(' ', start), message.size());
    std::string_view word = message.substr(start, end - start);
    if (word.size() >= 13 && word.back() == ':') {
      word.remove_suffix(1);
      if (const auto address = parse_pci(word)) return address->to_string();
    }
    start = end + 1;
  }
  return {};
}

void strip(Cursor& c) {
  take_compose_prefix(c);
  take_level(c);
  if (!c.rest.empty() && take_kmsg(c)) return;
  take_decoded_level(c);
  bool timed = take_bracket(c);
  if (timed) {
    // short-monotonic: "[ 12.3] host kernel: text".
    const auto first = c.word();
    const auto after = trim(c.rest.substr(std::min(first.size(), c.rest.size())));
    if (after.starts_with("kernel: ") && !first.empty() && first.back() != ':') {
      c.rest = after;
      c.skip(8);
    }
    return;
  }
  if (!take_date(c)) return;
  take_stream(c);
  take_level(c);
  take_bracket(c);
  if (c.record.seconds) return;
  if (take_host_and_tag(c)) {
    take_level(c);
    take_bracket(c);
  }
}

}  // namespace

std::string_view kernel_message(std::string_view line) {
  Cursor c{trim(line), {}, false};
  strip(c);
  return c.rest;
}

std::vector<KernelRecord> split_kernel_log(std::string_view source, std::string_view text) {
  std::vector<KernelRecord> out;
  std::uint64_t number = 0;
  bool kmsg = false;
  for (const std::string_view line : lines(cut_at_nul(text))) {
    ++number;
    if (out.size() >= most_records) break;
    // " SUBSYSTEM=pci", " DEVICE=+pci:0000:03:00.0" belong to the kmsg record before.
    if (kmsg && !out.empty() && line.starts_with(' ')) {
      const auto device = line.find("DEVICE=+pci:");
      if (device == 1 && out.back().pci.empty())
        if (const auto address = parse_pci(trim(line.substr(13)))) out.back().pci = address->to_string();
      continue;
    }
    const std::string_view content = trim(line);
    if (content.empty()) continue;
    Cursor c{content, {}, false};
    std::string json_message;
    if (content[0] == '{' && take_json(c, json_message)) {
      // Readers match the text: the message, not its wrapping.
      c.record.text = json_message;
      c.record.pci = device_of(json_message);
    } else {
      strip(c);
      c.record.text = line;
      c.record.pci = device_of(c.rest);
    }
    kmsg = c.kmsg;
    c.record.source = source;
    c.record.line = number;
    out.push_back(std::move(c.record));
  }
  return out;
}

std::vector<KernelRecord> read_kernel_log(const Evidence& evidence) {
  const auto read = [&](std::string_view command, std::vector<KernelRecord>& to) {
    for (const auto& [source, text] : evidence.outputs(command)) {
      auto records = split_kernel_log(source, text);
      for (auto& record : records) {
        const Origin from = evidence.origin(source, record.line, {});
        record.source = from.source;
        record.line = from.line;
      }
      to.insert(to.end(), std::make_move_iterator(records.begin()), std::make_move_iterator(records.end()));
    }
  };
  std::vector<KernelRecord> out;
  read("journalctl-k-previous", out);
  std::vector<KernelRecord> ring;
  std::vector<KernelRecord> journal;
  read("dmesg", ring);
  read("journalctl-k", journal);
  if (evidence.capture().kind() == "loose") {
    out.insert(out.end(), std::make_move_iterator(ring.begin()), std::make_move_iterator(ring.end()));
    out.insert(out.end(), std::make_move_iterator(journal.begin()), std::make_move_iterator(journal.end()));
  } else {
    auto& fuller = journal.size() > ring.size() ? journal : ring;
    out.insert(out.end(), std::make_move_iterator(fuller.begin()), std::make_move_iterator(fuller.end()));
  }
  return out;
}

}  // namespace ff::facts
