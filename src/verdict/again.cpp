#include "verdict/again.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace ff::verdict {
namespace {

/// Programs that only look, whatever their arguments (the exceptions are below).
constexpr std::array<std::string_view, 41> looking{
    "test",  "[",     "ls",    "stat",    "cat",   "grep",     "egrep", "head",     "tail", "wc",      "id",      "groups", "getent",  "getfacl",
    "uname", "lsmod", "lspci", "modinfo", "dmesg", "rocminfo", "which", "type",     "echo", "df",      "free",    "nproc",  "ulimit",  "readlink",
    "sort",  "uniq",  "cut",   "ldd",     "nm",    "readelf",  "file",  "printenv", "true", "findmnt", "mokutil", "clinfo", "ldconfig"};

bool only_looks(std::string_view segment) {
  auto parts = words(segment);
  // Leading VAR=value assignments do nothing by themselves.
  while (!parts.empty() && parts.front().find('=') != std::string_view::npos && parts.front().front() != '-' && parts.front().front() != '/')
    parts.erase(parts.begin());
  if (parts.empty()) return true;
  const std::string_view program = parts.front();
  const auto has = [&](std::string_view word) { return std::ranges::find(parts, word) != parts.end(); };
  if (program == "dmesg") return !has("-c") && !has("-C") && !has("--clear") && !has("--read-clear") && !has("-n") && !has("-D") && !has("-E");
  if (program == "ldconfig") return has("-p") && parts.size() == 2;
  if (program == "mokutil") return has("--sb-state") && parts.size() == 2;
  if (program == "sort") return !has("-o");
  if (program == "journalctl")
    return std::ranges::none_of(parts, [](std::string_view w) { return w.starts_with("--vacuum") || w == "--rotate" || w == "--flush"; });
  if (program == "dkms") return has("status");
  if (program == "amd-smi")
    return parts.size() > 1 && (parts[1] == "static" || parts[1] == "metric" || parts[1] == "list" || parts[1] == "version" ||
                                parts[1] == "bad-pages" || parts[1] == "topology");
  if (program == "rocm-smi")
    return std::ranges::all_of(parts.begin() + 1, parts.end(),
                               [](std::string_view w) { return w.starts_with("--show") || w == "-a" || w == "--json"; });
  if (program == "pip" || program == "pip3")
    return parts.size() > 1 && (parts[1] == "list" || parts[1] == "show" || parts[1] == "check" || parts[1] == "freeze");
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
  // Redirections write files; substitutions and quoting hide what is executed. Only 2>/dev/null and 2>&1 are understood.
  std::string plain = replace_all(replace_all(std::string(text), "2>/dev/null", ""), "2>&1", "");
  if (plain.find_first_of(">`") != std::string::npos || contains(plain, "$(") || contains(plain, "<(")) return VerifyKind::changes;
  for (const std::string_view separator : {"&&", "||", "|", ";"}) plain = replace_all(std::move(plain), separator, "\n");
  if (plain.find('&') != std::string::npos) return VerifyKind::changes;
  // A separator inside quotes cuts a word apart; the pieces are then no known programs, and the answer is to ask.
  for (const std::string_view segment : split(plain, '\n'))
    if (!only_looks(segment)) return VerifyKind::changes;
  return VerifyKind::reads;
}

}  // namespace ff::verdict
