#include "compute/debug_agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace ff::compute {
namespace {

constexpr std::size_t most_listed = 16;

void keep(std::vector<std::string>& list, std::string_view text) {
  if (!text.empty() && list.size() < most_listed && std::ranges::find(list, text) == list.end()) list.emplace_back(text);
}

/// What stands between two marks; empty when one is not there.
std::string_view between(std::string_view text, std::string_view before, std::string_view behind) {
  const auto begin = text.find(before);
  if (begin == std::string_view::npos) return {};
  const auto rest = text.substr(begin + before.size());
  const auto end = rest.find(behind);
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

/// "wave_12: pc=0x7f… (stopped, reason: MEMORY_VIOLATION)"; ROCm 7 puts the kernel in between.
void read_wave(std::string_view line, AgentReport& report) {
  const auto reason = between(line, "(stopped, reason: ", ")");
  const auto at = line.find("pc=");
  if (reason.empty() || at == std::string_view::npos) return;
  ++report.waves;
  const auto counter = line.substr(at + 3, line.find_first_of(" \t", at + 3) - at - 3);
  if (report.reasons.size() < most_listed || report.reasons.contains(std::string(reason))) ++report.reasons[std::string(reason)];
  if (report.counters.size() < 4096 || report.counters.contains(std::string(counter))) ++report.counters[std::string(counter)];
  if (const auto entry = line.find("kernel_code_entry="); entry != std::string_view::npos)
    if (const auto open = line.find('<', entry), close = line.rfind('>');
        open != std::string_view::npos && close != std::string_view::npos && open < close)
      keep(report.kernels, line.substr(open + 1, close - open - 1));
}

bool tells_fault(std::string_view line) {
  return contains(line, "Memory access fault by GPU") || contains(line, "memory access fault by GPU") ||
         contains(line, "HSA_AMD_GPU_MEMORY_FAULT_EVENT") || contains(line, "HW Exception by GPU") || contains(line, "Queue error");
}

std::string counted(const std::map<std::string, std::size_t>& all, std::size_t most) {
  std::vector<std::pair<std::string, std::size_t>> list(all.begin(), all.end());
  std::ranges::stable_sort(list, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (std::size_t i = 0; i < std::min(most, list.size()); ++i) out += fmt::format("{}{} ({})", i == 0 ? "" : ", ", list[i].first, list[i].second);
  if (list.size() > most) out += fmt::format(" and {} more", list.size() - most);
  return out;
}

}  // namespace

AgentReport read_debug_agent(std::string_view text) {
  AgentReport report;
  bool disassembly = false;
  for (const auto raw : lines(text)) {
    const auto line = trim(raw);
    if (report.fault.empty() && tells_fault(line)) report.fault = line.substr(0, 300);
    if (line.starts_with("wave_")) {
      read_wave(line, report);
    } else if (line.starts_with("Disassembly for function ")) {
      auto name = line.substr(25);
      if (name.ends_with(':')) name.remove_suffix(1);
      keep(report.kernels, name.substr(0, 300));
      disassembly = true;
    } else if (line.starts_with("End of disassembly")) {
      disassembly = false;
    } else if (disassembly && line.starts_with("=>")) {
      keep(report.instructions, trim(line.substr(2, 300)));
    } else if (disassembly && report.code_object.empty() && line.starts_with("code object: ")) {
      report.code_object = line.substr(13, 300);
    }
  }
  return report;
}

std::string agent_text(const AgentReport& report) {
  if (report.empty()) return {};
  std::string out;
  if (!report.fault.empty()) out += report.fault + "\n";
  if (!report.kernels.empty()) out += "kernel: " + join(report.kernels, "; ") + "\n";
  for (const auto& instruction : report.instructions) out += "stopped at: " + instruction + "\n";
  if (report.waves > 0)
    out += fmt::format("{} waves stopped: {}; program counters: {}\n", report.waves, counted(report.reasons, 4), counted(report.counters, 4));
  if (!report.code_object.empty()) out += "code object: " + report.code_object + "\n";
  // Without precise memory reports a wave goes on for some instructions after the access that faults.
  if (report.reasons.contains("MEMORY_VIOLATION"))
    out += "the access that faulted lies at or some instructions before these places (amdgpu reports memory faults late)\n";
  return out;
}

}  // namespace ff::compute
