#include "binary/occupancy.h"

#include <algorithm>

#include "base/text.h"

namespace ff::binary {
namespace {

std::uint64_t number(const Value& row, std::string_view name) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, row[name].as_int())); }
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return step == 0 ? value : (value + step - 1) / step * step; }
constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return by == 0 ? 0 : (value + by - 1) / by; }

std::uint64_t waves_by_sgprs(int generation, std::uint64_t sgprs, std::uint64_t maximum) {
  if (generation >= 10) return maximum;  // a fixed share per wave
  std::uint64_t waves = 0;
  if (generation >= 8)
    waves = sgprs <= 80 ? 10 : sgprs <= 88 ? 9 : sgprs <= 100 ? 8 : 7;
  else
    waves = sgprs <= 48 ? 10 : sgprs <= 56 ? 9 : sgprs <= 64 ? 8 : sgprs <= 72 ? 7 : sgprs <= 80 ? 6 : 5;
  return std::min(waves, maximum);
}

}  // namespace

std::optional<TargetLimits> limits_of(const Value& targets_table, std::string_view processor) {
  const Value& rows = targets_table.is_list() ? targets_table : targets_table["targets"];
  for (const auto& row : rows.items()) {
    if (row["name"].as_text() != processor) continue;
    TargetLimits out;
    out.name = processor;
    out.generation = static_cast<int>(to_integer(split(row["isa"].as_text(), '.')[0]).value_or(0));
    out.waves_per_simd = number(row, "max_waves_per_simd");
    out.max_workgroup = number(row, "max_flat_workgroup_size");
    out.vgpr_total_w32 = number(row, "vgpr_total_w32");
    out.vgpr_total_w64 = number(row, "vgpr_total_w64");
    out.vgpr_granule_w32 = number(row, "vgpr_alloc_granule_w32");
    out.vgpr_granule_w64 = number(row, "vgpr_alloc_granule_w64");
    out.lds_per_workgroup = number(row, "lds_bytes_per_workgroup_max");
    out.lds_granule = number(row, "lds_alloc_granule");
    out.unified_registers = contains(row["agpr"].as_text(), "unified");
    if (out.waves_per_simd == 0 || out.vgpr_total_w64 == 0) return std::nullopt;
    return out;
  }
  return std::nullopt;
}

Occupancy occupancy(const TargetLimits& limits, const KernelNeeds& needs) {
  Occupancy out;
  const std::uint64_t most = out.waves_per_simd_max = limits.waves_per_simd;
  const bool wave32 = needs.wavefront == 32;
  const std::uint64_t total = wave32 ? limits.vgpr_total_w32 : limits.vgpr_total_w64,
                      granule = wave32 ? limits.vgpr_granule_w32 : limits.vgpr_granule_w64;
  // On gfx90a and later CDNA the metadata's vgpr_count holds the accumulation registers too; on gfx908 they are a second file.
  const std::uint64_t registers = limits.unified_registers ? needs.vgprs : std::max(needs.vgprs, needs.agprs);
  out.by_vgpr = registers < granule ? most : std::min(most, std::max<std::uint64_t>(1, total / round_up(registers, granule)));
  out.by_sgpr = waves_by_sgprs(limits.generation, needs.sgprs, most);

  const bool whole_processor = limits.generation >= 10 && needs.workgroup_processor;
  const std::uint64_t simds = limits.generation >= 10 && !needs.workgroup_processor ? 2 : 4;
  const std::uint64_t lds = limits.lds_per_workgroup * (whole_processor ? 2 : 1);
  const std::uint64_t group_waves = std::max<std::uint64_t>(1, divide_up(needs.workgroup, needs.wavefront));
  const std::uint64_t most_waves = most * simds;
  // A group of one wave needs no barrier; the others share the barriers of the unit.
  const std::uint64_t barriers = whole_processor ? 32 : 16;
  const std::uint64_t most_groups = group_waves == 1 ? most_waves : std::max<std::uint64_t>(1, std::min(most_waves / group_waves, barriers));
  std::uint64_t groups = most_groups;
  if (needs.lds_bytes != 0)
    groups = std::min(most_groups, std::max<std::uint64_t>(1, lds / std::max<std::uint64_t>(1, round_up(needs.lds_bytes, limits.lds_granule))));
  const std::uint64_t without_lds = std::min(most, divide_up(most_groups * group_waves, simds));
  out.by_lds = std::min(most, divide_up(groups * group_waves, simds));

  out.waves_per_simd = std::min({out.by_vgpr, out.by_sgpr, out.by_lds});
  if (out.waves_per_simd == most)
    out.limited_by = "hardware";
  else if (out.waves_per_simd == out.by_vgpr)
    out.limited_by = "vgpr";
  else if (out.waves_per_simd == out.by_sgpr)
    out.limited_by = "sgpr";
  else
    out.limited_by = out.by_lds == without_lds ? "workgroup" : "lds";
  return out;
}

}  // namespace ff::binary
