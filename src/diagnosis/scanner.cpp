#include "diagnosis/scanner.h"

#include <hs/hs_runtime.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/text.h"
#include "diagnosis/kind.h"
#include "diagnosis/moment.h"
#include "knowledge/impl.h"

namespace ff::diagnosis {

using knowledge::Knowledge;
using knowledge::Pattern;
using knowledge::Signal;

namespace {

/// A pattern of the knowledge with its compiled form, made when a line first needs it.
struct Compiled {
  const Pattern* pattern = nullptr;
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

struct ScratchFree {
  void operator()(hs_scratch_t* s) const { hs_free_scratch(s); }
};
struct DatabaseFree {
  void operator()(hs_database_t* d) const { hs_free_database(d); }
};

/// The line with runs of digits and hexadecimal numbers taken out: lines that differ in numbers only are one.
std::string shape_of(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size() && out.size() < 160; ++i) {
    const char c = line[i];
    if ((c >= '0' && c <= '9')) {
      if (out.empty() || out.back() != '#') out.push_back('#');
      while (i + 1 < line.size() && (std::isxdigit(static_cast<unsigned char>(line[i + 1])) != 0 || line[i + 1] == 'x')) ++i;
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

struct Scanner::Impl {
  std::unique_ptr<hs_database_t, DatabaseFree> database, kernel_database;
  std::unique_ptr<hs_scratch_t, ScratchFree> scratch;
  std::vector<SignalState> signals;
  std::vector<std::vector<Use>> uses;         ///< literal -> where it is needed
  std::vector<std::uint64_t> literal_serial;  ///< line serial in which the literal was last seen
  std::vector<std::uint8_t> alarm_class;      ///< literal -> 1 word, 2 origin, 3 both
  std::vector<std::uint32_t> line_literals;   ///< literals of the current line
  std::string low_line;                       ///< the current line in lower case, made when it is first needed
  std::uint64_t low_serial = 0;
  std::unordered_map<std::string, std::size_t> alarm_shapes;
  Evidence evidence;

  std::uint32_t source = 0;
  std::uint32_t kinds = 0;
  std::uint64_t serial = 0;  ///< of the current piece of line

  const std::vector<std::uint64_t>* other_numbers = nullptr;  ///< of feed_again
  std::vector<std::uint8_t> frozen;                           ///< signals that feed_again leaves alone

  // Position inside the block that is being scanned.
  std::string_view block;
  std::uint64_t line_number = 1;  ///< of `line_begin`
  std::size_t line_begin = 0;
  std::size_t line_end = 0;  ///< end of the line (newline or end of block)
  std::size_t piece_begin = 0;
  std::size_t piece_end = 0;  ///< end of the current piece of the line
  std::uint64_t next_block_line = 1;

  static int on_match(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
    static_cast<Impl*>(context)->literal(id, static_cast<std::size_t>(to) - 1);
    return 0;
  }

  void literal(std::uint32_t id, std::size_t position) {
    if (position >= piece_end) {
      flush();
      move_to(position);
    }
    if (literal_serial[id] != serial) {
      literal_serial[id] = serial;
      line_literals.push_back(id);
    }
  }

  /// Makes the line that holds `position` the current one.
  void move_to(std::size_t position) {
    if (position >= line_end) {
      const char* from = block.data() + line_end;
      const char* to = block.data() + position;
      line_number += static_cast<std::uint64_t>(std::count(from, to, '\n'));
      const void* newline = memrchr(block.data() + line_begin, '\n', position - line_begin);
      line_begin = newline != nullptr ? static_cast<std::size_t>(static_cast<const char*>(newline) - block.data()) + 1 : line_begin;
      const void* end = std::memchr(block.data() + position, '\n', block.size() - position);
      line_end = end != nullptr ? static_cast<std::size_t>(static_cast<const char*>(end) - block.data()) : block.size();
      piece_begin = line_begin;
    }
    if (line_end - line_begin <= max_line_bytes) {
      piece_begin = line_begin;
      piece_end = line_end;
    } else {
      piece_begin = line_begin + (position - line_begin) / max_line_bytes * max_line_bytes;
      piece_end = std::min(line_end, piece_begin + max_line_bytes);
    }
    ++serial;
  }

  void flush() {
    if (line_literals.empty()) return;
    std::size_t begin = piece_begin;
    std::size_t end = piece_end;
    if (piece_begin != line_begin) begin -= std::min(line_overlap_bytes, piece_begin - line_begin);
    if (piece_end != line_end) end += std::min(line_overlap_bytes, line_end - piece_end);
    std::string_view line = block.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    process(line);
    line_literals.clear();
  }

  void process(std::string_view line) {
    std::uint32_t line_kinds = kinds;
    bool kinds_known = false;
    bool any = false;
    std::uint8_t alarm = 0;
    for (std::uint32_t id : line_literals) {
      alarm |= alarm_class[id];
      for (const Use& use : uses[id]) {
        SignalState& state = signals[use.signal];
        if (use.follow >= 0 || state.tried_serial == serial || (other_numbers != nullptr && frozen[use.signal] != 0)) continue;
        state.tried_serial = serial;
        if (state.signal->kinds != 0 && (state.signal->kinds & line_kinds) == 0) {
          if (!kinds_known) {
            line_kinds |= kinds_of_line(line);
            kinds_known = true;
          }
          if ((state.signal->kinds & line_kinds) == 0) continue;
        }
        if (head(state, line, line_kinds)) any = true;
      }
    }
    for (std::uint32_t id : line_literals)
      for (const Use& use : uses[id])
        if (use.follow >= 0 && (other_numbers == nullptr || frozen[use.signal] == 0) &&
            continuation(signals[use.signal], static_cast<std::size_t>(use.follow), line))
          any = true;
    if (!any && alarm == 3 && other_numbers == nullptr) remember_alarm(line, line_kinds);
  }

  /// Whether the line holds what every match of the pattern holds.
  [[nodiscard]] bool worth_trying(const Compiled& c, std::string_view line) {
    const auto& literals = c.pattern->literals;
    if (std::none_of(literals.begin(), literals.end(), [&](std::uint32_t id) { return literal_serial[id] == serial; })) return false;
    if (c.pattern->also.empty()) return true;
    if (low_serial != serial) {
      low_line.resize(line.size());
      for (std::size_t i = 0; i < line.size(); ++i) low_line[i] = static_cast<char>(line[i] >= 'A' && line[i] <= 'Z' ? line[i] | 0x20 : line[i]);
      low_serial = serial;
    }
    return std::all_of(c.pattern->also.begin(), c.pattern->also.end(),
                       [&](const std::string& text) { return memmem(low_line.data(), low_line.size(), text.data(), text.size()) != nullptr; });
  }

  /// Runs one pattern; fields go to `fields` when it is given.
  static bool run(Compiled& c, std::string_view line, std::vector<std::pair<std::string, std::string>>* fields) {
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

  bool head(SignalState& state, std::string_view line, std::uint32_t line_kinds) {
    const bool store = state.sighting.occurrences.size() < max_occurrences;
    Occurrence o;
    bool matched = false;
    for (Compiled& c : state.match) {
      if (!worth_trying(c, line)) continue;
      matched = run(c, line, store ? &o.fields : nullptr);
      if (matched) break;
    }
    if (!matched) return false;
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
      state.sighting.occurrences.push_back(std::move(o));
    }
    return true;
  }

  bool continuation(SignalState& state, std::size_t index, std::string_view line) {
    if (state.open_index < 0 || state.open_source != source) return false;
    FollowState& follow = state.follow[index];
    if (line_number - state.open_line > static_cast<std::uint64_t>(follow.within) || ((state.open_done >> index) & 1u) != 0) return false;
    for (Compiled& c : follow.match) {
      if (!worth_trying(c, line)) continue;
      if (run(c, line, &state.sighting.occurrences[static_cast<std::size_t>(state.open_index)].fields)) {
        state.open_done |= std::uint64_t{1} << index;
        return true;
      }
    }
    return false;
  }

  void remember_alarm(std::string_view line, std::uint32_t line_kinds) {
    if ((line_kinds & (knowledge::kind_code | knowledge::kind_config)) != 0 &&
        (line_kinds & (knowledge::kind_kernel_log | knowledge::kind_program)) == 0)
      return;
    std::string shape = shape_of(line);
    auto it = alarm_shapes.find(shape);
    if (it != alarm_shapes.end()) {
      ++evidence.alarms[it->second].count;
      return;
    }
    if (evidence.alarms.size() >= max_alarms) return;
    alarm_shapes.emplace(std::move(shape), evidence.alarms.size());
    evidence.alarms.push_back(AlarmLine{source, line_number, 1, std::string(trim(line).substr(0, max_text))});
  }
};

Scanner::Scanner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scanner::Scanner(Scanner&&) noexcept = default;
Scanner& Scanner::operator=(Scanner&&) noexcept = default;
Scanner::~Scanner() = default;

Result<Scanner> Scanner::make(const Knowledge& knowledge) {
  const Knowledge::Impl& k = knowledge.impl();
  auto impl = std::make_unique<Impl>();
  const std::pair<std::string_view, std::unique_ptr<hs_database_t, DatabaseFree>*> databases[] = {{k.database, &impl->database},
                                                                                                  {k.kernel_database, &impl->kernel_database}};
  for (const auto& [bytes, into] : databases) {
    if (bytes.empty()) continue;
    hs_database_t* database = nullptr;
    if (hs_deserialize_database(bytes.data(), bytes.size(), &database) != HS_SUCCESS)
      return fail("the literal database of the knowledge does not load", "knowledge", "build the program again");
    into->reset(database);
    hs_scratch_t* scratch = impl->scratch.release();  // grows to what the larger database needs
    const hs_error_t status = hs_alloc_scratch(database, &scratch);
    impl->scratch.reset(scratch);
    if (status != HS_SUCCESS) return fail("no memory for the scanner", "knowledge");
  }
  const std::size_t literals = k.bundle.literals.size();
  impl->uses.resize(literals);
  impl->literal_serial.assign(literals, 0);
  impl->alarm_class.assign(literals, 0);
  for (std::uint32_t id : k.bundle.alarm_words) impl->alarm_class[id] |= 1;
  for (std::uint32_t id : k.bundle.alarm_origins) impl->alarm_class[id] |= 2;
  const auto compiled = [&](const std::vector<Pattern>& patterns, Use use) {
    std::vector<Compiled> out;
    for (const Pattern& p : patterns) {
      Compiled c;
      c.pattern = &p;
      out.push_back(std::move(c));
      for (std::uint32_t id : p.literals) {
        auto& list = impl->uses[id];
        if (std::none_of(list.begin(), list.end(), [&](const Use& u) { return u.signal == use.signal && u.follow == use.follow; }))
          list.push_back(use);
      }
    }
    return out;
  };
  impl->signals.resize(k.bundle.signals.size());
  for (std::uint32_t i = 0; i < impl->signals.size(); ++i) {
    const Signal& s = k.bundle.signals[i];
    SignalState& state = impl->signals[i];
    state.signal = &s;
    state.match = compiled(s.match, Use{i, -1});
    for (std::size_t f = 0; f < s.follow.size(); ++f)
      state.follow.push_back(FollowState{s.follow[f].within, compiled(s.follow[f].match, Use{i, static_cast<std::int32_t>(f)})});
  }
  return Scanner(std::move(impl));
}

void Scanner::begin(std::string_view name, std::uint32_t kinds) {
  impl_->evidence.sources.emplace_back(name);
  impl_->source = static_cast<std::uint32_t>(impl_->evidence.sources.size() - 1);
  impl_->kinds = kinds;
  impl_->next_block_line = 1;
  for (SignalState& s : impl_->signals) s.open_index = -1;
}

void Scanner::feed(std::string_view block) {
  Impl& i = *impl_;
  // A log of nothing but kernel messages needs only what the kernel can say.
  const hs_database_t* database = i.kinds == knowledge::kind_kernel_log ? i.kernel_database.get() : i.database.get();
  if (block.empty() || database == nullptr) return;
  i.block = block;
  i.line_number = i.next_block_line;
  i.line_begin = i.piece_begin = 0;
  const auto newline = block.find('\n');
  i.line_end = newline == std::string_view::npos ? block.size() : newline;
  i.piece_end = 0;  // nothing is current yet
  i.line_literals.clear();
  // The first match moves to its line; lines are counted from line_end, the first line's end.
  i.line_end = 0;
  hs_scan(database, block.data(), static_cast<unsigned>(block.size()), 0, i.scratch.get(), &Impl::on_match, &i);
  i.flush();
  i.next_block_line += static_cast<std::uint64_t>(std::count(block.begin(), block.end(), '\n'));
  i.block = {};
}

void Scanner::feed_again(std::string_view block, const std::vector<std::uint64_t>& line_numbers) {
  Impl& i = *impl_;
  i.frozen.assign(i.signals.size(), 0);
  for (std::size_t s = 0; s < i.signals.size(); ++s) {
    i.signals[s].open_index = -1;
    const auto& seen = i.signals[s].sighting.occurrences;
    i.frozen[s] = std::any_of(seen.begin(), seen.end(), [&](const Occurrence& o) { return o.source == i.source; }) ? 1 : 0;
  }
  i.other_numbers = &line_numbers;
  i.next_block_line = 1;
  feed(block);
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
  i.alarm_shapes.clear();
  Evidence out = std::move(i.evidence);
  i.evidence = Evidence{};
  return out;
}

void Scanner::note(std::string text) { impl_->evidence.notes.push_back(std::move(text)); }

}  // namespace ff::diagnosis
