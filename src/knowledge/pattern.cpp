#include "knowledge/pattern.h"

#include <fmt/format.h>
#include <hs/hs.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "knowledge/form.h"

namespace ff::knowledge {

namespace {

/// Words that lines of this field hold all the time: poor guards whatever the examples say.
constexpr std::string_view common_words[] = {"amdgpu",     "error",   "failed", "fail",   "drm",    "torch",   "runtimeerror",
                                             "valueerror", "warning", "cuda",   "line",   "info",   "kernel",  "file",
                                             "device",     "python",  "memory", "module", "driver", "with",    "nvidia",
                                             "version",    "step",    "gpu",    "true",   "false",  "process", "service"};

/// How rarely a line holds a text, judged by the lines that the knowledge itself holds: examples, look-alikes, and the
/// everyday lines of table "ordinary". A text that stands in none of them is judged by its length.
class Rarity {
 public:
  explicit Rarity(const Bundle& bundle) {
    for (const Signal& s : bundle.signals) {
      for (const std::string& line : s.examples) known_ += lower(line) + "\n";
      for (const std::string& line : s.look_alikes) known_ += lower(line) + "\n";
    }
    if (auto it = bundle.tables.find("ordinary"); it != bundle.tables.end())
      for (const Value& line : it->second["lines"].items()) everyday_ += lower(line.as_text()) + "\n";
  }

  /// Roughly proportional to the share of lines that hold the text.
  double cost(const std::string& atom) {
    auto [it, fresh] = costs_.try_emplace(atom, 0);
    if (!fresh) return it->second;
    std::string_view core = atom;
    constexpr std::string_view edge = " :*[]()'\"=_.-/,";
    while (!core.empty() && edge.find(core.front()) != std::string_view::npos) core.remove_prefix(1);
    while (!core.empty() && edge.find(core.back()) != std::string_view::npos) core.remove_suffix(1);
    double hits = static_cast<double>(count(known_, atom)) + 30 * static_cast<double>(count(everyday_, atom));
    for (std::string_view common : common_words)
      if (core == common) hits += 300;
    // A short text also stands in lines that nobody wrote down.
    double chance = 600 / std::pow(4, static_cast<double>(std::min<std::size_t>(core.size(), 12)) - 2);
    // Lines are searched without their numbers: a text of numbers alone stands in every line that holds some.
    const auto letter = [&](std::size_t i) { return i < core.size() && core[i] >= 'a' && core[i] <= 'z'; };
    bool word = false;
    for (std::size_t i = 0; i < core.size(); ++i) word = word || (letter(i) && letter(i + 1));
    if (!word) chance += 1000;
    return it->second = 0.5 + hits + chance;
  }
  double cost(const std::vector<std::string>& set) {
    double sum = 0;
    for (const std::string& atom : set) sum += cost(atom);
    return sum;
  }

 private:
  static std::size_t count(const std::string& text, const std::string& atom) {
    std::size_t n = 0;
    for (const char* at = text.data(); n < 2000; ++n) {
      const auto left = static_cast<std::size_t>(text.data() + text.size() - at);
      const void* hit = memmem(at, left, atom.data(), atom.size());
      if (hit == nullptr) break;
      at = static_cast<const char*>(hit) + atom.size();
    }
    return n;
  }
  std::string known_, everyday_;
  std::map<std::string, double> costs_;
};

/// The database over those texts of which `wanted` is true; matches carry the position in `texts`.
Result<void> compile_database(const std::vector<std::string>& texts, const std::vector<bool>& wanted, std::string& out) {
  std::vector<const char*> expressions;
  std::vector<unsigned> flags, ids;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!wanted[i]) continue;
    expressions.push_back(texts[i].data());
    lengths.push_back(texts[i].size());
    flags.push_back(HS_FLAG_CASELESS);
    ids.push_back(static_cast<unsigned>(i));
  }
  out.clear();
  if (expressions.empty()) return {};
  hs_platform_info_t generic{};  // no optional processor feature: the database runs wherever Hyperscan runs
  generic.tune = HS_TUNE_FAMILY_GENERIC;
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_lit_multi(expressions.data(), flags.data(), ids.data(), lengths.data(), static_cast<unsigned>(expressions.size()), HS_MODE_BLOCK,
                           &generic, &database, &error) != HS_SUCCESS) {
    std::string why = error != nullptr ? error->message : "unknown reason";
    hs_free_compile_error(error);
    return fail("the literals could not be compiled: " + why);
  }
  char* bytes = nullptr;
  std::size_t length = 0;
  const hs_error_t status = hs_serialize_database(database, &bytes, &length);
  hs_free_database(database);
  if (status != HS_SUCCESS) return fail("the literal database could not be serialised");
  out.assign(bytes, length);
  std::free(bytes);  // NOLINT: Hyperscan's default allocator is malloc
  return {};
}

}  // namespace

namespace {

/// Clauses are searched for until this many, and one of more texts than this is not worth asking for.
constexpr std::size_t max_clauses = 6;
constexpr std::size_t max_texts_of_further_clause = 5;

Result<Literals> literals_of(const std::string& pattern, Rarity& rarity) {
  if (pattern.size() > max_pattern_length)
    return fail(fmt::format("the pattern has {} characters; at most {} are allowed", pattern.size(), max_pattern_length));
  re2::FilteredRE2 filter(min_literal_length);
  int id = 0;
  if (filter.Add(pattern, RE2::Options(RE2::Quiet), &id) != RE2::NoError) {
    RE2 re(pattern, RE2::Quiet);
    return fail(fmt::format("the pattern is not valid RE2: {}", re.error()));
  }
  std::vector<std::string> atoms;
  filter.Compile(&atoms);
  // A set of atoms is a clause (every match holds one of them) when the prefilter gives up as soon as all of it are missing.
  const auto covers = [&](const std::vector<bool>& in_set) {
    std::vector<int> present, potentials;
    for (std::size_t i = 0; i < atoms.size(); ++i)
      if (!in_set[i]) present.push_back(static_cast<int>(i));
    filter.AllPotentials(present, &potentials);
    return potentials.empty();
  };
  std::vector<std::size_t> commonest(atoms.size());
  std::iota(commonest.begin(), commonest.end(), 0u);
  std::stable_sort(commonest.begin(), commonest.end(), [&](std::size_t a, std::size_t b) { return rarity.cost(atoms[a]) > rarity.cost(atoms[b]); });
  // Each round leaves out, commonest first, what a clause can do without; the next one has to do without this clause.
  std::vector<std::vector<std::string>> clauses;
  std::vector<bool> available(atoms.size(), true);
  while (clauses.size() < max_clauses && !atoms.empty() && covers(available)) {
    std::vector<bool> set = available;
    for (std::size_t i : commonest) {
      if (!set[i]) continue;
      set[i] = false;
      if (!covers(set)) set[i] = true;
    }
    std::vector<std::string> clause;
    for (std::size_t i = 0; i < atoms.size(); ++i) {
      if (!set[i]) continue;
      clause.push_back(atoms[i]);
      available[i] = false;
    }
    clauses.push_back(std::move(clause));
  }
  if (clauses.empty())
    return fail(fmt::format("no literal of {} characters or more is in every match of the pattern", min_literal_length), {},
                "write some fixed text of the line into the pattern, in every alternative");
  std::stable_sort(clauses.begin(), clauses.end(), [&](const auto& a, const auto& b) { return rarity.cost(a) < rarity.cost(b); });
  Literals out;
  out.any_of = std::move(clauses.front());
  for (std::size_t i = 1; i < clauses.size(); ++i) {
    auto& clause = clauses[i];
    if (clause.size() > max_texts_of_further_clause) continue;
    // Said already when each text of an earlier clause holds a text of this one.
    const auto implied_by = [&](const std::vector<std::string>& earlier) {
      return std::all_of(earlier.begin(), earlier.end(), [&](const std::string& e) {
        return std::any_of(clause.begin(), clause.end(), [&](const std::string& c) { return contains(e, c); });
      });
    };
    if (!implied_by(out.any_of) && std::none_of(out.all_of.begin(), out.all_of.end(), implied_by)) out.all_of.push_back(std::move(clause));
  }
  return out;
}

}  // namespace

Result<Literals> literals_of(const std::string& pattern) {
  Rarity rarity{Bundle{}};
  return literals_of(pattern, rarity);
}

Result<std::vector<std::string>> literal_cover(const std::string& pattern) {
  auto found = literals_of(pattern);
  if (!found) return std::unexpected(found.error());
  return std::move(found->any_of);
}

bool numbers_matter(std::string_view p) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  bool after_0x = false;  // what comes next stands directly behind "0x"
  for (std::size_t i = 0; i < p.size(); ++i) {
    const char c = p[i];
    const bool hex_begins = std::exchange(after_0x, false);
    if (c == '\\') {
      if (i + 1 >= p.size()) return true;
      const char escaped = p[++i];
      if (escaped == 'd' ? hex_begins
                         : !contains("DwWsSbB", std::string_view(&escaped, 1)) && (std::isalnum(static_cast<unsigned char>(escaped)) != 0))
        return true;
    } else if (c == '[') {
      // A class is blind when it holds all digits or none, and behind "0x" all hexadecimal ones.
      const bool negated = i + 1 < p.size() && p[i + 1] == '^';
      std::size_t end = i + (negated ? 2 : 1);
      while (end < p.size() && (p[end] != ']' || end == i + (negated ? 2u : 1u))) end += p[end] == '\\' ? 2 : 1;
      const std::string_view inside = p.substr(i + 1, end - i - 1);
      const bool all = contains(inside, "0-9") || contains(inside, "\\d") || contains(inside, "\\w") || contains(inside, "\\S");
      std::string rest = replace_all(std::string(inside), "0-9", "");
      if (std::any_of(rest.begin(), rest.end(), digit)) return true;
      const bool letters = contains(inside, "a-f") || contains(inside, "a-z") || contains(inside, "\\w") || contains(inside, "\\S");
      if (hex_begins && !negated && !(all && letters)) return true;
      if (contains(inside, "a-f") && !all) return true;
      i = end;
    } else if (c == '{') {
      const std::size_t end = p.find_first_not_of("0123456789,", i + 1);
      if (end != std::string_view::npos && p[end] == '}') i = end;
    } else if (c == '(' && p.substr(i).starts_with("(?P<")) {
      while (i < p.size() && p[i] != '>') ++i;
      after_0x = hex_begins;
    } else if (c == '(' && p.substr(i).starts_with("(?:")) {
      i += 2;
      after_0x = hex_begins;
    } else if (c == '0' && i + 1 < p.size() && p[i + 1] == 'x' && (i + 2 < p.size())) {
      ++i;
      after_0x = true;
    } else if (digit(c)) {
      return true;
    } else if (hex_begins && c != '.') {
      return true;
    }
  }
  return after_0x;
}

bool may_be_in_kernel_log(const Signal& signal) {
  if (signal.kinds != 0) return (signal.kinds & kind_kernel_log) != 0;
  for (std::string_view layer : {"device", "permission", "container", "driver", "kernel-fault", "hardware", "memory"})
    if (signal.layer == layer) return true;
  for (const std::string& example : signal.examples)
    if (contains(example, "amdgpu") || contains(example, "kernel:") || contains(example, "[drm") || contains(example, "kfd") ||
        example.starts_with("[ "))
      return true;
  return false;
}

Result<void> compile_patterns(Bundle& bundle) {
  std::map<std::string, std::uint32_t> ids;
  const std::vector<std::string> before = std::move(bundle.literals);
  bundle.literals.clear();
  const auto id_of = [&](const std::string& literal) {
    auto [it, fresh] = ids.try_emplace(literal, static_cast<std::uint32_t>(bundle.literals.size()));
    if (fresh) bundle.literals.push_back(literal);
    return it->second;
  };
  Rarity rarity(bundle);
  const auto give = [&](Pattern& pattern) -> Result<void> {
    if (!pattern.literals.empty()) {  // chosen when the built-in knowledge was compiled, with all of its examples at hand
      for (std::uint32_t& id : pattern.literals) id = id_of(before.at(id));
      return {};
    }
    auto found = literals_of(pattern.text, rarity);
    if (!found) return std::unexpected(found.error());
    for (const std::string& literal : found->any_of) pattern.literals.push_back(id_of(literal));
    pattern.also = std::move(found->all_of);
    pattern.numbers_matter = numbers_matter(pattern.text);
    return {};
  };
  for (Signal& signal : bundle.signals) {
    if (!signal.examples.empty()) signal.in_kernel_log = may_be_in_kernel_log(signal);
    for (Pattern& pattern : signal.match)
      if (auto r = give(pattern); !r) return r;
    for (Follow& follow : signal.follow)
      for (Pattern& pattern : follow.match)
        if (auto r = give(pattern); !r) return r;
  }
  bundle.alarm_words.clear();
  std::vector<std::string> origins;
  if (auto it = bundle.tables.find("alarm"); it != bundle.tables.end()) {
    for (const Value& word : it->second["words"].items()) bundle.alarm_words.push_back(id_of(lower(word.as_text())));
    for (const Value& word : it->second["origins"].items()) origins.push_back(lower(word.as_text()));
  }
  std::vector<bool> kernel(bundle.literals.size(), false);
  const auto want = [&](const std::vector<std::uint32_t>& literals) {
    for (std::uint32_t literal : literals) kernel[literal] = true;
  };
  want(bundle.alarm_words);
  for (const Signal& signal : bundle.signals) {
    if (!signal.in_kernel_log) continue;
    for (const Pattern& pattern : signal.match) want(pattern.literals);
    for (const Follow& follow : signal.follow)
      for (const Pattern& pattern : follow.match) want(pattern.literals);
  }
  if (auto compiled = compile_database(origins, std::vector<bool>(origins.size(), true), bundle.origin_database); !compiled) return compiled;
  // Lines are searched in their form, so the databases hold the forms of the literals.
  std::vector<std::string> forms;
  std::vector<bool> all, of_kernel;
  std::map<std::string, std::size_t> form_ids;
  bundle.forms.clear();
  for (std::uint32_t literal = 0; literal < bundle.literals.size(); ++literal)
    for (const std::string& form : forms_of_literal(bundle.literals[literal])) {
      auto [it, fresh] = form_ids.try_emplace(form, forms.size());
      if (fresh) {
        forms.push_back(form);
        all.push_back(true);
        of_kernel.push_back(false);
        bundle.forms.emplace_back();
      }
      bundle.forms[it->second].push_back(literal);
      if (kernel[literal]) of_kernel[it->second] = true;
    }
  if (auto compiled = compile_database(forms, all, bundle.database); !compiled) return compiled;
  return compile_database(forms, of_kernel, bundle.kernel_database);
}

}  // namespace ff::knowledge
