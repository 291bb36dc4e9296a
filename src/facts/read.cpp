#include "facts/read.h"

#include <fmt/format.h>

namespace ff::facts {

std::string_view cut_at_nul(std::string_view s) { return s.substr(0, s.find('\0')); }

std::optional<std::string_view> Evidence::text(std::string_view path) const {
  const auto content = capture_.file(path);
  if (!content) return std::nullopt;
  return cut_at_nul(*content);
}

std::optional<std::string_view> Evidence::value(std::string_view path) const {
  const auto content = text(path);
  if (!content) return std::nullopt;
  const auto trimmed = trim(*content);
  if (trimmed.empty()) return std::nullopt;
  return trimmed;
}

std::vector<std::pair<std::string, std::string_view>> Evidence::outputs(std::string_view command) const {
  std::vector<std::pair<std::string, std::string_view>> out;
  const auto& all = capture_.all_commands();
  for (auto it = all.lower_bound(command); it != all.end() && it->first.starts_with(command); ++it) {
    const std::string_view rest = std::string_view(it->first).substr(command.size());
    if (!rest.empty() && rest[0] != '#') continue;
    if (it->second.out.empty()) continue;
    out.emplace_back("cmd/" + it->first + "/stdout", it->second.out);
  }
  return out;
}

Origin Evidence::origin(std::string_view source, std::uint64_t line, std::string_view text) const {
  constexpr std::size_t longest = 300;
  Origin out{std::string(source), line, std::string(text.substr(0, longest))};
  const Value& sources = capture_.probe("sources");
  if (!sources.is_object()) return out;
  if (const Value* handed_over = sources.find(source)) {
    const auto name = (*handed_over)["name"].as_text();
    const auto first = (*handed_over)["line"].as_int(1);
    if (!name.empty()) out.source = name;
    if (line > 0 && first > 1) out.line = line + static_cast<std::uint64_t>(first) - 1;
  }
  return out;
}

Known<std::string> Evidence::known_text(std::string_view path) const {
  const auto v = value(path);
  if (!v) return {};
  return {std::string(*v), origin(path, 1, lines(*v).front())};
}

Properties::Properties(const Evidence& evidence, std::string path) : evidence_(evidence), path_(std::move(path)) {
  const auto content = evidence.text(path_);
  if (!content) return;
  std::uint64_t number = 0;
  for (const std::string_view line : lines(*content)) {
    ++number;
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    entries_.push_back({line.substr(0, blank), trim(line.substr(blank + 1)), line, number});
  }
}

std::string PciAddress::to_string() const { return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function); }

std::optional<PciAddress> parse_pci(std::string_view s) {
  PciAddress out;
  const auto hex = [](std::string_view digits, std::size_t at_least, std::size_t at_most) -> std::optional<std::uint32_t> {
    if (digits.size() < at_least || digits.size() > at_most) return std::nullopt;
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return std::nullopt;
    return to_integer<std::uint32_t>(digits, 16);
  };
  auto parts = split(s, ':');
  if (parts.size() == 3) {
    const auto domain = hex(parts[0], 4, 8);
    if (!domain) return std::nullopt;
    out.domain = *domain;
    parts.erase(parts.begin());
  }
  if (parts.size() != 2) return std::nullopt;
  const auto dot = parts[1].find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto bus = hex(parts[0], 2, 2);
  const auto device = hex(parts[1].substr(0, dot), 2, 2);
  const auto function = hex(parts[1].substr(dot + 1), 1, 1);
  if (!bus || !device || !function || *device > 31 || *function > 7) return std::nullopt;
  out.bus = *bus;
  out.device = *device;
  out.function = *function;
  return out;
}

std::vector<std::string> pci_addresses_of_path(std::string_view path) {
  std::vector<std::string> out;
  for (const std::string_view part : split(path, '/')) {
    if (part.size() < 12) continue;
    if (const auto address = parse_pci(part)) out.push_back(address->to_string());
  }
  return out;
}

std::optional<int> number_after(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return std::nullopt;
  const auto digits = name.substr(stem.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return to_integer<int>(digits);
}

}  // namespace ff::facts
