// The texts are what the named tools print, shortened by hand.
#include "capture/loose.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "capture/loose_parsers.h"
#include "capture/open.h"
#include "capture/recognise.h"

namespace ff::capture {
namespace {

Capture loose(const Members& files) {
  Capture capture;
  const auto result = add_loose(files, capture);
  EXPECT_TRUE(result) << (result ? "" : result.error().to_string());
  return capture;
}

constexpr std::string_view rocminfo_text =
    "ROCk module is loaded\n=====================    \nHSA System Attributes    \n=====================    \nRuntime Version:         1.1\n"
    "*******                  \nAgent 2                  \n*******                  \n  Name:                    gfx1100                            "
    "\n";
constexpr std::string_view dmesg_text =
    "[    4.118836] [drm] amdgpu kernel modesetting enabled.\n[    4.120501] amdgpu 0000:04:00.0: enabling device (0000 -> 0003)\n";
constexpr std::string_view journal_text =
    "Feb 02 21:47:09 host kernel: amdgpu 0000:65:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE\nFeb 02 21:47:09 host kernel: amdgpu: "
    "Failed to evict queue 1\n";
constexpr std::string_view pip_text = "Package Version\n------- ------------\ntorch   2.8.0+rocm6.4\nlerobot 0.4.0\n";
constexpr std::string_view smi_json =
    R"x({"card0": {"GPU ID": "0x744c", "VRAM Total Memory (B)": "25753026560"}, "system": {"Driver version": "6.12"}})x";

TEST(Recognise, TellsEachKindByItsContent) {
  const std::vector<std::pair<TextKind, std::string>> examples{
      {TextKind::rocminfo, std::string(rocminfo_text)},
      {TextKind::rocminfo,
       "  Name:                    gfx1030                            \n  Marketing Name:          AMD Radeon RX 6800                 \n"},
      {TextKind::kernel_log, std::string(dmesg_text)},
      {TextKind::kernel_log, "<6>[    1.234567] Linux version 6.8.0\n<3>[    2.0] amdgpu: error\n"},
      {TextKind::kernel_log, "[Sun Mar  3 09:12:44 2024] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n"},
      {TextKind::journal, std::string(journal_text)},
      {TextKind::journal, "2026-02-02T21:47:09.123456+01:00 host kernel: amdgpu: x\n"},
      {TextKind::pip_list, std::string(pip_text)},
      {TextKind::pip_list, "torch==2.9.0+rocm6.4\nnumpy==2.1.0\n"},
      {TextKind::pip_list, R"([{"name": "torch", "version": "2.9.0"}])"},
      {TextKind::rocm_smi_json, std::string(smi_json)},
      {TextKind::amd_smi_static_json, R"([{"gpu": 0, "asic": {"market_name": "MI300X"}, "bus": {"bdf": "0000:05:00.0"}}])"},
      {TextKind::amd_smi_metric_json, R"([{"gpu": 0, "usage": {"gfx_activity": {"value": 3, "unit": "%"}}}])"},
      {TextKind::amd_smi_list_json, R"([{"gpu": 0, "bdf": "0000:05:00.0", "uuid": "1eff74a1-0000-1000-8000-000000000000"}])"},
      {TextKind::rocm_smi, "GPU[0]          : VRAM Total Memory (B): 68702699520\n"},
      {TextKind::lspci,
       "05:00.0 VGA compatible controller [0300]: Advanced Micro Devices, Inc. [AMD/ATI] Cezanne [1002:1638] (rev c5)\n\tKernel driver in use: "
       "amdgpu\n"},
      {TextKind::lspci_verbose,
       "0000:05:00.0 VGA compatible controller [0300]: AMD [1002:1638]\n\tCapabilities: [64] Express (v2) Legacy Endpoint\n\t\tLnkSta:\tSpeed 8GT/s, "
       "Width x16\n"},
      {TextKind::environment, "HSA_OVERRIDE_GFX_VERSION=10.3.0\nPATH=/usr/bin\n_=/usr/bin/env\n"},
      {TextKind::environment, "export HF_HOME=\"/data\"\nexport HIP_VISIBLE_DEVICES=\"0\"\n"},
      {TextKind::id, "uid=1000(user) gid=1000(user) groups=1000(user),44(video),992(render)\n"},
      {TextKind::uname, "Linux node7 6.8.0-63-generic #66-Ubuntu SMP PREEMPT_DYNAMIC x86_64 x86_64 x86_64 GNU/Linux\n"},
      {TextKind::ls_nodes, "crw-rw---- 1 root render 226, 128 Mar  3 09:12 /dev/dri/renderD128\n"},
      {TextKind::dkms_status, "amdgpu/6.16.13-2278356.24.04, 6.17.0-20-generic, x86_64: installed\n"},
      {TextKind::dpkg_list, "ii  rocm-core  7.0.2  amd64  core\nii  hip-runtime-amd 7.0.2 amd64 hip\n"},
      {TextKind::rpm_list, "rocm-core-6.2.0.60200-66.el9.x86_64\nhsa-rocr-1.14.0.60200-66.el9.x86_64\n"},
      {TextKind::lsmod, "Module                  Size  Used by\namdgpu              19714048  12\n"},
      {TextKind::df, "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% /dev/shm\n"},
      {TextKind::free, "               total        used        free\nMem:           31986       26104        4987\n"},
      {TextKind::os_release, "PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n"},
      {TextKind::kernel_command_line, "BOOT_IMAGE=/vmlinuz-6.12 root=/dev/nvme0n1p2 ro amdgpu.gttsize=40960\n"},
      {TextKind::file_values, "/sys/class/drm/card0/device/current_link_width:8\n"},
      {TextKind::file_values, "==> /sys/bus/pci/devices/0000:07:00.0/current_link_speed <==\n16.0 GT/s PCIe\n"},
      {TextKind::transcript, "$ id\nuid=0(root) gid=0(root)\n"},
      {TextKind::collect_env, "PyTorch version: 2.9.1+rocm6.4\nROCM used to build PyTorch: 6.4.43484-123eb5128\n"},
      {TextKind::binary, std::string("\x7f"
                                     "ELF\0\0\0",
                                     7)},
  };
  for (const auto& [kind, text] : examples) EXPECT_EQ(text_kind_name(recognise(text)), text_kind_name(kind)) << text;
}

TEST(Recognise, LeavesWhatMerelyMentionsAToolUnknown) {
  for (const char* text :
       {"I ran rocminfo and dmesg, and torch 2.9 says no.\n",
        "time=2024-01-01T00:00:00Z level=INFO msg=start\ntime=2024-01-01T00:00:01Z level=INFO msg=stop\n",
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nRuntimeError: HIP error: invalid device function\n",
        "{\"codebase_version\": \"v3.0\", \"fps\": 30}", "step 100 loss 0.123\nstep 200 loss 0.120\n", "", "   \n", "x = 1\ny = 2\n"})
    EXPECT_EQ(recognise(text), TextKind::unknown) << text;
}

TEST(Loose, PutsRecognisedTextsWhereALiveCaptureHasThem) {
  const Capture c =
      loose({{"a", std::string(rocminfo_text)}, {"b", std::string(dmesg_text)}, {"c", std::string(journal_text)}, {"d", std::string(smi_json)}});
  ASSERT_NE(c.command("rocminfo"), nullptr);
  EXPECT_EQ(c.command("rocminfo")->out, rocminfo_text);
  EXPECT_FALSE(c.command("rocminfo")->exit_status) << "nobody knows how it ended";
  EXPECT_EQ(c.command("dmesg")->out, dmesg_text);
  EXPECT_NE(c.command("journalctl-k"), nullptr);
  EXPECT_NE(c.command("rocm-smi-json"), nullptr);
  EXPECT_EQ(c.probe("sources")["cmd/dmesg/stdout"]["name"].as_text(), "b");
  EXPECT_TRUE(c.texts().empty());
}

TEST(Loose, KeepsTwoOfAKindApart) {
  const Capture c = loose({{"boot1.txt", std::string(dmesg_text)}, {"boot2.txt", std::string(dmesg_text)}});
  EXPECT_NE(c.command("dmesg"), nullptr);
  EXPECT_NE(c.command("dmesg#2"), nullptr);
  EXPECT_EQ(c.probe("sources")["cmd/dmesg#2/stdout"]["name"].as_text(), "boot2.txt");
}

TEST(Loose, ReadsPackagesWithTheirLines) {
  const Capture c = loose({{"pip-list.txt", std::string(pip_text)}});
  const Value& python = c.probe("pythons").items().at(0);
  EXPECT_EQ(python["prefix"].as_text("x"), "");
  ASSERT_EQ(python["packages"].items().size(), 2u);
  EXPECT_EQ(python["packages"].items()[0]["name"].as_text(), "torch");
  EXPECT_EQ(python["packages"].items()[0]["version"].as_text(), "2.8.0+rocm6.4");
  EXPECT_EQ(python["packages"].items()[0]["line"].as_int(), 3);
  EXPECT_EQ(python["torch"]["version"].as_text(), "2.8.0+rocm6.4");
  EXPECT_EQ(python["torch"].find("hip"), nullptr) << "a package list does not say it, so it stays unknown";
}

TEST(Loose, ReadsRequirementForms) {
  const Value packages = parse_pip_list(
      "numpy==2.1.0 ; python_version > '3'\ntorch @ file:///x/torch.whl\n-e git+https://host/lerobot#egg=lerobot\n# note\nbroken line here too long "
      "to be one\n",
      "f", 1);
  ASSERT_EQ(packages.items().size(), 3u);
  EXPECT_EQ(packages.items()[0]["version"].as_text(), "2.1.0");
  EXPECT_EQ(packages.items()[1]["name"].as_text(), "torch");
  EXPECT_TRUE(packages.items()[2]["editable"].as_bool());
}

TEST(Loose, TellsNoneFromUnknownInCollectEnv) {
  const Value entry = parse_collect_env(
      "PyTorch version: 2.9.1+rocm6.4\nCUDA used to build PyTorch: N/A\nROCM used to build PyTorch: 6.4.43484\nPython version: 3.12.3 (main)\n[pip3] "
      "numpy==2.1.0\n",
      "f", 1);
  EXPECT_EQ(entry["torch"]["hip"].as_text(), "6.4.43484");
  ASSERT_NE(entry["torch"].find("cuda"), nullptr);
  EXPECT_TRUE(entry["torch"]["cuda"].is_null());
  EXPECT_EQ(entry["version"].as_text(), "3.12.3");
  EXPECT_EQ(entry["packages"].items().size(), 2u);
  const Value silent = parse_collect_env("PyTorch version: 2.9.1\nIs CUDA available: False\n", "f", 1);
  EXPECT_EQ(silent["torch"].find("hip"), nullptr);
}

TEST(Loose, ReadsDeviceNodesAndWhatIsNotThere) {
  const auto nodes = parse_ls_nodes(
      "ls: cannot access '/dev/kfd': No such file or directory\n/dev/dri:\ntotal 0\ndrwxr-xr-x  2 root root         80 Mar  3 09:12 by-path\n"
      "crw-rw----+ 1 root video  226,   0 Mar  3 09:12 card0\ncrw-rw---- 1 65534 992 226, 128 Mar  3 09:12 renderD128\n");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0].path, "/dev/kfd");
  EXPECT_EQ(nodes[0].error, ENOENT);
  EXPECT_EQ(nodes[2].path, "/dev/dri/card0");
  EXPECT_EQ(nodes[2].stat.group, "video");
  EXPECT_EQ(nodes[2].stat.gid, unknown_id) << "only the name was shown";
  EXPECT_EQ(nodes[2].stat.acl, "+");
  EXPECT_EQ(nodes[3].stat.gid, 992u);
  EXPECT_EQ(nodes[3].stat.mode, 0660u);
  EXPECT_EQ(nodes[3].stat.major, 226u);
  EXPECT_EQ(nodes[3].stat.minor, 128u);
}

TEST(Loose, RedactsHandedOverVariables) {
  const Capture c = loose({{"env.txt", "HF_TOKEN=hf_secretsecretsecretsecret\nHSA_OVERRIDE_GFX_VERSION=10.3.0\nHF_HOME=/data\n"}});
  EXPECT_EQ(c.probe("env")["HF_TOKEN"].as_text(), "<redacted>");
  EXPECT_EQ(c.probe("env")["HSA_OVERRIDE_GFX_VERSION"].as_text(), "10.3.0");
  EXPECT_EQ(c.command("env")->out.find("secretsecret"), std::string::npos);
}

TEST(Loose, ReadsTheGroupsOfId) {
  const Value user = parse_id("uid=1000(u) gid=1000(u) groups=1000(u),44(video),992");
  EXPECT_EQ(user["uid"].as_int(), 1000);
  ASSERT_EQ(user["groups"].items().size(), 3u);
  EXPECT_EQ(user["groups"].items()[2]["gid"].as_int(), 992);
  EXPECT_EQ(user["groups"].items()[2]["name"].as_text("x"), "");
}

TEST(Loose, MapsATranscriptPieceByPiece) {
  const Capture c =
      loose({{"terminal.txt",
              "$ uname -r\n5.15.167.4-microsoft-standard-WSL2\n$ cat /proc/cmdline\nroot=/dev/sda ro iommu=pt\n$ cat /opt/rocm/.info/version\n7.2.0\n"
              "$ ls -l /dev/kfd\nls: cannot access '/dev/kfd': No such file or directory\n$ sudo dmesg | grep amdgpu\n[    4.1] amdgpu: x\n"
              "$ pip list | grep torch\ntorch 2.8.0+rocm6.4\n"}});
  EXPECT_EQ(c.value("/proc/sys/kernel/osrelease"), "5.15.167.4-microsoft-standard-WSL2");
  EXPECT_EQ(c.value("/proc/cmdline"), "root=/dev/sda ro iommu=pt");
  EXPECT_EQ(c.value("/opt/rocm/.info/version"), "7.2.0");
  EXPECT_TRUE(c.known_absent("/dev/kfd"));
  ASSERT_NE(c.command("dmesg"), nullptr);
  EXPECT_EQ(c.probe("sources")["cmd/dmesg/stdout"]["line"].as_int(), 10);
  EXPECT_EQ(c.probe("pythons").items().at(0)["torch"]["version"].as_text(), "2.8.0+rocm6.4");
  EXPECT_TRUE(c.texts().contains("terminal.txt"));
}

TEST(Loose, AFilteredModuleListSaysNothingAboutAbsence) {
  EXPECT_NE(lsmod_to_proc_modules("Module                  Size  Used by\namdgpu 19714048 12\ndrm 1 2 amdgpu\n").find("amdgpu 19714048 12 - Live"),
            std::string::npos);
  EXPECT_EQ(lsmod_to_proc_modules("drm 1 2 amdgpu\n"), "");
}

TEST(Loose, FindsTreesWhereverTheyLie) {
  const Capture c = loose({{"x/y/nodes/1/properties", "simd_count 304\ngfx_target_version 90402\n"},
                           {"x/y/nodes/1/io_links/0/properties", "type 11\n"},
                           {"x/y/generation_id", "2\n"},
                           {"gpu/card1/device/vendor", "0x1002\n"},
                           {"gpu/card1/dev", "226:1\n"},
                           {"sos/sys/module/amdgpu/version", "6.16.6\n"},
                           {"sos/etc/os-release", "ID=ubuntu\n"},
                           {"notes/README.md", "hello there\n"}});
  EXPECT_EQ(c.value("/sys/class/kfd/kfd/topology/nodes/1/properties")->substr(0, 10), "simd_count");
  EXPECT_TRUE(c.exists("/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties"));
  EXPECT_EQ(c.value("/sys/class/kfd/kfd/topology/generation_id"), "2");
  EXPECT_EQ(c.value("/sys/class/drm/card1/device/vendor"), "0x1002");
  EXPECT_EQ(c.value("/sys/module/amdgpu/version"), "6.16.6");
  EXPECT_EQ(c.value("/etc/os-release"), "ID=ubuntu");
  EXPECT_EQ(c.probe("sources")["/sys/class/drm/card1/device/vendor"]["name"].as_text(), "gpu/card1/device/vendor");
  EXPECT_TRUE(c.texts().contains("notes/README.md"));
}

TEST(Loose, DropsThePaddingOfCopiedSysfsTextButNotOfBinaries) {
  std::string text = "16.0 GT/s PCIe\n";
  text.resize(4096, '\0');
  std::string metrics("\x78\0\1\3", 4);
  metrics.resize(4096, '\0');
  const Capture c = loose({{"card0/device/current_link_speed", text}, {"card0/device/gpu_metrics", metrics}});
  EXPECT_EQ(c.file("/sys/class/drm/card0/device/current_link_speed"), "16.0 GT/s PCIe\n");
  EXPECT_EQ(c.file("/sys/class/drm/card0/device/gpu_metrics")->size(), 4096u);
}

TEST(Loose, RefusesTwoMachinesInOne) {
  Capture c;
  const auto result = add_loose({{"a/card0/device/vendor", "0x1002\n"}, {"b/card0/device/vendor", "0x1002\n"}}, c);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("two machines"), std::string::npos);
}

TEST(Loose, SetsBinariesAside) {
  const Capture c = loose({{"core", std::string("\x7f"
                                                "ELF\0\0",
                                                6)}});
  EXPECT_TRUE(c.texts().empty());
  EXPECT_EQ(c.about()["ignored"].items().at(0)["name"].as_text(), "core");
}

TEST(Loose, ReadsValuesWithColonsInTheirPaths) {
  const auto values = parse_file_values(
      "/sys/bus/pci/devices/0000:03:00.0/current_link_width:16\n/sys/class/drm/card0/device/pp_dpm_pcie:0: "
      "2.5GT/s\n/sys/class/drm/card0/device/pp_dpm_pcie:1: 16.0GT/s *\n");
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].path, "/sys/bus/pci/devices/0000:03:00.0/current_link_width");
  EXPECT_EQ(values[0].content, "16\n");
  EXPECT_EQ(values[1].content, "0: 2.5GT/s\n1: 16.0GT/s *\n");
}

TEST(Loose, TellsTheUeventOfADeviceFromAnEnvironment) {
  const std::string uevent =
      "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SUBSYS_ID=1DA2:E471\nPCI_SLOT_NAME=0000:03:00.0\nMODALIAS=pci:v00001002d0000744C\n";
  EXPECT_EQ(recognise(uevent), TextKind::uevent);
  EXPECT_EQ(recognise("MAJOR=226\nMINOR=0\nDEVNAME=dri/card0\nDEVTYPE=drm_minor\n"), TextKind::uevent);
  EXPECT_EQ(recognise("DRIVER=amdgpu\nPATH=/usr/bin\nHOME=/root\n"), TextKind::environment) << "a process may have a variable of that name";
  const Capture c = loose({{"gpu.txt", uevent}});
  EXPECT_EQ(c.file("/sys/bus/pci/devices/0000:03:00.0/uevent"), uevent);
  EXPECT_TRUE(c.probe("env").is_null());
  const Capture without = loose({{"gpu.txt", "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=../../etc\n"}});
  EXPECT_TRUE(without.files().empty()) << "an address that is none names no file";
}

TEST(Loose, TakesThePlaceOfAPartOfATreeFromItsPath) {
  EXPECT_EQ(tree_prefix("/home/a/kfd/nodes"), "nodes/");
  EXPECT_EQ(tree_prefix("/home/a/kfd/nodes/2"), "nodes/2/");
  EXPECT_EQ(tree_prefix("/home/a/kfd/nodes/2/io_links"), "nodes/2/io_links/");
  EXPECT_EQ(tree_prefix("/x/card0"), "card0/");
  EXPECT_EQ(tree_prefix("/x/card0/device/hwmon"), "card0/device/hwmon/");
  EXPECT_EQ(tree_prefix("/x/sys/class/drm/card1/device"), "sys/class/drm/card1/device/");
  for (const char* path : {"/", "", "/home/a", "/proc/self/fd", "/x/nodes/all", "/x/card0/notes", "/x/cards/1", "/home/sys/a"})
    EXPECT_EQ(tree_prefix(path), "") << path;
}

TEST(Loose, RefusesTwoMachinesByTheirDevices) {
  const std::string lspci =
      "00:00.0 Host bridge [0600]: AMD [1022:14d8]\n03:00.0 VGA compatible controller [0300]: AMD/ATI Navi 31 [1002:744c] (rev c8)\n";
  const std::string node = "cpu_cores_count 0\nsimd_count 416\ndevice_id 29711\nvendor_id 4098\nlocation_id 768\ndomain 0\n";  // 740f at 03:00.0
  const std::string same = "cpu_cores_count 0\nsimd_count 192\ndevice_id 29772\nvendor_id 4098\nlocation_id 768\ndomain 0\n";  // 744c
  Capture capture;
  const auto result = add_loose({{"a/lspci.txt", lspci}, {"b/nodes/1/properties", node}}, capture);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().to_string().find("0000:03:00.0 is 740f in b/nodes/1/properties and 744c in a/lspci.txt"), std::string::npos)
      << result.error().to_string();
  Capture one;
  EXPECT_TRUE(add_loose({{"a/lspci.txt", lspci}, {"b/nodes/1/properties", same}}, one));
  for (const std::string& smi : {std::string(R"x({"card0": {"Device ID": "0x740f", "PCI Bus": "0000:03:00.0"}})x"),
                                 std::string(R"x([{"gpu": 0, "asic": {"device_id": "0x740f"}, "bus": {"bdf": "0000:03:00.0"}}])x")}) {
    Capture two;
    EXPECT_FALSE(add_loose({{"a", lspci}, {"b", smi}}, two)) << smi;
  }
}

}  // namespace
}  // namespace ff::capture
