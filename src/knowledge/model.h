#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/value.h"
#include "knowledge/knowledge.h"

/// The knowledge as the engine reads it: signals and causes after checking, with their patterns reduced to literals.
namespace ff::knowledge {

enum class Severity : std::uint8_t { info, warning, error };
[[nodiscard]] std::string_view severity_name(Severity severity);

/// Kinds of source, as bits; a piece of evidence may be of several.
enum Kind : std::uint32_t {
  kind_kernel_log = 1u << 0,
  kind_program = 1u << 1,
  kind_traceback = 1u << 2,
  kind_shell = 1u << 3,
  kind_rocminfo = 1u << 4,
  kind_smi = 1u << 5,
  kind_lspci = 1u << 6,
  kind_pip_list = 1u << 7,
  kind_env = 1u << 8,
  kind_config = 1u << 9,
  kind_code = 1u << 10,
  kind_train_log = 1u << 11,
  kind_evaluation = 1u << 12,
  kind_stacks = 1u << 13,
  kind_text = 1u << 14,
};
[[nodiscard]] std::uint32_t kind_from_name(std::string_view name);  ///< 0 when unknown
[[nodiscard]] std::vector<std::string_view> kind_names(std::uint32_t kinds);
[[nodiscard]] bool known_layer(std::string_view layer);

/// One RE2 pattern. A line can only match when it holds one of `literals` (ids into Bundle::literals, without regard to
/// case), so the scanner tries the pattern only on such lines.
struct Pattern {
  std::string text;
  std::vector<std::uint32_t> literals;
  std::vector<std::vector<std::string>> also;  ///< every match holds one text (lower case) of each as well: asked before RE2 is
  bool numbers_matter = true;                  ///< false: digits and hexadecimal numbers may be replaced by others of the same length
};

struct Follow {
  int within = 1;  ///< lines after the head in which the continuation may stand
  std::vector<Pattern> match;
};

struct Origin {
  std::string file;
  int line = 0;
};

struct Signal {
  std::string id, title, layer, explain, mistaken_for;
  Severity severity = Severity::error;
  bool benign = false;
  std::uint32_t kinds = 0;     ///< 0: every kind
  bool in_kernel_log = false;  ///< lines of a log of kernel messages can show it; set by compile_patterns
  std::vector<Pattern> match;
  std::vector<Follow> follow;
  std::vector<std::string> sources;
  std::vector<std::string> examples, look_alikes;  ///< not in the compiled form
  std::map<std::string, std::string> decode;       ///< field -> decoder, e.g. status: vm-fault-status
  Origin at;
  bool broken = false;  ///< had problems when it was read: complaints about what it lacks would only repeat them
};

enum class Op : std::uint8_t { present, equal, not_equal, less, less_equal, greater, greater_equal, in, not_in, match, not_match, contains };
/// One comparison; a predicate is one or several that must all hold. `words` are the right sides; "$fact:NAME" and
/// "$signal:ID.FIELD" among them stand for values of the same evidence.
struct Comparison {
  Op op = Op::present;
  std::vector<std::string> words;
};
using Predicate = std::vector<Comparison>;

struct Condition {
  enum class Type : std::uint8_t { all, any, none, signal, fact, absent };
  Type type = Type::all;
  std::vector<Condition> parts;  ///< all, any, none
  std::string name;              ///< signal id (may end in '*') or fact name
  std::vector<std::pair<std::string, Predicate>> where;
  Predicate is;  ///< of a fact; empty: present
  Predicate count;
  std::string before, after;
};

struct Rule {
  std::string name;  ///< of a known issue
  Condition when;
  double score = 0;
  bool confirms = false;
  std::string because;
  std::vector<std::string> fix, verify, sources;
  Origin at;  ///< of this rule: a cause may stand in several files
};

struct Example {
  std::vector<std::pair<std::string, std::string>> files;
  Origin at;
};

struct Cause {
  CauseText text;
  std::vector<Rule> rules, against;
  std::vector<std::string> covers;
  std::vector<std::pair<std::string, std::string>> separates;  ///< neighbour cause -> what tells it apart
  std::vector<Example> examples, look_alikes;                  ///< not in the compiled form
  Origin at;
  bool broken = false;  ///< as of a signal
};

/// All that a set of directories says.
struct Bundle {
  std::string date;
  std::vector<Signal> signals;  ///< sorted by id
  std::vector<Cause> causes;    ///< sorted by id
  std::map<std::string, Value> tables;
  std::vector<std::string> literals;       ///< lower case, distinct
  std::vector<std::uint32_t> alarm_words;  ///< literals of table "alarm": words that look like trouble
  /// Literals by form (form.h); several have the same, and one may have several. Databases report forms.
  std::vector<std::vector<std::uint32_t>> forms;
  std::string database;         ///< serialised Hyperscan database over the forms of the literals
  std::string kernel_database;  ///< the same over those that lines of a kernel log can hold
  std::string origin_database;  ///< over the words of table "alarm" that say a line is about this field
};

}  // namespace ff::knowledge
