#include "diagnosis/extract_support.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/python_json.h"
#include "base/text.h"

namespace ff::diagnosis {

Value number_value(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (std::abs(value) < 1e15 && std::floor(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

void FactSink::add(std::string name, Value value, std::uint64_t line, std::string_view text) {
  constexpr std::size_t longest = 300;
  out_.push_back(facts::NamedFact{std::move(name), std::move(value), facts::Origin{source_, line, to_utf8(trim(text).substr(0, longest))}});
}

bool FactSink::has(std::string_view name, std::uint64_t line) const {
  return std::ranges::any_of(out_, [&](const facts::NamedFact& f) { return f.origin.line == line && f.name == name && f.origin.source == source_; });
}

void FactSink::number(std::string name, double value, std::uint64_t line, std::string_view text) {
  add(std::move(name), number_value(value), line, text);
}

void for_each_line(std::string_view text, const std::function<void(std::uint64_t, std::string_view)>& each) {
  std::uint64_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    each(++number, line);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool mentions(std::string_view s, std::string_view word) {
  if (word.empty()) return true;
  if (word.size() > s.size()) return false;
  const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  const char small = low(word[0]);
  const char large = small >= 'a' && small <= 'z' ? static_cast<char>(small & ~0x20) : small;
  const std::size_t last = s.size() - word.size();
  const auto found_from = [&](char first) {
    for (std::size_t at = s.find(first); at <= last; at = s.find(first, at + 1)) {
      std::size_t i = 1;
      while (i < word.size() && low(s[at + i]) == low(word[i])) ++i;
      if (i == word.size()) return true;
    }
    return false;
  };
  return found_from(small) || (large != small && found_from(large));
}

bool mentions_any(std::string_view s, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return mentions(s, w); });
}

namespace {

/// Length of the object or list that begins at text[0], by counting brackets outside strings; nothing when it does not end.
std::optional<std::size_t> balanced(std::string_view text) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_text = false;
      continue;
    }
    if (c == '"') in_text = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
      if (depth < 0) return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Document> json_documents(std::string_view text) {
  std::vector<Document> out;
  if (text.find('"') == std::string_view::npos) return out;
  std::uint64_t line = 1;
  int failures = 0;
  std::size_t at = 0;
  while (at < text.size() && out.size() < max_documents) {
    // The next line that begins with a brace.
    std::size_t begin = at;
    while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
    if (begin < text.size() && text[begin] == '{') {
      if (const auto length = balanced(text.substr(begin)); length) {
        const std::string_view block = text.substr(begin, *length);
        auto value = parse_json(without_nonfinite(block, Nonfinite::quoted));
        if (value && value->is_object()) {
          out.push_back({std::move(*value), line});
          line += static_cast<std::uint64_t>(
              std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(begin + *length), '\n'));
          at = begin + *length;
          // The rest of that line is no document.
          const auto end = text.find('\n', at);
          if (end == std::string_view::npos) break;
          at = end + 1;
          ++line;
          continue;
        }
      }
      // Python dictionaries, code and excerpts also begin so; do not scan a long text again and again.
      if (++failures > 8) break;
    }
    const auto end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    at = end + 1;
    ++line;
  }
  return out;
}

std::optional<double> scalar(const Value& value) {
  if (value.is_number()) return value.as_real();
  if (value.is_text()) {
    if (value.as_text() == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (value.as_text() == "Infinity") return std::numeric_limits<double>::infinity();
    if (value.as_text() == "-Infinity") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  if (value.is_list() && value.items().size() == 1) return scalar(value.items().front());
  return std::nullopt;
}

namespace {
void collect(const Value& value, int depth, std::vector<double>& out) {
  if (out.size() >= max_vector || depth > 8) return;
  if (value.is_list()) {
    for (const Value& item : value.items()) collect(item, depth + 1, out);
    return;
  }
  if (value.is_null()) {
    out.push_back(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  if (auto number = scalar(value)) out.push_back(*number);
}
}  // namespace

std::vector<double> flat_numbers(const Value& value) {
  std::vector<double> out;
  collect(value, 0, out);
  return out;
}

std::optional<std::size_t> Table::column(std::string_view name) const {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] == name) return i;
  return std::nullopt;
}

std::optional<std::size_t> Table::column_ending(std::string_view name) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::string_view column = columns[i];
    if (const auto slash = column.rfind('/'); slash != std::string_view::npos) column.remove_prefix(slash + 1);
    if (column == name) return i;
  }
  return std::nullopt;
}

namespace {

std::vector<std::string_view> cells(std::string_view line) {
  std::vector<std::string_view> out;
  const bool commas = line.find(',') != std::string_view::npos;
  const bool bars = line.find('|') != std::string_view::npos || line.find("│") != std::string_view::npos;
  if (commas && !bars) {
    for (std::string_view part : split(line, ',')) out.push_back(trim(part));
    return out;
  }
  for (std::string_view word : words(line))
    if (word != "|" && word != "│" && word != "┆") out.push_back(word);
  return out;
}

std::optional<double> number_cell(std::string_view cell) {
  while (!cell.empty() && (cell.front() == '"' || cell.front() == '|')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == '"' || cell.back() == '|')) cell.remove_suffix(1);
  if (cell == "nan" || cell == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return to_real(cell);
}

}  // namespace

std::vector<Table> number_tables(std::string_view text, std::string_view mark) {
  std::vector<Table> out;
  if (text.find(mark) == std::string_view::npos) return out;
  std::optional<Table> open;
  bool gap = false;
  const auto close = [&] {
    if (open && !open->rows.empty()) out.push_back(std::move(*open));
    open.reset();
    gap = false;
  };
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (out.size() > 64) return;
    const auto parts = cells(line);
    if (parts.empty()) return;
    // A header: several words, the mark among them, none of them a number.
    if (parts.size() >= 2 && parts.size() <= max_columns && line.find(mark) != std::string_view::npos &&
        std::none_of(parts.begin(), parts.end(), [](std::string_view p) { return number_cell(p).has_value(); })) {
      Table table;
      for (std::string_view part : parts) table.columns.emplace_back(part);
      if (table.column(mark) || table.column_ending(mark)) {
        close();
        table.line = number;
        open = std::move(table);
        return;
      }
    }
    if (!open) return;
    if (parts.front() == "..." || parts.front() == "…") {
      gap = true;
      return;
    }
    std::vector<double> values;
    for (std::string_view part : parts) {
      const auto value = number_cell(part);
      if (!value) break;
      values.push_back(*value);
    }
    // pandas prints the row label before the columns.
    if (values.size() == open->columns.size() + 1) values.erase(values.begin());
    if (values.size() != open->columns.size()) {
      gap = true;
      return;
    }
    if (open->rows.size() < max_table_rows) open->rows.push_back({number, gap, std::move(values)});
    gap = false;
  });
  close();
  return out;
}

std::vector<double> bracketed_numbers(std::string_view text) {
  std::vector<double> out;
  std::size_t at = text.find_first_of("[(");
  while (at != std::string_view::npos) {
    const std::size_t end = text.find_first_of("])", at + 1);
    if (end == std::string_view::npos) return out;
    const std::string_view inner = text.substr(at + 1, end - at - 1);
    std::vector<double> numbers;
    bool clean = true;
    std::size_t i = 0;
    while (i < inner.size() && clean) {
      if (inner[i] == ' ' || inner[i] == ',' || inner[i] == '\t') {
        ++i;
        continue;
      }
      const std::size_t stop = std::min(inner.find_first_of(" ,\t", i), inner.size());
      std::string_view word = inner.substr(i, stop - i);
      if (!word.empty() && word.front() == '+') word.remove_prefix(1);
      if (!word.empty() && word.back() == '.') word.remove_suffix(1);  // NumPy prints "1."
      if (auto value = number_cell(word); value && numbers.size() < max_vector)
        numbers.push_back(*value);
      else
        clean = false;
      i = stop;
    }
    if (clean && !numbers.empty()) return numbers;
    at = text.find_first_of("[(", at + 1);
  }
  return out;
}

}  // namespace ff::diagnosis
