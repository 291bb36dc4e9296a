#pragma once

#include "facts/bus.h"
#include "facts/machine.h"

namespace ff::facts {

/// Link (judged where the slot is), atomics, BARs, AER counters, reset methods, IOMMU group, slot label, power state.
void read_pcie(Gpu& gpu, const BusDevice& device, const Bus& bus);

/// The device whose link is the slot's: boards with a switch of their own (RDNA, Vega) show a fixed link at the GPU,
/// and the slot's at their upstream bridge. Returns the topmost bridge of the board, or the device itself.
const BusDevice& board_port(const BusDevice& device, const Bus& bus);

}  // namespace ff::facts
