#include "facts/machine.h"

#include "capture/capture.h"
#include "facts/bus.h"
#include "facts/gpus.h"
#include "facts/kfd.h"
#include "facts/read.h"
#include "facts/tables.h"

namespace ff::facts {
namespace {

void read_pci_devices(Machine& machine, const Bus& bus) {
  machine.pci_listed = bus.listed();
  for (const auto& device : bus.devices()) {
    if (device.address.empty()) continue;
    PciDevice out;
    out.address = device.address;
    out.vendor_id = device.vendor_id;
    out.device_id = device.device_id;
    out.device_class = device.device_class;
    out.driver = device.driver;
    if (device.lspci != nullptr && !device.lspci->name.empty())
      out.name = {device.lspci->name, Origin{"lspci", device.lspci->line, device.lspci->text}};
    out.is_amd_gpu = device.amd_gpu;
    machine.pci_devices.push_back(std::move(out));
  }
}

}  // namespace

const PythonPackage* PythonEnv::package(std::string_view name) const {
  for (const auto& package : packages)
    if (package.name == name) return &package;
  return nullptr;
}

Machine read_machine(const capture::Capture& capture, const Tables& tables) {
  const Evidence evidence(capture);
  Machine machine;
  machine.evidence_kind = capture.kind();
  const Bus bus(evidence);
  const Kfd kfd = read_kfd(evidence);
  read_pci_devices(machine, bus);
  machine.kfd_listed = kfd.listed;
  machine.driver.kfd_nodes = kfd.nodes;
  machine.gpus = read_gpus(evidence, bus, kfd, tables);
  return machine;
}

}  // namespace ff::facts
