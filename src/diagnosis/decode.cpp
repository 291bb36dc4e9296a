#include "diagnosis/decode.h"

#include <fmt/format.h>

#include <array>
#include <csignal>

#include "base/text.h"
#include "knowledge/model.h"

namespace ff::diagnosis {

using knowledge::Knowledge;

namespace {

std::optional<std::int64_t> number(std::string_view s) {
  s = trim(s);
  if (s.starts_with("0x") || s.starts_with("0X")) return to_integer<std::int64_t>(s, 16);
  return to_integer<std::int64_t>(s);
}

std::string decode_hip(std::string_view value, const Knowledge& k) {
  const auto code = number(value);
  for (const Value& e : k.table("hip_errors")["errors"].items()) {
    if (e["deprecated_alias"].as_bool() && code) continue;
    if (!(code ? e["code"].as_int(-1) == *code : e["name"].as_text() == value)) continue;
    std::string out = fmt::format("HIP error {} is {}: {}.", e["code"].as_int(), e["name"].as_text(), e["string"].as_text());
    if (!e["when"].as_text().empty()) out += fmt::format(" {}", e["when"].as_text());
    if (e["sticky"].as_bool()) out += " The context is lost: later calls return it again.";
    return out;
  }
  return {};
}

std::string decode_hsa(std::string_view value, const Knowledge& k) {
  const auto code = number(value);
  for (const Value& e : k.table("hsa_status")["status"].items())
    if (code ? e["code"].as_int(-1) == *code : e["name"].as_text() == value)
      return fmt::format("HSA status {} is {}: {}", e["hex"].as_text(), e["name"].as_text(), e["message"].as_text());
  return {};
}

struct SignalName {
  int number;
  std::string_view name, meaning;
};
constexpr std::array<SignalName, 9> signal_names = {{{SIGABRT, "SIGABRT", "the process ended itself: a failed assertion, an uncaught C++ exception, or the ROCm runtime after a fault"},
                                                     {SIGBUS, "SIGBUS", "an access beyond the end of a mapping: a truncated mapped file, or /dev/shm is full"},
                                                     {SIGFPE, "SIGFPE", "an integer division by zero"},
                                                     {SIGILL, "SIGILL", "the processor met an instruction that it does not know"},
                                                     {SIGINT, "SIGINT", "interrupted from the keyboard"},
                                                     {SIGKILL, "SIGKILL", "killed from outside: the kernel's out-of-memory killer, a container limit, or a scheduler"},
                                                     {SIGSEGV, "SIGSEGV", "an access to an address that is not mapped"},
                                                     {SIGTERM, "SIGTERM", "asked to end: a scheduler, a time limit, or a launcher after another rank failed"},
                                                     {SIGHUP, "SIGHUP", "the terminal was closed"}}};

std::string decode_exit(std::string_view value, bool is_signal) {
  const auto code = number(value);
  if (!code) return {};
  std::int64_t signal_number = is_signal ? *code : 0;
  if (!is_signal) signal_number = *code < 0 ? -*code : *code > 128 && *code < 160 ? *code - 128 : 0;
  for (const SignalName& s : signal_names)
    if (s.number == signal_number) return fmt::format("{} {} means {} ({}): {}.", is_signal ? "Signal" : "Exit code", *code, s.name, s.number, s.meaning);
  if (is_signal) return {};
  if (*code == 126) return "Exit code 126: the command was found but could not be executed.";
  if (*code == 127) return "Exit code 127: the command, or a library that its loader needs, was not found.";
  if (*code == 124) return "Exit code 124: `timeout` ended the command.";
  return {};
}

}  // namespace

std::string decode(std::string_view kind, std::string_view value, const Knowledge& knowledge) {
  if (kind == "hip" || kind == "hip-error") return decode_hip(value, knowledge);
  if (kind == "hsa" || kind == "hsa-status") return decode_hsa(value, knowledge);
  if (kind == "exit" || kind == "exit-code") return decode_exit(value, false);
  if (kind == "signal") return decode_exit(value, true);
  return {};
}

std::vector<std::string> decode_occurrence(const knowledge::Signal& signal, const Occurrence& occurrence, const Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const auto& [field, kind] : signal.decode) {
    const std::string* value = occurrence.field(field);
    if (value == nullptr) continue;
    std::string text = decode(kind, *value, knowledge);
    if (!text.empty()) out.push_back(std::move(text));
  }
  return out;
}

std::string search_query(std::string_view line, const Knowledge& knowledge) {
  const std::string low = lower(line);
  std::string query;
  for (std::string_view word : words(line)) {
    std::string_view w = word;
    while (!w.empty() && contains("[]()<>{},;:'\"*", w.substr(0, 1))) w.remove_prefix(1);
    while (!w.empty() && contains("[]()<>{},;:'\"*.", w.substr(w.size() - 1))) w.remove_suffix(1);
    if (w.size() < 3 || w.find_first_of("/\\=@%") != std::string_view::npos) continue;
    const auto digits = static_cast<std::size_t>(std::count_if(w.begin(), w.end(), [](char c) { return c >= '0' && c <= '9'; }));
    if (digits * 3 > w.size()) continue;
    if (query.size() + w.size() > 110) break;
    if (!query.empty()) query += '+';
    for (char c : w) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.')
        query += c;
      else
        query += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  if (query.empty()) return {};
  for (const Value& tracker : knowledge.table("alarm")["trackers"].items()) {
    bool fits = tracker["when"].items().empty();
    for (const Value& word : tracker["when"].items()) fits = fits || contains(low, word.as_text());
    if (fits) return std::string(tracker["search"].as_text()) + query;
  }
  return {};
}

}  // namespace ff::diagnosis
