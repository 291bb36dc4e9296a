#pragma once

#include <string>
#include <vector>

#include "facts/machine.h"
#include "facts/read.h"

namespace ff::facts {

/// A link of the KFD topology (kfd_crat.h).
struct KfdLink {
  int to = -1;
  int type = 0;  ///< 2 PCIe, 11 XGMI
  std::int64_t weight = 0;
  std::int64_t max_bandwidth_mbs = 0;
  std::uint32_t flags = 0;  ///< bits 2 and 3: no 32-bit, no 64-bit atomics
  bool peer = false;        ///< from p2p_links: GPU to GPU (or far CPU) over PCIe
  Origin origin;
};

/// One GPU node of the KFD topology.
struct KfdGpu {
  int node = -1;
  Origin origin;
  Known<std::uint32_t> gpu_id;
  Known<std::string> pci;
  Known<int> partition;  ///< of a package in several partitions
  Known<std::uint32_t> vendor_id, device_id;
  Known<std::string> gfx;
  Known<int> compute_units, wavefront, lds_kib, xcc, render_minor;
  Known<std::string> hive, unique_id;
  Known<std::uint64_t> vram_total_bytes, visible_vram_bytes;
  Known<bool> pcie_atomics;
  std::vector<KfdLink> links;
};

struct Kfd {
  Known<bool> listed;  ///< the topology was looked for
  Known<int> nodes;    ///< CPU and GPU nodes together
  std::vector<KfdGpu> gpus;
};

/// /sys/class/kfd/kfd/topology.
Kfd read_kfd(const Evidence& evidence);

/// KFD's decimal gfx_target_version as a target name: 90010 is gfx90a, 110501 gfx1151 (major*10000 + minor*100 +
/// step, minor and step printed as hexadecimal digits). Empty for 0 and for what no target can have.
std::string gfx_of_target_version(std::uint64_t version);

}  // namespace ff::facts
