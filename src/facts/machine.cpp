#include "facts/machine.h"

#include "capture/capture.h"
#include "facts/bus.h"
#include "facts/gpus.h"
#include "facts/identity.h"
#include "facts/kernel_log.h"
#include "facts/kfd.h"
#include "facts/read.h"
#include "facts/rocminfo.h"
#include "facts/smi.h"
#include "facts/subjects.h"
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
    if (device.lspci != nullptr && !device.lspci->name.empty()) out.name = {device.lspci->name, device.lspci->origin};
    out.is_amd_gpu = device.amd_gpu;
    machine.pci_devices.push_back(std::move(out));
  }
}

/// A runtime-suspended GPU was not read: its state is unknown, not bad.
void read_sleep(Machine& machine, const Evidence& evidence) {
  for (auto& gpu : machine.gpus) {
    for (const Value& entry : evidence.capture().probe("asleep").items())
      if (gpu.pci && entry["pci"].as_text() == *gpu.pci) gpu.asleep = {true, evidence.origin("probe/asleep", 0, to_json(entry))};
    if (!gpu.asleep && gpu.runtime_status) gpu.asleep = {*gpu.runtime_status == "suspended", gpu.runtime_status.origin};
  }
}

/// In a guest the link to the physical function is not there, the product's name says it ("... MI300X VF").
void read_virtual_functions(Machine& machine) {
  for (auto& gpu : machine.gpus) {
    if (gpu.virtual_function) continue;
    if (gpu.product && (gpu.product->ends_with(" VF") || contains(*gpu.product, "MxGPU")))
      gpu.virtual_function = {true, gpu.product.origin};
    else if (machine.pci_listed.value_or(false) && machine.host.virtualisation && machine.host.virtualisation->empty())
      gpu.virtual_function = {false, machine.pci_listed.origin};
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
  read_environment(machine, evidence);
  read_host(machine, evidence);
  read_driver(machine, evidence);
  read_access(machine, evidence);
  read_container(machine, evidence);
  read_limits(machine, evidence);
  read_loader(machine, evidence);
  read_packages(machine, evidence);
  read_rocm(machine, evidence);
  read_pythons(machine, evidence);
  read_disks(machine, evidence);
  read_processes(machine, evidence);
  read_unreadable(machine, evidence);
  // What tools said comes last: it fills what the files did not say.
  read_rocminfo(machine, evidence);
  read_smi(machine, evidence);
  for (auto& gpu : machine.gpus) name_gpu(gpu, tables);
  sort_gpus(machine.gpus);
  read_sleep(machine, evidence);
  read_virtual_functions(machine);
  number_for_hip(machine);
  machine.kernel_log = read_kernel_log(evidence);
  read_iommu_mode(machine, evidence);
  return machine;
}

}  // namespace ff::facts
