#pragma once

#include "base/value.h"

namespace ff::capture {
class Capture;
}

namespace ff::facts {

struct Machine;

/// The knowledge tables that reading needs. A null table means: nothing is known, and what depends on it stays unknown.
struct Tables {
  const Value& pci;      ///< "devices": {"744c": {"gfx": "gfx1100", "names_by_revision": {"C8": "..."}}}; ids in lower case, revisions in upper case
  const Value& targets;  ///< "targets": [{"name": "gfx1100", "type": "dGPU", ...}]
  const Value& gpu_metrics;  ///< "structs", "v1_9", as in docs/knowledge.md
};

/// read_machine with the tables given one by one.
Machine read_machine(const capture::Capture& capture, const Tables& tables);

}  // namespace ff::facts
