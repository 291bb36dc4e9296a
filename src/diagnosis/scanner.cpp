#include "diagnosis/scanner.h"

#include <hs/hs_runtime.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "diagnosis/form_cache.h"
#include "diagnosis/kind.h"
#include "diagnosis/moment.h"
#include "knowledge/form.h"
#include "knowledge/impl.h"

namespace ff::diagnosis {

using knowledge::Knowledge;
using knowledge::LineForm;
using knowledge::Pattern;
using knowledge::Signal;

namespace {

/// A pattern of the knowledge with its compiled form, made when a line first needs it.
struct Compiled {
  const Pattern* pattern = nullptr;
  std::string plain;     ///< the pattern is this text and nothing else
  bool of_list = false;  ///< may pass over words of a list to its fields: each word in turn can be an occurrence
  std::unique_ptr<RE2> re;
  std::vector<std::pair<int, std::string>> groups;
  int group_count = 0;

  const RE2& get() {
    if (!re) {
      RE2::Options options(RE2::Quiet);
      options.set_max_mem(2 << 20);
      re = std::make_unique<RE2>(pattern->text, options);
      group_count = re->NumberOfCapturingGroups();
      for (const auto& [index, name] : re->CapturingGroupNames()) groups.emplace_back(index, name);
    }
    return *re;
  }
};

/// The text that a pattern without operators stands for; empty when it has some.
std::string plain_text(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    if (c == '\\') {
      if (i + 1 >= pattern.size() || std::isalnum(static_cast<unsigned char>(pattern[i + 1])) != 0) return {};
      c = pattern[++i];
    } else if (std::string_view(".[](){}*+?|^$").find(c) != std::string_view::npos) {
      return {};
    }
    out.push_back(c);
  }
  return out;
}

/// How a pattern says that words of a list may stand between its head and its fields.
constexpr std::string_view list_words = R"((?:\S+\s+)*?)";

struct FollowState {
  int within = 0;
  std::vector<Compiled> match;
};

struct SignalState {
  const Signal* signal = nullptr;
  std::vector<Compiled> match;
  std::vector<FollowState> follow;
  Sighting sighting;
  std::uint64_t tried_serial = 0;
  // The last head, to which continuation lines belong.
  std::uint32_t open_source = 0;
  std::uint64_t open_line = 0;
  std::int64_t open_index = -1;
  std::uint64_t open_done = 0;  ///< bit per follow entry
};

struct Use {
  std::uint32_t signal = 0;
  std::int32_t follow = -1;  ///< -1: head
};

constexpr std::size_t max_groups = 32;
constexpr std::size_t max_places_in_line = 32;
constexpr std::size_t dull_slots = 4096;

struct ScratchFree {
  void operator()(hs_scratch_t* s) const { hs_free_scratch(s); }
};
struct DatabaseFree {
  void operator()(hs_database_t* d) const { hs_free_database(d); }
};

/// A number for the line with runs of digits and hexadecimal numbers taken out: lines that differ in numbers only have the
/// same one.
std::uint64_t shape_of(std::string_view line) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  std::size_t length = 0;
  char last = 0;
  for (std::size_t i = 0; i < line.size() && length < 160; ++i) {
    char c = line[i];
    if (c >= '0' && c <= '9') {
      while (i + 1 < line.size() && (std::isxdigit(static_cast<unsigned char>(line[i + 1])) != 0 || line[i + 1] == 'x')) ++i;
      c = '#';
      if (last == c) continue;
    }
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    last = c;
    ++length;
  }
  return hash;
}

}  // namespace

/// Where in a line literals that hold digits may stand, and which one does.
struct PlaceSeen {
  FormVerdict::Place place;
  std::uint8_t literal = FormVerdict::no_literal;  ///< index into the literals of the form
};

struct Scanner::Impl {
  std::unique_ptr<hs_database_t, DatabaseFree> database, kernel_database, origin_database;
  std::unique_ptr<hs_scratch_t, ScratchFree> scratch, origin_scratch;  ///< the second: scanned from within the first's callback
  std::vector<SignalState> signals;
  const knowledge::Bundle* bundle = nullptr;
  std::vector<std::vector<Use>> uses;         ///< literal -> where it is needed
  std::vector<std::vector<Use>> kernel_uses;  ///< the same, of the signals that a log of nothing but kernel messages can show
  const std::vector<std::vector<Use>>* current_uses = nullptr;
  std::vector<std::uint64_t> literal_serial;  ///< line serial in which the literal was last seen
  std::vector<std::uint8_t> is_alarm_word;    ///< by literal
  std::vector<std::uint8_t> tells;            ///< by literal: knowledge::form_tells
  std::vector<std::uint8_t> has_digit;        ///< by literal: the form alone does not show that it is there
  FormCache cache;
  bool numbers_fit = true;  ///< signals and forms are few enough for a FormVerdict
  std::uint64_t salt = 0;   ///< what a line shows depends on the kinds of its source
  std::uint64_t epoch = 0;  ///< of the evidence
  LineForm form;
  std::vector<std::uint32_t> line_signals;  ///< heads that the current line matched
  std::vector<std::uint32_t> line_asks;     ///< signals that it might have matched with other digits
  std::vector<PlaceSeen> line_places;
  std::vector<std::uint32_t> line_literals;  ///< literals of the current line
  std::uint64_t follow_reach = 0;            ///< last line in which a continuation may stand
  std::string low_line;                      ///< the current line in lower case, made when it is first needed
  std::uint64_t low_serial = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> alarm_shapes;
  std::vector<std::uint64_t> dull_shapes = std::vector<std::uint64_t>(dull_slots);  ///< alarming words, but not of this field
  Evidence evidence;

  std::uint32_t source = 0;
  std::uint32_t kinds = 0;
  std::uint64_t serial = 0;  ///< of the current piece of line

  const std::vector<std::uint64_t>* other_numbers = nullptr;  ///< of feed_again
  std::vector<std::uint8_t> frozen;                           ///< signals that feed_again leaves alone

  std::uint64_t line_number = 0;  ///< of the current line
  std::uint32_t line_kinds = 0;   ///< of the current line
  bool line_kinds_known = false;  ///< what the line itself shows is in them
  bool kernel_line = false;       ///< searched for what the kernel says only
  std::string_view searched;      ///< the piece of the current line whose form is being searched
  std::size_t window_begin = 0;   ///< literals count that end in this part of it
  std::size_t window_end = 0;

  static int on_match(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
    static_cast<Impl*>(context)->form_found(id, static_cast<std::size_t>(to));
    return 0;
  }

  /// A form of literals ends at `end`: which of them stands in the line itself?
  void form_found(std::uint32_t id, std::size_t end) {
    if (end <= window_begin || end > window_end || id >= bundle->forms.size()) return;
    const std::vector<std::uint32_t>& literals = bundle->forms[id];
    PlaceSeen seen{{static_cast<std::uint16_t>(id), static_cast<std::uint16_t>(end)}, FormVerdict::no_literal};
    bool form_alone = true;
    for (std::size_t i = 0; i < literals.size(); ++i) {
      const std::uint32_t literal = literals[i];
      form_alone = form_alone && tells[literal] != 0;
      if (has_digit[literal] != 0 && !stands_at(literal, searched, end)) continue;
      if (tells[literal] == 0) seen.literal = static_cast<std::uint8_t>(std::min<std::size_t>(i, FormVerdict::no_literal - 1));
      if (literal_serial[literal] == serial) continue;
      literal_serial[literal] = serial;
      line_literals.push_back(literal);
    }
    if (!form_alone) line_places.push_back(seen);
  }

  [[nodiscard]] bool stands_at(std::uint32_t literal, std::string_view line, std::size_t end) const {
    const std::string& text = bundle->literals[literal];
    if (end < text.size() || end > line.size()) return false;
    const char* at = line.data() + (end - text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = at[i];
      if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c) != text[i]) return false;
    }
    return true;
  }

  /// Lines of the block one by one.
  void scan(std::string_view block) {
    const char* at = block.data();
    const char* const end = at + block.size();
    while (at < end) {
      std::size_t length = 0;
      if (form.read(at, end)) {
        length = form.length();
        known_line(std::string_view(at, length));
      } else {
        const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
        length = static_cast<std::size_t>((newline != nullptr ? newline : end) - at);
        long_line(std::string_view(at, length));
      }
      at += length;
      if (at == end) break;  // the line may go on in the next block
      ++at;
      ++line_number;
    }
  }

  /// A line too long to be remembered; a very long one in pieces that overlap.
  void long_line(std::string_view line) {
    choose_kinds(line);
    const std::size_t step = line.size() <= max_line_bytes ? line.size() : max_line_bytes;
    for (std::size_t begin = 0; begin < line.size(); begin += step) {
      const std::size_t end = std::min(line.size(), begin + step);
      const std::size_t from = begin - std::min(begin, line_overlap_bytes);
      const std::size_t to = end + std::min(line.size() - end, line_overlap_bytes);
      std::string_view piece = line.substr(from, to - from);
      find_literals(knowledge::form_of(piece), piece, begin - from, end - from);
      if (!line_literals.empty()) examine(piece);
    }
  }

  /// A line whose form was read: answered from the cache when that can be.
  void known_line(std::string_view line) {
    const std::uint64_t key = form.key() ^ salt;
    if (other_numbers == nullptr)
      for (FormVerdict& v : cache.set_of(key))
        if (v.key == key && places_fit(v, line)) {
          if (v.empty) return;
          if (line_number > follow_reach && repeat(v, line)) return;
          break;
        }
    choose_kinds(line);
    find_literals(form.text(), line, 0, line.size());
    std::uint32_t alarm = FormVerdict::alarm_dull;
    const bool within_reach = line_number <= follow_reach;
    if (!line_literals.empty()) alarm = examine(line);
    if (other_numbers != nullptr || (within_reach && !line_literals.empty())) return;
    learn(key, alarm);
  }

  void learn(std::uint64_t key, std::uint32_t alarm) {
    if (!numbers_fit || line_signals.size() > FormVerdict::max_signals || line_asks.size() > FormVerdict::max_asks ||
        line_places.size() > FormVerdict::max_places)
      return;
    FormVerdict v;
    v.key = key;
    v.alarm = alarm;
    v.empty = line_literals.empty();
    v.signal_count = static_cast<std::uint8_t>(line_signals.size());
    v.ask_count = static_cast<std::uint8_t>(line_asks.size());
    v.place_count = static_cast<std::uint8_t>(line_places.size());
    for (std::size_t i = 0; i < line_signals.size(); ++i) v.signals[i] = static_cast<std::uint16_t>(line_signals[i]);
    for (std::size_t i = 0; i < line_asks.size(); ++i) v.asks[i] = static_cast<std::uint16_t>(line_asks[i]);
    for (std::size_t i = 0; i < line_places.size(); ++i) {
      v.places[i] = line_places[i].place;
      v.expected[i] = line_places[i].literal;
    }
    for (FormVerdict& old : cache.set_of(key))
      if (old.key == key && old.place_count == v.place_count &&
          std::equal(v.expected.begin(), v.expected.begin() + v.place_count, old.expected.begin())) {
        old = v;
        return;
      }
    cache.make_room(key) = v;
  }

  /// Whether literals that hold digits stand in the line where they stood in the one that was examined, and no others.
  [[nodiscard]] bool places_fit(const FormVerdict& v, std::string_view line) const {
    for (std::size_t i = 0; i < v.place_count; ++i) {
      const auto& literals = bundle->forms[v.places[i].form];
      for (std::size_t l = 0; l < literals.size(); ++l)
        if (tells[literals[l]] == 0 && stands_at(literals[l], line, v.places[i].end) != (v.expected[i] == l)) return false;
    }
    return true;
  }

  /// Counts what a line of a form that was seen before shows; false when a signal that it shows still keeps its occurrences.
  bool repeat(FormVerdict& v, std::string_view line) {
    for (std::size_t i = 0; i < v.signal_count; ++i)
      if (signals[v.signals[i]].sighting.occurrences.size() < max_occurrences) return false;
    std::array<bool, FormVerdict::max_asks> shown{};
    bool any = v.signal_count > 0;
    if (v.ask_count > 0) ++serial;  // low_line is of another line
    for (std::size_t i = 0; i < v.ask_count; ++i) {
      SignalState& state = signals[v.asks[i]];
      for (Compiled& c : state.match)
        if (!shown[i] && c.pattern->numbers_matter && missing_clause(c, line) == nullptr && run(c, line, nullptr)) shown[i] = true;
      if (shown[i] && state.sighting.occurrences.size() < max_occurrences) return false;
      any = any || shown[i];
    }
    if (!any && v.ask_count > 0 && v.alarm == FormVerdict::alarm_unknown) return false;
    for (std::size_t i = 0; i < v.signal_count; ++i) ++signals[v.signals[i]].sighting.count;
    for (std::size_t i = 0; i < v.ask_count; ++i)
      if (shown[i]) ++signals[v.asks[i]].sighting.count;
    if (!any && v.alarm < FormVerdict::alarm_dull) ++evidence.alarms[v.alarm].count;
    return true;
  }

  /// In a log of nothing but kernel messages a kernel's line is searched for what the kernel says; the line of a program in it, for all.
  void choose_kinds(std::string_view line) {
    line_kinds = kinds;
    line_kinds_known = false;
    kernel_line = kinds == knowledge::kind_kernel_log && looks_like_kernel_line(line);
    if (kinds == knowledge::kind_kernel_log && !kernel_line) line_kinds |= kinds_of_prose;
    current_uses = kernel_line ? &kernel_uses : &uses;
  }

  void find_literals(std::string_view in_form, std::string_view line, std::size_t from, std::size_t to) {
    ++serial;
    line_literals.clear();
    line_places.clear();
    line_signals.clear();
    line_asks.clear();
    searched = line;
    window_begin = from;
    window_end = to;
    const hs_database_t* use = kernel_line ? kernel_database.get() : database.get();
    if (use != nullptr && !in_form.empty())
      hs_scan(use, in_form.data(), static_cast<unsigned>(in_form.size()), 0, scratch.get(), &Impl::on_match, this);
  }

  /// Tries the patterns of the line's literals; what it says when no signal knows the line is its alarm.
  std::uint32_t examine(std::string_view line) {
    bool any = false;
    bool alarm = false;
    bool passing = false, passing_known = false;
    for (std::uint32_t id : line_literals) {
      alarm = alarm || is_alarm_word[id] != 0;
      for (const Use& use : (*current_uses)[id]) {
        SignalState& state = signals[use.signal];
        if (use.follow >= 0 || state.tried_serial == serial || (other_numbers != nullptr && frozen[use.signal] != 0)) continue;
        state.tried_serial = serial;
        if (state.signal->severity != knowledge::Severity::info && !kernel_line) {
          if (!std::exchange(passing_known, true)) passing = reports_success(line);
          if (passing) continue;
        }
        if (state.signal->kinds != 0 && (state.signal->kinds & line_kinds) == 0) {
          if (!std::exchange(line_kinds_known, true)) line_kinds |= kinds_of_line(line);
          if ((state.signal->kinds & line_kinds) == 0) continue;
        }
        switch (head(state, line)) {
          case Answer::shown:
            any = true;
            line_signals.push_back(use.signal);
            break;
          case Answer::shown_by_digits:
            any = true;
            line_asks.push_back(use.signal);
            break;
          case Answer::digits_decide:
            line_asks.push_back(use.signal);
            break;
          case Answer::no:
            break;
        }
      }
    }
    for (std::uint32_t id : line_literals)
      for (const Use& use : (*current_uses)[id])
        if (use.follow >= 0 && (other_numbers == nullptr || frozen[use.signal] == 0) &&
            continuation(signals[use.signal], static_cast<std::size_t>(use.follow), line))
          any = true;
    if (!alarm || passing || other_numbers != nullptr) return FormVerdict::alarm_dull;
    if (any) return FormVerdict::alarm_unknown;
    if (!line_kinds_known) line_kinds |= kinds_of_line(line);
    line_kinds_known = true;
    return remember_alarm(line);
  }

  /// Whether the line holds a literal that stands for the pattern.
  [[nodiscard]] bool holds_literal(const Compiled& c) const {
    const auto& literals = c.pattern->literals;
    return std::any_of(literals.begin(), literals.end(), [&](std::uint32_t id) { return literal_serial[id] == serial; });
  }

  /// The first clause of the pattern (of which every match holds a text) that the line does not hold; null when it holds all.
  const std::vector<std::string>* missing_clause(const Compiled& c, std::string_view line) {
    if (c.pattern->also.empty()) return nullptr;
    if (low_serial != serial) {
      low_line.resize(line.size());
      for (std::size_t i = 0; i < line.size(); ++i) low_line[i] = static_cast<char>(line[i] >= 'A' && line[i] <= 'Z' ? line[i] | 0x20 : line[i]);
      low_serial = serial;
    }
    for (const std::vector<std::string>& clause : c.pattern->also)
      if (std::none_of(clause.begin(), clause.end(),
                       [&](const std::string& text) { return memmem(low_line.data(), low_line.size(), text.data(), text.size()) != nullptr; }))
        return &clause;
    return nullptr;
  }

  /// Runs one pattern; fields go to `fields` when it is given.
  static bool run(Compiled& c, std::string_view line, std::vector<std::pair<std::string, std::string>>* fields) {
    if (!c.plain.empty()) return memmem(line.data(), line.size(), c.plain.data(), c.plain.size()) != nullptr;
    const RE2& re = c.get();
    const re2::StringPiece text(line.data(), line.size());
    if (fields == nullptr || c.groups.empty()) return re.Match(text, 0, line.size(), RE2::UNANCHORED, nullptr, 0);
    re2::StringPiece groups[max_groups];
    const int n = std::min<int>(c.group_count + 1, static_cast<int>(max_groups));
    if (!re.Match(text, 0, line.size(), RE2::UNANCHORED, groups, n)) return false;
    for (const auto& [index, name] : c.groups) {
      if (index >= n || groups[index].data() == nullptr) continue;
      const bool there = std::any_of(fields->begin(), fields->end(), [&](const auto& f) { return f.first == name; });
      if (!there) fields->emplace_back(name, std::string(groups[index].data(), std::min<std::size_t>(groups[index].size(), max_text)));
    }
    return true;
  }

  [[nodiscard]] std::uint64_t original_line() const {
    if (other_numbers == nullptr) return line_number;
    return line_number - 1 < other_numbers->size() ? (*other_numbers)[line_number - 1] : line_number;
  }

  /// Whether a line shows a signal, and whether another line of its form may differ in that.
  enum class Answer : std::uint8_t { no, digits_decide, shown, shown_by_digits };

  Answer head(SignalState& state, std::string_view line) {
    const bool store = state.sighting.occurrences.size() < max_occurrences;
    Occurrence o;
    Answer answer = Answer::no;
    Compiled* matched = nullptr;
    for (Compiled& c : state.match) {
      if (!holds_literal(c)) continue;
      if (const auto* missing = missing_clause(c, line); missing != nullptr) {
        if (c.pattern->numbers_matter &&
            !std::all_of(missing->begin(), missing->end(), [](const std::string& text) { return knowledge::form_tells(text); }))
          answer = Answer::digits_decide;
      } else if (run(c, line, store ? &o.fields : nullptr)) {
        answer = c.pattern->numbers_matter ? Answer::shown_by_digits : Answer::shown;
        matched = &c;
        break;
      } else if (c.pattern->numbers_matter) {
        answer = Answer::digits_decide;
      }
    }
    if (answer == Answer::no || answer == Answer::digits_decide) return answer;
    ++state.sighting.count;
    state.open_index = -1;
    if (store) {
      o.source = source;
      o.line = original_line();
      o.kinds = line_kinds;
      o.when = moment_of(line);
      o.text = std::string(trim(line).substr(0, max_text));
      state.open_source = source;
      state.open_line = line_number;
      state.open_index = static_cast<std::int64_t>(state.sighting.occurrences.size());
      state.open_done = 0;
      for (const FollowState& follow : state.follow) follow_reach = std::max(follow_reach, line_number + static_cast<std::uint64_t>(follow.within));
      state.sighting.occurrences.push_back(std::move(o));
      if (matched != nullptr && !matched->groups.empty()) further(state.sighting.occurrences, *matched, line);
    }
    return answer;
  }

  /// The line shows the signal once more, with other fields: behind the place that matched, or, of a list, in its next words.
  /// They are occurrences of one line, so the count of lines stays as it is.
  static void further(std::vector<Occurrence>& occurrences, Compiled& c, std::string_view line) {
    const std::size_t first = occurrences.size() - 1;
    std::string rest(line);
    std::size_t from = 0;
    for (std::size_t places = 0; places < max_places_in_line && occurrences.size() < max_occurrences; ++places) {
      re2::StringPiece groups[max_groups];
      const int n = std::min<int>(c.group_count + 1, static_cast<int>(max_groups));
      if (!c.re->Match(rest, from, rest.size(), RE2::UNANCHORED, groups, n) || groups[0].empty()) return;
      Occurrence o = occurrences[first];
      o.fields.clear();
      const char* fields_begin = groups[0].data() + groups[0].size();
      for (const auto& [index, name] : c.groups) {
        if (index >= n || groups[index].data() == nullptr) continue;
        fields_begin = std::min(fields_begin, groups[index].data());
        o.fields.emplace_back(name, std::string(groups[index].data(), std::min<std::size_t>(groups[index].size(), max_text)));
      }
      const bool known = std::any_of(occurrences.begin() + static_cast<std::ptrdiff_t>(first), occurrences.end(),
                                     [&](const Occurrence& other) { return other.fields == o.fields; });
      from = static_cast<std::size_t>(groups[0].data() + groups[0].size() - rest.data());
      if (c.of_list) {  // what was read is taken out; the head then stands before the next word
        const auto begin = static_cast<std::size_t>(fields_begin - rest.data());
        rest.erase(begin, from - begin);
        from = 0;
      }
      if (!known) occurrences.push_back(std::move(o));
    }
  }

  bool continuation(SignalState& state, std::size_t index, std::string_view line) {
    if (state.open_index < 0 || state.open_source != source) return false;
    FollowState& follow = state.follow[index];
    if (line_number - state.open_line > static_cast<std::uint64_t>(follow.within) || ((state.open_done >> index) & 1u) != 0) return false;
    for (Compiled& c : follow.match) {
      if (!holds_literal(c) || missing_clause(c, line) != nullptr) continue;
      if (run(c, line, &state.sighting.occurrences[static_cast<std::size_t>(state.open_index)].fields)) {
        state.open_done |= std::uint64_t{1} << index;
        return true;
      }
    }
    return false;
  }

  /// Counts an alarming line that no signal knows; gives its index among the alarms, or alarm_dull.
  std::uint32_t remember_alarm(std::string_view line) {
    if ((line_kinds & (knowledge::kind_code | knowledge::kind_config)) != 0 &&
        (line_kinds & (knowledge::kind_kernel_log | knowledge::kind_program)) == 0)
      return FormVerdict::alarm_dull;
    const std::uint64_t shape = shape_of(line);
    std::uint64_t& dull = dull_shapes[shape % dull_slots];
    if (dull == shape) return FormVerdict::alarm_dull;
    if (auto it = alarm_shapes.find(shape); it != alarm_shapes.end()) {
      ++evidence.alarms[it->second].count;
      return it->second;
    }
    bool of_this_field = false;
    const auto found = [](unsigned, unsigned long long, unsigned long long, unsigned, void* context) {
      *static_cast<bool*>(context) = true;
      return 1;
    };
    if (origin_database != nullptr)
      hs_scan(origin_database.get(), line.data(), static_cast<unsigned>(line.size()), 0, origin_scratch.get(), found, &of_this_field);
    if (!of_this_field) dull = shape;
    if (!of_this_field || evidence.alarms.size() >= max_alarms) return FormVerdict::alarm_dull;
    const auto index = static_cast<std::uint32_t>(evidence.alarms.size());
    alarm_shapes.emplace(shape, index);
    evidence.alarms.push_back(AlarmLine{source, line_number, 1, std::string(trim(line).substr(0, max_text))});
    return index;
  }
};

Scanner::Scanner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scanner::Scanner(Scanner&&) noexcept = default;
Scanner& Scanner::operator=(Scanner&&) noexcept = default;
Scanner::~Scanner() = default;

Result<Scanner> Scanner::make(const Knowledge& knowledge) {
  const Knowledge::Impl& k = knowledge.impl();
  auto impl = std::make_unique<Impl>();
  struct Stored {
    std::string_view bytes;
    std::unique_ptr<hs_database_t, DatabaseFree>& into;
    std::unique_ptr<hs_scratch_t, ScratchFree>& scratch;
  };
  for (const Stored& stored : {Stored{k.database, impl->database, impl->scratch}, Stored{k.kernel_database, impl->kernel_database, impl->scratch},
                               Stored{k.origin_database, impl->origin_database, impl->origin_scratch}}) {
    if (stored.bytes.empty()) continue;
    hs_database_t* database = nullptr;
    if (hs_deserialize_database(stored.bytes.data(), stored.bytes.size(), &database) != HS_SUCCESS)
      return fail("the literal database of the knowledge does not load", "knowledge", "build the program again");
    stored.into.reset(database);
    hs_scratch_t* scratch = stored.scratch.release();  // grows to what the larger database needs
    const hs_error_t status = hs_alloc_scratch(database, &scratch);
    stored.scratch.reset(scratch);
    if (status != HS_SUCCESS) return fail("no memory for the scanner", "knowledge");
  }
  const std::size_t literals = k.bundle.literals.size();
  impl->uses.resize(literals);
  impl->kernel_uses.resize(literals);
  impl->literal_serial.assign(literals, 0);
  impl->bundle = &k.bundle;
  impl->numbers_fit = k.bundle.forms.size() <= 0x10000 && k.bundle.signals.size() <= 0x10000;
  impl->tells.resize(literals);
  impl->has_digit.resize(literals);
  for (std::size_t i = 0; i < literals; ++i) {
    const std::string& text = k.bundle.literals[i];
    impl->tells[i] = knowledge::form_tells(text) ? 1 : 0;
    impl->has_digit[i] = impl->tells[i] == 0 || contains(text, "0") ? 1 : 0;
  }
  impl->is_alarm_word.assign(literals, 0);
  for (std::uint32_t id : k.bundle.alarm_words) impl->is_alarm_word[id] = 1;
  const auto compiled = [&](const std::vector<Pattern>& patterns, Use use, bool kernel) {
    std::vector<Compiled> out;
    for (const Pattern& p : patterns) {
      Compiled c;
      c.pattern = &p;
      c.plain = plain_text(p.text);
      c.of_list = contains(p.text, list_words);
      out.push_back(std::move(c));
      for (std::uint32_t id : p.literals) {
        const auto add = [&](std::vector<Use>& list) {
          if (list.empty() || list.back().signal != use.signal || list.back().follow != use.follow) list.push_back(use);
        };
        add(impl->uses[id]);
        if (kernel) add(impl->kernel_uses[id]);
      }
    }
    return out;
  };
  impl->signals.resize(k.bundle.signals.size());
  for (std::uint32_t i = 0; i < impl->signals.size(); ++i) {
    const Signal& s = k.bundle.signals[i];
    SignalState& state = impl->signals[i];
    state.signal = &s;
    state.match = compiled(s.match, Use{i, -1}, s.in_kernel_log);
    for (std::size_t f = 0; f < s.follow.size(); ++f)
      state.follow.push_back(FollowState{s.follow[f].within, compiled(s.follow[f].match, Use{i, static_cast<std::int32_t>(f)}, s.in_kernel_log)});
  }
  return Scanner(std::move(impl));
}

void Scanner::begin(std::string_view name, std::uint32_t kinds) {
  Impl& i = *impl_;
  i.evidence.sources.emplace_back(name);
  i.source = static_cast<std::uint32_t>(i.evidence.sources.size() - 1);
  i.kinds = kinds;
  i.line_number = 1;
  i.follow_reach = 0;
  i.salt = knowledge::spread(i.epoch << 32 | (kinds + 1));
  for (SignalState& s : i.signals) s.open_index = -1;
}

void Scanner::feed(std::string_view block) { impl_->scan(block); }

void Scanner::feed_again(std::string_view block, const std::vector<std::uint64_t>& line_numbers) {
  Impl& i = *impl_;
  i.frozen.assign(i.signals.size(), 0);
  for (std::size_t s = 0; s < i.signals.size(); ++s) {
    i.signals[s].open_index = -1;
    const auto& seen = i.signals[s].sighting.occurrences;
    i.frozen[s] = std::any_of(seen.begin(), seen.end(), [&](const Occurrence& o) { return o.source == i.source; }) ? 1 : 0;
  }
  i.other_numbers = &line_numbers;
  i.line_number = 1;
  i.scan(block);
  i.other_numbers = nullptr;
}

Evidence Scanner::take() {
  Impl& i = *impl_;
  for (SignalState& s : i.signals) {
    if (s.sighting.count > 0) {
      s.sighting.signal = s.signal;
      i.evidence.signals.emplace(s.signal->id, std::move(s.sighting));
    }
    s.sighting = Sighting{};
    s.open_index = -1;
  }
  ++i.epoch;
  i.alarm_shapes.clear();
  std::fill(i.dull_shapes.begin(), i.dull_shapes.end(), 0);
  Evidence out = std::move(i.evidence);
  i.evidence = Evidence{};
  return out;
}

void Scanner::settled() { impl_->evidence.settled.push_back(impl_->evidence.sources.at(impl_->source)); }

void Scanner::note(std::string text) { impl_->evidence.notes.push_back(std::move(text)); }

}  // namespace ff::diagnosis
