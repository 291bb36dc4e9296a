// The same content in another form: transcripts with other prompts, structured files with another layout, environments and lists of packages as
// other programs print them. The answer must not depend on it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <functional>
#include <map>
#include <optional>

#include "base/text.h"
#include "base/value.h"
#include "capture/transcript.h"
#include "incidents/incidents.h"

namespace ff::diagnosis {
namespace {

/// Another form of a text; nothing when the text is not of the kind that has it.
struct Form {
  const char* name;
  std::function<std::optional<std::string>(const std::string& text)> write;
};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) text.replace(at, what.size(), with);
  return text;
}

std::string every_line(const std::string& text, const std::function<std::string(std::string_view)>& change) {
  std::string out;
  for (std::string_view l : lines(text)) out += change(l) + "\n";
  return out;
}

std::optional<std::string> crlf(const std::string& text) { return replaced(replaced(text, "\r\n", "\n"), "\n", "\r\n"); }

/// The prompt lines of a transcript with another prompt; one of root stays one of root.
Form prompt(const char* name, std::string user, std::string root) {
  return {name, [=](const std::string& text) -> std::optional<std::string> {
            if (!capture::is_transcript(text)) return std::nullopt;
            std::string out;
            std::uint64_t number = 0;
            const auto pieces = capture::split_transcript(text);
            std::size_t next = 0;
            for (std::string_view l : lines(text)) {
              ++number;
              while (next < pieces.size() && pieces[next].command_line < number) ++next;
              if (next < pieces.size() && pieces[next].command_line == number && l.ends_with(pieces[next].command) && !pieces[next].command.empty())
                out += (pieces[next].user == "root" ? root : user) + pieces[next].command + "\n";
              else
                out += std::string(l) + "\n";
            }
            return out;
          }};
}

std::optional<Value> json_of(const std::string& text) {
  if (trim(text).empty() || (trim(text).front() != '{' && trim(text).front() != '[')) return std::nullopt;
  auto v = parse_json(text);
  if (!v || (!v->is_object() && !v->is_list())) return std::nullopt;
  return *v;
}

Value reversed(const Value& v) {
  Value out = v;
  if (v.is_object()) {
    std::reverse(out.members_mut().begin(), out.members_mut().end());
    for (auto& [name, value] : out.members_mut()) value = reversed(value);
  }
  return out;
}

bool block_yaml(const std::string& text) {
  static const RE2 line(R"(^\s*(?:-\s+)?[\w.\-]+:(?:\s+\S.*)?$|^\s*- \S.*$|^\s*#.*$|^\s*$|^---$)");
  static const RE2 pair(R"(^[\w.\-]+:(?:\s|$))");
  std::size_t pairs = 0;
  for (std::string_view l : lines(text)) {
    if (!RE2::PartialMatch(re2::StringPiece(l.data(), l.size()), line)) return false;
    pairs += RE2::PartialMatch(re2::StringPiece(l.data(), l.size()), pair) ? 1 : 0;
  }
  return pairs >= 2 && knowledge::parse_yaml(text, "form").has_value();
}

Form yaml(const char* name, std::function<std::string(std::string_view)> line) {
  return {name, [=](const std::string& text) -> std::optional<std::string> {
            if (!block_yaml(text)) return std::nullopt;
            return every_line(text, line);
          }};
}

std::string rewritten(std::string_view line, const char* pattern, const char* with) {
  std::string s(line);
  RE2::Replace(&s, pattern, with);
  return s;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// `NAME=value` on every line.
std::optional<Pairs> environment(const std::string& text) {
  static const RE2 line(R"(^([A-Z_][A-Z0-9_]*)=([^"']*)$)");
  Pairs out;
  for (std::string_view l : lines(text)) {
    std::string name, value;
    if (trim(l).empty()) continue;
    if (!RE2::FullMatch(re2::StringPiece(l.data(), l.size()), line, &name, &value)) return std::nullopt;
    out.emplace_back(name, value);
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

/// `name==1.2` on every line, or the two columns of pip.
std::optional<Pairs> packages(const std::string& text) {
  static const RE2 frozen(R"(^([A-Za-z][\w.\-]*)==(\S+)$)");
  static const RE2 columns(R"(^([A-Za-z][\w.\-]*)\s{1,}(\d\S*)\s*$)");
  static const RE2 head(R"(^(?:Package\s+Version|-{3,}\s+-{3,})\s*$)");
  Pairs out;
  for (std::string_view l : lines(text)) {
    std::string name, version;
    const re2::StringPiece s(l.data(), l.size());
    if (trim(l).empty() || RE2::PartialMatch(s, head)) continue;
    if (!RE2::FullMatch(s, frozen, &name, &version) && !RE2::FullMatch(s, columns, &name, &version)) return std::nullopt;
    out.emplace_back(name, version);
  }
  return out.size() < 2 ? std::nullopt : std::optional(out);
}

Form pairs(const char* name, std::optional<Pairs> (*read)(const std::string&), std::string head,
           std::function<std::string(const std::string&, const std::string&)> line, std::string tail = {}) {
  return {name, [=](const std::string& text) -> std::optional<std::string> {
            const auto all = read(text);
            if (!all) return std::nullopt;
            std::string out = head;
            for (const auto& [key, value] : *all) out += line(key, value);
            return out + tail;
          }};
}

const std::vector<Form>& forms() {
  static const std::vector<Form> list = {
      prompt("prompt of Debian", "me@node7:~/work$ ", "root@node7:/x# "),
      prompt("prompt of Red Hat", "[me@node7 ~]$ ", "[root@node7 ~]# "),
      prompt("a venv", "(venv) $ ", "(venv) root@node7:~# "),
      prompt("conda", "(base) me@node7:~$ ", "(base) root@node7:~# "),
      prompt("a git branch", "me@node7:~/work (main *) $ ", "root@node7:/work (main) # "),
      prompt("zsh", "me@node7 ~ % ", "root@node7 ~ # "),
      prompt("zsh, host only", "node7% ", "node7# "),
      prompt("fish", "me@node7 ~/work> ", "root@node7 ~# "),
      prompt("oh-my-zsh", "➜  work git:(main) ✗ ", "root@node7:~# "),
      prompt("set -x", "+ ", "root@node7:~# "),
      prompt("colours", "\x1b[01;32mme@node7\x1b[00m:\x1b[01;34m~/work\x1b[00m$ ", "\x1b[01;31mroot@node7\x1b[00m:~# "),
      {"transcript by script(1)",
       [](const std::string& text) -> std::optional<std::string> {
         if (!capture::is_transcript(text)) return std::nullopt;
         return "Script started on 2026-11-30 15:21:10+00:00 [TERM=\"xterm-256color\" TTY=\"/dev/pts/3\" COLUMNS=\"120\" LINES=\"40\"]\n" + text +
                "\nScript done on 2026-11-30 15:22:40+00:00 [COMMAND_EXIT_CODE=\"0\"]\n";
       }},
      {"transcript with times",
       [](const std::string& text) -> std::optional<std::string> {
         if (!capture::is_transcript(text)) return std::nullopt;
         return every_line(text, [](std::string_view l) { return "[15:21:10] " + std::string(l); });
       }},
      {"transcript with CR LF",
       [](const std::string& text) -> std::optional<std::string> { return capture::is_transcript(text) ? crlf(text) : std::nullopt; }},
      {"JSON on one line",
       [](const std::string& text) -> std::optional<std::string> {
         const auto v = json_of(text);
         return v ? std::optional(to_json(*v)) : std::nullopt;
       }},
      {"JSON with indentation 4",
       [](const std::string& text) -> std::optional<std::string> {
         const auto v = json_of(text);
         return v ? std::optional(to_json(*v, 4) + "\n") : std::nullopt;
       }},
      {"JSON in another order",
       [](const std::string& text) -> std::optional<std::string> {
         const auto v = json_of(text);
         return v ? std::optional(to_json(reversed(*v), 2) + "\n") : std::nullopt;
       }},
      {"JSON with CR LF", [](const std::string& text) -> std::optional<std::string> { return json_of(text) ? crlf(text) : std::nullopt; }},
      yaml("YAML with comments",
           [](std::string_view l) { return std::string(l) + (l.ends_with(":") || trim(l).empty() ? "   # as before" : "  # as before"); }),
      yaml("YAML indented by more",
           [](std::string_view l) {
             const auto blanks = l.find_first_not_of(' ');
             return blanks == std::string_view::npos ? std::string(l) : std::string(blanks, ' ') + std::string(l);
           }),
      yaml("YAML, booleans of Python", [](std::string_view l) { return rewritten(rewritten(l, ": true$", ": True"), ": false$", ": False"); }),
      yaml("YAML, words in quotes", [](std::string_view l) { return rewritten(l, R"((: )([A-Za-z][\w./\-]*)$)", R"(\1"\2")"); }),
      yaml("YAML, words in single quotes", [](std::string_view l) { return rewritten(l, R"((: )([A-Za-z][\w./\-]*)$)", R"(\1'\2')"); }),
      yaml("YAML with CR LF", [](std::string_view l) { return std::string(l) + "\r"; }),
      pairs("export", environment, "", [](const auto& k, const auto& v) { return fmt::format("export {}={}\n", k, v); }),
      pairs("declare -x", environment, "", [](const auto& k, const auto& v) { return fmt::format("declare -x {}=\"{}\"\n", k, v); }),
      pairs("systemd", environment, "[Service]\n", [](const auto& k, const auto& v) { return fmt::format("Environment=\"{}={}\"\n", k, v); }),
      pairs(
          "docker inspect", environment, "[{\"Config\": {\"Env\": [\n",
          [](const auto& k, const auto& v) { return to_json(Value(k + "=" + v)) + ",\n"; }, "\"LAST=1\"]}}]\n"),
      pairs("env -0", environment, "", [](const auto& k, const auto& v) { return k + "=" + v + std::string(1, '\0'); }),
      pairs("pip freeze", packages, "", [](const auto& k, const auto& v) { return fmt::format("{}=={}\n", k, v); }),
      pairs("pip list", packages, "Package                  Version\n------------------------ ----------------\n",
            [](const auto& k, const auto& v) { return fmt::format("{:<24} {}\n", k, v); }),
      pairs(
          "pip list --format json", packages, "[",
          [](const auto& k, const auto& v) { return fmt::format("{{\"name\": \"{}\", \"version\": \"{}\"}}, ", k, v); },
          "{\"name\": \"zipp\", \"version\": \"3.20.0\"}]\n"),
      pairs("conda list", packages,
            "# packages in environment at /opt/conda/envs/rl:\n#\n# Name                    Version                   Build  Channel\n",
            [](const auto& k, const auto& v) { return fmt::format("{:<25} {:<25} pypi_0    pypi\n", k, v); }),
      pairs("poetry show", packages, "",
            [](const auto& k, const auto& v) { return fmt::format("{:<24} {:<20} A package of the environment\n", k, v); }),
      pairs("pip with CR LF", packages, "", [](const auto& k, const auto& v) { return fmt::format("{}=={}\r\n", k, v); }),
  };
  return list;
}

TEST(Forms, of_the_same_content_have_the_same_answer) {
  std::map<std::string, std::size_t> tried;
  std::size_t kept = 0;
  std::size_t total = 0;
  std::string lost;
  for (const Incident& i : all()) {
    std::string plain;
    for (const Form& form : forms()) {
      Files changed = i.files;
      bool any = false;
      for (auto& [name, text] : changed)
        if (auto other = form.write(text); other && *other != text) {
          text = std::move(*other);
          any = true;
        }
      if (!any) continue;
      if (plain.empty()) plain = first_of(i.files);
      if (!right(i, plain)) break;
      ++tried[form.name];
      ++total;
      const std::string got = first_of(changed);
      if (right(i, got))
        ++kept;
      else
        lost += fmt::format("  {} | {}: {} instead of {}\n", form.name, i.name, got, plain);
    }
  }
  for (const Form& form : forms()) EXPECT_GT(tried[form.name], 0u) << form.name << " was never tried";
  EXPECT_EQ(kept, total) << lost;
}

}  // namespace
}  // namespace ff::diagnosis
