#pragma once

#include <vector>

#include "facts/bus.h"
#include "facts/kfd.h"
#include "facts/machine.h"
#include "facts/tables.h"

namespace ff::facts {

/// The AMD GPUs of a capture: nodes of the KFD topology joined with PCI devices by address, else by render node. In PCI order,
/// partitions of one package in KFD order. A GPU that only one of the two knows is there as well.
std::vector<Gpu> read_gpus(const Evidence& evidence, const Bus& bus, const Kfd& kfd, const Tables& tables);

/// gfx target, product, integrated or not, from the tables, where the machine did not say it itself.
void name_gpu(Gpu& gpu, const Tables& tables);

/// PCI order, then KFD order.
void sort_gpus(std::vector<Gpu>& gpus);

}  // namespace ff::facts
