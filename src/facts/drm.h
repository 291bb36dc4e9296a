#pragma once

#include "facts/bus.h"
#include "facts/machine.h"
#include "facts/tables.h"

namespace ff::facts {

/// What amdgpu says below /sys/class/drm/cardN/device: memory, clocks, sensors, firmware, partitions, RAS, gpu_metrics.
void read_drm(Gpu& gpu, const BusDevice& device, const Bus& bus, const Tables& tables);

}  // namespace ff::facts
