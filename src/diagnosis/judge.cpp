#include "diagnosis/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "diagnosis/decode.h"
#include "diagnosis/match.h"
#include "diagnosis/undecided.h"
#include "diagnosis/wording.h"
#include "knowledge/impl.h"

namespace ff::diagnosis {

using namespace knowledge;

namespace {

constexpr std::size_t max_unknown_exceptions = 3;  ///< of one explanation

struct Candidate {
  Diagnosis diagnosis;
  const Cause* cause = nullptr;
  std::set<std::string> signals;      ///< that speak for it
  const Occurrence* first = nullptr;  ///< earliest of them
  bool confirms = false;
};

bool covered_by(const Cause& cause, const std::string& signal) {
  return std::any_of(cause.covers.begin(), cause.covers.end(), [&](const std::string& id) {
    return id.ends_with("*") ? signal.starts_with(std::string_view(id).substr(0, id.size() - 1)) : id == signal;
  });
}

/// Every signal of `other` is a consequence of `cause`, and it has one.
bool covers_all(const Candidate& cause, const Candidate& other) {
  return !other.signals.empty() &&
         std::all_of(other.signals.begin(), other.signals.end(), [&](const std::string& s) { return covered_by(*cause.cause, s); });
}

bool earlier(const Occurrence* a, const Occurrence* b) {
  if (a == nullptr || b == nullptr) return false;
  const auto order = order_of(*a, *b);
  return order && *order < 0;
}

Support support_of(const Evidence& evidence, const Sighting& s, const Occurrence& o, const std::string& because) {
  return Support{evidence.sources[o.source], o.line, o.text, s.signal->id, because, s.count};
}

class Judge {
 public:
  Judge(const Evidence& evidence, const Knowledge& knowledge)
      : evidence_(evidence), knowledge_(knowledge), bundle_(knowledge.impl().bundle), matcher_(evidence) {}

  Judgement run() {
    for (const Cause& cause : bundle_.causes) consider(cause);
    rank();
    confidence();
    separates();
    Judgement out;
    std::set<std::string> used;
    for (Candidate& c : candidates_) {
      for (const std::string& s : c.signals) used.insert(s);
      decode_all(c);
    }
    for (const auto& [id, sighting] : evidence_.signals)
      for (const Candidate& c : candidates_)
        if (covered_by(*c.cause, id)) used.insert(id);
    for (Candidate& c : candidates_) out.diagnoses.push_back(std::move(c.diagnosis));
    word_for_evidence(evidence_, matcher_, knowledge_, out.diagnoses);
    benign(out, used);
    for (std::string& id : ask_what_decides(evidence_, knowledge_, used, out.diagnoses)) used.insert(std::move(id));
    unexplained(out, used);
    return out;
  }

 private:
  void consider(const Cause& cause) {
    Candidate c;
    c.cause = &cause;
    std::vector<double> scores;
    for (std::size_t i = 0; i < cause.rules.size(); ++i) {
      const Rule& rule = cause.rules[i];
      Trace trace;
      if (!matcher_.holds(rule.when, trace)) continue;
      if (context_only(trace)) continue;
      scores.push_back(rule.score);
      Applied applied = apply(rule, trace, fmt::format("rules[{}]", i));
      for (const auto& [sighting, occurrence] : trace.seen) {
        c.signals.insert(sighting->signal->id);
        if (sighting->signal->severity != Severity::info && (c.first == nullptr || earlier(occurrence, c.first))) c.first = occurrence;
      }
      c.confirms = c.confirms || rule.confirms;
      add_support(c.diagnosis.evidence_for, applied.support);
      if (!rule.name.empty() && (c.diagnosis.title.empty() || rule.score >= *std::max_element(scores.begin(), scores.end()))) {
        c.diagnosis.title = rule.name;
        c.diagnosis.fix = rule.fix;
        c.diagnosis.verify = rule.verify;
        c.diagnosis.sources = rule.sources;
      }
      c.diagnosis.chain.push_back(std::move(applied));
    }
    if (scores.empty()) return;
    std::sort(scores.rbegin(), scores.rend());
    double missing = 1 - scores[0];
    for (std::size_t i = 1; i < scores.size(); ++i) missing *= 1 - scores[i] / 2;
    double score = std::max(scores[0], std::min(0.98, 1 - missing));
    for (std::size_t i = 0; i < cause.against.size(); ++i) {
      Trace trace;
      if (!matcher_.holds(cause.against[i].when, trace)) continue;
      score *= 1 - cause.against[i].score;
      Applied applied = apply(cause.against[i], trace, fmt::format("against[{}]", i));
      add_support(c.diagnosis.evidence_against, applied.support);
      c.diagnosis.chain.push_back(std::move(applied));
    }
    if (only_settled(c.diagnosis.evidence_for)) {
      score *= settled_weight;
      c.diagnosis.evidence_against.push_back(
          Support{evidence_.settled.front(), 0, "", "", "The only evidence is quoted in a note that says the problem is solved.", 1});
    }
    if (score < least_score) return;
    Diagnosis& d = c.diagnosis;
    d.cause = cause.text.id;
    d.layer = cause.text.layer;
    d.explain = cause.text.explain;
    d.score = score;
    if (d.title.empty()) d.title = cause.text.title;
    if (d.fix.empty()) d.fix = cause.text.fix;
    if (d.verify.empty()) d.verify = cause.text.verify;
    if (d.sources.empty()) d.sources = cause.text.sources;
    candidates_.push_back(std::move(c));
  }

  /// Whether all that was seen stands in notes about something solved, and nowhere else.
  [[nodiscard]] bool only_settled(const std::vector<Support>& support) const {
    const auto settled = [&](const std::string& source) {
      return std::find(evidence_.settled.begin(), evidence_.settled.end(), source) != evidence_.settled.end();
    };
    return !evidence_.settled.empty() && std::all_of(support.begin(), support.end(), [&](const Support& s) {
      const auto sighting = evidence_.signals.find(s.signal);
      if (sighting == evidence_.signals.end()) return settled(s.source);
      const auto& occurrences = sighting->second.occurrences;
      return std::all_of(occurrences.begin(), occurrences.end(), [&](const Occurrence& o) { return settled(evidence_.sources[o.source]); });
    });
  }

  /// One information-only signal and no fact are no reason for a diagnosis.
  static bool context_only(const Trace& trace) {
    if (!trace.facts.empty()) return false;
    std::set<const Signal*> distinct;
    for (const auto& [sighting, occurrence] : trace.seen) distinct.insert(sighting->signal);
    return distinct.size() <= 1 && std::all_of(distinct.begin(), distinct.end(), [](const Signal* s) { return s->severity == Severity::info; });
  }

  Applied apply(const Rule& rule, const Trace& trace, std::string where) const {
    Applied a;
    a.rule = std::move(where);
    a.name = rule.name;
    a.because = rule.because;
    a.score = rule.score;
    a.confirms = rule.confirms;
    a.sources = rule.sources;
    for (const auto& [sighting, occurrence] : trace.seen) a.support.push_back(support_of(evidence_, *sighting, *occurrence, rule.because));
    for (const Fact* fact : trace.facts)
      a.support.push_back(Support{fact->source, fact->line, fmt::format("{} = {}", fact->name, fact->value.to_string()), "", rule.because, 1});
    return a;
  }

  static void add_support(std::vector<Support>& to, const std::vector<Support>& from) {
    for (const Support& s : from) {
      const bool there =
          std::any_of(to.begin(), to.end(), [&](const Support& t) { return t.source == s.source && t.line == s.line && t.text == s.text; });
      if (!there) to.push_back(s);
    }
  }

  /// Strongest first; what another cause explains wholly comes after it, also when that one is a little weaker but
  /// began earlier: the first event outranks its consequences.
  void rank() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.diagnosis.score > b.diagnosis.score; });
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      for (std::size_t j = 0; j < candidates_.size(); ++j) {
        if (i == j) continue;
        const Candidate& origin = candidates_[i];
        Candidate& other = candidates_[j];
        if (!other.diagnosis.consequence_of.empty() || origin.diagnosis.consequence_of == other.diagnosis.cause || !covers_all(origin, other))
          continue;
        const bool mutual = covers_all(other, origin);
        const double lead = origin.diagnosis.score - other.diagnosis.score;
        const bool began_earlier = earlier(origin.first, other.first);
        const bool began_later = earlier(other.first, origin.first);
        if ((lead >= 0 && !began_later && !mutual) || (began_earlier && lead > -0.25 && origin.diagnosis.score >= 0.5) ||
            (mutual && lead > 0 && !began_later))
          other.diagnosis.consequence_of = origin.diagnosis.cause;
      }
    }
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.diagnosis.consequence_of.empty() && !b.diagnosis.consequence_of.empty();
    });
  }

  void confidence() {
    for (Candidate& c : candidates_) {
      bool rival = false;
      for (const Candidate& other : candidates_)
        rival = rival || (&other != &c && other.diagnosis.consequence_of.empty() && other.diagnosis.score > c.diagnosis.score - rival_distance &&
                          !covers_all(c, other));
      c.diagnosis.confidence = c.confirms && !rival && c.diagnosis.consequence_of.empty() && c.diagnosis.score >= likely_score ? "confirmed"
                               : c.diagnosis.score >= likely_score                                                             ? "likely"
                                                                                                                               : "possible";
    }
  }

  void separates() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      for (std::size_t j = 0; j < candidates_.size() && j < 6; ++j) {
        if (i == j || std::abs(candidates_[i].diagnosis.score - candidates_[j].diagnosis.score) > rival_distance + 0.1) continue;
        const std::string& neighbour = candidates_[j].diagnosis.cause;
        for (const auto& [id, text] : candidates_[i].cause->separates)
          if (id == neighbour) candidates_[i].diagnosis.separates.push_back(fmt::format("{}: {}", neighbour, text));
      }
    }
  }

  void decode_all(Candidate& c) const {
    std::set<std::string> said;
    std::string gfx;  // only when all GPUs of the evidence are of one target
    for (const Fact& f : evidence_.facts) {
      if (!name_fits("gpus[*].gfx", f.name)) continue;
      const std::string one = f.value.to_string();
      if (!gfx.empty() && gfx != one) {
        gfx.clear();
        break;
      }
      gfx = one;
    }
    for (const std::string& id : c.signals) {
      const Sighting& s = evidence_.signals.find(id)->second;
      if (s.occurrences.empty()) continue;
      for (const std::string& text : decode_occurrence(*s.signal, s.occurrences.front(), knowledge_, gfx))
        if (said.insert(text).second) c.diagnosis.decoded.push_back(text);
    }
  }

  void benign(Judgement& out, std::set<std::string>& used) const {
    std::set<std::string> said;
    for (const auto& [id, sighting] : evidence_.signals) {
      const Signal& s = *sighting.signal;
      if (!s.benign || sighting.occurrences.empty()) continue;
      used.insert(id);
      Diagnosis d;
      d.cause = s.mistaken_for;
      d.layer = s.mistaken_for.substr(0, s.mistaken_for.find('.'));
      d.title = s.title;
      d.explain = s.explain;
      d.score = least_score;
      d.confidence = "possible";
      d.benign = true;
      d.sources = s.sources;
      d.evidence_for.push_back(support_of(evidence_, sighting, sighting.occurrences.front(), s.explain));
      const bool diagnosed = std::any_of(out.diagnoses.begin(), out.diagnoses.end(), [&](const Diagnosis& other) { return other.cause == d.cause; });
      if (!diagnosed && said.insert(d.cause + d.title).second) out.diagnoses.push_back(std::move(d));
    }
  }

  /// Lines that a diagnosis already rests on, also when two signals recognise the same line, and the continuation lines of
  /// their groups: none of them is unexplained.
  std::set<std::pair<std::size_t, std::uint64_t>> explained_lines(const std::set<std::string>& used) const {
    std::set<std::pair<std::size_t, std::uint64_t>> lines;
    for (const auto& [id, sighting] : evidence_.signals) {
      if (used.count(id) == 0) continue;
      std::uint64_t reach = 0;
      for (const auto& follow : sighting.signal->follow)
        reach = std::max(reach, static_cast<std::uint64_t>(std::max(0, static_cast<int>(follow.within))));
      for (const Occurrence& o : sighting.occurrences)
        for (std::uint64_t n = 0; n <= reach; ++n) lines.emplace(static_cast<std::size_t>(o.source), o.line + n);
    }
    return lines;
  }

  void unexplained(Judgement& out, const std::set<std::string>& used) const {
    const auto explained = explained_lines(used);
    for (const auto& [id, sighting] : evidence_.signals) {
      if (sighting.signal->severity != Severity::error || used.count(id) != 0 || sighting.occurrences.empty()) continue;
      const Occurrence& o = sighting.occurrences.front();
      if (explained.count({static_cast<std::size_t>(o.source), o.line}) != 0) continue;
      out.unexplained.push_back(Unexplained{evidence_.sources[o.source], o.line, o.text, sighting.count, search_query(o.text, knowledge_)});
    }
    for (const AlarmLine& a : evidence_.alarms)
      if (explained.count({static_cast<std::size_t>(a.source), a.line}) == 0)
        out.unexplained.push_back(Unexplained{evidence_.sources[a.source], a.line, a.text, a.count, search_query(a.text, knowledge_)});
    // An exception that nobody knows ended something all the same.
    if (!out.unexplained.empty() || std::any_of(out.diagnoses.begin(), out.diagnoses.end(), [](const Diagnosis& d) { return !d.benign; })) return;
    for (const Fact& f : evidence_.facts)
      if ((f.name == "exception.text" || f.name == "exception.other") && f.line > 0 && out.unexplained.size() < max_unknown_exceptions)
        out.unexplained.push_back(Unexplained{f.source, f.line, f.value.to_string(), 1, search_query(f.value.to_string(), knowledge_)});
  }

  const Evidence& evidence_;
  const Knowledge& knowledge_;
  const Bundle& bundle_;
  Matcher matcher_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Judgement judge(const Evidence& evidence, const Knowledge& knowledge) { return Judge(evidence, knowledge).run(); }

}  // namespace ff::diagnosis
