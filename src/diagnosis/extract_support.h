#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"
#include "facts/machine.h"

/// What the extractors share: adding facts, finding JSON documents and tables inside any text.
namespace ff::diagnosis {

using Facts = std::vector<facts::NamedFact>;

inline constexpr std::size_t max_documents = 4096;      ///< JSON documents (lines of JSONL) read from one source
inline constexpr std::size_t max_table_rows = 200'000;  ///< rows of one table
inline constexpr std::size_t max_columns = 64;
inline constexpr std::size_t max_vector = 4096;  ///< numbers of one printed vector

/// Adds facts of one source.
class FactSink {
 public:
  FactSink(std::string_view source, Facts& out) : source_(source), out_(out) {}
  /// `line` is 1-based; 0 stands for the whole source.
  void add(std::string name, Value value, std::uint64_t line = 0, std::string_view text = {});
  /// Whole numbers are stored as integers, so that 30 and 30.0 compare equal. NaN and infinities are stored as text.
  void number(std::string name, double value, std::uint64_t line = 0, std::string_view text = {});
  /// Whether this line of the source already gave such a fact.
  [[nodiscard]] bool has(std::string_view name, std::uint64_t line) const;

 private:
  std::string source_;
  Facts& out_;
};

[[nodiscard]] Value number_value(double value);

/// A JSON document found in a text, and the line on which it begins.
struct Document {
  Value value;
  std::uint64_t line = 1;
};

/// The JSON objects of a text: the whole text, each line (JSONL), or blocks in braces that begin a line, as after
/// `$ cat info.json`. NaN and Infinity, which Python's json writes, become the texts "NaN" and "Infinity".
[[nodiscard]] std::vector<Document> json_documents(std::string_view text);

/// A number, or the text "NaN" / "Infinity" / "-Infinity"; nothing otherwise. A list of one element counts as that one.
[[nodiscard]] std::optional<double> scalar(const Value& value);
/// All numbers of a (nested) list, in order; at most max_vector.
[[nodiscard]] std::vector<double> flat_numbers(const Value& value);

/// A table printed with blanks or commas between its columns: pandas frames, CSV, `column -t`.
struct Table {
  std::vector<std::string> columns;
  struct Row {
    std::uint64_t line = 0;
    bool after_gap = false;  ///< "..." or another line stood between this row and the one before
    std::vector<double> values;
  };
  std::vector<Row> rows;
  std::uint64_t line = 0;
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;         ///< exact name
  [[nodiscard]] std::optional<std::size_t> column_ending(std::string_view name) const;  ///< last part after '/'
};
/// Tables of numbers whose header holds `mark` as a column name or as the end of one.
[[nodiscard]] std::vector<Table> number_tables(std::string_view text, std::string_view mark);

/// Numbers inside the first [...] or (...) of a text that holds only numbers, blanks and commas; tensor(...) and
/// np.float32(...) around them are allowed.
[[nodiscard]] std::vector<double> bracketed_numbers(std::string_view text);

/// Calls `each(line number, line)` for every line.
void for_each_line(std::string_view text, const std::function<void(std::uint64_t, std::string_view)>& each);

/// True when `word` stands in `s` without regard to case.
[[nodiscard]] bool mentions(std::string_view s, std::string_view word);
[[nodiscard]] bool mentions_any(std::string_view s, std::initializer_list<std::string_view> words);

}  // namespace ff::diagnosis
