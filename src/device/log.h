#pragma once

#include <string_view>
#include <vector>

#include "device/judge.h"

namespace ff::device {

/// Records of the boot that runs (or ran when the capture was taken); what an earlier boot logged says nothing about now.
std::vector<const facts::KernelRecord*> this_boot(const Machine& machine);

/// Records of this boot that hold one of the texts. With a PCI address: only those that name it or no device at all.
std::vector<const facts::KernelRecord*> find_records(const Machine& machine, const std::vector<std::string_view>& texts, std::string_view pci = {});

/// At most `limit` of the records as evidence.
std::vector<Evidence> evidence_of(const std::vector<const facts::KernelRecord*>& records, std::size_t limit = 5);

}  // namespace ff::device
