#pragma once

#include <string>

#include "capture/capture.h"

namespace ff::capture {

/// Why two captures cannot be of one machine, as a sentence goes on after "…: "; "" when they are of one, or when it cannot be
/// told from what they hold. A GPU with the same unique id in both is the same machine, whatever its name is now. Else another
/// host name says that it is another machine; inside containers, whose names change with every start, the PCI addresses and
/// ids of its AMD GPUs must differ, too. Under the same name, or an unknown one, all GPUs and the board must be others.
[[nodiscard]] std::string different_machines(const Capture& before, const Capture& after);

}  // namespace ff::capture
