#include "report/ladder_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "training/plot.h"

namespace ff::report {
namespace {

constexpr std::size_t id_column = 28;
constexpr std::string_view unjudged = ": what was given is not enough to say that a rung holds.";
constexpr std::string_view unsaid = "the climb did not end, and nothing is said about what was not tried.";

Value evidence_value(const std::vector<Evidence>& evidence) {
  Value out = Value::list();
  for (const auto& e : evidence) {
    Value item = Value::object({{"source", e.source}});
    if (e.line != 0) item.set("line", e.line);
    item.set("text", e.text);
    out.push(std::move(item));
  }
  return out;
}

std::string place(const Evidence& e) { return e.line != 0 ? fmt::format("{}:{}", e.source, e.line) : e.source; }

std::string mark(ladder::RungStatus status, const Style& style) {
  switch (status) {
    case ladder::RungStatus::pass:
      return style.green("holds  ");
    case ladder::RungStatus::warn:
      return style.yellow("holds !");
    case ladder::RungStatus::fail:
      return style.red("BROKEN ");
    case ladder::RungStatus::error:
      return style.red("ERROR  ");
    case ladder::RungStatus::skip:
      return style.dim("skipped");
    case ladder::RungStatus::not_reached:
      return style.dim("-      ");
  }
  return {};
}

std::string mark(Status status, const Style& style) {
  switch (status) {
    case Status::pass:
      return style.green("ok  ");
    case Status::warn:
      return style.yellow("warn");
    case Status::fail:
      return style.red("FAIL");
    case Status::skip:
      return style.dim("skip");
    case Status::error:
      return style.red("ERR ");
  }
  return {};
}

std::string count_words(const ladder::RungResult& rung) {
  std::size_t passed = 0, warned = 0, failed = 0, skipped = 0, errored = 0;
  for (const auto& c : rung.checks) {
    passed += c.status == Status::pass ? 1 : 0;
    warned += c.status == Status::warn ? 1 : 0;
    failed += c.status == Status::fail ? 1 : 0;
    skipped += c.status == Status::skip ? 1 : 0;
    errored += c.status == Status::error ? 1 : 0;
  }
  std::vector<std::string> parts;
  const auto add = [&](std::size_t n, std::string_view word) {
    if (n != 0) parts.push_back(fmt::format("{} {}", n, word));
  };
  add(failed, "failed");
  add(errored, "could not run");
  add(warned, warned == 1 ? "warning" : "warnings");
  add(passed, "passed");
  add(skipped, "skipped");
  return join(parts, ", ");
}

/// The counts, the reason, or both where checks were run and the rung was not judged.
std::string detail_words(const ladder::RungResult& rung) {
  if (rung.reason.empty()) return count_words(rung);
  return rung.checks.empty() ? rung.reason : count_words(rung) + "; " + rung.reason;
}

void bullet(std::string& out, std::string_view text, std::size_t indent, std::size_t width, std::string_view sign = "- ") {
  out += std::string(indent, ' ');
  out += sign;
  out += wrapped(printable(text, 2000), indent + sign.size(), width) + "\n";
}

/// Commands are never wrapped: they are there to be copied.
void command(std::string& out, std::string_view text, std::size_t indent) { out += std::string(indent, ' ') + "$ " + printable(text, 2000) + "\n"; }

/// The text with every run of digits as one '#': what differs in numbers only is of one kind.
std::string shape_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || out.empty() || out.back() != '#') out += digit ? '#' : c;
  }
  return out;
}

/// Evidence that differs in numbers only (the same of eight GPUs) is shown once, with the number of its like.
void evidence_text(std::string& out, const std::vector<Evidence>& evidence, const Style& style, std::size_t width) {
  constexpr std::size_t shown = 6;
  std::vector<std::pair<std::string, std::size_t>> kinds;
  std::vector<std::string> lines;
  for (const Evidence& one : evidence) {
    std::string line = place(one) + ": " + one.text;
    std::string shape = shape_of(line);
    const auto same = std::ranges::find(kinds, shape, [](const auto& kind) { return kind.first; });
    if (same != kinds.end()) {
      ++same->second;
    } else {
      kinds.emplace_back(std::move(shape), 1);
      lines.push_back(std::move(line));
    }
  }
  std::size_t told = 0;
  for (std::size_t i = 0; i < std::min(shown, lines.size()); ++i) {
    const std::size_t alike = kinds[i].second - 1;
    told += kinds[i].second;
    bullet(out, alike == 0 ? lines[i] : fmt::format("{} (and {} alike)", lines[i], alike), 2, width);
  }
  if (told < evidence.size()) out += style.dim(fmt::format("  … and {} more (--json, report.md)\n", evidence.size() - told));
}

void first_fault_text(std::string& out, const CheckResult& fault, const Style& style, std::size_t width) {
  out += "\n" + style.red(fault.status == Status::error ? "A check could not run" : "First fault") + "  " + style.bold(fault.id);
  if (!fault.causes.empty()) out += "  " + style.dim("cause ") + fault.causes.front();
  out += "\n  " + style.bold(wrapped(printable(fault.summary, 2000), 2, width)) + "\n";
  if (!fault.evidence.empty()) {
    out += "\nSeen in\n";
    evidence_text(out, fault.evidence, style, width);
  }
  if (!fault.fix.empty()) {
    out += "\n" + style.bold("Do this") + "\n";
    for (std::size_t i = 0; i < fault.fix.size(); ++i) bullet(out, fault.fix[i], 2, width, fmt::format("{}. ", i + 1));
  }
  if (!fault.verify.empty()) {
    out += "\n" + style.bold("Then prove it") + "\n";
    for (const auto& line : fault.verify) command(out, line, 2);
  }
}

void check_line(std::string& out, const CheckResult& c, const Style& style, std::size_t width) {
  out += "    " + mark(c.status, style) + " " + fmt::format("{:<{}} ", c.id, id_column);
  out += wrapped(printable(c.summary, 600), 10 + id_column, width) + "\n";
}

/// The remedy of a warning, and of a fault that is not the first: the first fault has its own part of the screen.
void remedy_line(std::string& out, const CheckResult& c, const Style& style, std::size_t width) {
  if ((c.status != Status::warn && c.status != Status::fail) || c.fix.empty()) return;
  constexpr std::size_t indent = 10 + id_column;
  std::string text = c.fix.front();
  if (c.fix.size() > 1)
    text += c.causes.empty() ? fmt::format(" ({} more: --json)", c.fix.size() - 1)
                             : fmt::format(" ({} more: firstfault kb show {})", c.fix.size() - 1, c.causes.front());
  out += std::string(indent, ' ') + style.dim("do: ") + wrapped(printable(text, 1000), indent + 4, width) + "\n";
}

}  // namespace

Value check_value(const CheckResult& r) {
  Value out =
      Value::object({{"id", r.id}, {"status", std::string(ff::status_name(r.status))}, {"causes", Value::list_of(r.causes)}, {"summary", r.summary}});
  out.set("measured", r.measured.is_null() ? Value::object() : r.measured);
  out.set("evidence", evidence_value(r.evidence)).set("fix", Value::list_of(r.fix)).set("verify", Value::list_of(r.verify));
  if (!r.blocked_by.empty()) out.set("blocked_by", r.blocked_by);
  out.set("duration_us", static_cast<long long>(r.duration.count()));
  return out;
}

Value ladder_value(const ladder::Climb& climb, const Value& diagnoses, const std::string& run_path) {
  Value rungs = Value::list();
  for (const auto& rung : climb.rungs) {
    Value checks = Value::list();
    for (const auto& check : rung.checks) checks.push(check_value(check));
    Value item = Value::object({{"rung", std::string(rung_name(rung.rung))}, {"status", std::string(ladder::status_name(rung.status))}});
    if (!rung.reason.empty()) item.set("reason", rung.reason);
    item.set("checks", std::move(checks)).set("duration_us", static_cast<long long>(rung.duration.count()));
    rungs.push(std::move(item));
  }
  Value out = Value::object({{"schema", "firstfault/ladder/1"}, {"rungs", std::move(rungs)}});
  out.set("first_fault", climb.first_fault.empty() ? Value() : Value(climb.first_fault));
  out.set("diagnoses", diagnoses.is_list() ? diagnoses : Value::list());
  out.set("run", run_path.empty() ? Value() : Value(run_path));
  return out;
}

std::string ladder_text(const ladder::Climb& climb, const LadderContext& context, const Style& style, std::size_t width) {
  std::string out;
  if (!context.subject.empty()) out += style.bold(printable(context.subject)) + "\n";
  if (!context.machine.empty()) out += "  " + wrapped(printable(context.machine, 1000), 2, width) + "\n";
  out += "\n";
  for (std::size_t i = 0; i < climb.rungs.size(); ++i) {
    const auto& rung = climb.rungs[i];
    // What the climb did not reach is one line, however many rungs that are.
    if (rung.status == ladder::RungStatus::not_reached) {
      std::size_t last = i;
      while (last + 1 < climb.rungs.size() && climb.rungs[last + 1].status == rung.status && climb.rungs[last + 1].reason == rung.reason) ++last;
      if (last > i) {
        out += fmt::format("  {} {} ", i + 1, mark(rung.status, style)) +
               style.dim(wrapped(fmt::format("{} to {}: {}", rung_name(rung.rung), rung_name(climb.rungs[last].rung), rung.reason), 12, width)) +
               "\n";
        i = last;
        continue;
      }
    }
    const std::string detail = detail_words(rung);
    out += fmt::format("  {} {} {:<10} ", i + 1, mark(rung.status, style), rung_name(rung.rung)) + style.dim(wrapped(detail, 23, width)) + "\n";
    for (const auto& check : rung.checks) {
      const bool notable = check.status == Status::fail || check.status == Status::error || check.status == Status::warn;
      if (notable || context.show_all) check_line(out, check, style, width);
      if (check.id != climb.first_fault) remedy_line(out, check, style, width);
    }
  }
  const CheckResult* fault = climb.first_fault.empty() ? nullptr : climb.find(climb.first_fault);
  if (fault != nullptr)
    first_fault_text(out, *fault, style, width);
  else if (context.interrupted.empty() && climb.judged_nothing())
    out += "\n" + style.yellow("Nothing was judged") + wrapped(std::string(unjudged), 18, width) + "\n";
  else if (context.interrupted.empty())
    out += "\n" + style.green("No fault found") + " on the rungs that were tried.\n";
  if (!context.interrupted.empty())
    out += "\n" + style.yellow("Interrupted") + " by " + wrapped(printable(context.interrupted) + ": " + std::string(unsaid), 3, width) + "\n";
  if (fault != nullptr) {
    // That there is no GPU is beside the point where nobody asked for one (--rung dataset, --device cpu).
    const bool device_tried = !climb.rungs.empty() && climb.rungs.front().status != ladder::RungStatus::not_reached &&
                              climb.rungs.front().status != ladder::RungStatus::skip;
    std::size_t shown = 0;
    for (const auto& diagnosis : context.diagnoses.items()) {
      // The cause of the first fault stands above, with its remedy.
      if (std::ranges::find(fault->causes, diagnosis["cause"].as_text()) != fault->causes.end()) continue;
      if (diagnosis["benign"].as_bool() || (!device_tried && diagnosis["cause"].as_text().starts_with("device.")) || shown == 3) continue;
      if (shown++ == 0) out += "\nWhat the logs say\n";
      bullet(out, fmt::format("{} ({}): {}", diagnosis["cause"].as_text(), diagnosis["confidence"].as_text(), diagnosis["title"].as_text()), 2,
             width);
    }
  }
  for (const auto& note : context.notes) out += style.yellow("note ") + wrapped(printable(note, 2000), 5, width) + "\n";
  if (!context.run_path.empty()) out += "\n" + style.dim("run ") + context.run_path + style.dim("  (report.md, report.json, capture/)") + "\n";
  return out;
}

std::string checks_text(const ladder::Climb& climb, Rung which, const std::string& subject, bool show_all, const Style& style, std::size_t width) {
  const auto& rung = climb.rungs[static_cast<std::size_t>(which)];
  std::string out = style.bold(printable(subject)) + "\n";
  for (const auto& check : rung.checks) {
    const bool notable = check.status == Status::fail || check.status == Status::error || check.status == Status::warn;
    if (notable || show_all || check.id == rung.checks.front().id) check_line(out, check, style, width);
    if (check.id != climb.first_fault) remedy_line(out, check, style, width);
  }
  out += "  " + count_words(rung) + (show_all ? "" : style.dim("  (--all shows every check)")) + "\n";
  if (const CheckResult* fault = climb.first_fault.empty() ? nullptr : climb.find(climb.first_fault)) first_fault_text(out, *fault, style, width);
  return out;
}

std::vector<Drawing> drawings(const ladder::Climb& climb) {
  std::vector<Drawing> out;
  for (const auto& rung : climb.rungs)
    for (const auto& check : rung.checks) {
      if (check.status != Status::fail && check.status != Status::warn && check.id != "step.metrics") continue;
      if (std::string svg = training::plot_svg(check.measured["plot"]); !svg.empty())
        out.push_back({check.id, "plots/" + check.id + ".svg", std::move(svg)});
    }
  return out;
}

std::string ladder_markdown(const ladder::Climb& climb, const LadderContext& context) {
  // A cell must not break its table, and foreign text must not become markup or HTML.
  const auto cell = [](std::string_view text) {
    std::string s = printable(text, 1000);
    for (const auto& [from, to] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {"|", "\\|"}, {"`", "'"}}) s = replace_all(std::move(s), from, to);
    return s;
  };
  std::string out = "# FirstFault: " + cell(context.subject.empty() ? "a machine" : context.subject) + "\n\n";
  if (!context.machine.empty()) out += cell(context.machine) + "\n\n";
  const CheckResult* fault = climb.first_fault.empty() ? nullptr : climb.find(climb.first_fault);
  if (!context.interrupted.empty()) out += "**Interrupted** by " + cell(context.interrupted) + ": " + std::string(unsaid) + "\n\n";
  if (fault == nullptr && context.interrupted.empty()) {
    out +=
        climb.judged_nothing() ? "**Nothing was judged**" + std::string(unjudged) + "\n\n" : "**No fault found** on the rungs that were tried.\n\n";
  } else if (fault != nullptr) {
    out += fmt::format("## First fault: `{}`\n\n**{}**\n\n", fault->id, cell(fault->summary));
    if (!fault->causes.empty()) out += "Cause: `" + join(fault->causes, "`, `") + "`\n\n";
    if (!fault->fix.empty()) out += "Do this:\n\n";
    for (std::size_t i = 0; i < fault->fix.size(); ++i) out += fmt::format("{}. {}\n", i + 1, cell(fault->fix[i]));
    if (!fault->verify.empty()) out += "\nThen prove it:\n\n";
    for (const auto& line : fault->verify) out += "    " + printable(line, 2000) + "\n";
    out += "\n";
  }
  out += "## The ladder\n\n| rung | | |\n|---|---|---|\n";
  for (const auto& rung : climb.rungs)
    out += fmt::format("| {} | {} | {} |\n", rung_name(rung.rung), ladder::status_name(rung.status), cell(detail_words(rung)));
  const auto shown = drawings(climb);
  for (const auto& rung : climb.rungs) {
    if (rung.checks.empty()) continue;
    out += fmt::format("\n## Rung {}\n\n| check | status | |\n|---|---|---|\n", rung_name(rung.rung));
    for (const auto& c : rung.checks) out += fmt::format("| `{}` | {} | {} |\n", c.id, ff::status_name(c.status), cell(c.summary));
    for (const auto& c : rung.checks) {
      if (c.evidence.empty() || c.status == Status::pass || c.status == Status::skip) continue;
      out += fmt::format("\nEvidence for `{}`:\n\n", c.id);
      for (const auto& e : c.evidence) out += "- `" + cell(place(e)) + "`: " + cell(e.text) + "\n";
    }
    for (const auto& drawing : shown)
      if (const CheckResult* c = climb.find(drawing.check); std::ranges::any_of(rung.checks, [&](const CheckResult& own) { return &own == c; }))
        out += fmt::format("\n![{}: {}]({})\n", drawing.check, cell(c->measured["plot"]["title"].as_text()), drawing.name);
  }
  if (!context.diagnoses.items().empty()) {
    out += "\n## What the logs say\n\n| cause | confidence | |\n|---|---|---|\n";
    for (const auto& d : context.diagnoses.items())
      out += fmt::format("| `{}` | {} | {} |\n", cell(d["cause"].as_text()), d["benign"].as_bool() ? "harmless" : d["confidence"].as_text(),
                         cell(d["title"].as_text()));
  }
  if (!context.notes.empty()) {
    out += "\n## Notes\n\n";
    for (const auto& note : context.notes) out += "- " + cell(note) + "\n";
  }
  return out;
}

namespace {

template <class Enum, std::size_t N>
std::optional<Enum> parse_status(std::string_view name, const std::array<Enum, N>& all) {
  for (const Enum status : all) {
    if constexpr (std::is_same_v<Enum, Status>) {
      if (ff::status_name(status) == name) return status;
    } else {
      if (ladder::status_name(status) == name) return status;
    }
  }
  return std::nullopt;
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.emplace_back(item.as_text());
  return out;
}

}  // namespace

Result<ladder::Climb> climb_from_value(const Value& document) {
  if (document["schema"].as_text() != "firstfault/ladder/1") return fail("is no ladder result (schema firstfault/ladder/1)");
  constexpr std::array statuses{Status::pass, Status::warn, Status::fail, Status::skip, Status::error};
  using ladder::RungStatus;
  constexpr std::array rung_statuses{RungStatus::pass, RungStatus::warn,  RungStatus::fail,
                                     RungStatus::skip, RungStatus::error, RungStatus::not_reached};
  ladder::Climb climb;
  climb.first_fault = document["first_fault"].as_text();
  for (const auto& item : document["rungs"].items()) {
    ladder::RungResult rung;
    const auto which = rung_from_name(item["rung"].as_text());
    const auto status = parse_status(item["status"].as_text(), rung_statuses);
    if (!which || !status) return fail("holds a rung or status that this version does not know", std::string(item["rung"].as_text()));
    rung.rung = *which;
    rung.status = *status;
    rung.reason = item["reason"].as_text();
    rung.duration = std::chrono::microseconds(item["duration_us"].as_int());
    for (const auto& c : item["checks"].items()) {
      CheckResult check;
      check.id = c["id"].as_text();
      check.status = parse_status(c["status"].as_text(), statuses).value_or(Status::error);
      check.summary = c["summary"].as_text();
      check.causes = texts(c["causes"]);
      check.measured = c["measured"];
      check.fix = texts(c["fix"]);
      check.verify = texts(c["verify"]);
      check.blocked_by = c["blocked_by"].as_text();
      check.duration = std::chrono::microseconds(c["duration_us"].as_int());
      for (const auto& e : c["evidence"].items())
        check.evidence.push_back({std::string(e["source"].as_text()), static_cast<std::uint64_t>(std::max<std::int64_t>(0, e["line"].as_int())),
                                  std::string(e["text"].as_text())});
      rung.checks.push_back(std::move(check));
    }
    climb.rungs.push_back(std::move(rung));
  }
  return climb;
}

}  // namespace ff::report
