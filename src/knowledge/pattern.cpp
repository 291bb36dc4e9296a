#include "knowledge/pattern.h"

#include <fmt/format.h>
#include <hs/hs.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>

#include "base/text.h"

namespace ff::knowledge {

namespace {

/// Words that nearly every line of this field holds: poor guards, taken only when nothing better is there.
constexpr std::string_view common_words[] = {"amdgpu", "amdgpu: ", "error", "error:", "failed", "failed ", "*error*", "[drm:", "torch", "runtimeerror", "runtimeerror: ",
                                             "hip error", "valueerror: ", "importerror: ", "warning", "cuda", "line", "info", "kernel", "device"};

double worth(const std::string& atom) {
  for (std::string_view common : common_words)
    if (atom == common) return 1;
  return static_cast<double>(std::min<std::size_t>(atom.size(), 24)) + 2;
}

Result<void> compile_database(const std::vector<std::string>& literals, std::string& out) {
  std::vector<const char*> expressions;
  std::vector<unsigned> flags, ids;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < literals.size(); ++i) {
    expressions.push_back(literals[i].data());
    lengths.push_back(literals[i].size());
    flags.push_back(HS_FLAG_CASELESS);
    ids.push_back(static_cast<unsigned>(i));
  }
  hs_platform_info_t generic{};  // no optional processor feature: the database runs wherever Hyperscan runs
  generic.tune = HS_TUNE_FAMILY_GENERIC;
  hs_database_t* database = nullptr;
  hs_compile_error_t* error = nullptr;
  if (hs_compile_lit_multi(expressions.data(), flags.data(), ids.data(), lengths.data(), static_cast<unsigned>(literals.size()), HS_MODE_BLOCK, &generic, &database,
                           &error) != HS_SUCCESS) {
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

/// The cover of literals of at least `shortest` characters; empty when there is none.
static Result<std::vector<std::string>> cover_of(const std::string& pattern, int shortest) {
  re2::FilteredRE2 filter(shortest);
  RE2::Options options(RE2::Quiet);
  int id = 0;
  if (filter.Add(pattern, options, &id) != RE2::NoError) {
    RE2 re(pattern, RE2::Quiet);
    return fail(fmt::format("the pattern is not valid RE2: {}", re.error()));
  }
  std::vector<std::string> atoms;
  filter.Compile(&atoms);
  // A set covers the pattern when the prefilter gives up as soon as all of the set are missing.
  const auto covers = [&](const std::vector<bool>& in_set) {
    std::vector<int> present, potentials;
    for (std::size_t i = 0; i < atoms.size(); ++i)
      if (!in_set[i]) present.push_back(static_cast<int>(i));
    filter.AllPotentials(present, &potentials);
    return potentials.empty();
  };
  std::vector<std::size_t> by_worth(atoms.size());
  std::iota(by_worth.begin(), by_worth.end(), 0u);
  std::stable_sort(by_worth.begin(), by_worth.end(), [&](std::size_t a, std::size_t b) { return worth(atoms[a]) > worth(atoms[b]); });
  for (std::size_t i : by_worth) {
    if (worth(atoms[i]) <= 1) break;
    std::vector<bool> only(atoms.size(), false);
    only[i] = true;
    if (covers(only)) return std::vector<std::string>{atoms[i]};
  }
  std::vector<bool> set(atoms.size(), true);
  if (atoms.empty() || !covers(set)) return std::vector<std::string>{};
  for (auto it = by_worth.rbegin(); it != by_worth.rend(); ++it) {
    set[*it] = false;
    if (!covers(set)) set[*it] = true;
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < atoms.size(); ++i)
    if (set[i]) out.push_back(atoms[i]);
  return out;
}

Result<std::vector<std::string>> literal_cover(const std::string& pattern) {
  if (pattern.size() > max_pattern_length) return fail(fmt::format("the pattern has {} characters; at most {} are allowed", pattern.size(), max_pattern_length));
  for (int shortest = good_literal_length; shortest >= min_literal_length; --shortest) {
    auto cover = cover_of(pattern, shortest);
    if (!cover || !cover->empty()) return cover;
  }
  return fail(fmt::format("no literal of {} characters or more is in every match of the pattern", min_literal_length), {},
              "write some fixed text of the line into the pattern, in every alternative");
}

Result<void> compile_patterns(Bundle& bundle) {
  std::map<std::string, std::uint32_t> ids;
  bundle.literals.clear();
  const auto id_of = [&](const std::string& literal) {
    auto [it, fresh] = ids.try_emplace(literal, static_cast<std::uint32_t>(bundle.literals.size()));
    if (fresh) bundle.literals.push_back(literal);
    return it->second;
  };
  const auto give = [&](Pattern& pattern) -> Result<void> {
    auto cover = literal_cover(pattern.text);
    if (!cover) return std::unexpected(cover.error());
    pattern.literals.clear();
    for (const std::string& literal : *cover) pattern.literals.push_back(id_of(literal));
    return {};
  };
  for (Signal& signal : bundle.signals) {
    for (Pattern& pattern : signal.match)
      if (auto r = give(pattern); !r) return r;
    for (Follow& follow : signal.follow)
      for (Pattern& pattern : follow.match)
        if (auto r = give(pattern); !r) return r;
  }
  bundle.alarm_words.clear();
  bundle.alarm_origins.clear();
  if (auto it = bundle.tables.find("alarm"); it != bundle.tables.end()) {
    for (const Value& word : it->second["words"].items()) bundle.alarm_words.push_back(id_of(lower(word.as_text())));
    for (const Value& word : it->second["origins"].items()) bundle.alarm_origins.push_back(id_of(lower(word.as_text())));
  }
  if (bundle.literals.empty()) {
    bundle.database.clear();
    return {};
  }
  return compile_database(bundle.literals, bundle.database);
}

}  // namespace ff::knowledge
