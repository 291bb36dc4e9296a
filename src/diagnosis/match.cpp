#include "diagnosis/match.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ff::diagnosis {

using namespace knowledge;

bool name_fits(std::string_view pattern, std::string_view name) {
  while (true) {
    const auto star = pattern.find('*');
    if (star == std::string_view::npos) return pattern == name;
    if (name.substr(0, star) != pattern.substr(0, star)) return false;
    pattern.remove_prefix(star + 1);
    name.remove_prefix(star);
    if (pattern.empty()) return true;
    const auto next = name.find(pattern[0]);  // "[*]" ends at the "]"
    if (next == std::string_view::npos) return false;
    name.remove_prefix(next);
  }
}

Matcher::Matcher(const Evidence& evidence) : evidence_(evidence), lookup_([this](std::string_view reference) { return lookup(reference); }) {}

bool Matcher::holds(const Condition& condition, Trace& trace) const {
  switch (condition.type) {
    case Condition::Type::all: {
      Trace mine;
      for (const Condition& part : condition.parts)
        if (!holds(part, mine)) return false;
      trace.seen.insert(trace.seen.end(), mine.seen.begin(), mine.seen.end());
      trace.facts.insert(trace.facts.end(), mine.facts.begin(), mine.facts.end());
      return true;
    }
    case Condition::Type::any: {
      bool any = false;
      for (const Condition& part : condition.parts) any = holds(part, trace) || any;
      return any;
    }
    case Condition::Type::none: {
      Trace unused;
      return std::none_of(condition.parts.begin(), condition.parts.end(), [&](const Condition& part) { return holds(part, unused); });
    }
    case Condition::Type::signal:
      return signal_holds(condition, trace);
    case Condition::Type::fact:
      return fact_holds(condition, trace);
    case Condition::Type::absent:
      return facts(condition.name).empty();
  }
  return false;
}

std::vector<const Sighting*> Matcher::sightings(std::string_view id) const {
  std::vector<const Sighting*> out;
  if (!id.ends_with("*")) {
    if (auto it = evidence_.signals.find(id); it != evidence_.signals.end()) out.push_back(&it->second);
    return out;
  }
  id.remove_suffix(1);
  for (auto it = evidence_.signals.lower_bound(id); it != evidence_.signals.end() && it->first.starts_with(id); ++it) out.push_back(&it->second);
  return out;
}

bool Matcher::signal_holds(const Condition& condition, Trace& trace) const {
  const auto field_of = [&](const Occurrence& o, const std::string& name, std::string& value) {
    if (const std::string* field = o.field(name)) {
      value = *field;
    } else if (name == "line") {
      value = o.text;
    } else if (name == "source") {
      value = evidence_.sources[o.source];
    } else if (name == "kind") {
      value.clear();
      for (std::string_view kind : kind_names(o.kinds)) value += fmt::format("{}{}", value.empty() ? "" : " ", kind);
    } else {
      return false;
    }
    return true;
  };
  // Whether the first sighting of `other` is earlier (-1) or later (+1) than this occurrence.
  const auto relation = [&](const Occurrence& o, const std::string& other, int wanted) {
    for (const Sighting* s : sightings(other)) {
      if (s->occurrences.empty()) continue;
      const auto order = order_of(o, s->occurrences.front());
      if (order && *order == wanted) return true;
    }
    return false;
  };
  bool held = false;
  std::uint64_t total = 0;
  std::vector<std::pair<const Sighting*, const Occurrence*>> found;
  for (const Sighting* s : sightings(condition.name)) {
    std::uint64_t fitting = 0;
    const Occurrence* first = nullptr;
    const Occurrence* last = nullptr;
    for (const Occurrence& o : s->occurrences) {
      const bool fits = std::all_of(condition.where.begin(), condition.where.end(), [&](const auto& where) {
        std::string value;
        if (!field_of(o, where.first, value)) return false;
        return knowledge::holds(where.second, where.first, value, lookup_);
      });
      if (!fits) continue;
      if (last == nullptr || last->source != o.source || last->line != o.line) ++fitting;  // a line counts once
      last = &o;
      if (first == nullptr) first = &o;
    }
    if (first == nullptr) continue;
    if (!condition.before.empty() && !relation(*first, condition.before, -1)) continue;
    if (!condition.after.empty() && !relation(*first, condition.after, 1)) continue;
    total += condition.where.empty() ? s->count : fitting;
    found.emplace_back(s, first);
    held = true;
  }
  if (held && !condition.count.empty()) held = knowledge::holds(condition.count, "count", std::to_string(total), lookup_);
  if (held) trace.seen.insert(trace.seen.end(), found.begin(), found.end());
  return held;
}

std::vector<const Fact*> Matcher::facts(std::string_view name) const {
  std::vector<const Fact*> out;
  for (const Fact& f : evidence_.facts)
    if (name_fits(name, f.name)) out.push_back(&f);
  return out;
}

namespace {
/// A fact's value as the texts that a predicate may fit: a list gives each of its items.
/// Booleans are "true" and "false" in rules, whatever the reports print.
std::string text_of(const Value& value) { return value.kind() == Value::Kind::boolean ? (value.as_bool() ? "true" : "false") : value.to_string(); }

std::vector<std::string> texts_of(const Value& value) {
  std::vector<std::string> out;
  if (value.is_list()) {
    for (const Value& item : value.items()) out.push_back(text_of(item));
  } else {
    out.push_back(text_of(value));
  }
  return out;
}
}  // namespace

bool Matcher::fact_holds(const Condition& condition, Trace& trace) const {
  bool held = false;
  for (const Fact* f : facts(condition.name)) {
    bool fits = condition.is.empty();
    if (!fits)
      for (const std::string& text : texts_of(f->value)) fits = fits || knowledge::holds(condition.is, condition.name, text, lookup_);
    if (!fits) continue;
    trace.facts.push_back(f);
    held = true;
  }
  return held;
}

std::vector<std::string> Matcher::lookup(std::string_view reference) const {
  std::vector<std::string> out;
  if (reference.starts_with("$fact:")) {
    for (const Fact* f : facts(reference.substr(6)))
      for (std::string& text : texts_of(f->value)) out.push_back(std::move(text));
  } else if (reference.starts_with("$signal:")) {
    reference.remove_prefix(8);
    const auto dot = reference.rfind('.');
    if (dot == std::string_view::npos) return out;
    for (const Sighting* s : sightings(reference.substr(0, dot)))
      for (const Occurrence& o : s->occurrences)
        if (const std::string* value = o.field(reference.substr(dot + 1))) out.push_back(*value);
  }
  return out;
}

}  // namespace ff::diagnosis
