#include <fmt/format.h>

#include "knowledge/fields.h"
#include "knowledge/predicate.h"

namespace ff::knowledge {

namespace {

Predicate read_predicate(const Fields& f, const Yaml& node, std::string_view field) {
  std::string text;
  if (node.kind == Yaml::Kind::scalar) {
    text = node.text;
  } else if (node.kind == Yaml::Kind::list) {
    for (const Yaml& item : node.items) text += (text.empty() ? "in " : ", ") + item.text;
  } else {
    f.complain(node.line, field, "must be a predicate, e.g. '>= 3'");
    return {};
  }
  auto predicate = parse_predicate(text);
  if (!predicate) {
    f.complain(node.line, field, predicate.error().what, "docs/knowledge.md lists the forms");
    return {};
  }
  return std::move(*predicate);
}

Condition read_condition(const Fields& outer, const Yaml& node, int depth);

Condition read_group(const Fields& f, const Yaml& list, Condition::Type type, int depth) {
  Condition group;
  group.type = type;
  if (list.kind != Yaml::Kind::list || list.items.empty()) f.complain(list.line, "when", "all, any and none take a list of conditions");
  for (const Yaml& item : list.items) group.parts.push_back(read_condition(f, item, depth + 1));
  return group;
}

Condition read_condition(const Fields& outer, const Yaml& node, int depth) {
  Fields f(outer.file(), node, outer.entry(), outer.problems());
  Condition both;
  if (depth > 8) {
    f.complain(node.line, "when", "is nested deeper than 8 levels");
    return both;
  }
  if (!f.is_map()) return both;
  f.only({"all", "any", "none", "signal", "where", "count", "before", "after", "fact", "is", "absent"});
  if (const Yaml* list = f.find("all")) both.parts.push_back(read_group(f, *list, Condition::Type::all, depth));
  if (const Yaml* list = f.find("any")) both.parts.push_back(read_group(f, *list, Condition::Type::any, depth));
  if (const Yaml* list = f.find("none")) both.parts.push_back(read_group(f, *list, Condition::Type::none, depth));
  if (f.find("signal") != nullptr) {
    Condition c;
    c.type = Condition::Type::signal;
    c.name = f.text("signal", true);
    if (const Yaml* where = f.find("where")) {
      if (where->kind != Yaml::Kind::map) f.complain(where->line, "where", "must be a map of field: predicate");
      for (const auto& [field, predicate] : where->members) c.where.emplace_back(field, read_predicate(f, predicate, "where." + field));
    }
    if (const Yaml* count = f.find("count")) c.count = read_predicate(f, *count, "count");
    c.before = f.text("before");
    c.after = f.text("after");
    both.parts.push_back(std::move(c));
  }
  if (f.find("fact") != nullptr) {
    Condition c;
    c.type = Condition::Type::fact;
    c.name = f.text("fact", true);
    if (const Yaml* is = f.find("is")) c.is = read_predicate(f, *is, "is");
    both.parts.push_back(std::move(c));
  }
  if (f.find("absent") != nullptr) {
    Condition c;
    c.type = Condition::Type::absent;
    c.name = f.text("absent", true);
    both.parts.push_back(std::move(c));
  }
  if (both.parts.empty()) f.complain(node.line, "when", "says nothing: give all, any, none, signal, fact or absent");
  if (both.parts.size() == 1) {
    Condition only = std::move(both.parts.front());
    return only;
  }
  return both;
}

std::vector<Rule> read_rules(const Fields& cause, std::string_view name, double top) {
  std::vector<Rule> out;
  const Yaml* list = cause.find(name);
  if (list == nullptr || list->kind == Yaml::Kind::null) return out;
  if (list->kind != Yaml::Kind::list) {
    cause.complain(list->line, name, "must be a list");
    return out;
  }
  for (const Yaml& node : list->items) {
    Fields f(cause.file(), node, cause.entry() + ": " + std::string(name), cause.problems());
    if (!f.is_map()) continue;
    f.only({"name", "when", "score", "confirms", "because", "fix", "verify", "source", "sources"});
    Rule rule;
    rule.at = {f.file(), node.line};
    rule.name = f.text("name");
    if (const Yaml* when = f.find("when"))
      rule.when = read_condition(f, *when, 0);
    else
      f.complain(node.line, "when", "is missing");
    rule.score = f.real("score", 0, top);
    rule.confirms = f.flag("confirms");
    rule.because = f.text("because", rule.name.empty());
    rule.fix = f.texts("fix");
    rule.verify = f.texts("verify");
    rule.sources = f.texts("sources");
    for (std::string& more : f.texts("source")) rule.sources.push_back(std::move(more));
    out.push_back(std::move(rule));
  }
  return out;
}

std::vector<Example> read_examples(const Fields& cause, std::string_view name) {
  std::vector<Example> out;
  const Yaml* list = cause.find(name);
  if (list == nullptr || list->kind == Yaml::Kind::null) return out;
  if (list->kind != Yaml::Kind::list) {
    cause.complain(list->line, name, "must be a list of {files: {name: text}}");
    return out;
  }
  for (const Yaml& node : list->items) {
    const Yaml* files = node.find("files");
    if (files == nullptr || files->kind != Yaml::Kind::map || files->members.empty()) {
      cause.complain(node.line, name, "each must have files: {name: text}");
      continue;
    }
    Example example;
    example.at = {cause.file(), node.line};
    for (const auto& [file, text] : files->members) {
      if (text.kind != Yaml::Kind::scalar) cause.complain(text.line, name, fmt::format("the content of {} must be text", file));
      example.files.emplace_back(file, text.text);
    }
    out.push_back(std::move(example));
  }
  return out;
}

}  // namespace

std::optional<Cause> read_cause(const std::string& file, const Yaml& node, Problems& problems) {
  const std::string id = node.find("id") != nullptr ? node.find("id")->text : "";
  const std::size_t before = problems.size();
  Fields f(file, node, id, problems);
  if (!f.is_map()) return std::nullopt;
  f.only({"id", "title", "explain", "rules", "against", "covers", "fix", "verify", "separates", "source", "sources", "examples", "not"});
  Cause c;
  c.at = {file, node.line};
  c.text.id = f.text("id", true);
  c.text.layer = c.text.id.substr(0, c.text.id.find('.'));
  if (!c.text.id.empty() && (!known_layer(c.text.layer) || c.text.layer.size() + 1 >= c.text.id.size()))
    f.complain(node.line, "id", fmt::format("'{}' is not '<layer>.<words>' of a known layer", c.text.id), "docs/knowledge.md lists the layers");
  c.text.title = f.text("title");
  c.text.explain = f.text("explain");
  c.rules = read_rules(f, "rules", 0.98);
  c.against = read_rules(f, "against", 1);
  c.covers = f.texts("covers");
  c.text.fix = f.texts("fix");
  c.text.verify = f.texts("verify");
  if (const Yaml* separates = f.find("separates"); separates != nullptr && separates->kind != Yaml::Kind::null) {
    if (separates->kind != Yaml::Kind::map) f.complain(separates->line, "separates", "must be a map of cause: observation");
    for (const auto& [cause, text] : separates->members) c.separates.emplace_back(cause, text.text);
  }
  c.text.sources = f.texts("sources");
  for (std::string& more : f.texts("source")) c.text.sources.push_back(std::move(more));
  c.examples = read_examples(f, "examples");
  c.look_alikes = read_examples(f, "not");
  c.broken = problems.size() != before;
  if (c.broken && c.text.id.empty()) return std::nullopt;
  return c;
}

}  // namespace ff::knowledge
