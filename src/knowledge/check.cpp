#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "base/text.h"
#include "knowledge/fact_names.h"
#include "knowledge/load.h"
#include "knowledge/place.h"
#include "knowledge/proof.h"

namespace ff::knowledge {

namespace {

class Checker {
 public:
  Checker(const Bundle& bundle, Problems& problems) : bundle_(bundle), problems_(problems), facts_(table("facts")), proofs_(table("programs")) {
    for (const Signal& s : bundle.signals) signals_.insert(s.id);
    for (const Cause& c : bundle.causes) causes_.insert(c.text.id);
    if (auto it = bundle.tables.find("taxonomy"); it != bundle.tables.end())
      for (const auto& [layer, ids] : it->second.members())
        for (const auto& [words, text] : ids.members()) causes_.insert(layer + "." + words);
  }

  void run() {
    for (const Signal& s : bundle_.signals) signal(s);
    for (const Cause& c : bundle_.causes) cause(c);
    std::size_t number = 0;
    for (const Value& entry : table("undecided")["messages"].items()) undecided(entry, ++number);
    wording();
  }

 private:
  [[nodiscard]] const Value& table(const std::string& name) const {
    static const Value none;
    const auto it = bundle_.tables.find(name);
    return it == bundle_.tables.end() ? none : it->second;
  }
  void complain(const Origin& at, const std::string& id, std::string_view field, std::string what, std::string remedy = {}) {
    problems_.push_back(Error{std::move(what), fmt::format("{}: {}: {}", place(at.file, at.line), id, field), std::move(remedy), 3});
  }
  [[nodiscard]] bool known_signal(std::string_view id) const {
    if (!id.ends_with("*")) return signals_.find(id) != signals_.end();
    id.remove_suffix(1);
    auto it = signals_.lower_bound(id);
    return it != signals_.end() && it->starts_with(id);
  }

  void signal(const Signal& s) {
    if (s.broken) return;
    if (!s.mistaken_for.empty() && causes_.find(s.mistaken_for) == causes_.end())
      complain(s.at, s.id, "mistaken_for", fmt::format("there is no cause '{}'", s.mistaken_for));
    std::vector<std::unique_ptr<RE2>> patterns;
    for (const Pattern& p : s.match) patterns.push_back(std::make_unique<RE2>(p.text, RE2::Quiet));
    const auto matches = [&](const std::string& text) {
      for (std::string_view line : lines(text))
        for (const auto& re : patterns)
          if (RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *re)) return true;
      return false;
    };
    for (const std::string& example : s.examples)
      if (!matches(example)) complain(s.at, s.id, "examples", fmt::format("no pattern matches the example '{}'", example));
    for (const std::string& other : s.look_alikes)
      if (matches(other)) complain(s.at, s.id, "not", fmt::format("a pattern matches the look-alike '{}'", other));
  }

  void cause(const Cause& c) {
    const auto need = [&](bool there, std::string_view field) {
      if (!there && !c.broken) complain(c.at, c.text.id, field, "is missing");
    };
    need(!c.text.title.empty(), "title");
    need(!c.text.explain.empty(), "explain");
    need(!c.text.fix.empty(), "fix");
    need(!c.text.verify.empty(), "verify");
    need(!c.text.sources.empty(), "sources");
    need(!c.rules.empty(), "rules");
    need(!c.examples.empty(), "examples");
    for (const std::string& id : c.covers)
      if (!known_signal(id)) complain(c.at, c.text.id, "covers", fmt::format("there is no signal '{}'", id));
    for (const auto& [id, text] : c.separates)
      if (causes_.find(id) == causes_.end()) complain(c.at, c.text.id, "separates", fmt::format("there is no cause '{}'", id));
    proof(c, c.at, c.text.verify);
    for (const Rule& rule : c.rules) proof(c, rule.at, rule.verify);
    for (const Rule& rule : c.rules) condition(c, rule, rule.when);
    for (const Rule& rule : c.against) condition(c, rule, rule.when);
  }

  /// An entry of table `undecided`: signals and causes that exist, commands that are some.
  void undecided(const Value& entry, std::size_t number) {
    const auto say = [&](std::string_view field, std::string what, std::string remedy = {}) {
      problems_.push_back(Error{std::move(what), fmt::format("tables/undecided.yaml: message {}: {}", number, field), std::move(remedy), 3});
    };
    if (entry["signals"].items().empty()) say("signals", "is missing");
    for (const Value& id : entry["signals"].items())
      if (!known_signal(id.as_text())) say("signals", fmt::format("there is no signal '{}'", id.as_text()));
    if (entry["means"].as_text().empty()) say("means", "is missing", "say in a sentence what the message tells");
    if (entry["candidates"].items().size() < 2) say("candidates", "at least two are needed", "one cause alone is a rule of that cause");
    for (const Value& c : entry["candidates"].items()) {
      const std::string_view id = c["cause"].as_text();
      const bool there = std::any_of(bundle_.causes.begin(), bundle_.causes.end(), [&](const Cause& cause) { return cause.text.id == id; });
      if (!there) say("candidates", fmt::format("there is no cause '{}'", id));
      if (c["when"].as_text().empty()) say("candidates", fmt::format("{}: 'when' is missing", id), "what is seen when it is this cause");
      if (!proofs_.is_command(c["ask"].as_text())) say("candidates", fmt::format("{}: '{}' is no command", id, c["ask"].as_text()));
    }
  }

  /// Table `wording`: references that can be answered, proofs that are commands.
  void wording() {
    const auto say = [&](std::string what) { problems_.push_back(Error{std::move(what), "tables/wording.yaml", {}, 3}); };
    for (const Value& entry : table("wording")["placeholders"].items()) {
      if (entry["name"].as_text().empty() || entry["from"].items().empty()) say("a placeholder needs 'name' and 'from'");
      for (const Value& reference : entry["from"].items()) {
        const std::string_view text = reference.as_text();
        if (!answerable(text)) say(fmt::format("placeholder '{}': there is no '{}'", entry["name"].as_text(), text));
      }
    }
    for (const auto& [layer, commands] : table("wording")["windows"]["proofs"].members())
      for (const Value& command : commands.items())
        if (!proofs_.is_command(command.as_text())) say(fmt::format("proofs of '{}': '{}' is no command", layer, command.as_text()));
  }

  [[nodiscard]] bool answerable(std::string_view reference) const {
    if (reference.starts_with("$fact:")) return facts_.known(reference.substr(6));
    if (!reference.starts_with("$signal:")) return false;
    reference.remove_prefix(8);
    const auto dot = reference.rfind('.');
    if (dot == std::string_view::npos) return false;
    const std::string group = fmt::format("(?P<{}>", reference.substr(dot + 1));
    return std::any_of(bundle_.signals.begin(), bundle_.signals.end(), [&](const Signal& s) {
      return s.id == reference.substr(0, dot) &&
             std::any_of(s.match.begin(), s.match.end(), [&](const Pattern& p) { return contains(p.text, group); });
    });
  }

  void proof(const Cause& c, const Origin& at, const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      if (!proofs_.is_command(line))
        complain(at, c.text.id, "verify", fmt::format("'{}' is no command", line),
                 "give the command whose success proves the fix; '<…>' marks what a person fills in; words belong into `fix`");
  }

  void fact(const Origin& at, const Cause& c, std::string_view field, std::string_view name) {
    if (facts_.known(name)) return;
    const std::vector<std::string> near = facts_.near(name);
    complain(at, c.text.id, field, fmt::format("there is no fact '{}', so this never holds", name),
             near.empty() ? "docs/facts.md lists the names" : "near it: " + join(near, ", ") + "; docs/facts.md lists the names");
  }

  void condition(const Cause& c, const Rule& rule, const Condition& when) {
    const Origin& at = rule.at;
    const auto need_signal = [&](std::string_view id, std::string_view field) {
      if (!id.empty() && !known_signal(id)) complain(at, c.text.id, field, fmt::format("there is no signal '{}'", id));
    };
    if (when.type == Condition::Type::signal) {
      need_signal(when.name, "signal");
      need_signal(when.before, "before");
      need_signal(when.after, "after");
      for (const auto& [field, predicate] : when.where) {
        if (!has_field(when.name, field)) complain(at, c.text.id, "where", fmt::format("signal '{}' has no field '{}'", when.name, field));
        references(at, c, predicate);
      }
    }
    if (when.type == Condition::Type::fact) fact(at, c, "fact", when.name);
    if (when.type == Condition::Type::absent) fact(at, c, "absent", when.name);
    references(at, c, when.is);
    for (const Condition& part : when.parts) condition(c, rule, part);
  }

  void references(const Origin& at, const Cause& c, const Predicate& predicate) {
    for (const Comparison& comparison : predicate)
      for (const std::string& word : comparison.words) {
        if (word.starts_with("$fact:")) fact(at, c, "when", std::string_view(word).substr(6));
        if (!word.starts_with("$signal:")) continue;
        const std::string name = word.substr(8);
        const auto dot = name.rfind('.');
        if (dot == std::string::npos || !has_field(name.substr(0, dot), name.substr(dot + 1)))
          complain(at, c.text.id, "when", fmt::format("'{}' names no field of a signal", word));
      }
  }

  /// Named groups of the signal's patterns, and the fields that every occurrence has (docs/knowledge.md).
  [[nodiscard]] bool has_field(std::string_view id, std::string_view field) const {
    if (field == "line" || field == "source" || field == "kind") return true;
    const bool wild = id.ends_with("*");
    if (wild) id.remove_suffix(1);
    for (const Signal& s : bundle_.signals) {
      if (wild ? !s.id.starts_with(id) : s.id != id) continue;
      if (s.broken) return true;
      if (contains(field, ".") || !s.decode.empty()) {
        for (const auto& [from, decoder] : s.decode)
          if (field.starts_with(from + "-")) return true;
      }
      const auto in = [&](const std::vector<Pattern>& patterns) {
        return std::any_of(patterns.begin(), patterns.end(), [&](const Pattern& p) { return contains(p.text, fmt::format("(?P<{}>", field)); });
      };
      if (in(s.match)) return true;
      for (const Follow& follow : s.follow)
        if (in(follow.match)) return true;
    }
    return false;
  }

  const Bundle& bundle_;
  Problems& problems_;
  FactNames facts_;
  Proofs proofs_;
  std::set<std::string, std::less<>> signals_, causes_;
};

}  // namespace

void check(const Bundle& bundle, Problems& problems) { Checker(bundle, problems).run(); }

}  // namespace ff::knowledge
