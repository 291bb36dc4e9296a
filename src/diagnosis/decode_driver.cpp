#include "diagnosis/decode_driver.h"

#include <fmt/format.h>

#include "base/text.h"

namespace ff::diagnosis {

using knowledge::Knowledge;

std::optional<std::int64_t> decoded_number(std::string_view s) {
  s = trim(s);
  if (s.starts_with("0x") || s.starts_with("0X")) {
    const auto bits = to_integer<std::uint64_t>(s.substr(2), 16);
    return bits ? std::optional(static_cast<std::int64_t>(*bits)) : std::nullopt;
  }
  return to_integer<std::int64_t>(s);
}

namespace {

/// The row of a list whose `key` is the value, or whose name is it.
const Value* row_of(const Value& list, std::string_view key, std::string_view value) {
  const auto code = decoded_number(value);
  for (const Value& row : list.items())
    if (code ? decoded_number(row[key].to_string()) == code : lower(row["name"].as_text()) == lower(value)) return &row;
  return nullptr;
}

std::string ras_block(std::string_view value, const Value& table) {
  if (lower(value).starts_with("mca_")) value = "mca";
  const Value* row = row_of(table["ras_blocks"], "id", value);
  if (row == nullptr) return {};
  return fmt::format("RAS block {} is {}: {}.", (*row)["id"].as_int(), (*row)["name"].as_text(), (*row)["meaning"].as_text());
}

std::string smu_response(std::string_view value, const Value& table) {
  const Value* row = row_of(table["smu_responses"], "code", value);
  if (row == nullptr) return {};
  return fmt::format("SMU response {} is '{}': {}.", (*row)["code"].to_string(), (*row)["name"].as_text(), (*row)["meaning"].as_text());
}

/// "REMOVE_QUEUE", "MISC (WAIT_REG_MEM)", "3" (kernels up to 6.1 print the number).
std::string mes_message(std::string_view value, const Value& table) {
  std::string_view name = trim(value);
  std::string_view operation;
  if (const auto open = name.find('('); open != std::string_view::npos) {
    operation = name.substr(open + 1);
    operation = operation.substr(0, operation.find(')'));
    name = trim(name.substr(0, open));
  }
  if (name.starts_with("MES_SCH_API_")) name.remove_prefix(12);
  const Value* row = row_of(table["mes_messages"], "id", name);
  if (row == nullptr) return {};
  std::string out = fmt::format("MES message {}: {}", (*row)["name"].as_text(), (*row)["meaning"].as_text());
  if (const Value* misc = operation.empty() ? nullptr : row_of(table["mes_misc"], "id", operation))
    out += fmt::format("; {}: {}", (*misc)["name"].as_text(), (*misc)["meaning"].as_text());
  return out + ".";
}

std::string ip_block(std::string_view value, const Value& table) {
  const std::string name = lower(trim(value));
  const Value* best = nullptr;
  for (const Value& row : table["ip_blocks"].items()) {
    const std::string_view head = row["name"].as_text();
    if (name.starts_with(head) && (best == nullptr || head.size() > (*best)["name"].as_text().size())) best = &row;
  }
  if (best == nullptr) return {};
  return fmt::format("IP block {} is the {}; when it fails: {}.", name, (*best)["meaning"].as_text(), (*best)["then"].as_text());
}

/// MCA_STATUS: the flags, and the architectural error code in bits 15:0 (cache, TLB, bus).
std::string mce_status(std::string_view value, const Value& table) {
  std::string_view digits = trim(value);
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  const auto status = to_integer<std::uint64_t>(digits, 16);
  if (!status || digits.size() < 9) return {};
  std::string out = fmt::format("Machine check status 0x{:016x}:", *status);
  if ((*status >> 63) == 0) return out + " not valid (bit 63 is clear).";
  const bool corrected = ((*status >> 61) & 1u) == 0 && ((*status >> 44) & 3u) == 0;
  out += corrected ? " a corrected error" : " an error that hardware did not correct";
  for (const Value& bit : table["mce_bits"].items())
    if ((*status >> (static_cast<std::uint64_t>(bit["bit"].as_int()) & 63u)) & 1u)
      out += fmt::format(", {} ({})", bit["name"].as_text(), bit["meaning"].as_text());
  const auto code = static_cast<unsigned>(*status & 0xFFFF);
  constexpr std::string_view levels[] = {"reserved level", "L1", "L2", "L3 or any"};
  constexpr std::string_view kinds[] = {"instruction", "data", "generic", "reserved"};
  constexpr std::string_view accesses[] = {"generic", "read", "write", "data read", "data write", "instruction fetch", "prefetch", "evict", "snoop"};
  const std::string_view level = levels[code & 3u];
  const unsigned access = (code >> 4) & 0xFu;
  const std::string_view access_name = access < std::size(accesses) ? accesses[access] : std::string_view("reserved");
  if ((code & 0xFFF0u) == 0x0010u)
    out += fmt::format("; TLB, {}, {}", kinds[(code >> 2) & 3u], level);
  else if ((code & 0xFF00u) == 0x0100u)
    out += fmt::format("; cache, {} of {}, {}", access_name, kinds[(code >> 2) & 3u], level);
  else if ((code & 0xF800u) == 0x0800u)
    out += fmt::format("; bus or memory controller, {}, {}", access_name, ((code >> 2) & 3u) == 0 ? "memory" : "I/O or generic");
  else if ((code & 0xF4FFu) == 0x0400u)
    out += "; internal to the processor";
  return out + fmt::format("; extended code 0x{:x}.", (*status >> 16) & 0x3Fu);
}

std::string error_number(std::string_view value, const Value& table) {
  auto code = decoded_number(value);
  if (code && *code < -0x10000) return {};
  if (code && *code < 0) code = -*code;
  const Value* row = row_of(table["errno"], "code", code ? std::to_string(*code) : std::string(value));
  if (row == nullptr) return {};
  return fmt::format("Error {} is {}: {}.", (*row)["code"].as_int(), (*row)["name"].as_text(), (*row)["meaning"].as_text());
}

}  // namespace

std::string decode_driver(std::string_view kind, std::string_view value, const Knowledge& knowledge) {
  struct Decoder {
    std::string_view kind;
    std::string (*run)(std::string_view, const Value&);
  };
  static constexpr Decoder decoders[] = {{"ras-block", &ras_block}, {"smu", &smu_response}, {"mes", &mes_message},
                                         {"ip-block", &ip_block},   {"mce", &mce_status},   {"errno", &error_number}};
  for (const Decoder& d : decoders)
    if (d.kind == kind) return d.run(value, knowledge.table("driver_codes"));
  return {};
}

}  // namespace ff::diagnosis
