#pragma once

#include <string_view>
#include <vector>

#include "facts/machine.h"
#include "facts/read.h"

namespace ff::facts {

/// Splits kernel-log text into records, one a message. Understood, mixed as they come:
/// `dmesg` in its forms (raw, `<6>`, -T, -x, --time-format iso, with caller ids), /dev/kmsg records, `journalctl -k` short,
/// short-iso, short-precise, short-monotonic and json, syslog files, each also behind the prefixes that docker and
/// Kubernetes put before a line. Lines without any of these are records without a time. Dates without a year
/// give no wall clock; times without a zone are read as UTC.
std::vector<KernelRecord> split_kernel_log(std::string_view source, std::string_view text);

/// What is left of a line when time, level, host and "kernel:" are taken off.
std::string_view kernel_message(std::string_view line);

/// The kernel log of a capture in time order: the previous boot first. Of this boot's ring buffer and journal, the
/// fuller one; of handed-over logs all.
std::vector<KernelRecord> read_kernel_log(const Evidence& evidence);

}  // namespace ff::facts
