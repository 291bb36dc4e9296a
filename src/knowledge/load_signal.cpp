#include <fmt/format.h>

#include "knowledge/fields.h"
#include "knowledge/pattern.h"

namespace ff::knowledge {

namespace {

bool valid_id(std::string_view id) {
  if (id.empty() || id.size() > 80 || id.front() == '.' || id.front() == '-') return false;
  for (char c : id)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-')) return false;
  return contains(id, ".");
}

std::vector<Pattern> read_patterns(const Fields& f, std::string_view name, std::uint32_t kinds) {
  std::vector<Pattern> out;
  for (std::string& text : f.texts(name, true)) {
    const Yaml* field = f.find(name);
    if (text.starts_with("^") && (kinds == 0 || (kinds & (kind_kernel_log | kind_program | kind_shell)) != 0))
      f.complain(field->line, name, "starts with '^', but lines of these kinds of source carry prefixes", "drop the '^'");
    if (auto cover = literal_cover(text); !cover)
      f.complain(field->line, name, cover.error().what, cover.error().remedy);
    else
      out.push_back(Pattern{std::move(text), {}});
  }
  return out;
}

}  // namespace

std::optional<Signal> read_signal(const std::string& file, const Yaml& node, Problems& problems) {
  const std::string id = node.find("id") != nullptr ? node.find("id")->text : "";
  const std::size_t before = problems.size();
  Fields f(file, node, id, problems);
  if (!f.is_map()) return std::nullopt;
  f.only({"id", "title", "layer", "severity", "benign", "mistaken_for", "explain", "in", "match", "follow", "decode", "source", "sources", "examples",
          "not"});
  Signal s;
  s.at = {file, node.line};
  s.id = f.text("id", true);
  if (!s.id.empty() && !valid_id(s.id)) f.complain(node.line, "id", "must be lower-case letters, digits, '-' and at least one '.'");
  s.title = f.text("title", true);
  s.layer = f.text("layer", true);
  if (!s.layer.empty() && !known_layer(s.layer))
    f.complain(node.line, "layer", fmt::format("'{}' is no layer", s.layer), "docs/knowledge.md lists the layers");
  const std::string severity = f.text("severity", true);
  if (severity == "error")
    s.severity = Severity::error;
  else if (severity == "warning")
    s.severity = Severity::warning;
  else if (severity == "info")
    s.severity = Severity::info;
  else
    f.complain(node.line, "severity", fmt::format("'{}' is none of error, warning, info", severity));
  s.benign = f.flag("benign");
  s.explain = f.text("explain", s.benign);
  s.mistaken_for = f.text("mistaken_for", s.benign);
  for (const std::string& kind : f.texts("in")) {
    const std::uint32_t bit = kind_from_name(kind);
    if (bit == 0) f.complain(f.find("in")->line, "in", fmt::format("'{}' is no kind of source", kind));
    s.kinds |= bit;
  }
  s.match = read_patterns(f, "match", s.kinds);
  if (const Yaml* follow = f.find("follow")) {
    if (follow->kind != Yaml::Kind::list) f.complain(follow->line, "follow", "must be a list");
    for (const Yaml& item : follow->items) {
      Fields inner(file, item, id + ": follow", problems);
      if (!inner.is_map()) continue;
      inner.only({"within", "match"});
      Follow one;
      one.within = static_cast<int>(inner.real("within", 1, 400));
      one.match = read_patterns(inner, "match", s.kinds);
      s.follow.push_back(std::move(one));
    }
  }
  if (const Yaml* decode = f.find("decode"))
    for (const auto& [field, value] : decode->members) s.decode[field] = value.text;
  s.sources = f.texts("source");
  for (std::string& more : f.texts("sources")) s.sources.push_back(std::move(more));
  if (s.sources.empty()) f.complain(node.line, "source", "is missing", "say where the line comes from: a source file, a version, a public report");
  s.examples = f.texts("examples", true);
  s.look_alikes = f.texts("not", false);
  if (s.look_alikes.empty()) f.complain(node.line, "not", "is missing", "give at least one look-alike that must not match");
  s.broken = problems.size() != before;
  if (s.broken && !valid_id(s.id)) return std::nullopt;
  return s;
}

}  // namespace ff::knowledge
