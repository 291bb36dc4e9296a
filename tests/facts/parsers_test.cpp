// The parsers one by one, on text as the tools print it.
#include <gtest/gtest.h>

#include <algorithm>

#include "facts/gpu_metrics.h"
#include "facts/identity.h"
#include "facts/kernel_log.h"
#include "facts/kfd.h"
#include "facts/lspci.h"
#include "facts/pci_config.h"
#include "facts/rocminfo.h"
#include "facts/smi.h"
#include "facts/subjects.h"
#include "support/host_file.h"
#include "tables_for_tests.h"

namespace ff::facts {
namespace {

Machine read_text(std::string_view host_file) {
  auto capture = test::parse_host(host_file, "inline");
  if (!capture) ADD_FAILURE() << capture.error().to_string();
  return read_machine(*capture, test_tables());
}

TEST(TargetVersion, PrintsMinorAndStepAsHexadecimalDigits) {
  EXPECT_EQ(gfx_of_target_version(90010), "gfx90a");
  EXPECT_EQ(gfx_of_target_version(90012), "gfx90c");
  EXPECT_EQ(gfx_of_target_version(90402), "gfx942");
  EXPECT_EQ(gfx_of_target_version(90500), "gfx950");
  EXPECT_EQ(gfx_of_target_version(110501), "gfx1151");
  EXPECT_EQ(gfx_of_target_version(120500), "gfx1250");
  EXPECT_EQ(gfx_of_target_version(0), "");
  EXPECT_EQ(gfx_of_target_version(91600), "") << "minor 16 is no hexadecimal digit";
  EXPECT_EQ(gfx_of_target_version(~std::uint64_t{0}), "");
}

TEST(PciAddress, IsReadWithAndWithoutDomain) {
  EXPECT_EQ(parse_pci("0000:03:00.0")->to_string(), "0000:03:00.0");
  EXPECT_EQ(parse_pci("c6:1f.7")->to_string(), "0000:c6:1f.7");
  EXPECT_EQ(parse_pci("10000:e1:00.0")->to_string(), "10000:e1:00.0");
  for (const char* bad : {"", "03:00", "0000:03:00.8", "0000:03:20.0", "000:03:00.0", "xx:00.0", "0000:03:00.00", "+3:00.0"})
    EXPECT_FALSE(parse_pci(bad)) << bad;
}

TEST(Lspci, ReadsTheVerboseForm) {
  // Lines of lspci -D -nn -vvv -k for a GPU behind its card's switch; the ids and states are plausible.
  const capture::Capture none;
  const Evidence evidence(none);
  const auto devices = parse_lspci(evidence, "lspci.txt",
                                   R"(0000:00:01.1 PCI bridge [0604]: Advanced Micro Devices, Inc. [AMD] Raphael/Granite Ridge GPP Bridge [1022:14db]
	Bus: primary=00, secondary=01, subordinate=03, sec-latency=0
	Capabilities: [58] Express (v2) Root Port (Slot+), IntMsgNum 0
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <64us
		LnkSta:	Speed 16GT/s, Width x8 (downgraded)
	Capabilities: [2a0 v1] Access Control Services
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
0000:03:00.0 VGA compatible controller [0300]: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M] [1002:744c] (rev c8) (prog-if 00 [VGA controller])
	Physical Slot: 7
	NUMA node: 0
	IOMMU group: 15
	Region 0: Memory at f000000000 (64-bit, prefetchable) [size=32G]
	Region 2: Memory at <unassigned> (64-bit, prefetchable) [size=256M]
	Region 4: I/O ports at e000 [size=256]
		LnkCap:	Port #0, Speed 16GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 16GT/s, Width x16
			 AtomicOpsCtl: ReqEn+
	Kernel driver in use: amdgpu
)");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].device_class, 0x060400U);
  EXPECT_EQ(devices[0].secondary_bus, 1U);
  EXPECT_EQ(devices[0].width.value, 8);
  EXPECT_EQ(devices[0].max_speed_gts.value, 32.0);
  EXPECT_EQ(devices[0].acs_redirect.value, true);
  EXPECT_EQ(devices[1].vendor_id, 0x1002U);
  EXPECT_EQ(devices[1].device_id, 0x744cU);
  EXPECT_EQ(devices[1].revision, 0xc8U);
  EXPECT_EQ(devices[1].slot.value, "7");
  EXPECT_EQ(devices[1].atomics_requested.value, true);
  EXPECT_EQ(devices[1].driver.value, "amdgpu");
  EXPECT_EQ(devices[1].driver.origin.line, 18U);
  ASSERT_EQ(devices[1].bars.size(), 3U);
  EXPECT_EQ(devices[1].bars[0].size_bytes, std::uint64_t{32} << 30);
  EXPECT_FALSE(devices[1].bars[1].assigned);
}

TEST(Lspci, ShortFormStillNamesTheGpu) {
  const Machine m = read_text(R"(== kind loose
== cmd lspci
00:02.0 VGA compatible controller: Intel Corporation Raptor Lake-S GT1 [UHD Graphics 770] (rev 04)
03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 21 [Radeon RX 6800/6800 XT / 6900 XT] (rev c1)
03:00.1 Audio device: Advanced Micro Devices, Inc. [AMD/ATI] Navi 21/23 HDMI/DP Audio Controller
)");
  ASSERT_EQ(m.gpus.size(), 1U);
  EXPECT_EQ(m.gpus[0].pci.value, "0000:03:00.0");
  EXPECT_FALSE(m.gpus[0].gfx) << "several chips share such a name";
  EXPECT_FALSE(m.gpus[0].driver) << "-k was not given";
  EXPECT_FALSE(m.pci_listed) << "an excerpt of a listing";
}

TEST(Lspci, ChainOfBridgesComesFromTheBusNumbers) {
  const Machine m = read_text(R"(== kind loose
== cmd lspci-vvv
00:00.0 Host bridge [0600]: Advanced Micro Devices, Inc. [AMD] Root Complex [1022:14d8]
00:01.1 PCI bridge [0604]: Advanced Micro Devices, Inc. [AMD] GPP Bridge [1022:14db]
	Bus: primary=00, secondary=01, subordinate=03, sec-latency=0
		LnkCap:	Port #0, Speed 32GT/s, Width x16
01:00.0 PCI bridge [0604]: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Upstream Port [1002:1478] (rev 10)
	Bus: primary=01, secondary=02, subordinate=03, sec-latency=0
		LnkCap:	Port #0, Speed 16GT/s, Width x16
		LnkSta:	Speed 2.5GT/s (downgraded), Width x4 (downgraded)
02:00.0 PCI bridge [0604]: Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Downstream Port [1002:1479] (rev 10)
	Bus: primary=02, secondary=03, subordinate=03, sec-latency=0
03:00.0 VGA compatible controller [0300]: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [1002:744c] (rev c8)
		LnkCap:	Port #0, Speed 16GT/s, Width x16
		LnkSta:	Speed 16GT/s, Width x16
)");
  ASSERT_EQ(m.gpus.size(), 1U);
  EXPECT_EQ(m.gpus[0].link.judged_at, "0000:01:00.0");
  EXPECT_EQ(m.gpus[0].link.width.value, 4);
  EXPECT_EQ(m.gpus[0].link.speed_gts.value, 2.5);
  EXPECT_EQ(m.gpus[0].link.slot_max_speed_gts.value, 32.0);
  EXPECT_EQ(m.gpus[0].driver.value, "") << "-vvv names a driver when one is bound";
  EXPECT_EQ(m.pci_listed.value, true);
}

TEST(PciConfig, ReadsCapabilitiesOnlyWhereTheyAre) {
  std::string bytes(512, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, int width) {
    for (int i = 0; i < width; ++i) bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  put(0x06, 0x0010, 2);
  put(0x34, 0x48, 1);
  put(0x48, 0x09, 1);  // vendor specific, then PCI Express at 0x64
  put(0x49, 0x64, 1);
  put(0x64, 0x10, 1);
  put(0x64 + 0x0c, 4 | 16 << 4, 4);
  put(0x64 + 0x12, 3 | 8 << 4, 2);
  put(0x64 + 0x24, 1 << 7 | 1 << 8, 4);
  put(0x64 + 0x28, 1 << 6, 2);
  put(0x100, 0x0001 | 1 << 16 | 0x150 << 20, 4);
  put(0x150, 0x000d | 1 << 16, 4);
  put(0x156, 1 << 2, 2);
  const PciConfig c = decode_pci_config(bytes);
  EXPECT_EQ(c.max_speed_code, 4);
  EXPECT_EQ(c.max_width, 16);
  EXPECT_EQ(c.speed_code, 3);
  EXPECT_EQ(c.width, 8);
  EXPECT_EQ(c.atomic_requester_enabled, true);
  EXPECT_EQ(c.atomic_routing, false);
  EXPECT_EQ(c.atomic_64_completer, true);
  EXPECT_EQ(c.acs_request_redirect, true);
  EXPECT_EQ(c.acs_completion_redirect, false);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const PciConfig cut = decode_pci_config(std::string_view(bytes).substr(0, size));
    if (size < 0x64) {
      EXPECT_FALSE(cut.width) << size;
    }
    if (size < 0x158) {
      EXPECT_FALSE(cut.acs_request_redirect) << size;
    }
  }
  std::string padded = bytes.substr(0, 64) + std::string(4032, '\0');
  EXPECT_FALSE(decode_pci_config(padded).atomic_requester_enabled) << "what an ordinary user reads, padded to a page";
  bytes[0x65] = 0x64;  // a capability that names itself as the next
  bytes[0x64] = 0x09;
  EXPECT_FALSE(decode_pci_config(bytes).width);
}

std::string le(std::uint64_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

TEST(GpuMetrics, RecordsOfVersion19CarryTheirOwnLayout) {
  const auto encoding = [](std::uint64_t unit, std::uint64_t type, std::uint64_t id, std::uint64_t n) {
    return unit << 24 | type << 20 | id << 10 | n;
  };
  std::string bytes = le(0, 2) + le(1, 1) + le(9, 1) + le(4, 4);
  bytes += le(encoding(2, 2, 0, 1), 8) + le(44, 2);                  // U16 TEMPERATURE_HOTSPOT
  bytes += le(encoding(2, 2, 1, 2), 8) + le(0xffff, 2) + le(39, 2);  // U16[2], the first not available
  bytes += le(encoding(3, 4, 3, 1), 8) + le(0xffffffff, 4);          // U32 CURR_SOCKET_POWER, not available
  bytes += le(encoding(0, 1, 900, 1), 8) + le(0x80, 1);              // an attribute that the table does not know
  const auto m = decode_gpu_metrics(bytes, test_tables().gpu_metrics);
  ASSERT_TRUE(m) << m.error().to_string();
  EXPECT_EQ(m->values["temperature_hotspot"].as_int(), 44);
  ASSERT_EQ(m->values["temperature_mem"].items().size(), 2U);
  EXPECT_TRUE(m->values["temperature_mem"].items()[0].is_null());
  EXPECT_EQ(m->values["temperature_mem"].items()[1].as_int(), 39);
  EXPECT_EQ(m->values.members().size(), 2U);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_gpu_metrics(std::string_view(bytes).substr(0, size), test_tables().gpu_metrics)) << size;
}

TEST(GpuMetrics, HoldsStructuresAndStopsAtTheirEnd) {
  std::string bytes = le(40, 2) + le(1, 1) + le(8, 1) + le(0, 4);
  bytes += le(7, 4) + le(0xffffffff, 4) + le(123, 8) + le(9, 4) + le(10, 4) + le(~std::uint64_t{0}, 8);
  const auto m = decode_gpu_metrics(bytes, test_tables().gpu_metrics);
  ASSERT_TRUE(m);
  ASSERT_EQ(m->values["xcp_stats"].items().size(), 2U);
  EXPECT_EQ(m->values["xcp_stats"].items()[0]["gfx_busy_acc"].as_int(), 123);
  EXPECT_EQ(m->values["xcp_stats"].items()[1].find("gfx_busy_acc"), nullptr);
  EXPECT_FALSE(decode_gpu_metrics(le(4, 2) + le(7, 1) + le(7, 1), test_tables().gpu_metrics)) << "no such revision";
  EXPECT_FALSE(decode_gpu_metrics("", test_tables().gpu_metrics));
}

TEST(GpuMetrics, ThrottleBitsHaveNames) {
  EXPECT_EQ(throttle_reasons(1ULL | 1ULL << 36 | 1ULL << 57), (std::vector<std::string>{"PPT0", "TEMP_HOTSPOT", "FIT"}));
  EXPECT_TRUE(throttle_reasons(0).empty());
}

constexpr std::string_view rocminfo_text = R"(ROCk module version 6.12.12 is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.15
XNACK enabled:           NO
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD Ryzen 9 7950X 16-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD Ryzen 9 7950X 16-Core Processor
  Device Type:             CPU
  Node:                    0
  Compute Unit:            32
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    65778424(0x3ebaff8) KB
  ISA Info:
*******
Agent 2
*******
  Name:                    gfx1100
  Uuid:                    GPU-4af2e1c89d03b771
  Marketing Name:          Radeon RX 7900 XTX
  Vendor Name:             AMD
  Node:                    1
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
    L2:                      6144(0x1800) KB
  Chip ID:                 29772(0x744c)
  ASIC Revision:           0(0x0)
  Cacheline Size:          64(0x40)
  BDFID:                   768
  Internal Node ID:        1
  Compute Unit:            96
  SIMDs per CU:            2
  Wavefront Size:          32(0x20)
  Packet Processor uCode:: 562
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    25149440(0x17fc000) KB
    Pool 2
      Segment:                 GLOBAL; FLAGS: EXTENDED FINE GRAINED
      Size:                    25149440(0x17fc000) KB
    Pool 3
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx1100
      Workgroup Max Size:      1024(0x400)
    ISA 2
      Name:                    amdgcn-amd-amdhsa--gfx11-generic
*** Done ***
)";

TEST(RocminfoText, AloneGivesTheGpu) {
  const Machine m = read_text("== kind loose\n== cmd rocminfo\n" + std::string(rocminfo_text));
  ASSERT_EQ(m.gpus.size(), 1U);
  const Gpu& g = m.gpus[0];
  EXPECT_EQ(g.gfx.value, "gfx1100");
  EXPECT_EQ(g.gfx.origin.source, "cmd/rocminfo/stdout");
  EXPECT_EQ(g.gfx.origin.line, 27U);
  EXPECT_EQ(g.pci.value, "0000:03:00.0");
  EXPECT_EQ(g.kfd_node.value, 1);
  EXPECT_EQ(g.compute_units.value, 96);
  EXPECT_EQ(g.wavefront.value, 32);
  EXPECT_EQ(g.lds_kib.value, 64);
  EXPECT_EQ(g.vram_total_bytes.value, 25149440ULL * 1024);
  EXPECT_EQ(g.unique_id.value, "4af2e1c89d03b771");
  EXPECT_EQ(g.product.value, "Radeon RX 7900 XTX");
  EXPECT_EQ(g.integrated.value, false);
  EXPECT_FALSE(g.features) << "this target has none";
  EXPECT_FALSE(g.driver);
  EXPECT_EQ(m.driver.amdgpu_loaded.value, true);
  EXPECT_EQ(m.driver.amdgpu_version.value, "6.12.12");
}

TEST(RocminfoText, AddsToWhatTheTopologySays) {
  auto capture = test::host("rx7900xtx", "== cmd rocminfo\n" + replace_all(std::string(rocminfo_text), "gfx1100", "gfx1030"));
  const Machine m = read_machine(capture, test_tables());
  ASSERT_EQ(m.gpus.size(), 1U);
  EXPECT_EQ(m.gpus[0].gfx.value, "gfx1100") << "an override changes rocminfo, not the hardware";
}

TEST(RocminfoText, FeaturesAndAMissingModuleAreRead) {
  const capture::Capture none;
  const Evidence evidence(none);
  const auto mi = parse_rocminfo(
      evidence, "r", "Agent 2\n  Name: gfx90a\n  Device Type: GPU\n  ISA Info:\n    ISA 1\n      Name: amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-\n");
  ASSERT_EQ(mi.gpus.size(), 1U);
  EXPECT_EQ(mi.gpus[0].features.value, "sramecc+:xnack-");
  const auto missing = parse_rocminfo(evidence, "r", "ROCk module is NOT loaded, possibly no GPU devices\n");
  EXPECT_EQ(missing.module_loaded.value, false);
}

TEST(Smi, AmdSmiJsonOfOldAndNewReleases) {
  const char* old_form = R"([{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002", "device_id": "0x74a1", "rev_id": "0x00",
    "asic_serial": "0x8A31C4E900000000", "num_compute_units": 304, "target_graphics_version": "gfx942"},
    "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16, "max_pcie_speed": {"value": 32, "unit": "GT/s"}},
    "vram": {"size": {"value": 196592, "unit": "MB"}}, "partition": {"compute_partition": "SPX", "memory_partition": "NPS1"},
    "driver": {"name": "amdgpu", "version": "6.8.5"}}])";
  const Machine a = read_text("== kind loose\n== cmd amd-smi-static-json\n" + std::string(old_form));
  ASSERT_EQ(a.gpus.size(), 1U);
  EXPECT_EQ(a.gpus[0].smi_id.value, 0);
  EXPECT_EQ(a.gpus[0].pci.value, "0000:05:00.0");
  EXPECT_EQ(a.gpus[0].gfx.value, "gfx942");
  EXPECT_EQ(a.gpus[0].compute_units.value, 304);
  EXPECT_EQ(a.gpus[0].vram_total_bytes.value, 196592ULL * 1024 * 1024);
  EXPECT_EQ(a.gpus[0].link.max_speed_gts.value, 32.0);
  EXPECT_EQ(a.gpus[0].unique_id.value, "8a31c4e900000000");
  EXPECT_EQ(a.driver.amdgpu_version.value, "6.8.5");
  const Machine b = read_text(R"(== kind loose
== cmd amd-smi-metric-json
{"gpu_data": [{"gpu": 1, "usage": {"gfx_activity": {"value": 87, "unit": "%"}}, "power": {"socket_power": {"value": 601, "unit": "W"}},
 "temperature": {"edge": "N/A", "hotspot": {"value": 81, "unit": "C"}, "mem": {"value": 66, "unit": "C"}},
 "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}}, "ecc_blocks": {"UMC": {"correctable_count": 2, "uncorrectable_count": 1, "deferred_count": 0}},
 "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 1024, "unit": "MB"}}}]}
)");
  ASSERT_EQ(b.gpus.size(), 1U);
  EXPECT_EQ(b.gpus[0].busy_percent.value, 87);
  EXPECT_EQ(b.gpus[0].power_w.value, 601.0);
  EXPECT_FALSE(b.gpus[0].temperature_c.contains("edge"));
  EXPECT_EQ(b.gpus[0].temperature_c.at("junction").value, 81.0);
  EXPECT_EQ(b.gpus[0].vram_used_bytes.value, 1024ULL << 20);
  ASSERT_EQ(b.gpus[0].ras.size(), 1U);
  EXPECT_EQ(b.gpus[0].ras[0].block, "umc");
  EXPECT_EQ(b.gpus[0].ras[0].uncorrectable, 1U);
}

// Lines of `amd-smi metric --json` of two real boards (one whose driver counts by block, one that knows the sums only); the counts of
// the second are made up.
TEST(Smi, AmdSmiSumsErrorsWhereItKnowsNoBlocks) {
  const Machine m = read_text(R"(== kind loose
== cmd amd-smi-metric-json
{"gpu_data": [{"gpu": 0, "ecc": {"total_correctable_count": 0, "total_uncorrectable_count": 0, "total_deferred_count": 0, "cache_correctable_count": 0,
 "cache_uncorrectable_count": 0}, "ecc_blocks": {"UMC": {"correctable_count": 0, "uncorrectable_count": 0, "deferred_count": 0}},
 "overdrive": "N/A", "perf_level": "AMDSMI_DEV_PERF_LEVEL_AUTO", "xgmi_err": "N/A"},
 {"gpu": 1, "ecc": {"total_correctable_count": 12, "total_uncorrectable_count": 3, "total_deferred_count": 1, "cache_correctable_count": "N/A",
 "cache_uncorrectable_count": "N/A"}, "ecc_blocks": "N/A", "overdrive": "N/A", "perf_level": "AMDSMI_DEV_PERF_LEVEL_STABLE_MIN_SCLK"}]}
)");
  ASSERT_EQ(m.gpus.size(), 2U);
  ASSERT_EQ(m.gpus[0].ras.size(), 1U);
  EXPECT_EQ(m.gpus[0].ras[0].block, "umc");
  EXPECT_EQ(m.gpus[0].performance_level.value, "auto");
  ASSERT_EQ(m.gpus[1].ras.size(), 1U);
  EXPECT_EQ(m.gpus[1].ras[0].block, "all blocks");
  EXPECT_EQ(m.gpus[1].ras[0].correctable, 12U);
  EXPECT_EQ(m.gpus[1].ras[0].uncorrectable, 3U);
  EXPECT_EQ(m.gpus[1].ras[0].deferred, 1U);
  EXPECT_EQ(m.gpus[1].performance_level.value, "profile_min_sclk");
}

TEST(Smi, AmdSmiTextIsTheSameAsItsJson) {
  const Machine m = read_text(R"(== kind loose
== cmd amd-smi
GPU: 0
    ASIC:
        MARKET_NAME: AMD Instinct MI300X
        VENDOR_ID: 0x1002
        DEVICE_ID: 0x74a1
        TARGET_GRAPHICS_VERSION: gfx942
    BUS:
        BDF: 0000:05:00.0
        MAX_PCIE_SPEED: 32 GT/s
    VRAM:
        SIZE: 196592 MB

GPU: 1
    BUS:
        BDF: 0000:26:00.0
)");
  ASSERT_EQ(m.gpus.size(), 2U);
  EXPECT_EQ(m.gpus[0].product.value, "AMD Instinct MI300X");
  EXPECT_EQ(m.gpus[0].link.max_speed_gts.value, 32.0);
  EXPECT_EQ(m.gpus[0].vram_total_bytes.value, 196592ULL * 1024 * 1024);
  EXPECT_EQ(m.gpus[1].smi_id.value, 1);
  EXPECT_EQ(m.gpus[1].pci.value, "0000:26:00.0");
}

TEST(Smi, RocmSmiJsonAndTextAgree) {
  const Machine json = read_text(R"json(== kind loose
== cmd rocm-smi-json
{"card0": {"Device ID": "0x744c", "Device Rev": "0xc8", "Unique ID": "0x4af2e1c89d03b771", "PCI Bus": "0000:03:00.0", "Card Series": "AMD Radeon RX 7900 XTX",
 "GFX Version": "gfx1100", "Temperature (Sensor edge) (C)": "53.0", "Temperature (Sensor junction) (C)": "61.0", "Average Graphics Package Power (W)": "68.0",
 "sclk clock speed:": "(31Mhz)", "GPU use (%)": "3", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "1280217088", "MEC firmware version": "562"},
 "system": {"Driver version": "6.12.12"}}
)json");
  const Machine text = read_text(
      "== kind loose\n== cmd rocm-smi\n============ ROCm System Management Interface ============\n"
      "GPU[0]\t\t: Device ID: 0x744c\nGPU[0]\t\t: Device Rev: 0xc8\nGPU[0]\t\t: Unique ID: 0x4af2e1c89d03b771\nGPU[0]\t\t: PCI Bus: 0000:03:00.0\n"
      "GPU[0]\t\t: Temperature (Sensor edge) (C): 53.0\nGPU[0]\t\t: GPU use (%): 3\nGPU[0]\t\t: GFX Version: gfx1100\n");
  for (const Machine* m : {&json, &text}) {
    ASSERT_EQ(m->gpus.size(), 1U);
    EXPECT_EQ(m->gpus[0].gfx.value, "gfx1100");
    EXPECT_EQ(m->gpus[0].pci.value, "0000:03:00.0");
    EXPECT_EQ(m->gpus[0].unique_id.value, "4af2e1c89d03b771");
    EXPECT_EQ(m->gpus[0].temperature_c.at("edge").value, 53.0);
    EXPECT_EQ(m->gpus[0].busy_percent.value, 3);
    EXPECT_EQ(m->gpus[0].product.value, "AMD Radeon RX 7900 XTX");
  }
  EXPECT_EQ(json.gpus[0].sclk_mhz.value, 31);
  EXPECT_EQ(json.gpus[0].power_w.value, 68.0);
  EXPECT_EQ(json.gpus[0].firmware.at("mec").value, "562");
  EXPECT_EQ(json.driver.amdgpu_version.value, "6.12.12");
}

TEST(Smi, RecordThatDoesNotSayWhichGpuItMeansMakesNoNewOne) {
  const std::string metric = "== cmd amd-smi-metric-json\n[{\"gpu\": 0, \"usage\": {\"gfx_activity\": {\"value\": 5, \"unit\": \"%\"}}}]\n";
  EXPECT_EQ(read_machine(test::host("mi300x", metric), test_tables()).gpus.size(), 8U);
  const Machine one = read_machine(test::host("strix-halo", metric), test_tables());
  ASSERT_EQ(one.gpus.size(), 1U);
  EXPECT_EQ(one.gpus[0].smi_id.value, 0);
}

TEST(KernelLog, EveryFormGivesTimeLevelDeviceAndMessage) {
  struct Case {
    const char* line;
    std::optional<double> seconds, wall;
    int level;
    const char* pci;
    const char* message;
  };
  const char* fault = "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!";
  const char* gpu = "0000:03:00.0";
  constexpr double noon = 1796052068;  // 2026-11-30 15:21:08 UTC
  const Case cases[] = {
      {"[   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, -1, gpu, fault},
      {"<3>[   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, 3, gpu, fault},
      {"[   12.345678][  T123] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, -1, gpu, fault},
      {"[Mon Nov 30 15:21:08 2026] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, noon, -1, gpu, fault},
      {"2026-11-30T15:21:08,500000+00:00 amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, noon + 0.5, -1, gpu, fault},
      {"kern  :err   : [   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, 3, gpu, fault},
      {"Nov 30 15:21:08 node7 kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, {}, -1, gpu, fault},
      {"Nov 30 15:21:08 node7 kernel: [   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, -1, gpu, fault},
      {"Nov 30 15:21:08.123456 node7 kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, {}, -1, gpu, fault},
      {"2026-11-30T16:21:08+0100 node7 kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, noon, -1, gpu, fault},
      {"2026-11-30T15:21:08.250000+00:00 node7 kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, noon + 0.25, -1, gpu, fault},
      {"[   12.345678] node7 kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, -1, gpu, fault},
      {"3,1234,12345678,-;amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, 3, gpu, fault},
      {"2026-11-30T15:21:08.000000000Z [   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, noon, -1, gpu, fault},
      {"2026-11-30T15:21:08.000000000Z stdout F [   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, noon, -1, gpu, fault},
      {"gpu-node-1  | [   12.345678] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", 12.345678, {}, -1, gpu, fault},
      {"[  +0.000012] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, {}, -1, gpu, fault},
      {"[Nov30 15:21] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, {}, -1, gpu, fault},
      {"amdgpu 0000:03:00.0: amdgpu: GPU reset begin!", {}, {}, -1, gpu, fault},
      {"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout",
       {},
       {},
       -1,
       "",
       "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout"},
      {"[  100.000001] [drm] amdgpu kernel modesetting enabled.", 100.000001, {}, -1, "", "[drm] amdgpu kernel modesetting enabled."},
      {"2026-11-30T15:21:08,000000+00:00 usb 1-2: new high-speed USB device", {}, noon, -1, "", "usb 1-2: new high-speed USB device"},
  };
  for (const Case& c : cases) {
    const auto records = split_kernel_log("dmesg.txt", c.line);
    ASSERT_EQ(records.size(), 1U) << c.line;
    const KernelRecord& r = records[0];
    EXPECT_EQ(r.seconds.has_value(), c.seconds.has_value()) << c.line;
    if (r.seconds && c.seconds) {
      EXPECT_NEAR(*r.seconds, *c.seconds, 1e-6) << c.line;
    }
    EXPECT_EQ(r.wall_clock.has_value(), c.wall.has_value()) << c.line;
    if (r.wall_clock && c.wall) {
      EXPECT_NEAR(*r.wall_clock, *c.wall, 1e-5) << c.line;
    }
    EXPECT_EQ(r.level, c.level) << c.line;
    EXPECT_EQ(r.pci, c.pci) << c.line;
    EXPECT_EQ(r.text, c.line);
    EXPECT_EQ(kernel_message(c.line), c.message) << c.line;
  }
}

TEST(KernelLog, JournalJsonAndKmsgContinuations) {
  const auto json = split_kernel_log(
      "j",
      R"({"__REALTIME_TIMESTAMP":"1796052068000000","PRIORITY":"3","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"amdgpu 0000:03:00.0: amdgpu: ring sdma0 timeout"})");
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].level, 3);
  EXPECT_EQ(json[0].wall_clock, 1796052068.0);
  EXPECT_EQ(json[0].pci, "0000:03:00.0");
  EXPECT_EQ(json[0].text, "amdgpu 0000:03:00.0: amdgpu: ring sdma0 timeout");
  const auto kmsg = split_kernel_log("k", "6,1,100,-;PCI Interrupt Link\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n6,2,200,-;next\n");
  ASSERT_EQ(kmsg.size(), 2U);
  EXPECT_EQ(kmsg[0].pci, "0000:03:00.0");
  EXPECT_EQ(kmsg[1].line, 4U);
}

TEST(KernelLog, PreviousBootComesFirstAndNothingComesTwice) {
  const Machine m = read_text(
      "== kind live\n== cmd dmesg\n<6>[ 1.0] one\n<6>[ 2.0] two\n== cmd journalctl-k\n2026-11-30T15:21:08.000000+0000 h kernel: one\n"
      "== cmd journalctl-k-previous\n2026-11-29T15:21:08.000000+0000 h kernel: before\n");
  ASSERT_EQ(m.kernel_log.size(), 3U);
  EXPECT_EQ(kernel_message(m.kernel_log[0].text), "before");
  EXPECT_EQ(m.kernel_log[1].source, "cmd/dmesg/stdout");
}

TEST(PipList, EveryFormIsRead) {
  const capture::Capture none;
  const Evidence evidence(none);
  const auto version = [&](std::string_view text, std::string_view name) -> std::string {
    for (const auto& package : parse_pip_list(evidence, "pip.txt", text))
      if (package.name == name) return package.version;
    return "none";
  };
  EXPECT_EQ(
      version("Package    Version      Editable project location\n---------- ------------\ntorch      2.9.0+rocm6.4\nlerobot 0.4.0 /src/lerobot\n",
              "torch"),
      "2.9.0+rocm6.4");
  EXPECT_EQ(version("Package    Version\n---------- -------\nlerobot 0.4.0 /src/lerobot\n", "lerobot"), "0.4.0");
  EXPECT_EQ(version("# comment\nPyTorch_Triton.ROCm==3.5.0\n", "pytorch-triton-rocm"), "3.5.0");
  EXPECT_EQ(version("torch @ https://download.pytorch.org/whl/rocm6.4/torch-2.9.0%2Brocm6.4-cp312-cp312-manylinux_2_28_x86_64.whl\n", "torch"),
            "2.9.0+rocm6.4");
  EXPECT_EQ(version(R"([{"name": "torch", "version": "2.9.0"}])", "torch"), "2.9.0");
  EXPECT_EQ(version("WARNING: You are using pip version 22.0.2\nERROR: 3 things\n", "warning:"), "none");
  EXPECT_TRUE(parse_pip_list(evidence, "x", "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n").empty());
}

TEST(PipList, TorchBuildIsReadFromItsVersion) {
  const auto build = [](const char* version) {
    PythonEnv env;
    env.packages.push_back({"torch", version, {}});
    read_torch_local_version(env);
    return std::pair(env.torch_hip.value.value_or("unknown"), env.torch_cuda.value.value_or("unknown"));
  };
  EXPECT_EQ(build("2.9.0+rocm6.4"), std::pair(std::string("6.4"), std::string()));
  EXPECT_EQ(build("2.9.0+rocm7.0.2.lw.git1234"), std::pair(std::string("7.0.2"), std::string()));
  EXPECT_EQ(build("2.8.0+cu128"), std::pair(std::string(), std::string("12.8")));
  EXPECT_EQ(build("2.8.0+cpu"), std::pair(std::string(), std::string()));
  EXPECT_EQ(build("2.8.0"), std::pair(std::string("unknown"), std::string("unknown"))) << "PyPI's own wheel says nothing in its name";
}

TEST(Packages, EveryListIsRead) {
  const Machine m = read_text(
      "== kind loose\n== cmd dpkg-l\nDesired=Unknown/Install\nii  rocm-core:amd64  6.4.1.60401-83~24.04  amd64  ROCm\nrc  rocm-smi  1  amd64  "
      "removed\n"
      "== cmd rpm-qa\nhip-runtime-amd-6.4.43483.60401-83.el9.x86_64\n== cmd rpm\nrocminfo\t1.0.0-83\n");
  EXPECT_EQ(m.packages.at("rocm-core").value, "6.4.1.60401-83~24.04");
  EXPECT_FALSE(m.packages.contains("rocm-smi")) << "removed, its configuration is left";
  EXPECT_EQ(m.packages.at("hip-runtime-amd").value, "6.4.43483.60401-83.el9");
  EXPECT_EQ(m.packages.at("rocminfo").value, "1.0.0-83");
  ASSERT_EQ(m.rocm.size(), 1U);
  EXPECT_EQ(m.rocm[0].version.value, "6.4.1");
}

TEST(Releases, CompareNumberByNumber) {
  EXPECT_LT(compare_releases("6.8.0-60-generic", "6.8.0-100-generic"), 0);
  EXPECT_GT(compare_releases("6.14.0-24-generic", "6.8.0-100-generic"), 0);
  EXPECT_EQ(compare_releases("6.8.0-60-generic", "6.8.0-60-generic"), 0);
}

TEST(Origins, NameTheHandedOverFile) {
  const Machine m =
      read_text("== kind loose\n== probe sources\n{\"cmd/rocminfo/stdout\": {\"name\": \"report.txt\", \"line\": 101}}\n== cmd rocminfo\n" +
                std::string(rocminfo_text));
  EXPECT_EQ(m.gpus.at(0).gfx.origin.source, "report.txt");
  EXPECT_EQ(m.gpus[0].gfx.origin.line, 127U);
}

}  // namespace
}  // namespace ff::facts
