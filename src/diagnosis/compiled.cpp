#include "diagnosis/compiled.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "diagnosis/evidence.h"
#include "knowledge/form.h"

namespace ff::diagnosis {

namespace {

constexpr std::size_t max_groups = 33;
constexpr std::size_t max_places_in_line = 32;
/// How a pattern says that words of a list may stand between its head and its fields.
constexpr std::string_view list_words = R"((?:\S+\s+)*?)";

bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

/// The text that a pattern without operators stands for; empty when it has some.
std::string plain_text(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\') {
      if (i + 1 >= pattern.size() || is_alnum(pattern[i + 1])) return {};
      c = pattern[++i];
    } else if (std::string_view(".[](){}*+?|^$").find(c) != std::string_view::npos) {
      return {};
    }
    out.push_back(c);
  }
  return out;
}

/// End of the character class that begins at pattern[at] == '[': behind its ']'. npos: there is none.
std::size_t class_end(std::string_view pattern, std::size_t at) {
  std::size_t i = at + 1;
  if (i < pattern.size() && pattern[i] == '^') ++i;
  for (bool first = true; i < pattern.size(); first = false) {
    if (pattern[i] == ']' && !first) return i + 1;
    if (pattern.substr(i).starts_with("[:")) {
      const auto end = pattern.find(":]", i + 2);
      if (end == std::string_view::npos) return end;
      i = end + 2;
    } else {
      i += pattern[i] == '\\' ? 2 : 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string pattern_of_forms(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size();) {
    const char c = pattern[i];
    if (c == '\\') {
      if (i + 1 >= pattern.size()) return {};
      const char escaped = pattern[i + 1];
      if (escaped == 'D')
        out += "(?:\\D|0)";
      else if (is_alnum(escaped) && std::string_view("dwWsSbB").find(escaped) == std::string_view::npos)
        return {};
      else
        out += pattern.substr(i, 2);
      i += 2;
    } else if (c == '[') {
      const std::size_t end = class_end(pattern, i);
      if (end == std::string_view::npos) return {};
      out += "(?:";
      out += pattern.substr(i, end - i);
      out += "|0)";
      i = end;
    } else if (c == '{') {
      const std::size_t end = pattern.find_first_not_of("0123456789,", i + 1);
      const bool counts = end != std::string_view::npos && end > i + 1 && pattern[end] == '}';
      out += pattern.substr(i, counts ? end + 1 - i : 1);
      i = counts ? end + 1 : i + 1;
    } else if (c == '(' && pattern.substr(i).starts_with("(?")) {
      // A name or flags: up to what ends them.
      const std::size_t end = pattern.substr(i).starts_with("(?P<") ? pattern.find('>', i) : pattern.find_first_of(":)", i);
      if (end == std::string_view::npos) return {};
      out += pattern.substr(i, end + 1 - i);
      i = end + 1;
    } else if (is_hex(c)) {
      out += '[';
      out += c;
      out += "0]";
      ++i;
    } else {
      out += c;
      ++i;
    }
  }
  return out;
}

Compiled::Compiled(const knowledge::Pattern& pattern)
    : pattern_(&pattern), plain_(plain_text(pattern.text)), of_list_(pattern.text.find(list_words) != std::string::npos) {
  for (const auto& clause : pattern.also)
    digits_in_clauses_ =
        digits_in_clauses_ || !std::all_of(clause.begin(), clause.end(), [](const auto& text) { return knowledge::form_tells(text); });
}

const RE2& Compiled::get() {
  if (!re_) {
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(2 << 20);
    // Anchored, with what stands before the match in front: RE2 then reads the fields of a line at once, and needs no second automaton that
    // goes backwards to where the match begins. Group 1 is the whole match.
    re_ = std::make_unique<RE2>("\\C*?(" + pattern_->text + ")", options);
    group_count_ = re_->NumberOfCapturingGroups();
    for (const auto& [index, name] : re_->CapturingGroupNames()) groups_.emplace_back(index, name);
  }
  return *re_;
}

/// Matches from `from` on; sets where the match ends and its first field begins.
bool Compiled::match(std::string_view line, std::size_t from, Fields& fields) {
  const RE2& re = get();
  const re2::StringPiece text(line.data(), line.size());
  if (!re.Match(text, from, line.size(), RE2::ANCHOR_START, nullptr, 0)) return false;
  re2::StringPiece groups[max_groups];
  const int n = std::min<int>(group_count_ + 1, static_cast<int>(max_groups));
  if (!re.Match(text, from, line.size(), RE2::ANCHOR_START, groups, n)) return false;
  const re2::StringPiece& whole = groups[1];
  const char* begin = whole.data() + whole.size();
  match_end_ = whole.empty() ? 0 : static_cast<std::size_t>(begin - line.data());
  for (const auto& [index, name] : groups_) {
    if (index >= n || groups[index].data() == nullptr) continue;
    begin = std::min(begin, groups[index].data());
    const bool there = std::any_of(fields.begin(), fields.end(), [&](const auto& f) { return f.first == name; });
    if (!there) fields.emplace_back(name, std::string(groups[index].data(), std::min<std::size_t>(groups[index].size(), max_text)));
  }
  fields_begin_ = begin == nullptr ? 0 : static_cast<std::size_t>(begin - line.data());
  return true;
}

bool Compiled::run(std::string_view line, Fields* fields) {
  if (!plain_.empty()) return memmem(line.data(), line.size(), plain_.data(), plain_.size()) != nullptr;
  const RE2& re = get();
  if (fields == nullptr || groups_.empty())
    return re.Match(re2::StringPiece(line.data(), line.size()), 0, line.size(), RE2::ANCHOR_START, nullptr, 0);
  return match(line, 0, *fields);
}

void Compiled::further(std::string_view line, const std::function<bool(Fields&&)>& take) {
  if (groups_.empty()) return;
  std::string rest;
  std::size_t from = 0;
  for (std::size_t places = 1; places < max_places_in_line && match_end_ != 0; ++places) {
    from = match_end_;
    if (of_list_) {  // what was read is taken out; the head then stands before the next word
      rest = std::string(line.substr(0, fields_begin_)) + std::string(line.substr(match_end_));
      line = rest;
      from = 0;
    }
    Fields fields;
    if (!match(line, from, fields) || match_end_ == 0 || !take(std::move(fields))) return;
  }
}

bool Compiled::may_match_form(std::string_view form) {
  if (!blind_) {
    RE2::Options options(RE2::Quiet);
    options.set_max_mem(2 << 20);
    options.set_never_capture(true);
    const std::string wide = pattern_of_forms(pattern_->text);
    blind_ = std::make_unique<RE2>(wide.empty() ? "(?s:.*)" : wide, options);
  }
  // A pattern that became too large says nothing.
  return !blind_->ok() || blind_->Match(re2::StringPiece(form.data(), form.size()), 0, form.size(), RE2::UNANCHORED, nullptr, 0);
}

}  // namespace ff::diagnosis
