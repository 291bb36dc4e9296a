#include "binary/hang_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

std::optional<int> parent_of(int pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid));
  if (!stat) return std::nullopt;
  const auto close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = words(std::string_view(*stat).substr(close + 1));
  return fields.size() > 1 ? to_integer<int>(fields[1]) : std::nullopt;
}

/// Verdicts from the one that explains most to the one that explains nothing.
constexpr std::array order = std::to_array<std::string_view>({"driver-dead", "uninterruptible", "completion-lost", "kernel-runs", "device", "stopped",
                                                              "waits-for-rank", "pipe", "lock", "socket", "busy-loop", "ended", "not-readable",
                                                              "moving", "unknown", "child", "waits-for-work", "waits-for-input", "sleep"});
std::size_t weight(const HangVerdict& verdict) {
  return static_cast<std::size_t>(std::ranges::find(order, std::string_view(verdict.id)) - order.begin());
}

/// A launcher: it waits for its children, or looks after them from time to time.
bool launches(const HangVerdict& verdict) { return verdict.id == "child" || verdict.id == "sleep"; }

std::string name_of(const HangMember& member) {
  return (member.rank.empty() ? std::string() : "rank " + member.rank + ", ") + fmt::format("{} (pid {})", member.view.program, member.process.pid);
}

/// One process for each rank: the first below the launcher that does not just wait for its own child.
std::vector<std::size_t> ranks_of(const std::vector<HangMember>& members) {
  std::map<std::string, std::size_t> chosen;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].rank.empty()) continue;
    const auto [found, fresh] = chosen.emplace(members[i].rank, i);
    if (!fresh && members[found->second].verdict.id == "child") found->second = i;
  }
  std::vector<std::size_t> out;
  for (const auto& [rank, index] : chosen) out.push_back(index);
  std::ranges::sort(out);
  return out;
}

GroupVerdict about(const std::vector<HangMember>& members, std::size_t index) {
  GroupVerdict out{members[index].verdict, index};
  if (index != 0) out.verdict.what = name_of(members[index]) + ": " + out.verdict.what;
  return out;
}

GroupVerdict judge_ranks(const std::vector<HangMember>& members, const std::vector<std::size_t>& ranks) {
  const auto lighter = [&](std::size_t a, std::size_t b) { return weight(members[a].verdict) < weight(members[b].verdict); };
  const std::size_t worst = *std::ranges::min_element(ranks, lighter);
  std::vector<std::size_t> waiting, others;
  for (const auto index : ranks) (members[index].verdict.id == "waits-for-rank" ? waiting : others).push_back(index);
  if (members[worst].verdict.id != "waits-for-rank" || members[worst].view.ranks) return about(members, worst);
  if (others.empty()) {
    GroupVerdict out = about(members, worst);
    out.verdict.what = fmt::format(
        "all {} ranks on this node wait for another rank: one of another node is missing, or they are in different collectives", waiting.size());
    out.verdict.next.insert(out.verdict.next.begin(),
                            "Compare their stacks below (--all), and flight-recorder dumps (TORCH_NCCL_TRACE_BUFFER_SIZE) with --dumps.");
    return out;
  }
  std::vector<std::string> names, missing;
  for (const auto index : waiting) names.push_back(members[index].rank);
  for (const auto index : others) missing.push_back(fmt::format("{}: {}", name_of(members[index]), members[index].verdict.what));
  const std::size_t first = *std::ranges::min_element(others, lighter);
  GroupVerdict out{{"waits-for-rank",
                    fmt::format("rank{} {} {} for another rank, and {} not in the collective: {}", names.size() == 1 ? "" : "s", join(names, ", "),
                                names.size() == 1 ? "waits" : "wait", others.size() == 1 ? "one is" : "these are", join(missing, "; ")),
                    members[first].verdict.next},
                   first};
  return out;
}

}  // namespace

std::vector<TreeProcess> process_tree(int pid, std::size_t limit, std::size_t& left_out) {
  std::map<int, std::vector<int>> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto id = to_integer<int>(entry.path().filename().string());
    if (!id) continue;
    if (const auto parent = parent_of(*id)) children[*parent].push_back(*id);
  }
  std::vector<TreeProcess> out{{pid, parent_of(pid).value_or(0)}};
  left_out = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto& below = children[out[i].pid];
    std::ranges::sort(below);
    for (const int child : below) {
      if (out.size() < limit)
        out.push_back({child, out[i].pid});
      else
        ++left_out;
    }
    below.clear();  // a process number that was used again cannot make a circle
  }
  return out;
}

Result<std::vector<JobProcess>> parse_listpids(std::string_view text) {
  std::vector<JobProcess> out;
  bool heading = false;
  for (const auto line : lines(text)) {
    const auto fields = words(line);
    if (fields.size() < 5) continue;
    if (fields[0] == "PID") {
      heading = true;
      continue;
    }
    const auto pid = to_integer<int>(fields[0]);
    if (!pid || *pid <= 0) continue;
    out.push_back({*pid, std::string(fields[2]), to_integer<int>(fields[3]).value_or(-1), to_integer<int>(fields[4]).value_or(-1)});
  }
  if (!heading) return fail("scontrol listpids answered in a way that is not known", {}, "give the process number instead");
  return out;
}

Result<std::vector<JobProcess>> job_processes(const std::string& job) {
  ChildOptions child;
  child.argv = {"scontrol", "listpids", job};
  child.time_limit = std::chrono::seconds(20);
  const auto result = run_child(child);
  if (result.start_errno != 0)
    return fail("Slurm's scontrol is not installed here", "job " + job, "run this on the node of the job, or give a process number");
  auto listed = parse_listpids(result.out);
  if (!result.ok() || !listed || listed->empty()) {
    const std::string why(trim(result.err).empty() ? trim(result.out) : trim(result.err));
    Error error{"no process of this job is on this node" + (why.empty() ? std::string() : ": " + why), "job " + job,
                "scontrol show job " + job + " names its nodes: run this there", 2};
    // Not the job but Slurm itself is at fault.
    for (const std::string_view sign : {"Unable to contact", "onfiguration", "slurm.conf", "unge", "authentication"})
      if (contains(why, sign)) error.exit_code = 3;
    if (result.timed_out) error.exit_code = 3;
    return std::unexpected(std::move(error));
  }
  return listed;
}

std::string rank_of(int pid) {
  ChildOptions child;
  // Reading it takes the lock of the address space, which a stuck process may hold.
  child.body = [&](int out) {
    const auto environment = read_file(fmt::format("/proc/{}/environ", pid));
    if (!environment) return;
    for (const std::string_view name : {"RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID="})
      for (const auto entry : split(*environment, '\0'))
        if (entry.starts_with(name)) {
          (void)write_all(out, entry.substr(name.size()));
          return;
        }
  };
  child.time_limit = std::chrono::seconds(1);
  const auto result = run_child(child);
  return result.ok() && to_integer<int>(result.out) ? result.out : std::string();
}

GroupVerdict judge_group(const std::vector<HangMember>& members) {
  if (members.size() == 1) return about(members, 0);
  const auto ranks = ranks_of(members);
  const bool below = std::ranges::any_of(ranks, [](std::size_t index) { return index != 0; });
  if (below && ranks.size() > 1) return judge_ranks(members, ranks);
  // What was asked for has its own answer, unless it only waits for those it started.
  if (!launches(members[0].verdict)) return about(members, 0);
  std::vector<std::size_t> candidates;
  for (std::size_t i = members[0].verdict.id == "child" ? 1 : 0; i < members.size(); ++i) candidates.push_back(i);
  const auto heavier = [&](std::size_t a, std::size_t b) { return weight(members[a].verdict) < weight(members[b].verdict); };
  return about(members, *std::ranges::min_element(candidates, heavier));
}

}  // namespace ff::binary
