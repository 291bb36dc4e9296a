#include "verdict/again.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace ff::verdict {
namespace {

/// Programs that only look, whatever their arguments (the exceptions are below).
constexpr std::array looking =
    std::to_array<std::string_view>({"test",    "[",           "ls",         "stat",     "cat",         "grep",
                                     "egrep",   "head",        "tail",       "wc",       "id",          "groups",
                                     "getent",  "getfacl",     "uname",      "lsmod",    "lspci",       "modinfo",
                                     "dmesg",   "rocminfo",    "which",      "type",     "echo",        "df",
                                     "free",    "nproc",       "ulimit",     "readlink", "sort",        "uniq",
                                     "cut",     "ldd",         "nm",         "readelf",  "file",        "printenv",
                                     "true",    "findmnt",     "mokutil",    "clinfo",   "ldconfig",    "sha256sum",
                                     "sensors", "lsblk",       "lscpu",      "namei",    "xxd",         "strings",
                                     "tr",      "lsinitramfs", "vulkaninfo", "eglinfo",  "ibv_devinfo", "c++filt",
                                     "quota",   "fuser",       "pgrep",      "ps",       "pwd",         "date",
                                     "whoami",  "basename",    "dirname",    "md5sum",   "du",          "rocm_agent_enumerator"});

using Words = std::vector<std::string>;

/// The commands of a line, each as its words with the quotes taken off. Nothing where it holds what is not followed here:
/// substitutions, subshells, background jobs, and redirections other than 2>/dev/null, 2>&1 and reading from a file.
std::optional<std::vector<Words>> commands_of(std::string_view text) {
  std::vector<Words> commands(1);
  std::string word;
  bool in_word = false;
  const auto end_word = [&] {
    if (in_word) commands.back().push_back(std::move(word));
    word.clear();
    in_word = false;
  };
  const auto next_is = [&](std::size_t at, std::string_view what) { return text.substr(at, what.size()) == what; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') {
      const auto close = text.find('\'', i + 1);
      if (close == std::string_view::npos) return std::nullopt;
      word += text.substr(i + 1, close - i - 1);
      in_word = true;
      i = close;
    } else if (c == '"') {
      in_word = true;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '`' || next_is(i, "$(")) return std::nullopt;
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        word += text[i];
      }
      if (i >= text.size()) return std::nullopt;
    } else if (c == '\\') {
      if (i + 1 >= text.size() || text[i + 1] == '\n') return std::nullopt;
      word += text[++i];
      in_word = true;
    } else if (next_is(i, "$'")) {  // what it stands for is of no matter: it is one word that nothing is executed in
      for (i += 2; i < text.size() && text[i] != '\''; ++i) {
        if (text[i] == '\\' && i + 1 < text.size()) ++i;
        word += text[i];
      }
      if (i >= text.size()) return std::nullopt;
      in_word = true;
    } else if (c == '`' || c == '(' || c == ')' || next_is(i, "$\"")) {
      return std::nullopt;
    } else if (!in_word && (next_is(i, "2>/dev/null") || next_is(i, "2>&1"))) {
      i += next_is(i, "2>&1") ? 3 : 10;
    } else if (c == '>' || next_is(i, "<<")) {
      return std::nullopt;
    } else if (c == '<' || c == ' ' || c == '\t') {
      end_word();
    } else if (c == '|' || c == ';' || c == '\n' || next_is(i, "&&")) {
      end_word();
      if (next_is(i, "&&") || next_is(i, "||")) ++i;
      commands.emplace_back();
    } else if (c == '#' && !in_word) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;  // a comment
    } else if (c == '&') {
      return std::nullopt;
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return commands;
}

bool is_assignment(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || (word[0] >= '0' && word[0] <= '9')) return false;
  return std::ranges::all_of(word.substr(0, equals), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

/// One of these letters among the short options ("-Tc" has c).
bool has_flag(const Words& parts, std::string_view letters) {
  return std::ranges::any_of(
      parts, [&](std::string_view w) { return w.size() > 1 && w[0] == '-' && w[1] != '-' && w.find_first_of(letters) != std::string_view::npos; });
}

/// Takes the programs off that only run another: env, timeout, nice, ionice, stdbuf, time, command, sudo -n (which asks for
/// no password). Assignments do nothing by themselves, but for those that choose which code runs. False: not followed here.
bool drop_wrappers(Words& parts) {
  const auto drop = [&](std::size_t count) {
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(count, parts.size())));
  };
  while (!parts.empty()) {
    const std::string program = parts.front();
    if (is_assignment(program)) {
      if (program.starts_with("LD_") || program.starts_with("PATH=")) return false;
      drop(1);
    } else if (program == "env") {
      drop(1);
      while (parts.size() > 1 && parts[0] == "-u") drop(2);
      if (!parts.empty() && parts.front().starts_with('-')) return false;
    } else if (program == "timeout") {
      drop(1);
      while (!parts.empty() && parts.front().starts_with('-')) {
        const bool with_word = parts.front() == "-s" || parts.front() == "-k" || parts.front() == "--signal" || parts.front() == "--kill-after";
        drop(with_word ? 2 : 1);
      }
      if (parts.size() < 2 || std::isdigit(static_cast<unsigned char>(parts.front()[0])) == 0) return false;
      drop(1);
    } else if (program == "nice" || program == "ionice" || program == "stdbuf") {
      drop(1);
      while (!parts.empty() && parts.front().starts_with('-')) drop(parts.front().size() == 2 ? 2 : 1);
      if (parts.empty()) return false;
    } else if (program == "time" || program == "command") {
      drop(1);
      if (!parts.empty() && parts.front() == "-v") return true;
      if (parts.empty() || parts.front().starts_with('-')) return false;
    } else if (program == "sudo") {
      if (parts.size() < 3 || parts[1] != "-n" || parts[2].starts_with('-')) return false;
      drop(2);
    } else {
      return true;
    }
  }
  return true;
}

bool only_looks(Words parts) {
  if (!drop_wrappers(parts)) return false;
  if (parts.empty()) return true;
  const std::string_view program = parts.front();
  const auto has = [&](std::string_view word) { return std::ranges::find(parts, word) != parts.end(); };
  const auto begins = [&](std::string_view start) { return std::ranges::any_of(parts, [&](std::string_view w) { return w.starts_with(start); }); };
  if (parts.size() == 2 && (parts[1] == "--version" || parts[1] == "-version") && program.find('/') == std::string_view::npos) return true;
  if (program == "-v") return true;  // of command
  if (program == "dmesg")
    return !has_flag(parts, "w") && !begins("--follow") && !has_flag(parts, "cCnDE") && !begins("--clear") && !begins("--read-clear") &&
           !begins("--console");
  if (program == "ldconfig") return has("-p") && parts.size() == 2;
  if (program == "mokutil") return has("--sb-state") && parts.size() == 2;
  if (program == "sort") return !has_flag(parts, "o") && !begins("--o");
  if (program == "uniq") return std::ranges::count_if(parts, [](std::string_view w) { return !w.starts_with('-'); }) <= 2;
  if (program == "file") return !has_flag(parts, "C") && !begins("--compile");
  if (program == "journalctl")
    return std::ranges::none_of(parts, [](std::string_view w) {
      return w.starts_with("--vacuum") || w.starts_with("--rotate") || w.starts_with("--flush") || w.starts_with("--setup") ||
             w.starts_with("--update") || w.starts_with("--relinquish") || w.starts_with("--smart") || w.starts_with("--sync");
    });
  if (program == "find")
    return std::ranges::none_of(parts, [](std::string_view w) {
      return w.starts_with("-exec") || w.starts_with("-ok") || w == "-delete" || w.starts_with("-fprint") || w.starts_with("-fls");
    });
  if (program == "fuser") return !has_flag(parts, "k") && !begins("--kill");
  if (program == "date") return !has_flag(parts, "s") && !begins("--set");
  if (program == "xxd") return !has_flag(parts, "r") && std::ranges::count_if(parts, [](std::string_view w) { return !w.starts_with('-'); }) <= 3;
  if (program == "sensors") return !has_flag(parts, "s") && !begins("--set");
  if (program == "vulkaninfo") return !has_flag(parts, "jo") && !begins("--json") && !begins("--output");
  if (program == "numactl") return parts.size() == 2 && (parts[1] == "--show" || parts[1] == "-s" || parts[1] == "--hardware" || parts[1] == "-H");
  if (program == "udevadm") return parts.size() > 1 && parts[1] == "info" && !begins("--cleanup") && !has_flag(parts, "c");
  if (program == "systemctl")
    return parts.size() > 1 &&
           (parts[1] == "status" || parts[1] == "is-active" || parts[1] == "is-enabled" || parts[1] == "show" || parts[1] == "cat");
  if (program == "ip") return parts.size() == 3 && parts[1].starts_with("-") && (parts[2] == "addr" || parts[2] == "link");
  if (program == "dpkg")
    return parts.size() > 1 && (parts[1] == "-l" || parts[1] == "-s" || parts[1] == "-L" || parts[1] == "-S" || parts[1] == "--list");
  if (program == "rpm") return parts.size() > 1 && parts[1].starts_with("-q");
  if (program == "dkms") return parts.size() > 1 && parts[1] == "status";
  if (program == "amd-smi")
    return parts.size() > 1 && (parts[1] == "static" || parts[1] == "metric" || parts[1] == "list" || parts[1] == "version" ||
                                parts[1] == "bad-pages" || parts[1] == "topology" || parts[1] == "xgmi");
  if (program == "rocm-smi")
    return std::ranges::all_of(parts.begin() + 1, parts.end(),
                               [](std::string_view w) { return w.starts_with("--show") || w == "-a" || w == "--json" || w == "vram" || w == "gtt"; });
  if (program == "pip" || program == "pip3")
    return parts.size() > 1 && (parts[1] == "list" || parts[1] == "show" || parts[1] == "check" || parts[1] == "freeze");
  if ((program == "python" || program == "python3") && parts.size() > 3 && parts[1] == "-m" && parts[2] == "pip")
    return parts[3] == "list" || parts[3] == "show" || parts[3] == "check" || parts[3] == "freeze";
  if (program == "firstfault") return !has("--fix") && !has("merge") && !has("encode") && !has("enable") && !has("stress");
  return std::ranges::find(looking, program) != looking.end();
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::fixed:
      return "fixed";
    case Outcome::not_fixed:
      return "not fixed";
    case Outcome::another_fault:
      return "another fault";
    case Outcome::undecided:
      return "undecided";
  }
  return "undecided";
}

Outcome judge_again(std::string_view check_id, const ladder::Climb& climb) {
  const CheckResult* result = climb.find(check_id);
  if (result != nullptr && result->status == Status::fail) return Outcome::not_fixed;
  if (!climb.first_fault.empty() && climb.first_fault != check_id) {
    const CheckResult* first = climb.find(climb.first_fault);
    if (first != nullptr && first->status == Status::fail && (result == nullptr || result->status == Status::skip)) return Outcome::another_fault;
  }
  if (result != nullptr && (result->status == Status::pass || result->status == Status::warn)) return Outcome::fixed;
  return Outcome::undecided;
}

VerifyKind classify_verify(std::string_view command) {
  const std::string_view text = trim(command);
  if (text.empty()) return VerifyKind::template_;
  // <your command>, PID, …: something that a person must fill in. "<" followed by a letter and closed is no redirection.
  for (auto at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const auto end = text.find('>', at);
    if (end != std::string_view::npos && at + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[at + 1])) != 0)
      return VerifyKind::template_;
  }
  if (contains(text, "…") || contains(text, "...")) return VerifyKind::template_;
  const auto commands = commands_of(text);
  if (!commands) return VerifyKind::changes;
  for (const auto& one : *commands)
    if (!only_looks(one)) return VerifyKind::changes;
  return VerifyKind::reads;
}

}  // namespace ff::verdict
