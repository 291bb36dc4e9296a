#include "facts/machine.h"
#include "facts/tables.h"
#include "knowledge/knowledge.h"

namespace ff::facts {

Machine read_machine(const capture::Capture& capture, const knowledge::Knowledge& knowledge) {
  return read_machine(capture, Tables{knowledge.table("pci"), knowledge.table("targets"), knowledge.table("gpu_metrics")});
}

}  // namespace ff::facts
