#include "facts/drm.h"

#include <fmt/format.h>

#include "facts/gpu_metrics.h"

namespace ff::facts {
namespace {

/// Names below a directory of the device, in whichever place it was captured, with that place.
std::pair<std::string, std::vector<std::string>> list(const Bus& bus, const BusDevice& device, std::string_view name) {
  for (const auto& directory : device.directories) {
    std::string path = directory + "/" + std::string(name);
    auto names = bus.evidence().capture().list(path);
    if (!names.empty()) return {std::move(path), std::move(names)};
  }
  return {};
}

/// The clock with the star in a pp_dpm_* file: "1: 2254Mhz *".
Known<int> current_clock(const Bus& bus, const BusDevice& device, std::string_view name) {
  const auto path = bus.path(device, name);
  if (!path) return {};
  std::uint64_t number = 0;
  for (const std::string_view line : lines(bus.evidence().text(*path).value_or(""))) {
    ++number;
    if (!trim(line).ends_with('*')) continue;
    const auto text = between(line, ": ", "hz");
    if (!text || text->empty()) continue;
    if (const auto mhz = to_integer<int>(text->substr(0, text->size() - 1))) return {*mhz, bus.evidence().origin(*path, number, line)};
  }
  return {};
}

/// A hwmon value divided by its unit, e.g. millidegrees by 1000.
Known<double> scaled(const Evidence& evidence, const std::string& path, double unit) {
  const auto raw = evidence.known_integer<std::int64_t>(path);
  if (!raw) return {};
  return {static_cast<double>(*raw) / unit, raw.origin};
}

void read_hwmon(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  const Evidence& evidence = bus.evidence();
  const auto [root, names] = list(bus, device, "hwmon");
  for (const std::string& name : names) {
    const std::string directory = root + "/" + name;
    for (const char* index : {"1", "2", "3"}) {
      const std::string stem = directory + "/temp" + index + "_";
      // Kernels before 4.20 have no labels and one sensor.
      const std::string label(evidence.value(stem + "label").value_or(index[0] == '1' ? "edge" : ""));
      if (label.empty()) continue;
      // Exactly 0 is what the driver reports for a sensor that the board does not have.
      if (const auto t = scaled(evidence, stem + "input", 1000); t && *t != 0) gpu.temperature_c[label] = t;
      if (const auto t = scaled(evidence, stem + "crit", 1000)) gpu.temperature_limit_c[label] = t;
      if (const auto t = scaled(evidence, stem + "emergency", 1000)) gpu.temperature_emergency_c[label] = t;
    }
    fill(gpu.power_w, scaled(evidence, directory + "/power1_average", 1e6));
    fill(gpu.power_w, scaled(evidence, directory + "/power1_input", 1e6));
    fill(gpu.power_cap_w, scaled(evidence, directory + "/power1_cap", 1e6));
    fill(gpu.power_cap_default_w, scaled(evidence, directory + "/power1_cap_default", 1e6));
    fill(gpu.fan_rpm, evidence.known_integer<int>(directory + "/fan1_input"));
  }
}

void read_firmware(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  constexpr std::string_view suffix = "_fw_version";
  const auto [root, names] = list(bus, device, "fw_version");
  for (const std::string& name : names) {
    if (!name.ends_with(suffix)) continue;
    if (auto version = bus.evidence().known_text(root + "/" + name)) gpu.firmware[name.substr(0, name.size() - suffix.size())] = std::move(version);
  }
}

/// "ue: 0" / "ce: 3" / "de: 0" lines of ras/<block>_err_count or ras/aca_<block>.
void read_ras(Gpu& gpu, const BusDevice& device, const Bus& bus) {
  constexpr std::string_view suffix = "_err_count";
  const auto [root, names] = list(bus, device, "ras");
  for (const std::string& name : names) {
    RasBlock block;
    if (name.ends_with(suffix)) {
      block.block = name.substr(0, name.size() - suffix.size());
    } else if (name.starts_with("aca_")) {
      block.block = name.substr(4);
    } else {
      continue;
    }
    bool any = false;
    for (const std::string_view line : lines(bus.evidence().text(root + "/" + name).value_or(""))) {
      const auto colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      const auto number = to_integer<std::uint64_t>(line.substr(colon + 1));
      if (!number) continue;
      const auto key = trim(line.substr(0, colon));
      if (key == "ue")
        block.uncorrectable = *number;
      else if (key == "ce")
        block.correctable = *number;
      else if (key == "de")
        block.deferred = *number;
      else
        continue;
      any = true;
    }
    if (any) {
      block.origin =
          bus.evidence().origin(root + "/" + name, 0, fmt::format("ue: {}, ce: {}, de: {}", block.uncorrectable, block.correctable, block.deferred));
      gpu.ras.push_back(std::move(block));
    }
  }
  const std::string bad_pages = root + "/gpu_vram_bad_pages";
  if (const auto text = root.empty() ? std::nullopt : bus.evidence().text(bad_pages)) {
    int retired = 0;
    int pending = 0;
    for (const std::string_view line : lines(*text)) {
      // "0xPFN : 0xSIZE : R"; R retired, P pending, F could not be retired.
      const auto parts = split(line, ':');
      if (parts.size() != 3) continue;
      const auto flag = trim(parts[2]);
      if (flag == "R") ++retired;
      if (flag == "P" || flag == "F") ++pending;
    }
    gpu.bad_pages = {retired, bus.evidence().origin(bad_pages, 0, fmt::format("{} pages", retired))};
    gpu.bad_pages_pending = {pending, gpu.bad_pages.origin};
  }
}

/// Facts that only gpu_metrics gives, or that hwmon did not. Discrete parts count in W and degrees (format 1),
/// APUs in mW and centidegrees (formats 2 and 3).
void read_metrics(Gpu& gpu, const BusDevice& device, const Bus& bus, const Tables& tables) {
  const auto path = bus.path(device, "gpu_metrics");
  if (!path) return;
  const auto decoded = decode_gpu_metrics(bus.evidence().capture().file(*path).value_or(""), tables.gpu_metrics);
  if (!decoded) return;
  const auto from = [&](std::string_view field) {
    return bus.evidence().origin(*path, 0, fmt::format("v{}.{} {}", decoded->format, decoded->content, field));
  };
  const Value& values = decoded->values;
  gpu.metrics = values;
  gpu.metrics_version = {fmt::format("{}.{}", decoded->format, decoded->content), from("")};
  if (const Value* bits = values.find("indep_throttle_status")) {
    // Beyond INT64_MAX a Value is decimal text.
    const auto number = bits->is_text() ? to_integer<std::uint64_t>(bits->as_text()).value_or(0) : static_cast<std::uint64_t>(bits->as_int());
    gpu.throttle_bits = {number, from("indep_throttle_status")};
    gpu.throttle_reasons = throttle_reasons(number);
  }
  const double temperature_unit = decoded->format == 1 ? 1 : 100;
  const auto temperature = [&](const char* label, const char* field) {
    const Value* v = values.find(field);
    if (v == nullptr || !v->is_number() || v->as_int() == 0 || gpu.temperature_c.contains(label)) return;
    gpu.temperature_c[label] = {v->as_real() / temperature_unit, from(field)};
  };
  temperature("edge", "temperature_edge");
  temperature("edge", "temperature_gfx");
  temperature("junction", "temperature_hotspot");
  temperature("mem", "temperature_mem");
  const double power_unit = decoded->format == 1 ? 1 : 1000;
  for (const char* field : {"curr_socket_power", "average_socket_power"})
    if (const Value* v = values.find(field); v != nullptr && v->is_number()) fill(gpu.power_w, Known<double>{v->as_real() / power_unit, from(field)});
  if (const Value* v = values.find("average_gfx_activity"); v != nullptr && v->is_number())
    fill(gpu.busy_percent, Known<int>{static_cast<int>(v->as_real() / temperature_unit), from("average_gfx_activity")});
}

}  // namespace

void read_drm(Gpu& gpu, const BusDevice& device, const Bus& bus, const Tables& tables) {
  fill(gpu.vram_total_bytes, bus.integer<std::uint64_t>(device, "mem_info_vram_total"));
  fill(gpu.vram_used_bytes, bus.integer<std::uint64_t>(device, "mem_info_vram_used"));
  fill(gpu.visible_vram_bytes, bus.integer<std::uint64_t>(device, "mem_info_vis_vram_total"));
  fill(gpu.gtt_total_bytes, bus.integer<std::uint64_t>(device, "mem_info_gtt_total"));
  fill(gpu.gtt_used_bytes, bus.integer<std::uint64_t>(device, "mem_info_gtt_used"));
  fill(gpu.busy_percent, bus.integer<int>(device, "gpu_busy_percent"));
  fill(gpu.sclk_mhz, current_clock(bus, device, "pp_dpm_sclk"));
  fill(gpu.mclk_mhz, current_clock(bus, device, "pp_dpm_mclk"));
  fill(gpu.performance_level, bus.text(device, "power_dpm_force_performance_level"));
  fill(gpu.compute_partition, bus.text(device, "current_compute_partition"));
  fill(gpu.memory_partition, bus.text(device, "current_memory_partition"));
  fill(gpu.vbios, bus.text(device, "vbios_version"));
  fill(gpu.product, bus.text(device, "product_name"));
  fill(gpu.pcie_replays, bus.integer<std::uint64_t>(device, "pcie_replay_count"));
  if (const auto id = bus.text(device, "unique_id"); id && id->find_first_not_of('0') != std::string::npos)
    fill(gpu.unique_id, {lower(*id), id.origin});
  read_hwmon(gpu, device, bus);
  read_firmware(gpu, device, bus);
  read_ras(gpu, device, bus);
  read_metrics(gpu, device, bus, tables);
}

}  // namespace ff::facts
