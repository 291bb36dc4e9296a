#include "binary/names.h"

#include <algorithm>

#include "base/text.h"

namespace ff::binary {
namespace {

bool hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// MIOpen writes the compute-unit count in hexadecimal; no GPU has more than this.
constexpr int compute_unit_limit = 0x400;

}  // namespace

std::optional<elf::TargetId> target_in_name(std::string_view name) {
  std::size_t at = 0;
  while ((at = name.find("gfx", at)) != std::string_view::npos) {
    std::size_t end = at + 3;
    while (end < name.size() && hex_digit(name[end])) ++end;
    // "gfx11-generic", "gfx9-4-generic", "gfx10-3-generic"
    for (const std::string_view tail : {"-generic", "-1-generic", "-3-generic", "-4-generic", "-5-generic", "-7-generic"})
      if (name.substr(end).starts_with(tail)) {
        end += tail.size();
        break;
      }
    if (auto target = elf::parse_target_id(name.substr(at, end - at))) {
      bool more = true;
      while (more) {
        more = false;
        for (const std::string_view feature : {"sramecc", "xnack"}) {
          const std::string_view rest = name.substr(end);
          if (rest.size() <= feature.size() + 1 || (rest[0] != '-' && rest[0] != '_' && rest[0] != ':') || !rest.substr(1).starts_with(feature))
            continue;
          const char sign = rest[feature.size() + 1];
          if (sign != '+' && sign != '-') continue;
          (feature == "xnack" ? target->xnack : target->sramecc) = sign == '+' ? elf::Feature::on : elf::Feature::off;
          end += feature.size() + 2;
          more = true;
        }
      }
      return target;
    }
    at += 3;
  }
  return std::nullopt;
}

std::optional<elf::TargetId> tensile_target(std::string_view path) {
  constexpr std::string_view library = "/library/";
  const auto slash = path.rfind('/');
  if (auto target = target_in_name(path.substr(slash + 1))) return target;
  const auto at = path.rfind(library);
  if (at == std::string_view::npos || slash < at + library.size()) return std::nullopt;
  const auto directory = path.substr(at + library.size(), slash - at - library.size());
  return directory.starts_with("gfx") ? target_in_name(directory) : std::nullopt;
}

std::optional<MiopenName> miopen_name(std::string_view name) {
  const auto dot = name.find('.');
  if (!name.starts_with("gfx") || dot == std::string_view::npos) return std::nullopt;
  const std::string_view extension = name.substr(dot);
  if (extension != ".db" && extension != ".kdb" && extension != ".ukdb" && !extension.ends_with(".txt") && !extension.ends_with(".model") &&
      !extension.ends_with(".bz2"))
    return std::nullopt;
  const std::string_view base = name.substr(0, dot);
  std::optional<MiopenName> best;
  for (const auto& row : elf::machs()) {
    if (!base.starts_with(row.processor)) continue;
    std::string_view rest = base.substr(row.processor.size());
    std::optional<int> units = 0;
    if (rest.starts_with("_"))
      units = to_integer<int>(rest.substr(1));
    else if (!rest.empty())
      units = to_integer<int>(rest, 16);
    if (!units || *units < 0 || *units > compute_unit_limit || (*units == 0 && !rest.empty())) continue;
    // "gfx90a6e" reads as gfx90a with 0x6e units, not as gfx90a6e: the longest processor that leaves a count wins.
    if (!best || row.processor.size() > best->processor.size()) best = MiopenName{std::string(row.processor), *units};
  }
  return best;
}

std::vector<std::string> processors_like(std::string_view pattern) {
  std::vector<std::string> out;
  for (const auto& row : elf::machs()) {
    if (row.processor.size() != pattern.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < pattern.size() && same; ++i) same = pattern[i] == row.processor[i] || (i >= 3 && pattern[i] == 'x');
    if (same) out.emplace_back(row.processor);
  }
  return out;
}

}  // namespace ff::binary
