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

/// Words that lines of this field hold all the time: poor guards, taken only when nothing better is there.
constexpr std::string_view common_words[] = {"amdgpu",
                                             "error",
                                             "failed",
                                             "fail",
                                             "drm",
                                             "torch",
                                             "runtimeerror",
                                             "hip error",
                                             "valueerror",
                                             "importerror",
                                             "warning",
                                             "cuda",
                                             "line",
                                             "info",
                                             "kernel",
                                             "device",
                                             "nvidia",
                                             "version",
                                             "enabled",
                                             "step",
                                             "display",
                                             "load",
                                             "memory",
                                             "file",
                                             "model",
                                             "python",
                                             "with",
                                             "failed to",
                                             "ring",
                                             "data",
                                             "image",
                                             "episode",
                                             "loss",
                                             "rocm",
                                             "linux version",
                                             "warn",
                                             "debug",
                                             "gpu",
                                             "render",
                                             "process",
                                             "failed with error",
                                             "true",
                                             "false",
                                             "dataset",
                                             "train",
                                             "policy",
                                             "action",
                                             "state",
                                             "config",
                                             "name",
                                             "path",
                                             "not found",
                                             "loading",
                                             "service",
                                             "driver",
                                             "module",
                                             "pcie"};

/// How rarely a line holds the atom, roughly: length, unless it is a word of every day.
double worth(const std::string& atom) {
  std::string_view core = atom;
  while (!core.empty() && std::string_view(" :*[]()'\"=_.-/,").find(core.front()) != std::string_view::npos) core.remove_prefix(1);
  while (!core.empty() && std::string_view(" :*[]()'\"=_.-/,").find(core.back()) != std::string_view::npos) core.remove_suffix(1);
  for (std::string_view common : common_words)
    if (core == common) return 1;
  const auto length = static_cast<double>(std::min<std::size_t>(core.size(), 24));
  return core.size() < 5 ? length / 4 : length;
}

/// The database over those literals of which `wanted` is true; matches carry the position in `literals`.
Result<void> compile_database(const std::vector<std::string>& literals, const std::vector<bool>& wanted, std::string& out) {
  std::vector<const char*> expressions;
  std::vector<unsigned> flags, ids;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < literals.size(); ++i) {
    if (!wanted[i]) continue;
    expressions.push_back(literals[i].data());
    lengths.push_back(literals[i].size());
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

/// Literals of at least `shortest` characters; `any_of` is empty when there are none.
Result<Literals> literals_from(const std::string& pattern, int shortest) {
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
  Literals out;
  for (std::size_t i : by_worth) {
    std::vector<bool> only(atoms.size(), false);
    only[i] = true;
    if (!covers(only)) continue;
    if (out.any_of.empty())
      out.any_of.push_back(atoms[i]);
    else if (out.all_of.size() < 2 && !contains(out.any_of.front(), atoms[i]))
      out.all_of.push_back(atoms[i]);
  }
  if (!out.any_of.empty() && worth(out.any_of.front()) > 1) return out;
  // No single literal, or a poor one: the smallest set that cannot be missing altogether, without the poorest.
  std::vector<bool> set(atoms.size(), true);
  if (atoms.empty() || !covers(set)) return Literals{};
  for (auto it = by_worth.rbegin(); it != by_worth.rend(); ++it) {
    set[*it] = false;
    if (!covers(set)) set[*it] = true;
  }
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < atoms.size(); ++i)
    if (set[i]) chosen.push_back(atoms[i]);
  if (!out.any_of.empty()) {  // a poor literal is needed anyway; it is asked for after the set
    if (chosen != out.any_of) {
      out.all_of.insert(out.all_of.begin(), out.any_of.front());
      out.any_of = std::move(chosen);
    }
    return out;
  }
  out.any_of = std::move(chosen);
  return out;
}

}  // namespace

Result<Literals> literals_of(const std::string& pattern) {
  if (pattern.size() > max_pattern_length)
    return fail(fmt::format("the pattern has {} characters; at most {} are allowed", pattern.size(), max_pattern_length));
  for (int shortest = good_literal_length; shortest >= min_literal_length; --shortest) {
    auto found = literals_from(pattern, shortest);
    if (!found || !found->any_of.empty()) return found;
  }
  return fail(fmt::format("no literal of {} characters or more is in every match of the pattern", min_literal_length), {},
              "write some fixed text of the line into the pattern, in every alternative");
}

Result<std::vector<std::string>> literal_cover(const std::string& pattern) {
  auto found = literals_of(pattern);
  if (!found) return std::unexpected(found.error());
  return std::move(found->any_of);
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
  bundle.literals.clear();
  const auto id_of = [&](const std::string& literal) {
    auto [it, fresh] = ids.try_emplace(literal, static_cast<std::uint32_t>(bundle.literals.size()));
    if (fresh) bundle.literals.push_back(literal);
    return it->second;
  };
  const auto give = [&](Pattern& pattern) -> Result<void> {
    auto found = literals_of(pattern.text);
    if (!found) return std::unexpected(found.error());
    pattern.literals.clear();
    for (const std::string& literal : found->any_of) pattern.literals.push_back(id_of(literal));
    pattern.also = std::move(found->all_of);
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
  std::vector<bool> all(bundle.literals.size(), true);
  std::vector<bool> kernel(bundle.literals.size(), false);
  const auto want = [&](const std::vector<std::uint32_t>& literals) {
    for (std::uint32_t literal : literals) kernel[literal] = true;
  };
  want(bundle.alarm_words);
  want(bundle.alarm_origins);
  for (const Signal& signal : bundle.signals) {
    if (!may_be_in_kernel_log(signal)) continue;
    for (const Pattern& pattern : signal.match) want(pattern.literals);
    for (const Follow& follow : signal.follow)
      for (const Pattern& pattern : follow.match) want(pattern.literals);
  }
  if (auto compiled = compile_database(bundle.literals, all, bundle.database); !compiled) return compiled;
  return compile_database(bundle.literals, kernel, bundle.kernel_database);
}

}  // namespace ff::knowledge
