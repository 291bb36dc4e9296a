#include "facts/rocminfo.h"

#include <fmt/format.h>

#include <algorithm>

namespace ff::facts {
namespace {

/// The number before the bracket: "29772(0x744c)", "64(0x40) KB", "96".
std::optional<std::uint64_t> leading_number(std::string_view s) {
  const auto digits = s.substr(0, s.find_first_not_of("0123456789"));
  return to_integer<std::uint64_t>(digits);
}

/// Where the reader is inside an agent: pools and ISAs reuse the names "Name" and "Size".
enum class Part { agent, pool, isa, cache };

struct Reader {
  const Evidence& evidence;
  std::string_view source;
  Rocminfo out;
  RocminfoAgent agent;
  bool in_agent = false, is_gpu = false, global_pool = false, group_pool = false, first_isa = true;
  Part part = Part::agent;

  void finish() {
    if (in_agent && is_gpu) out.gpus.push_back(std::move(agent));
    agent = {};
    in_agent = is_gpu = global_pool = group_pool = false;
    first_isa = true;
    part = Part::agent;
  }

  void line(std::string_view raw, std::uint64_t number) {
    const std::string_view text = trim(raw);
    const auto from = [&] { return evidence.origin(source, number, text); };
    if (text.starts_with("ROCk module")) {
      const bool missing = contains(text, "NOT loaded");
      if (missing || contains(text, "is loaded")) out.module_loaded = {!missing, from()};
      if (const auto version = between(text, "version ", " is loaded")) out.module_version = {std::string(trim(*version)), from()};
      return;
    }
    if (text.starts_with("Agent ") && to_integer<int>(text.substr(6))) {
      finish();
      in_agent = true;
      agent.origin = from();
      return;
    }
    if (!in_agent) return;
    if (text.starts_with("*** Done")) return finish();
    if (text == "Pool Info:" || (text.starts_with("Pool ") && to_integer<int>(text.substr(5)))) {
      part = Part::pool;
      global_pool = group_pool = false;
      return;
    }
    if (text == "ISA Info:") {
      part = Part::isa;
      return;
    }
    if (text == "Cache Info:") {
      part = Part::cache;
      return;
    }
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return;
    const auto key = text.substr(0, colon);
    const auto value =
        trim(text.substr(text.find_first_not_of(':', colon) == std::string_view::npos ? text.size() : text.find_first_not_of(':', colon)));
    member(key, value, from());
  }

  void member(std::string_view key, std::string_view value, Origin from) {
    const auto number = leading_number(value);
    // Behind the caches the agent's own lines go on.
    if (part == Part::cache && key == "Chip ID") part = Part::agent;
    if (part == Part::isa) {
      if (key != "Name" || !first_isa) return;
      first_isa = false;
      const auto gfx = value.find("gfx");
      const auto colon = gfx == std::string_view::npos ? gfx : value.find(':', gfx);
      if (colon != std::string_view::npos) agent.features = {std::string(value.substr(colon + 1)), std::move(from)};
      return;
    }
    if (part == Part::pool) {
      if (key == "Segment") {
        global_pool = value.starts_with("GLOBAL");
        group_pool = value.starts_with("GROUP");
      }
      if (key == "Size" && number && *number < (std::uint64_t{1} << 40)) {
        // Pools of one GPU are views of the same memory: the largest is its size.
        if (global_pool && *number * 1024 > agent.vram_total_bytes.value_or(0)) agent.vram_total_bytes = {*number * 1024, from};
        if (group_pool) agent.lds_kib = {static_cast<int>(*number), from};
      }
      return;
    }
    if (key == "Name") {
      if (value.starts_with("gfx")) agent.gfx = {std::string(value.substr(0, value.find_first_of(":- "))), std::move(from)};
    } else if (key == "Uuid") {
      if (value.starts_with("GPU-") && value.size() == 20) agent.unique_id = {lower(value.substr(4)), std::move(from)};
    } else if (key == "Marketing Name") {
      if (!value.empty()) agent.product = {std::string(value), std::move(from)};
    } else if (key == "Device Type") {
      is_gpu = value == "GPU";
    } else if (!number) {
      return;
    } else if (key == "Node" || key == "Internal Node ID") {
      fill(agent.node, {static_cast<int>(*number), std::move(from)});
    } else if (key == "Chip ID") {
      agent.device_id = {static_cast<std::uint32_t>(*number), std::move(from)};
    } else if (key == "BDFID") {
      agent.bdf = {static_cast<std::uint32_t>(*number), std::move(from)};
    } else if (key == "Compute Unit") {
      agent.compute_units = {static_cast<int>(*number), std::move(from)};
    } else if (key == "Wavefront Size") {
      agent.wavefront = {static_cast<int>(*number), std::move(from)};
    }
  }
};

bool same_gpu(const Gpu& gpu, const RocminfoAgent& agent) {
  if (gpu.kfd_node && agent.node) return *gpu.kfd_node == *agent.node;
  if (gpu.unique_id && agent.unique_id) return *gpu.unique_id == *agent.unique_id;
  if (gpu.pci && agent.bdf)
    if (const auto address = parse_pci(*gpu.pci)) return (address->bus << 8 | address->device << 3 | address->function) == (*agent.bdf & 0xffff);
  return false;
}

}  // namespace

Rocminfo parse_rocminfo(const Evidence& evidence, std::string_view source, std::string_view text) {
  Reader reader{evidence, source, {}, {}};
  std::uint64_t number = 0;
  for (const std::string_view line : lines(cut_at_nul(text))) reader.line(line, ++number);
  reader.finish();
  return std::move(reader.out);
}

void read_rocminfo(Machine& machine, const Evidence& evidence) {
  for (const auto& [source, text] : evidence.outputs("rocminfo")) {
    Rocminfo info = parse_rocminfo(evidence, source, text);
    fill(machine.driver.amdgpu_loaded, info.module_loaded);
    fill(machine.driver.amdgpu_version, info.module_version);
    for (auto& agent : info.gpus) {
      auto known = std::ranges::find_if(machine.gpus, [&](const Gpu& gpu) { return same_gpu(gpu, agent); });
      if (known == machine.gpus.end()) {
        machine.gpus.push_back({});
        known = std::prev(machine.gpus.end());
      }
      Gpu& gpu = *known;
      fill(gpu.kfd_node, agent.node);
      fill(gpu.unique_id, agent.unique_id);
      if (agent.bdf && !gpu.pci)
        gpu.pci = {PciAddress{0, *agent.bdf >> 8 & 0xff, *agent.bdf >> 3 & 0x1f, *agent.bdf & 7}.to_string(), agent.bdf.origin};
      fill(gpu.gfx, agent.gfx);
      fill(gpu.features, agent.features);
      fill(gpu.product, agent.product);
      fill(gpu.device_id, agent.device_id);
      fill(gpu.compute_units, agent.compute_units);
      fill(gpu.wavefront, agent.wavefront);
      fill(gpu.lds_kib, agent.lds_kib);
      fill(gpu.vram_total_bytes, agent.vram_total_bytes);
    }
  }
}

}  // namespace ff::facts
