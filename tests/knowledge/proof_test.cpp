// The proofs of the built-in knowledge are commands: `firstfault check --again` offers to run them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "knowledge/knowledge.h"

namespace ff::knowledge {
namespace {

constexpr std::array programs = std::to_array<std::string_view>({"amd-smi",
                                                                 "apt",
                                                                 "ausearch",
                                                                 "c++filt",
                                                                 "cat",
                                                                 "cpupower",
                                                                 "df",
                                                                 "dkms",
                                                                 "dmesg",
                                                                 "docker",
                                                                 "dpkg",
                                                                 "env",
                                                                 "ffmpeg",
                                                                 "ffprobe",
                                                                 "find",
                                                                 "findmnt",
                                                                 "firstfault",
                                                                 "for",
                                                                 "free",
                                                                 "fuser",
                                                                 "getfacl",
                                                                 "grep",
                                                                 "head",
                                                                 "hipcc",
                                                                 "hipconfig",
                                                                 "ibv_devinfo",
                                                                 "id",
                                                                 "ip",
                                                                 "ipmitool",
                                                                 "journalctl",
                                                                 "kubectl",
                                                                 "ldconfig",
                                                                 "ldd",
                                                                 "ls",
                                                                 "lscpu",
                                                                 "lsinitramfs",
                                                                 "lsmod",
                                                                 "lspci",
                                                                 "llvm-objdump",
                                                                 "lerobot-eval",
                                                                 "modinfo",
                                                                 "mokutil",
                                                                 "namei",
                                                                 "nproc",
                                                                 "numactl",
                                                                 "pip",
                                                                 "py-spy",
                                                                 "python",
                                                                 "python3",
                                                                 "ras-mc-ctl",
                                                                 "readelf",
                                                                 "rocm-bandwidth-test",
                                                                 "rocm-smi",
                                                                 "rocminfo",
                                                                 "rocprofv3",
                                                                 "sensors",
                                                                 "sha256sum",
                                                                 "smartctl",
                                                                 "ss",
                                                                 "stat",
                                                                 "strings",
                                                                 "sudo",
                                                                 "systemctl",
                                                                 "tail",
                                                                 "test",
                                                                 "torchrun",
                                                                 "touch",
                                                                 "tr",
                                                                 "udevadm",
                                                                 "ulimit",
                                                                 "uname",
                                                                 "vulkaninfo",
                                                                 "watch",
                                                                 "xxd",
                                                                 "eglinfo",
                                                                 "lerobot-replay",
                                                                 "lerobot-teleoperate",
                                                                 "mlxlink",
                                                                 "rdma",
                                                                 "timeout",
                                                                 "awk",
                                                                 "wc",
                                                                 "sort"});

bool is_command(std::string_view line) {
  // VARIABLE=<value> <your command>
  if (contains(line, " <your command>") && contains(line.substr(0, line.find(' ')), "=")) return true;
  for (const auto word : words(line)) {
    if (word.starts_with("<")) return true;  // <your command>
    const auto equals = word.find('=');
    if (equals != std::string_view::npos && equals != 0) continue;
    return std::ranges::find(programs, word.ends_with(';') ? word.substr(0, word.size() - 1) : word) != programs.end();
  }
  return false;
}

TEST(Proofs, AreCommands) {
  std::size_t seen = 0;
  for (const auto& text : Knowledge::built_in().causes())
    for (const auto& line : text->verify) {
      ++seen;
      EXPECT_TRUE(is_command(line)) << text->id << ": " << line;
      EXPECT_FALSE(line.ends_with('.') && !line.ends_with("..")) << text->id << ": " << line;
    }
  EXPECT_GT(seen, 150U);
}

}  // namespace
}  // namespace ff::knowledge
