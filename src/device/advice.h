#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/judge.h"

/// Remedies and proofs that depend on the kind of container or distribution, for the checks that need them.
namespace ff::device {

/// How to hand the GPU's devices to a container of this kind ("docker", "kubernetes", "singularity", …), and what shows that they are there.
std::vector<std::string> hand_devices_to(std::string_view container);
std::vector<std::string> proof_of_devices(std::string_view container);

/// "Remove "nomodeset" from the kernel command line: …" with the tool of the distribution, and to reboot.
std::string remove_boot_option(const Machine& machine, std::string_view option);
/// The same for an option to add.
std::string add_boot_option(const Machine& machine, std::string_view option);

/// The command that installs the headers of the running kernel with the distribution's package tool.
std::string install_kernel_headers(const Machine& machine, std::string_view release);

}  // namespace ff::device
