#pragma once

#include "facts/machine.h"
#include "facts/read.h"

namespace ff::facts {

/// What rocm-smi and amd-smi say (JSON or text; names of members changed between releases, so several are tried),
/// added to the GPUs that are known already (same address or id), else as new ones. Also sets the smi index.
void read_smi(Machine& machine, const Evidence& evidence);

/// The indented text of amd-smi ("GPU: 0", then "ASIC:" and so on) as the list that its JSON would be; member names in lower case.
Value amd_smi_text(std::string_view text);
/// rocm-smi's "GPU[0] : Key: value" lines as the object that its JSON would be: "card0" -> {"Key": "value"}.
Value rocm_smi_text(std::string_view text);

}  // namespace ff::facts
