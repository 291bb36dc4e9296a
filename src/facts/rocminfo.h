#pragma once

#include <string_view>
#include <vector>

#include "facts/machine.h"
#include "facts/read.h"

namespace ff::facts {

/// A GPU agent of a rocminfo text.
struct RocminfoAgent {
  Origin origin;
  Known<std::string> gfx, features, product, unique_id;
  Known<int> node, compute_units, wavefront, lds_kib;
  Known<std::uint32_t> device_id;
  Known<std::uint32_t> bdf;  ///< bus << 8 | device << 3 | function, without a domain
  Known<std::uint64_t> vram_total_bytes;
};

struct Rocminfo {
  std::vector<RocminfoAgent> gpus;
  Known<bool> module_loaded;          ///< "ROCk module ... is loaded" / "is NOT loaded"
  Known<std::string> module_version;  ///< of the packaged driver, in the same line
};

Rocminfo parse_rocminfo(const Evidence& evidence, std::string_view source, std::string_view text);

/// Adds what the rocminfo outputs of the capture say: to the GPUs that are known already (same address, node or id), else as new ones.
void read_rocminfo(Machine& machine, const Evidence& evidence);

}  // namespace ff::facts
