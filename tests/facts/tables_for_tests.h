#pragma once

#include "base/value.h"
#include "facts/tables.h"

namespace ff::facts {

/// A few rows of the knowledge tables in their own shape, so that reading is tested without the knowledge layer.
inline const Tables& test_tables() {
  static const Value pci = *parse_json(R"({"devices": {
    "744c": {"gfx": "gfx1100", "names_by_revision": {"C8": "AMD Radeon RX 7900 XTX", "CC": "AMD Radeon RX 7900 XT"}},
    "7550": {"gfx": "gfx1201", "names_by_revision": {"C0": "AMD Radeon RX 9070 XT", "C3": "AMD Radeon RX 9070"}},
    "73bf": {"gfx": "gfx1030", "names_by_revision": {"C0": "AMD Radeon RX 6900 XT", "C1": "AMD Radeon RX 6800 XT"}},
    "687f": {"gfx": "gfx900", "names_by_revision": {"C1": "AMD Radeon RX Vega", "C3": "AMD Radeon RX Vega"}},
    "6860": {"gfx": "gfx900", "names_by_revision": {}},
    "731f": {"gfx": "gfx1010", "names_by_revision": {"C1": "AMD Radeon RX 5700 XT"}},
    "7340": {"gfx": "gfx1012", "names_by_revision": {"C7": "AMD Radeon RX 5500"}},
    "747e": {"gfx": "gfx1101", "names_by_revision": {"C8": "AMD Radeon RX 7800 XT"}},
    "15bf": {"gfx": "gfx1103", "names_by_revision": {"C1": "AMD Radeon 780M Graphics"}},
    "163f": {"gfx": "gfx1033", "names_by_revision": {"AE": "AMD Custom GPU 0405"}},
    "164e": {"gfx": "gfx1036", "names_by_revision": {"C1": "AMD Radeon 610M"}},
    "1586": {"gfx": "gfx1151", "names_by_revision": {"C1": "AMD Radeon 8060S Graphics"}},
    "740f": {"gfx": "gfx90a", "names_by_revision": {"02": "AMD Instinct MI210"}},
    "74a1": {"gfx": "gfx942", "names_by_revision": {"00": "AMD Instinct MI300X"}}}})");
  static const Value targets = *parse_json(R"({"targets": [
    {"name": "gfx900", "type": "dGPU"}, {"name": "gfx90a", "type": "dGPU"}, {"name": "gfx942", "type": "dGPU"},
    {"name": "gfx1010", "type": "dGPU"}, {"name": "gfx1012", "type": "dGPU"}, {"name": "gfx1030", "type": "dGPU"},
    {"name": "gfx1033", "type": "APU"}, {"name": "gfx1036", "type": "APU"}, {"name": "gfx1100", "type": "dGPU"},
    {"name": "gfx1101", "type": "dGPU"}, {"name": "gfx1103", "type": "APU"}, {"name": "gfx1151", "type": "APU"},
    {"name": "gfx1201", "type": "dGPU"}]})");
  static const Value metrics = *parse_json(R"({"structs": {
    "xcp": {"size": 16, "fields": [
      {"name": "gfx_busy_inst", "type": "uint32", "offset": 0, "size": 8, "count": 2},
      {"name": "gfx_busy_acc", "type": "uint64", "offset": 8, "size": 8, "count": 1}]},
    "gpu_metrics_v1_3": {"size": 120, "fields": [
      {"name": "common_header", "type": "metrics_table_header", "offset": 0, "size": 4, "count": 1},
      {"name": "temperature_edge", "type": "uint16", "offset": 4, "size": 2, "count": 1},
      {"name": "temperature_hotspot", "type": "uint16", "offset": 6, "size": 2, "count": 1},
      {"name": "temperature_mem", "type": "uint16", "offset": 8, "size": 2, "count": 1},
      {"name": "average_gfx_activity", "type": "uint16", "offset": 16, "size": 2, "count": 1},
      {"name": "average_socket_power", "type": "uint16", "offset": 22, "size": 2, "count": 1},
      {"name": "pcie_link_width", "type": "uint16", "offset": 74, "size": 2, "count": 1},
      {"name": "padding", "type": "uint16", "offset": 78, "size": 2, "count": 1},
      {"name": "temperature_hbm", "type": "uint16", "offset": 88, "size": 8, "count": 4},
      {"name": "indep_throttle_status", "type": "uint64", "offset": 112, "size": 8, "count": 1}]},
    "gpu_metrics_v2_1": {"size": 120, "fields": [
      {"name": "temperature_gfx", "type": "uint16", "offset": 4, "size": 2, "count": 1}]},
    "gpu_metrics_v1_8": {"size": 40, "fields": [
      {"name": "xcp_stats", "type": "xcp", "offset": 8, "size": 32, "count": 2}]}},
    "v1_9": {"attr_ids": ["TEMPERATURE_HOTSPOT", "TEMPERATURE_MEM", "TEMPERATURE_VRSOC", "CURR_SOCKET_POWER"],
             "types": ["U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64"]}})");
  static const Tables tables{pci, targets, metrics};
  return tables;
}

}  // namespace ff::facts
