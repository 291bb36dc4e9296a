#include "knowledge/fact_names.h"

#include <algorithm>
#include <utility>

namespace ff::knowledge {

namespace {

/// '*' of the pattern stands for anything, of any length but 0.
bool fits(std::string_view pattern, std::string_view name) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  pattern.remove_prefix(star + 1);
  for (std::size_t at = star + 1; at <= name.size(); ++at)
    if (fits(pattern, name.substr(at))) return true;
  return false;
}

std::string_view last_part(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

FactNames::FactNames(const Value& table) {
  for (const Value& name : table["names"].items()) names_.emplace_back(name.as_text());
}

bool FactNames::known(std::string_view name) const {
  constexpr std::size_t longest = 200;
  if (name.size() > longest) return false;
  return names_.empty() || std::any_of(names_.begin(), names_.end(), [&](const std::string& listed) { return fits(listed, name); });
}

std::vector<std::string> FactNames::near(std::string_view name) const {
  constexpr std::size_t most = 3;
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& listed : names_) {
    const auto same = static_cast<std::size_t>(std::mismatch(listed.begin(), listed.end(), name.begin(), name.end()).first - listed.begin());
    const std::size_t likeness = last_part(listed) == last_part(name) ? 1000 + same : same;
    if (likeness > 3) ranked.emplace_back(likeness, listed);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(most, ranked.size()); ++i) out.push_back(std::move(ranked[i].second));
  return out;
}

}  // namespace ff::knowledge
