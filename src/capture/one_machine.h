#pragma once

#include "base/error.h"
#include "capture/capture.h"

namespace ff::capture {

/// Fails when the capture's items name two different AMD devices at one PCI address, which no single machine does: files of two
/// machines were handed over together. Looks at sysfs, the KFD topology, lspci, rocm-smi and amd-smi.
Result<void> check_one_machine(const Capture& capture);

}  // namespace ff::capture
