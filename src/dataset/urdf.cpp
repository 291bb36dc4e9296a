#include "dataset/urdf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/text.h"

namespace ff::dataset {
namespace {

constexpr std::size_t most_joints = 10'000;

/// One tag of an XML text: "<joint name='a' type='b'>". Comments, declarations and text between tags are skipped.
struct Tag {
  std::string_view name, inside;
  bool closes = false;  ///< "</joint>"
  bool empty = false;   ///< "<limit …/>"
};

std::optional<Tag> next_tag(std::string_view& rest) {
  while (true) {
    const auto open = rest.find('<');
    if (open == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(open + 1);
    if (rest.starts_with("!--")) {
      const auto end = rest.find("-->");
      if (end == std::string_view::npos) return std::nullopt;
      rest.remove_prefix(end + 3);
      continue;
    }
    // The end of the tag, quoted ">" aside.
    std::size_t end = 0;
    char quote = 0;
    while (end < rest.size() && (quote != 0 || rest[end] != '>')) {
      if (quote != 0)
        quote = rest[end] == quote ? '\0' : quote;
      else if (rest[end] == '"' || rest[end] == '\'')
        quote = rest[end];
      ++end;
    }
    if (end == rest.size()) return std::nullopt;
    std::string_view body = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (body.starts_with('?') || body.starts_with('!')) continue;
    Tag tag;
    if (body.starts_with('/')) {
      tag.closes = true;
      body.remove_prefix(1);
    }
    if (body.ends_with('/')) {
      tag.empty = true;
      body.remove_suffix(1);
    }
    const auto blank = body.find_first_of(" \t\r\n");
    tag.name = body.substr(0, blank);
    tag.inside = blank == std::string_view::npos ? std::string_view() : body.substr(blank);
    return tag;
  }
}

std::optional<std::string_view> attribute(std::string_view inside, std::string_view wanted) {
  while (true) {
    const auto equals = inside.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = trim(inside.substr(0, equals));
    std::string_view rest = trim(inside.substr(equals + 1));
    if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) return std::nullopt;
    const auto close = rest.find(rest.front(), 1);
    if (close == std::string_view::npos) return std::nullopt;
    if (name == wanted) return rest.substr(1, close - 1);
    inside = rest.substr(close + 1);
  }
}

/// A name reduced to what both sides agree on: "main_shoulder_pan.pos" and "shoulder_pan" end alike.
std::string plain(std::string_view name) {
  std::string out = lower(name);
  for (const char* ending : {".pos", "_rad", ".position", "_joint", "_pos"})
    if (out.ends_with(ending)) out.resize(out.size() - std::string_view(ending).size());
  for (const char* start : {"main_", "joint_"})
    if (out.starts_with(start) && out.size() > std::string_view(start).size()) out.erase(0, std::string_view(start).size());
  std::erase_if(out, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); });
  return out;
}

class Judge {
 public:
  Judge(const Dataset& d, const RowSurvey& s, const std::vector<Joint>& joints, std::string& note) : d_(d), s_(s), joints_(joints), note_(note) {}

  std::vector<Finding> run() {
    for (const auto& f : s_.features) {
      const Feature* meta = d_.feature(f.name);
      if (meta == nullptr || f.all.empty() || f.all[0].count == 0) continue;
      declared(f);
      if (!joints_.empty() && (f.name == "action" || f.name == "observation.state")) against_joints(f, *meta);
    }
    return std::move(out_);
  }

 private:
  void add(std::string summary, Value measured) {
    out_.push_back({"dataset.limits", true, "data.bounds", std::move(summary), std::move(measured), "", 0, ""});
  }

  void declared(const FeatureSurvey& f) {
    const Value& entry = d_.info["features"][f.name];
    for (const auto& [low_name, high_name] : {std::pair{"min", "max"}, {"low", "high"}}) {
      const auto& low = entry[low_name].items();
      const auto& high = entry[high_name].items();
      if (low.size() != f.all.size() || high.size() != f.all.size()) continue;
      for (std::size_t d = 0; d < f.all.size(); ++d) {
        const double slack = 1e-4 * std::max(1e-6, high[d].as_real() - low[d].as_real());
        if (f.all[d].min >= low[d].as_real() - slack && f.all[d].max <= high[d].as_real() + slack) continue;
        add(fmt::format("{} reaches from {:.4g} to {:.4g}, but info.json declares {:.4g} to {:.4g}", d_.dimension(f.name, d), f.all[d].min,
                        f.all[d].max, low[d].as_real(), high[d].as_real()),
            Value::object({{"feature", f.name}, {"dimension", d}, {"min", f.all[d].min}, {"max", f.all[d].max}}));
      }
    }
  }

  void against_joints(const FeatureSurvey& f, const Feature& meta) {
    std::map<std::string, const Joint*> by_name;
    for (const auto& j : joints_) by_name.emplace(plain(j.name), &j);
    std::vector<const Joint*> of(f.all.size(), nullptr);
    std::size_t matched = 0;
    if (meta.names.size() == f.all.size())
      for (std::size_t d = 0; d < of.size(); ++d)
        if (const auto found = by_name.find(plain(meta.names[d])); found != by_name.end()) {
          of[d] = found->second;
          ++matched;
        }
    if (matched == 0 && joints_.size() == f.all.size()) {
      for (std::size_t d = 0; d < of.size(); ++d) of[d] = &joints_[d];
      note_ = "no name agrees; the joints were taken in their order";
    } else if (matched == 0) {
      note_ = fmt::format("none of the {} joints has a name of {}, and there are {} values: not compared", joints_.size(), f.name, f.all.size());
      return;
    } else {
      note_ = fmt::format("{} of {} values have a joint of that name", matched, f.all.size());
    }
    constexpr double degrees = 180 / std::numbers::pi;
    for (std::size_t d = 0; d < of.size(); ++d) {
      if (of[d] == nullptr || !of[d]->lower || !of[d]->upper || of[d]->type == "continuous") continue;
      const double low = *of[d]->lower, high = *of[d]->upper;
      const double slack = 0.01 * std::max(1e-6, high - low);
      const Moments& m = f.all[d];
      if (m.min >= low - slack && m.max <= high + slack) continue;
      const bool angle = of[d]->type == "revolute";
      const bool in_degrees =
          angle && m.min >= low * degrees - 2 && m.max <= high * degrees + 2 && std::max(std::abs(m.min), std::abs(m.max)) > 2 * std::numbers::pi;
      add(fmt::format("{} reaches from {:.4g} to {:.4g}, but joint {} moves from {:.4g} to {:.4g}{}{}", d_.dimension(f.name, d), m.min, m.max,
                      of[d]->name, low, high, angle ? " rad" : " m", in_degrees ? ": these are degrees" : ""),
          Value::object({{"feature", f.name},
                         {"dimension", d},
                         {"joint", of[d]->name},
                         {"min", m.min},
                         {"max", m.max},
                         {"lower", low},
                         {"upper", high},
                         {"degrees", in_degrees}}));
    }
  }

  const Dataset& d_;
  const RowSurvey& s_;
  const std::vector<Joint>& joints_;
  std::string& note_;
  std::vector<Finding> out_;
};

}  // namespace

Result<std::vector<Joint>> parse_urdf(std::string_view xml, const std::string& where) {
  std::vector<Joint> out;
  std::optional<Joint> open;
  std::string_view rest = xml;

  while (const auto tag = next_tag(rest)) {
    if (tag->name == "joint") {
      if (tag->closes) {
        if (open && open->type != "fixed" && !open->type.empty() && out.size() < most_joints) out.push_back(std::move(*open));
        open.reset();
      } else if (!tag->empty) {
        open = Joint{std::string(attribute(tag->inside, "name").value_or("")), std::string(attribute(tag->inside, "type").value_or("")), {}, {}};
      }
    } else if (open && tag->name == "limit" && !tag->closes) {
      const auto number = [&](std::string_view name) -> std::optional<double> {
        const auto text = attribute(tag->inside, name);
        if (!text) return std::nullopt;
        const auto value = to_real(*text);
        return value && std::isfinite(*value) ? value : std::nullopt;
      };
      // Absent limits of a joint that has a <limit> are 0 (wiki.ros.org/urdf/XML/joint).
      open->lower = number("lower").value_or(0);
      open->upper = number("upper").value_or(0);
      if (*open->lower == 0 && *open->upper == 0) open->lower = open->upper = std::nullopt;
    }
  }
  if (out.empty()) return fail("describes no movable joint", where, "--urdf takes a URDF file with <joint> entries (xacro files are expanded first)");
  return out;
}

std::vector<Finding> judge_limits(const Dataset& dataset, const RowSurvey& survey, const std::vector<Joint>& joints, std::string& note) {
  return Judge(dataset, survey, joints, note).run();
}

}  // namespace ff::dataset
