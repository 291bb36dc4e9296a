#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "binary/hang.h"

namespace ff::binary {

/// A process and who started it.
struct TreeProcess {
  int pid = 0, parent = 0;
};

/// The process and all its descendants, parents before children, at most `limit`; `left_out` counts the others.
std::vector<TreeProcess> process_tree(int pid, std::size_t limit, std::size_t& left_out);

/// A process of a Slurm job on this node, as `scontrol listpids JOB` lists them.
struct JobProcess {
  int pid = 0;
  std::string step;
  int local = -1, global = -1;  ///< task numbers; -1: no task (a helper, or the batch script)
};
/// "PID JOBID STEPID LOCALID GLOBALID" and one line each.
Result<std::vector<JobProcess>> parse_listpids(std::string_view text);
/// Asks scontrol, in a child with a time limit. Errors: Slurm is not here (exit code 3), no such job on this node (2).
Result<std::vector<JobProcess>> job_processes(const std::string& job);

/// The rank that launchers write into a process's environment (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID); empty when there
/// is none or it cannot be read. Nothing else of the environment is kept.
std::string rank_of(int pid);

struct HangMember {
  TreeProcess process;
  std::string rank;
  HangView view;
  HangVerdict verdict;
};

/// What several processes mean together: a launcher is as healthy as what it launched, and where some ranks wait for another one,
/// the one that does not wait is named.
struct GroupVerdict {
  HangVerdict verdict;
  std::size_t about = 0;  ///< index of the member that it is about
};
/// `members` begins with the process that was asked for. Not empty.
GroupVerdict judge_group(const std::vector<HangMember>& members);

}  // namespace ff::binary
