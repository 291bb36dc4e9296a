// Why the kernel does not show what a process waits for.
#include <fmt/format.h>

#include "base/text.h"
#include "binary/hang.h"

namespace ff::binary {
namespace {

constexpr int trace_capability = 19;  // CAP_SYS_PTRACE

/// The words behind "Uid:" in a /proc/PID/status.
std::vector<std::string_view> row(std::string_view status, std::string_view name) {
  for (const auto line : lines(status))
    if (line.starts_with(name)) return words(line.substr(name.size()));
  return {};
}
std::uint64_t capabilities(std::string_view status, std::string_view name) {
  const auto found = row(status, name);
  return found.empty() ? 0 : to_integer<std::uint64_t>(found[0], 16).value_or(0);
}

}  // namespace

std::pair<std::string, std::string> why_refused(std::string_view theirs, std::string_view ours, std::string_view ptrace_scope) {
  const auto their_users = row(theirs, "Uid:"), our_users = row(ours, "Uid:");
  const std::uint64_t their_rights = capabilities(theirs, "CapPrm:"), our_rights = capabilities(ours, "CapPrm:");
  const bool may_trace = (capabilities(ours, "CapEff:") >> trace_capability & 1U) != 0;
  const std::string_view scope = trim(ptrace_scope);
  if (scope == "3")
    return {"kernel.yama.ptrace_scope is 3, which forbids looking into any process until the next boot",
            "Boot without that setting (sysctl kernel.yama.ptrace_scope=3 cannot be taken back)."};
  if (!may_trace && their_users.size() > 2 && our_users.size() > 1) {
    // Real, effective and saved: all of them have to be the reader's.
    for (std::size_t i = 0; i < 3; ++i)
      if (their_users[i] != our_users[1])
        return {fmt::format("the process belongs to user {}", their_users[i]), "Run this as that user or as root (sudo)."};
  }
  if (!may_trace && scope == "2") return {"kernel.yama.ptrace_scope is 2, which lets only root look into processes", "Run this as root (sudo)."};
  if (!may_trace && scope == "1")
    return {"kernel.yama.ptrace_scope is 1, which lets a process look only into those that it started",
            "Run this as root (sudo), or until the next boot: sudo sysctl kernel.yama.ptrace_scope=0"};
  if (!may_trace && (their_rights & ~our_rights) != 0)
    return {fmt::format("the process holds rights that this user lacks (capabilities {:#x})", their_rights & ~our_rights),
            "Run this as root (sudo)."};
  if ((their_rights & ~our_rights) != 0)
    return {fmt::format("the process holds rights that even root lacks here (capabilities {:#x}): it was started outside of this container",
                        their_rights & ~our_rights),
            "Run this on the host, outside of the container."};
  if (may_trace)
    return {"the process lives in another user namespace, or a security module (AppArmor, SELinux, a container's seccomp profile) forbids it",
            "Run this where the process was started; in a container with --cap-add=SYS_PTRACE."};
  return {"the process does not let itself be looked at (it changed its user, or asked for it with PR_SET_DUMPABLE)", "Run this as root (sudo)."};
}

}  // namespace ff::binary
