// Names of joints in the order in which a dataset, a policy or a robot lists them.
//
//   names.declared_order / names.declared_set   "left_0 left_1 right_0" of each list of a dataset's description ("names", "motors"), as it
//                                               stands and sorted
//   names.printed_order / names.printed_set     the same of lists that a robot or a program prints (action_features, joint_names, …)
//
// Two lists of one set in two orders are a vector whose elements mean other joints; rules compare them across files.

#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

constexpr std::size_t max_names = 64;
constexpr std::size_t min_names = 4;  ///< shorter lists (x, y, z) are written in any order by custom
constexpr std::size_t max_lists = 16;
constexpr std::size_t max_list_bytes = 8192;

/// The quoted words between brackets, without the ".pos" of LeRobot's robots; empty when one is no name or stands there twice.
std::vector<std::string> names_in(re2::StringPiece list) {
  static const RE2 word(R"re(["']([A-Za-z_][\w./-]{0,60})["'])re");
  std::vector<std::string> out;
  std::string name;
  while (RE2::FindAndConsume(&list, word, &name)) {
    if (name.ends_with(".pos")) name.resize(name.size() - 4);
    if (std::find(out.begin(), out.end(), name) != out.end() || out.size() == max_names) return {};
    out.push_back(name);
  }
  return out;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

void add_lists(std::string_view text, const RE2& pattern, const std::string& kind, FactSink& sink) {
  std::set<std::string> said;
  re2::StringPiece rest(text.data(), text.size());
  re2::StringPiece list;
  for (std::size_t found = 0; found < max_lists && RE2::FindAndConsume(&rest, pattern, &list); ++found) {
    if (list.size() > max_list_bytes) continue;
    std::vector<std::string> names = names_in(list);
    if (names.size() < min_names) continue;
    const std::string order = joined(names);
    if (!said.insert(order).second) continue;
    const auto before = text.substr(0, static_cast<std::size_t>(list.data() - text.data()));
    const auto line = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    sink.add("names." + kind + "_order", order, line, order);
    std::sort(names.begin(), names.end());
    sink.add("names." + kind + "_set", joined(names), line, order);
  }
}

}  // namespace

void extract_names(std::string_view text, std::string_view source, Facts& out) {
  static const RE2 declared(R"re("(?:names|motors)"\s*:\s*\[([^\[\]]*)\])re");
  static const RE2 printed(
      R"re((?:observation_features|action_features|joint_names|motor_names|joint_order|joints_order|state_names|action_names)["']?\s*[:=]\s*(?:dict_keys\()?[\[(]([^\[\]()]*)[\])])re");
  if (text.find("names") == std::string_view::npos && text.find("_features") == std::string_view::npos &&
      text.find("motors") == std::string_view::npos && text.find("_order") == std::string_view::npos)
    return;
  FactSink sink(source, out);
  add_lists(text, declared, "declared", sink);
  add_lists(text, printed, "printed", sink);
}

}  // namespace ff::diagnosis
