#!/usr/bin/env python3
"""Writes mi210-xgmi.host (from a real KFD tree), mi300x.host and mi300x-cpx.host (built after the kernel's formats).

    make_instinct.py [SAMPLES]      SAMPLES: directory that holds kfd/mi210-xgmi-pcie; without it that file is left alone
"""
import pathlib
import sys

here = pathlib.Path(__file__).parent
KFD = "/sys/class/kfd/kfd/topology/nodes"
KEPT = {"cpu_cores_count", "simd_count", "simd_per_cu", "lds_size_in_kb", "wave_front_size", "gfx_target_version", "vendor_id", "device_id",
        "location_id", "domain", "drm_render_minor", "hive_id", "fw_version", "capability", "sdma_fw_version", "unique_id", "num_xcc"}
KEPT_LINK = {"type", "node_from", "node_to", "weight", "max_bandwidth", "flags"}


def section(path, lines):
    return f"== file {path}\n" + "\n".join(lines) + "\n"


def natural(path):
    return int(path.name)


def mi210(samples):
    out = ["""Eight MI210 on a board with two sockets, two XGMI hives of four. The KFD topology is a real one
(github.com/ROCm/k8s-device-plugin, testdata/topology-mi210-xgmi-pcie, commit ed7646843003e8f0b6a0630346f01bb4d1ecff2e),
cut by make_instinct.py to the lines that are read; nothing else of that machine is known.
== kind bundle
"""]
    for node in sorted((samples / "kfd/mi210-xgmi-pcie/nodes").iterdir(), key=natural):
        lines = [l for l in (node / "properties").read_text().splitlines() if l.split()[0] in KEPT]
        out.append(section(f"{KFD}/{node.name}/properties", lines))
        for link in sorted((node / "io_links").iterdir(), key=natural):
            lines = [l for l in (link / "properties").read_text().splitlines() if l.split()[0] in KEPT_LINK]
            out.append(section(f"{KFD}/{node.name}/io_links/{link.name}/properties", lines))
    (here / "mi210-xgmi.host").write_text("".join(out))


BUSES = [0x05, 0x26, 0x46, 0x65, 0x85, 0xa6, 0xc6, 0xe5]
HIVE = 0x6fa1c3b2d4e59807
VRAM = 206141652992


def gpu_pci(i, bus, driver_partition):
    address = f"0000:{bus:02x}:00.0"
    root = f"0000:{bus - 4:02x}:01.1"
    up, down = f"0000:{bus - 2:02x}:00.0", f"0000:{bus - 1:02x}:00.0"
    chain = f"../../../devices/pci0000:{bus - 4:02x}/{root}/{up}/{down}"
    d = f"/sys/bus/pci/devices/{address}"
    card = f"/sys/class/drm/card{i}/device"
    text = f"""== links /sys/bus/pci/devices
{root} -> ../../../devices/pci0000:{bus - 4:02x}/{root}
{up} -> ../../../devices/pci0000:{bus - 4:02x}/{root}/{up}
{down} -> {chain}
{address} -> {chain}/{address}
== values /sys/bus/pci/devices
{root}/vendor: 0x1022
{root}/device: 0x14ab
{root}/class: 0x060400
{root}/max_link_speed: 32.0 GT/s PCIe
{root}/max_link_width: 16
{up}/vendor: 0x1000
{up}/device: 0xc030
{up}/class: 0x060400
{up}/max_link_speed: 32.0 GT/s PCIe
{up}/max_link_width: 16
{down}/vendor: 0x1000
{down}/device: 0xc030
{down}/class: 0x060400
{down}/current_link_speed: 32.0 GT/s PCIe
{down}/current_link_width: 16
{down}/max_link_speed: 32.0 GT/s PCIe
{down}/max_link_width: 16
== values {d}
vendor: 0x1002
device: 0x74a1
class: 0x120000
revision: 0x00
numa_node: {0 if i < 4 else 1}
current_link_speed: 32.0 GT/s PCIe
current_link_width: 16
max_link_speed: 32.0 GT/s PCIe
max_link_width: 16
reset_method: bus
power/runtime_status: active
== links {d}
driver -> ../../../../../../bus/pci/drivers/amdgpu
iommu_group -> ../../../../../../kernel/iommu_groups/{30 + i}
== value /sys/kernel/iommu_groups/{30 + i}/type identity
== file {d}/resource
0x{0x20000000000 + i * 0x10000000000:016x} 0x{0x20000000000 + i * 0x10000000000 + (256 << 30) - 1:016x} 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x{0x2c000000000 + i * 0x10000000000:016x} 0x{0x2c000000000 + i * 0x10000000000 + (2 << 20) - 1:016x} 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
== value /sys/bus/pci/slots/OAM{i}/address 0000:{bus:02x}:00
== link /sys/class/drm/card{i} -> ../../devices/pci0000:{bus - 4:02x}/{root}/{up}/{down}/{address}/drm/card{i}
== values {card}
mem_info_vram_total: {VRAM}
mem_info_vram_used: 297795584
mem_info_vis_vram_total: {VRAM}
mem_info_gtt_total: 811748818944
product_name: AMD Instinct MI300X
unique_id: {0x8a31c4e900000000 + i:016x}
vbios_version: 113-M3000100-102
board_info: type : oam
current_compute_partition: {driver_partition}
current_memory_partition: NPS1
pcie_replay_count: 0
power_dpm_force_performance_level: auto
fw_version/mec_fw_version: 0x00000099
fw_version/sdma_fw_version: 0x00000013
fw_version/smc_fw_version: 0x00557d00
hwmon/hwmon{i}/name: amdgpu
hwmon/hwmon{i}/temp2_label: junction
hwmon/hwmon{i}/temp2_input: {44000 + 1000 * i}
hwmon/hwmon{i}/temp2_crit: 100000
hwmon/hwmon{i}/temp3_label: mem
hwmon/hwmon{i}/temp3_input: {38000 + 500 * i}
hwmon/hwmon{i}/temp3_crit: 105000
hwmon/hwmon{i}/power1_input: 139000000
hwmon/hwmon{i}/power1_cap: 750000000
hwmon/hwmon{i}/power1_cap_default: 750000000
"""
    for block in ("umc", "sdma", "gfx", "mmhub", "xgmi_wafl"):
        text += section(f"{card}/ras/{block}_err_count", ["ue: 0", "ce: 0", "de: 0"])
    text += f"== value {card}/ras/gpu_vram_bad_pages\n"
    return text


def cpu_node(n, links):
    text = section(f"{KFD}/{n}/properties", ["cpu_cores_count 192", "simd_count 0", "gfx_target_version 0", "vendor_id 0", "device_id 0", "location_id 0"])
    return f"== value {KFD}/{n}/gpu_id 0\n" + text


def gpu_node(n, bus, partition, minor, unique, simds, xcc, vram):
    props = ["cpu_cores_count 0", f"simd_count {simds}", "simd_per_cu 4", "lds_size_in_kb 64", "wave_front_size 64",
             "gfx_target_version 90402", "vendor_id 4098", "device_id 29857", f"location_id {bus << 8 | partition}", "domain 0",
             f"drm_render_minor {minor}", f"hive_id {HIVE}", "capability 1022205568", "fw_version 153", "sdma_fw_version 19",
             f"unique_id {unique}", f"num_xcc {xcc}"]
    return (f"== value {KFD}/{n}/gpu_id {20000 + 37 * n}\n" + section(f"{KFD}/{n}/properties", props)
            + section(f"{KFD}/{n}/mem_banks/0/properties", ["heap_type 1", f"size_in_bytes {vram}", "flags 0", "width 8192"]))


def link(n, index, to, kind, weight, bandwidth):
    return section(f"{KFD}/{n}/io_links/{index}/properties", [f"type {kind}", f"node_from {n}", f"node_to {to}", f"weight {weight}", f"max_bandwidth {bandwidth}", "flags 1"])


def nodes_and_access(minors):
    text = ""
    access = {"/dev/kfd": 0}
    for minor in minors:
        text += f"== stat /dev/dri/renderD{minor} c 0660 0 992 root render 226:{minor}\n"
        access[f"/dev/dri/renderD{minor}"] = 0
    body = ", ".join(f'"{path}": {{"errno": {e}, "how": "open"}}' for path, e in access.items())
    return text + "== probe access\n{" + body + "}\n"


SERVER = """== base ubuntu-24.04-rocm.host
== file /proc/meminfo
MemTotal:       1585447560 kB
MemAvailable:   1540000000 kB
SwapTotal:             0 kB
== probe host
{"hostname": "node7", "machine": "x86_64", "logical_cpus": 384, "sockets": 2, "cores": 192, "numa_nodes": 2, "cpu_model": "AMD EPYC 9654 96-Core Processor", "governors": ["performance"], "page_size": 4096, "libc": "2.39"}
"""


def mi300x():
    out = ["""Eight MI300X (SPX, NPS1) in one XGMI hive, two sockets, healthy. Written by make_instinct.py after Linux 6.8's and amdgpu-dkms
6.14's formats; addresses and identifiers are made up, sizes are those of the part.
""", SERVER, cpu_node(0, []), cpu_node(1, [])]
    for i, bus in enumerate(BUSES):
        out.append(gpu_pci(i, bus, "SPX"))
        n = i + 2
        out.append(f"== link /sys/class/drm/renderD{128 + i} -> ../../devices/pci0000:{bus - 4:02x}/0000:{bus - 4:02x}:01.1/0000:{bus - 2:02x}:00.0/0000:{bus - 1:02x}:00.0/0000:{bus:02x}:00.0/drm/renderD{128 + i}\n")
        out.append(gpu_node(n, bus, 0, 128 + i, 0x8a31c4e900000000 + i, 1216, 8, VRAM))
        out.append(link(n, 0, 0 if i < 4 else 1, 2, 20, 64000))
        for index, other in enumerate(o for o in range(8) if o != i):
            out.append(link(n, index + 1, other + 2, 11, 15, 64000))
    out.append(nodes_and_access(range(128, 136)))
    (here / "mi300x.host").write_text("".join(out))


def mi300x_cpx():
    out = ["""Two MI300X in CPX mode: eight partitions of 38 compute units each. Written by make_instinct.py; KFD adds the partition's
number to the low bits of location_id, and the partitions beyond the first are platform devices (amdgpu_xcp) in /sys/class/drm.
""", SERVER, cpu_node(0, []), cpu_node(1, [])]
    minor = 128
    n = 2
    for i, bus in enumerate(BUSES[:2]):
        out.append(gpu_pci(i, bus, "CPX"))
        for partition in range(8):
            if partition == 0:
                out.append(f"== link /sys/class/drm/renderD{minor} -> ../../devices/pci0000:{bus - 4:02x}/0000:{bus - 4:02x}:01.1/0000:{bus - 2:02x}:00.0/0000:{bus - 1:02x}:00.0/0000:{bus:02x}:00.0/drm/renderD{minor}\n")
            else:
                out.append(f"== link /sys/class/drm/renderD{minor} -> ../../devices/platform/amdgpu_xcp_{i * 7 + partition - 1}/drm/renderD{minor}\n")
            out.append(gpu_node(n, bus, partition, minor, 0x8a31c4e900000000 + i, 152, 1, VRAM // 8))
            out.append(link(n, 0, 0, 2, 20, 64000))
            minor += 1
            n += 1
    out.append(nodes_and_access(range(128, minor)))
    (here / "mi300x-cpx.host").write_text("".join(out))


mi300x()
mi300x_cpx()
if len(sys.argv) > 1:
    mi210(pathlib.Path(sys.argv[1]))
