#include <array>

#include "cli/command.h"

namespace ff::cli {

std::span<const Command> commands() { return {}; }

}  // namespace ff::cli
