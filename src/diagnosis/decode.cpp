#include "diagnosis/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/text.h"
#include "diagnosis/decode_driver.h"
#include "knowledge/model.h"

namespace ff::diagnosis {

using knowledge::Knowledge;

namespace {

std::string decode_hip(std::string_view value, const Knowledge& k) {
  const auto code = decoded_number(value);
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
  const auto code = decoded_number(value);
  for (const Value& e : k.table("hsa_status")["status"].items())
    if (code ? e["code"].as_int(-1) == *code : e["name"].as_text() == value)
      return fmt::format("HSA status {} is {}: {}", e["hex"].as_text(), e["name"].as_text(), e["message"].as_text());
  return {};
}

struct SignalName {
  int number;
  std::string_view name, meaning;
};
constexpr std::array<SignalName, 9> signal_names = {
    {{SIGABRT, "SIGABRT", "the process ended itself: a failed assertion, an uncaught C++ exception, or the ROCm runtime after a fault"},
     {SIGBUS, "SIGBUS", "an access beyond the end of a mapping: a truncated mapped file, or /dev/shm is full"},
     {SIGFPE, "SIGFPE", "an integer division by zero"},
     {SIGILL, "SIGILL", "the processor met an instruction that it does not know"},
     {SIGINT, "SIGINT", "interrupted from the keyboard"},
     {SIGKILL, "SIGKILL", "killed from outside: the kernel's out-of-memory killer, a container limit, or a scheduler"},
     {SIGSEGV, "SIGSEGV", "an access to an address that is not mapped"},
     {SIGTERM, "SIGTERM", "asked to end: a scheduler, a time limit, or a launcher after another rank failed"},
     {SIGHUP, "SIGHUP", "the terminal was closed"}}};

std::string decode_exit(std::string_view value, bool is_signal) {
  const auto code = decoded_number(value);
  if (!code || *code < -0x10000) return {};
  std::int64_t signal_number = is_signal ? *code : 0;
  if (!is_signal) signal_number = *code < 0 ? -*code : *code > 128 && *code < 160 ? *code - 128 : 0;
  for (const SignalName& s : signal_names)
    if (s.number == signal_number)
      return fmt::format("{} {} means {} ({}): {}.", is_signal ? "Signal" : "Exit code", *code, s.name, s.number, s.meaning);
  if (is_signal) return {};
  if (*code == 126) return "Exit code 126: the command was found but could not be executed.";
  if (*code == 127) return "Exit code 127: the command, or a library that its loader needs, was not found.";
  if (*code == 124) return "Exit code 124: `timeout` ended the command.";
  return {};
}

/// The layout of the page fault status register of a target, as the clients table names it; empty when unknown.
std::string_view layout_of(std::string_view gfx) {
  if (gfx.starts_with("gfx942") || gfx.starts_with("gfx940") || gfx.starts_with("gfx941") || gfx.starts_with("gfx950")) return "GC 9.4.3 / 9.5.0";
  if (gfx.starts_with("gfx90a")) return "GC 9.4.2";
  if (gfx.starts_with("gfx9")) return "gfx9 (GC 9.0)";
  if (gfx.starts_with("gfx103")) return "GC 10.3";
  if (gfx.starts_with("gfx10")) return "GC 10.1";
  if (gfx.starts_with("gfx1101")) return "GC 11.0.3 (gfx1101)";
  if (gfx.starts_with("gfx115") || gfx.starts_with("gfx117")) return "GC 11.5";
  if (gfx.starts_with("gfx11")) return "GC 11.0";
  if (gfx.starts_with("gfx125")) return "GC 12.1 (gfx1250)";
  if (gfx.starts_with("gfx12")) return "GC 12.0 (gfx1200/1201)";
  return {};
}

std::string_view hub_of(std::string_view gfx) {
  if (gfx.starts_with("gfx1101")) return "gfx1101 (GC 11.0.3)";
  if (gfx.starts_with("gfx103")) return "gfx10.3 (GC 10.3.x)";
  if (gfx.starts_with("gfx10")) return "gfx10.1 (GC 10.1.x)";
  if (gfx.starts_with("gfx115") || gfx.starts_with("gfx117")) return "gfx11.5/11.7 (GC 11.5.x, 11.7.x)";
  if (gfx.starts_with("gfx11")) return "gfx11.0 (GC 11.0.0/1/2/4)";
  if (gfx.starts_with("gfx125")) return "gfx12.5 (GC 12.1.0)";
  if (gfx.starts_with("gfx12")) return "gfx12.0 (GC 12.0.0/1)";
  return "gfx9 (gfx900..gfx950, GC 9.x)";
}

/// The name that every generation with this register (gfx10 and later print GCVM_…) gives a client number; empty when they differ.
std::string_view client_everywhere(const Value& clients, std::uint64_t number) {
  std::string_view name;
  for (const auto& [hub, table] : clients["gfxhub"].members()) {
    if (hub.starts_with("gfx9")) continue;
    const auto& ids = table["ids"].items();
    if (number >= ids.size() || (!name.empty() && ids[number].as_text() != name)) return {};
    name = ids[number].as_text();
  }
  return name;
}

std::string decode_vm_fault(std::string_view value, const Knowledge& k, std::string_view gfx) {
  const auto code = decoded_number(value);
  if (!code || *code < 0) return {};
  const bool known = !layout_of(gfx).empty();
  const std::string_view layout = known ? layout_of(gfx) : std::string_view("GC 11.0");
  const Value& clients = k.table("clients");
  std::string out = fmt::format("Page fault status 0x{:08x}:", *code);
  if (*code == 0) return out + " nothing was latched; the status belongs to an earlier fault or was cleared by it.";
  const auto status = static_cast<std::uint64_t>(*code);
  bool named = known;
  for (const Value& field : clients["fault_status_layout"][layout].items()) {
    if (field["word"].as_text() == "HI32") continue;
    const auto width = static_cast<unsigned>(std::clamp<std::int64_t>(field["width"].as_int(), 1, 32));
    const auto shift = static_cast<unsigned>(std::clamp<std::int64_t>(field["shift"].as_int(), 0, 31));
    const std::uint64_t bits = (status >> shift) & ((1ULL << width) - 1);
    const std::string_view name = field["field"].as_text();
    if (name == "PERMISSION_FAULTS") {
      std::string why;
      for (unsigned bit = 0; bit < width; ++bit)
        if ((bits >> bit) & 1u) {
          const std::string_view meaning = clients["permission_bits"][std::to_string(bit)].as_text();
          why += why.empty() ? "" : " and ";
          why += meaning.empty() ? fmt::format("permission bit {}", bit) : std::string(meaning);
        }
      if (!why.empty()) out += fmt::format(" {},", why);
    } else if (name == "CID" && known) {
      const auto& ids = clients["gfxhub"][hub_of(gfx)]["ids"].items();
      if (bits < ids.size()) out += fmt::format(" client {} (if the gfx hub reported it),", ids[bits].as_text());
    } else if (name == "CID" && !client_everywhere(clients, bits).empty()) {
      out += fmt::format(" client {} (if the gfx hub of a gfx10 or later reported it),", client_everywhere(clients, bits));
      named = true;
    } else if (name == "RW") {
      out += bits != 0 ? " write," : " read,";
    } else if (name == "WALKER_ERROR" && bits != 0) {
      out += fmt::format(" page walker error {},", bits);
    } else if (name == "MAPPING_ERROR" && bits != 0) {
      out += " mapping error (the translation failed, whatever the permissions),";
    } else if (name == "ATOMIC" && bits != 0) {
      out += " atomic access,";
    } else if (name == "PRT" && bits != 0) {
      out += " on a partially resident page,";
    } else if ((name == "UCE" || name == "FED") && bits != 0) {
      out += name == "UCE" ? " uncorrectable memory error," : " fatal error detected (poisoned data),";
    } else if (name == "VF" && bits != 0) {
      out += " from a virtual function,";
    } else if (name == "MORE_FAULTS" && bits != 0) {
      out += " more faults followed,";
    } else if (name == "VMID" && known) {
      out += fmt::format(" vmid {},", bits);
    }
  }
  out.back() = '.';
  if (!named) out += " The target is not known, so the client is not named.";
  return out;
}

std::string decode_aer(std::string_view value, const Knowledge& k, bool correctable) {
  const auto code = decoded_number(value);
  if (!code || *code <= 0) return {};
  std::string out;
  for (const Value& bit : k.table("pcie_aer")[correctable ? "correctable" : "uncorrectable"].items())
    if ((static_cast<std::uint64_t>(*code) >> (bit["bit"].as_int() & 31)) & 1u)
      out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", bit["name"].as_text(), bit["meaning"].as_text());
  if (out.empty()) return {};
  return fmt::format("{} PCIe errors 0x{:08x}: {}.", correctable ? "Correctable" : "Uncorrectable", *code, out);
}

/// What the numbers of torch's out-of-memory sentence say about the reason.
std::string decode_oom(const Occurrence& o) {
  const auto get = [&](std::string_view name) -> std::optional<double> {
    const std::string* field = o.field(name);
    return field != nullptr ? size_of(*field) : std::nullopt;
  };
  const auto tried = get("tried");
  const auto total = get("total");
  const auto free = get("free");
  const auto allocated = get("allocated");
  const auto reserved = get("reserved");
  if (!tried || !total) return {};
  const auto text = [](double bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); };
  std::string out = fmt::format("{} were asked of a device of {}", text(*tried), text(*total));
  if (free) out += fmt::format(", {} are free", text(*free));
  if (allocated) out += fmt::format(", this process holds {}", text(*allocated));
  if (reserved) out += fmt::format(" and keeps {} reserved but unused", text(*reserved));
  out += ".";
  if (*tried > *total)
    out += " The request is larger than the whole device.";
  else if (reserved && *reserved >= *tried && *reserved > *total * 0.05)
    out += " The unused reserve is larger than the request: it is in pieces (fragmentation).";
  else if (free && allocated && *total - *free - *allocated - reserved.value_or(0) > *total * 0.25)
    out += " More than a quarter is held by something else: another process, or memory outside PyTorch's allocator.";
  else if (free && *free >= *tried)
    out += " More is free than was asked for: the driver could not map it in one piece, or another limit applies.";
  return out;
}

}  // namespace

std::optional<double> size_of(std::string_view text) {
  const auto parts = words(text);
  if (parts.size() != 2) return std::nullopt;
  const auto amount = to_real(parts[0]);
  if (!amount || !(*amount >= 0 && *amount < 1e15)) return std::nullopt;
  const double unit = parts[1] == "KiB"     ? 1024.0
                      : parts[1] == "MiB"   ? 1048576.0
                      : parts[1] == "GiB"   ? 1073741824.0
                      : parts[1] == "TiB"   ? 1099511627776.0
                      : parts[1] == "bytes" ? 1.0
                                            : 0.0;
  const double bytes = *amount * unit;
  if (unit == 0 || bytes >= 0x1p62) return std::nullopt;
  return bytes;
}

std::string decode(std::string_view kind, std::string_view value, const Knowledge& knowledge, std::string_view gfx) {
  if (kind == "vm-fault" || kind == "vm-fault-status") return decode_vm_fault(value, knowledge, gfx);
  if (kind == "aer-cor" || kind == "aer-uncor") return decode_aer(value, knowledge, kind == "aer-cor");
  if (kind == "hip" || kind == "hip-error") return decode_hip(value, knowledge);
  if (kind == "hsa" || kind == "hsa-status") return decode_hsa(value, knowledge);
  if (kind == "exit" || kind == "exit-code") return decode_exit(value, false);
  if (kind == "signal") return decode_exit(value, true);
  return decode_driver(kind, value, knowledge);
}

std::vector<std::string> decode_occurrence(const knowledge::Signal& signal, const Occurrence& occurrence, const Knowledge& knowledge,
                                           std::string_view gfx) {
  std::vector<std::string> out;
  const auto add = [&](std::string text) {
    if (!text.empty() && std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
  };
  for (const auto& [name, value] : occurrence.fields) {
    if (auto it = signal.decode.find(name); it != signal.decode.end())
      add(decode(it->second, value, knowledge, gfx));
    else if (value.starts_with("HSA_STATUS_"))
      add(decode("hsa", value, knowledge));
    else if (value.starts_with("hipError"))
      add(decode("hip", value, knowledge));
    else if (name == "exitcode" || name == "exit_code" || name == "returncode")
      add(decode("exit", value, knowledge));
    else if (name == "status" && contains(signal.id, "vm-fault") && value.starts_with("0x"))
      add(decode("vm-fault", value, knowledge, gfx));
  }
  add(decode_oom(occurrence));
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
