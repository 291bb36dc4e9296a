#include "diagnosis/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/readable.h"
#include "base/text.h"
#include "capture/capture.h"
#include "capture/open.h"
#include "capture/transcript.h"
#include "diagnosis/answers.h"
#include "diagnosis/extract.h"
#include "diagnosis/facts_of.h"
#include "diagnosis/input.h"
#include "diagnosis/kind.h"
#include "diagnosis/scanner.h"
#include "diagnosis/unwrap.h"

namespace ff::diagnosis {

namespace fs = std::filesystem;

namespace {

inline constexpr std::size_t max_input_files = 5000;
inline constexpr std::size_t max_wrapped_bytes = 1u << 20;

Explanation finish(Scanner& scanner, std::vector<Fact> facts, const knowledge::Knowledge& knowledge) {
  Explanation e;
  e.evidence = scanner.take();
  e.evidence.facts = std::move(facts);
  e.judgement = judge(e.evidence, knowledge);
  return e;
}

/// Keeps the clean text of one source for what looks at all of it, as long as it is small enough for that.
class Held {
 public:
  /// `whole`: the text itself is asked for until it is larger than this. Of a log of nothing but kernel messages the extractors get the lines
  /// of programs only, the others empty: facts about data, models and training stand in no message of the kernel.
  void begin(std::uint32_t kinds, std::size_t whole) {
    begun_ = true;
    programs_only_ =
        (kinds & knowledge::kind_kernel_log) != 0 && (kinds & (knowledge::kind_program | knowledge::kind_code | knowledge::kind_config)) == 0;
    most_ = programs_only_ ? whole : max_extract_bytes;
  }
  void add(std::string_view block) {
    said_ = said_ || !trim(block).empty();
    size_ += block.size();
    if (size_ > max_extract_bytes) {
      text_ = programs_ = std::string();
      return;
    }
    if (programs_only_)
      for (std::string_view rest = block; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
        const std::string_view line = rest.substr(0, end);
        if (!looks_like_kernel_line(line))
          programs_ += line;
        else if (line.ends_with('\n'))
          programs_ += '\n';
        rest.remove_prefix(end);
      }
    if (size_ > most_) {
      text_ = std::string();
      return;
    }
    if (size_ > 4u << 20 && text_.capacity() < most_) text_.reserve(most_);  // not again and again; pages that are not reached cost nothing
    text_ += block;
  }
  void extract(std::string_view name, std::vector<Fact>& out) const {
    const std::string& from = programs_only_ ? programs_ : text_;
    if (size_ > max_extract_bytes || from.find_first_not_of('\n') == std::string::npos) return;
    std::vector<facts::NamedFact> found;
    extract_all(from, name, found);
    for (facts::NamedFact& f : found)
      out.push_back(Fact{std::move(f.name), std::move(f.value), std::move(f.origin.source), f.origin.line, std::move(f.origin.text)});
  }
  /// Empty when it was too large to keep.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool begun() const { return begun_; }
  [[nodiscard]] bool said_something() const { return said_; }  ///< more than blanks

 private:
  std::string text_, programs_;
  std::size_t size_ = 0;
  std::size_t most_ = max_extract_bytes;
  bool programs_only_ = false, begun_ = false, said_ = false;
};

void append(std::vector<Fact>& to, std::vector<Fact> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Lines that a terminal, a mail or a ticket has broken are joined and looked at once more; what is found then counts
/// when the text as it stands did not show it. So is each command of a transcript with its answer.
void scan_unwrapped(Scanner& scanner, std::string_view text) {
  if (text.size() > max_wrapped_bytes) return;
  const Unwrapped joined = unwrap(text);
  if (!joined.text.empty()) scanner.feed_again(joined.text, joined.line_numbers);
  if (const auto plain = capture::without_times(text); plain && capture::is_transcript(*plain)) {
    std::vector<std::uint64_t> numbers(lines(*plain).size());
    std::iota(numbers.begin(), numbers.end(), 1);
    scanner.feed_again(*plain, numbers);
  }
  const Unwrapped answered = answers(text);
  if (!answered.text.empty()) scanner.feed_again(answered.text, answered.line_numbers);
}

/// A note or ticket (Markdown, reStructuredText) that says its problem is solved.
bool tells_of_something_solved(std::string_view name, std::string_view text) {
  const std::string low_name = lower(name);
  if (!low_name.ends_with(".md") && !low_name.ends_with(".markdown") && !low_name.ends_with(".rst") && !low_name.ends_with(".adoc")) return false;
  const std::string low = lower(text);
  constexpr std::array<std::string_view, 12> words = {"solved",      "resolved",  "fixed by",  "fixed it",          "fixed this",       "fixed in",
                                                      "the fix was", "works now", "now works", "no longer happens", "no longer occurs", "went away"};
  if (contains(low, "unsolved") || contains(low, "not solved") || contains(low, "not resolved") || contains(low, "unresolved")) return false;
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return contains(low, word); });
}

/// Gives the lines of one source to the scanner and to `held`; all three outlive the sink.
LineSink into(Scanner& scanner, Held& held, std::string_view name, std::size_t whole) {
  return {[&scanner, &held, name, whole](std::string_view sample) {
            const std::uint32_t kinds = kinds_of(name, sample);
            scanner.begin(name, kinds);
            held.begin(kinds, whole);
          },
          [&scanner, &held](std::string_view block) {
            scanner.feed(block);
            held.add(block);
          }};
}

/// What is seen only in the whole of a source, once its lines were scanned.
void look_at_the_whole(Scanner& scanner, const Held& held, std::string_view name, std::vector<Fact>& facts) {
  scan_unwrapped(scanner, held.text());
  if (held.begun() && tells_of_something_solved(name, held.text())) scanner.settled();
  held.extract(name, facts);
}

void scan_text(Scanner& scanner, std::string_view name, std::string_view text, std::vector<Fact>& facts) {
  Held held;
  Cleaner cleaner(into(scanner, held, name, max_wrapped_bytes));
  cleaner.feed(text);
  cleaner.finish();
  look_at_the_whole(scanner, held, name, facts);
}

void scan_capture(Scanner& scanner, const capture::Capture& capture, std::vector<Fact>& facts) {
  for (const auto& [name, output] : capture.all_commands()) {
    if (!output.out.empty()) scan_text(scanner, fmt::format("cmd/{}/stdout", name), output.out, facts);
    if (!output.err.empty()) scan_text(scanner, fmt::format("cmd/{}/stderr", name), output.err, facts);
  }
  for (const auto& [name, text] : capture.texts()) scan_text(scanner, name, text, facts);
}

bool is_stored_capture(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return fs::is_regular_file(fs::path(path) / "manifest.json", error);
  return path.ends_with(".tar.zst") || path.ends_with(".tar.gz") || path.ends_with(".tgz") || path.ends_with(".tar.xz") || path.ends_with(".tar") ||
         path.ends_with(".zip");
}

/// Files below a directory in name order; hidden ones are left out.
std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with(".")) {
      if (it->is_directory(error)) it.disable_recursion_pending();
      continue;
    }
    if (it->is_regular_file(error)) out.push_back(it->path().string());
    if (out.size() >= max_input_files) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

bool Explanation::fault_found() const {
  return std::any_of(judgement.diagnoses.begin(), judgement.diagnoses.end(), [](const Diagnosis& d) { return !d.benign; });
}

namespace {

/// Files that said nothing, and why. Among others each is a note; when there are no others, silence would read as health.
class Silent {
 public:
  void add(Error why) { errors_.push_back(std::move(why)); }
  [[nodiscard]] Error as_error() const {
    Error first = errors_.front();
    first.exit_code = 3;
    if (errors_.size() > 1) first.what += fmt::format(" (and {} more files hold no text either)", errors_.size() - 1);
    return first;
  }
  void into(Scanner& scanner) const {
    constexpr std::size_t each = 5;
    for (std::size_t i = 0; i < std::min(each, errors_.size()); ++i) scanner.note(errors_[i].to_string());
    if (errors_.size() > each) scanner.note(fmt::format("{} more files hold no text", errors_.size() - each));
  }
  [[nodiscard]] bool empty() const { return errors_.empty(); }

 private:
  std::vector<Error> errors_;
};

}  // namespace

Result<Explanation> explain(Scanner& scanner, const std::vector<std::string>& inputs, const knowledge::Knowledge& knowledge,
                            const capture::Capture* machine) {
  std::vector<std::string> files;
  std::set<std::string> named;  // asked for by name: that it cannot be opened is an error
  std::vector<Fact> facts;
  Silent silent;
  bool said_something = machine != nullptr, unread = false;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input != "-" && is_stored_capture(input)) {
      auto capture = capture::open({input});
      if (!capture) return std::unexpected(capture.error());
      scan_capture(scanner, *capture, facts);
      append(facts, facts_of_capture(*capture, knowledge));
      said_something = true;
    } else if (input != "-" && fs::is_directory(input, error)) {
      std::vector<std::string> below = files_below(input);
      // The walk passes over directories that may not be read.
      if (auto closed = unreadable_below(input, [](const fs::path&) { return false; })) {
        unread = true;
        scanner.note(closed->to_string());
      }
      if (below.empty()) silent.add(Error{"holds no file", input, "give a directory of logs, or the files themselves", 3});
      for (std::string& file : below) files.push_back(std::move(file));
    } else {
      files.push_back(input);
      named.insert(input);
    }
  }
  if (machine != nullptr) {
    scan_capture(scanner, *machine, facts);
    append(facts, facts_of_capture(*machine, knowledge));
  }
  std::vector<std::pair<std::string, std::string>> piped;  // a pipe can be read once only
  for (const std::string& file : files) {
    const std::string name = file == "-" ? "standard input" : file;
    Held held;
    auto read = read_input(file, into(scanner, held, name, file == "-" ? max_fact_file_bytes : max_wrapped_bytes));
    const bool said = held.said_something();
    unread = unread || (!read && is_unreadable(read.error()));
    if (!read && !held.begun() && named.contains(file)) return std::unexpected(read.error());
    if (!read && said) scanner.note(read.error().to_string());
    if (!said) silent.add(read ? Error{"is empty", name, "give the file or the output that shows the fault", 3} : read.error());
    said_something = said_something || said;
    look_at_the_whole(scanner, held, name, facts);
    if (file == "-" && !held.text().empty()) piped.emplace_back(name, held.text());
  }
  if (!said_something && !silent.empty()) return std::unexpected(silent.as_error());
  silent.into(scanner);
  append(facts, facts_of_files(files, knowledge));
  append(facts, facts_of_texts(piped, knowledge));
  Explanation out = finish(scanner, std::move(facts), knowledge);
  out.unread = unread;
  return out;
}

Result<Explanation> explain_texts(const std::vector<std::pair<std::string, std::string>>& files, const knowledge::Knowledge& knowledge) {
  auto scanner = Scanner::make(knowledge);
  if (!scanner) return std::unexpected(scanner.error());
  return explain_texts(*scanner, files, knowledge);
}

Explanation explain_texts(Scanner& scanner, const std::vector<std::pair<std::string, std::string>>& files, const knowledge::Knowledge& knowledge) {
  std::vector<Fact> facts;
  for (const auto& [name, text] : files) scan_text(scanner, name, text, facts);
  append(facts, facts_of_texts(files, knowledge));
  return finish(scanner, std::move(facts), knowledge);
}

Result<Explanation> explain_capture(const capture::Capture& capture, const knowledge::Knowledge& knowledge) {
  auto scanner = Scanner::make(knowledge);
  if (!scanner) return std::unexpected(scanner.error());
  std::vector<Fact> facts;
  scan_capture(*scanner, capture, facts);
  append(facts, facts_of_capture(capture, knowledge));
  return finish(*scanner, std::move(facts), knowledge);
}

namespace {

Value to_value(const Support& s) {
  Value v = Value::object({{"source", s.source}, {"line", static_cast<std::int64_t>(s.line)}, {"text", to_utf8(s.text)}});
  if (!s.signal.empty()) v.set("signal", s.signal);
  if (!s.because.empty()) v.set("because", s.because);
  if (s.count > 1) v.set("count", static_cast<std::int64_t>(s.count));
  return v;
}

Value to_value(const std::vector<Support>& list) {
  Value v = Value::list();
  for (const Support& s : list) v.push(to_value(s));
  return v;
}

}  // namespace

Value to_document(const Explanation& e, const knowledge::Knowledge& knowledge, bool why) {
  Value diagnoses = Value::list();
  for (const Diagnosis& d : e.judgement.diagnoses) {
    Value v = Value::object(
        {{"cause", d.cause}, {"layer", d.layer}, {"title", d.title}, {"score", std::round(d.score * 1000) / 1000}, {"confidence", d.confidence}});
    if (d.benign) v.set("benign", true);
    if (d.question) v.set("undecided", Value::object({{"message", d.question->message}, {"ask", d.question->ask}, {"when", d.question->when}}));
    v.set("explain", d.explain);
    if (!d.consequence_of.empty()) v.set("consequence_of", d.consequence_of);
    v.set("evidence_for", to_value(d.evidence_for));
    v.set("evidence_against", to_value(d.evidence_against));
    v.set("decoded", Value::list_of(d.decoded));
    v.set("fix", Value::list_of(d.fix));
    v.set("verify", Value::list_of(d.verify));
    v.set("separates", Value::list_of(d.separates));
    v.set("sources", Value::list_of(d.sources));
    if (why) {
      Value chain = Value::list();
      for (const Applied& a : d.chain) {
        Value rule = Value::object(
            {{"rule", a.rule}, {"because", a.because}, {"score", a.score}, {"confirms", a.confirms}, {"evidence", to_value(a.support)}});
        if (!a.name.empty()) rule.set("name", a.name);
        chain.push(std::move(rule));
      }
      v.set("why", std::move(chain));
    }
    diagnoses.push(std::move(v));
  }
  Value signals = Value::list();
  for (const auto& [id, s] : e.evidence.signals) {
    Value v = Value::object({{"id", id},
                             {"title", s.signal->title},
                             {"severity", std::string(knowledge::severity_name(s.signal->severity))},
                             {"count", static_cast<std::int64_t>(s.count)}});
    if (s.signal->benign) v.set("benign", true);
    if (!s.occurrences.empty()) {
      const Occurrence& o = s.occurrences.front();
      v.set("source", e.evidence.sources[o.source]);
      v.set("line", static_cast<std::int64_t>(o.line));
      v.set("text", to_utf8(o.text));
      Value fields = Value::object();
      for (const auto& [name, value] : o.fields) fields.set(name, to_utf8(value));
      v.set("fields", std::move(fields));
    }
    signals.push(std::move(v));
  }
  Value facts = Value::object();
  for (const Fact& f : e.evidence.facts) facts.members_mut().emplace_back(f.name, f.value);
  Value unexplained = Value::list();
  for (const Unexplained& u : e.judgement.unexplained) {
    Value v = Value::object({{"source", u.source}, {"line", static_cast<std::int64_t>(u.line)}, {"text", to_utf8(u.text)}});
    if (u.count > 1) v.set("count", static_cast<std::int64_t>(u.count));
    if (!u.search.empty()) v.set("search", u.search);
    unexplained.push(std::move(v));
  }
  Value doc = Value::object({{"schema", "firstfault/diagnosis/1"}, {"knowledge_date", std::string(knowledge.date())}});
  doc.set("diagnoses", std::move(diagnoses));
  doc.set("signals", std::move(signals));
  doc.set("facts", std::move(facts));
  doc.set("unexplained", std::move(unexplained));
  doc.set("notes", Value::list_of(e.evidence.notes));
  return doc;
}

}  // namespace ff::diagnosis
