#include "verdict/again.h"

#include <gtest/gtest.h>

namespace ff::verdict {
namespace {

ladder::Climb with(std::vector<CheckResult> checks, std::string first_fault) {
  ladder::Climb climb;
  climb.rungs.resize(1);
  climb.rungs[0].checks = std::move(checks);
  climb.first_fault = std::move(first_fault);
  return climb;
}

CheckResult result(std::string id, Status status) {
  CheckResult r;
  r.id = std::move(id);
  r.status = status;
  return r;
}

TEST(Again, TellsFixedFromNotFixedFromAnotherFault) {
  EXPECT_EQ(judge_again("b", with({result("a", Status::pass), result("b", Status::pass)}, "")), Outcome::fixed);
  EXPECT_EQ(judge_again("b", with({result("b", Status::fail)}, "b")), Outcome::not_fixed);
  EXPECT_EQ(judge_again("b", with({result("a", Status::fail), result("b", Status::skip)}, "a")), Outcome::another_fault);
  EXPECT_EQ(judge_again("b", with({result("a", Status::pass), result("b", Status::skip)}, "")), Outcome::undecided) << "a skip proves nothing";
  EXPECT_EQ(judge_again("b", with({result("a", Status::fail), result("b", Status::pass)}, "a")), Outcome::fixed) << "an unrelated earlier fault";
  EXPECT_EQ(judge_again("b", with({result("b", Status::error)}, "b")), Outcome::undecided);
}

TEST(Again, OnlyRunsWhatOnlyLooks) {
  for (const char* command : {"test -w /dev/kfd", "ls -l /dev/kfd /dev/dri", "dmesg | grep -i amdgpu", "id | grep render && ls /dev/dri",
                              "rocminfo 2>/dev/null | grep gfx", "dkms status", "HIP_VISIBLE_DEVICES=0 rocminfo", "journalctl -k -b -1",
                              "amd-smi static", "ldconfig -p", "firstfault check --rung device", "firstfault data check /data/set"})
    EXPECT_EQ(classify_verify(command), VerifyKind::reads) << command;
}

TEST(Again, AsksBeforeAnythingThatMayChangeSomething) {
  for (const char* command : {"sudo modprobe amdgpu", "python train.py", "dmesg -c", "echo 1 > /sys/x", "cat $(rm x)", "ls; rm -rf x", "ls & reboot",
                              "sort -o f f", "journalctl --rotate", "amd-smi reset -g 0", "rocm-smi --setperflevel high", "pip install torch",
                              "ldconfig", "ls | tee x", "firstfault data check a --fix -o b", "python -c 'import torch; print(1)'"})
    EXPECT_EQ(classify_verify(command), VerifyKind::changes) << command;
}

TEST(Again, ReadsQuotesAsAShellDoes) {
  for (const char* command :
       {"lspci -nn | grep -iE 'vga|display|3d'", "dmesg | grep -E \"BAR [0-9]+.*(no space|failed to assign)\"", "grep -E 'a;b&c>d' /proc/cmdline",
        "env | grep -E 'VISIBLE_DEVICES|GPU_DEVICE_ORDINAL'", "env -u HSA_OVERRIDE_GFX_VERSION rocminfo | grep -m1 'Name:.*gfx'",
        "cat '/home/a$(reboot)/x'", "getfacl -p /dev/kfd", "lspci # isn't; rm x"})
    EXPECT_EQ(classify_verify(command), VerifyKind::reads) << command;
  for (const char* command : {"ls 'a' | sh -c 'rm x'", "echo \"$(rm x)\"", "echo \"`rm x`\"", "ls 'open", "ls \"open", "ls\nreboot", "(reboot)",
                              "env sh -c x", "env -i sh", "LD_PRELOAD=/tmp/x.so ls", "PATH=/tmp ls", "dmesg -Tc", "sort -uo f f", "sort --output=f f",
                              "uniq a b", "dkms remove status", "cat x >| y", "cat <<E", "l\\s | \\reboot"})
    EXPECT_EQ(classify_verify(command), VerifyKind::changes) << command;
}

TEST(Again, LooksThroughWhatOnlyRunsAnother) {
  for (const char* command : {"timeout 5 cat /sys/class/drm/card*/device/gpu_busy_percent", "timeout 30 rocminfo | grep -c gfx",
                              "timeout -k 1 -s INT 2.5s ls", "sudo -n cat /x", "env A=1 timeout 5 nice -n 10 stat -c %a /dev/kfd",
                              "command -v rocminfo", "find /opt -name '*.so' -size -1k", "ffmpeg -version", "python3 -m pip list",
                              "fuser -v /dev/kfd", "ls $'a\\nb'", "numactl --show", "rpm -qa", "udevadm info --query=all --name=/dev/kfd"})
    EXPECT_EQ(classify_verify(command), VerifyKind::reads) << command;
  for (const char* command : {"timeout 5 rm x",
                              "timeout 5",
                              "timeout cat x",
                              "sudo cat /x",
                              "sudo -n rm x",
                              "sudo -n -u root cat x",
                              "sudo -n timeout 1 tee x",
                              "nice rm x",
                              "time rm x",
                              "find . -delete",
                              "find . -exec rm {} ;",
                              "fuser -k /dev/kfd",
                              "./x --version",
                              "date -s now",
                              "command rm x",
                              "LD_PRELOAD=x timeout 1 ls",
                              "timeout 1 env LD_PRELOAD=x ls",
                              "udevadm info --cleanup-db",
                              "ls $'open",
                              "systemctl stop x"})
    EXPECT_EQ(classify_verify(command), VerifyKind::changes) << command;
}

TEST(Again, LeavesTemplatesToAPerson) {
  for (const char* command : {"AMD_SERIALIZE_KERNEL=3 <your command>", "firstfault hang <PID>", "python ...", ""})
    EXPECT_EQ(classify_verify(command), VerifyKind::template_) << command;
}

}  // namespace
}  // namespace ff::verdict
