#include "capture/same_machine.h"

#include <gtest/gtest.h>

namespace ff::capture {
namespace {

Capture machine(const std::string& name, const std::string& unique_id, const std::string& device = "0x744c", const std::string& board = "") {
  Capture c;
  c.add_file("/proc/sys/kernel/hostname", name + "\n");
  if (!unique_id.empty()) c.add_file("/sys/class/drm/card0/device/unique_id", unique_id + "\n");
  c.add_file("/sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
  c.add_file("/sys/bus/pci/devices/0000:03:00.0/device", device + "\n");
  c.add_file("/sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
  if (!board.empty()) c.add_file("/sys/class/dmi/id/board_name", board + "\n");
  return c;
}

TEST(SameMachine, IsToldByAGpuThatIsInBoth) {
  EXPECT_EQ(different_machines(machine("a", "9f3a"), machine("a", "9f3a")), "");
  EXPECT_EQ(different_machines(machine("a", "9f3a"), machine("renamed", "9f3a")), "") << "the card is the same";
  Capture topology;
  topology.add_file("/proc/sys/kernel/hostname", "pod-7\n");
  topology.add_file("/sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 440\nunique_id 40762\n");
  EXPECT_EQ(different_machines(machine("a", "9f3a"), topology), "") << "the topology has it in decimal";
}

TEST(SameMachine, AnotherNameIsAnotherMachineExceptInsideContainers) {
  EXPECT_NE(different_machines(machine("node1", "1"), machine("node2", "2")), "");
  EXPECT_NE(different_machines(machine("node1", ""), machine("node2", "")), "");
  EXPECT_EQ(different_machines(machine("node1.example.org", ""), machine("node1", "")), "") << "with its domain and without";
  Capture before = machine("3f1c", ""), after = machine("99ab", "");
  before.add_file("/.dockerenv", "");
  EXPECT_EQ(different_machines(before, after), "") << "a container has another name at every start";
  EXPECT_NE(different_machines(before, machine("99ab", "", "0x73bf")), "") << "with other GPUs it lies elsewhere";
  Capture without_gpu;
  without_gpu.add_file("/proc/sys/kernel/hostname", "vm\n");
  without_gpu.add_file("/sys/class/dmi/id/board_name", "X870\n");
  before = machine("3f1c", "", "0x744c", "B650");
  before.add_file("/.dockerenv", "");
  EXPECT_NE(different_machines(without_gpu, before), "") << "the board is the host's, whatever the container is called";
}

TEST(SameMachine, OtherCardsOnTheSameBoardAreOtherHardwareOfOneMachine) {
  EXPECT_EQ(different_machines(machine("a", "1", "0x744c", "X870"), machine("a", "2", "0x744c", "X870")), "");
  EXPECT_NE(different_machines(machine("a", "1", "0x744c", "X870"), machine("a", "2", "0x744c", "B650")), "");
  EXPECT_NE(different_machines(machine("localhost", "1"), machine("localhost", "2")), "");
}

TEST(SameMachine, WhatIsNotKnownSaysNothing) {
  EXPECT_EQ(different_machines(Capture(), machine("a", "1")), "");
  EXPECT_EQ(different_machines(machine("a", ""), Capture()), "");
}

}  // namespace
}  // namespace ff::capture
