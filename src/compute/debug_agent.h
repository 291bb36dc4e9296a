#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace ff::compute {

/// What AMD's ROCr debug agent printed of the waves that stopped (ROCm 6 and 7). Counts are of waves.
struct AgentReport {
  std::string fault;                            ///< the line that tells the event; empty: none
  std::map<std::string, std::size_t> reasons;   ///< "MEMORY_VIOLATION"
  std::map<std::string, std::size_t> counters;  ///< program counter, as text: the modal one need not be the access that faulted
  std::vector<std::string> kernels;             ///< in the order in which they were named, each once
  std::vector<std::string> instructions;        ///< the marked line of each disassembly
  std::string code_object;                      ///< of the first disassembly
  std::size_t waves = 0;
  [[nodiscard]] bool empty() const { return waves == 0 && kernels.empty() && fault.empty(); }
};

/// Reads the agent's output out of whatever else a command printed. Pure; lines of another shape are passed over.
[[nodiscard]] AgentReport read_debug_agent(std::string_view text);
/// A few lines for people: fault, kernel, instruction, reasons, program counters. Empty for an empty report.
[[nodiscard]] std::string agent_text(const AgentReport& report);

}  // namespace ff::compute
