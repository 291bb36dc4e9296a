#include "device/log.h"

#include "base/text.h"

namespace ff::device {

std::vector<const facts::KernelRecord*> this_boot(const Machine& machine) {
  std::vector<const facts::KernelRecord*> out;
  for (const auto& record : machine.kernel_log)
    if (!contains(record.source, "previous")) out.push_back(&record);
  return out;
}

std::vector<const facts::KernelRecord*> find_records(const Machine& machine, const std::vector<std::string_view>& texts, std::string_view pci) {
  std::vector<const facts::KernelRecord*> out;
  for (const auto* record : this_boot(machine)) {
    if (!pci.empty() && !record->pci.empty() && record->pci != pci) continue;
    for (const auto text : texts)
      if (contains(record->text, text)) {
        out.push_back(record);
        break;
      }
  }
  return out;
}

std::vector<Evidence> evidence_of(const std::vector<const facts::KernelRecord*>& records, std::size_t limit) {
  std::vector<Evidence> out;
  for (const auto* record : records) {
    if (out.size() == limit) break;
    out.push_back(evidence(*record));
  }
  return out;
}

}  // namespace ff::device
