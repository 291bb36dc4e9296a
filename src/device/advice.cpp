#include "device/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/shell.h"

namespace ff::device {
namespace {

bool is_apptainer(std::string_view container) { return container == "singularity" || container == "apptainer"; }
std::string_view engine_of(std::string_view container) { return container == "podman" || container == "toolbox" ? "podman" : "docker"; }

enum class Family { unknown, debian, redhat, suse, arch };
Family family_of(const Machine& m) {
  const auto id = m.host.os_id.value_or("");
  const auto is = [&](auto... names) { return ((id == names) || ...); };
  if (is("ubuntu", "debian", "linuxmint", "pop")) return Family::debian;
  if (is("fedora", "rhel", "centos", "rocky", "almalinux", "ol", "amzn", "azurelinux")) return Family::redhat;
  if (id.starts_with("opensuse") || is("sles", "sled", "suse")) return Family::suse;
  if (is("arch", "manjaro", "endeavouros", "cachyos")) return Family::arch;
  return Family::unknown;
}

std::string change_boot_option(const Machine& m, bool add, std::string_view option) {
  const auto grubby = fmt::format("sudo grubby --update-kernel=ALL --{}={}", add ? "args" : "remove-args", shell_word(option));
  const auto in_file = fmt::format("{} \"{}\" {} GRUB_CMDLINE_LINUX in /etc/default/grub{}", add ? "Add" : "Take", option, add ? "to" : "out of",
                                   add ? "" : " (and GRUB_CMDLINE_LINUX_DEFAULT)");
  switch (family_of(m)) {
    case Family::redhat:
      return grubby + "   (then reboot)";
    case Family::suse:
      return in_file + ", run sudo grub2-mkconfig -o /boot/grub2/grub.cfg, and reboot";
    case Family::arch:
      return in_file + ", run sudo grub-mkconfig -o /boot/grub/grub.cfg, and reboot";
    case Family::debian:
      return in_file + ", run sudo update-grub, and reboot";
    case Family::unknown:
      break;
  }
  return fmt::format("{}, run sudo update-grub (Fedora, RHEL: {}), and reboot", in_file, grubby);
}

}  // namespace

std::vector<std::string> hand_devices_to(std::string_view container) {
  if (container == "kubernetes")
    return {"Ask for the GPU in the pod's resources (amd.com/gpu: 1), so that the device plug-in maps /dev/kfd and /dev/dri"};
  if (container == "lxc")
    return {
        "Map the devices in the container's configuration (lxc: lxc.cgroup2.devices.allow and lxc.mount.entry; incus: incus config device add "
        "NAME gpu gpu)"};
  if (is_apptainer(container)) return {"apptainer exec --rocm <image> <your command>   (older installations: singularity exec --rocm)"};
  return {fmt::format("Start the container again with: {} run --device=/dev/kfd --device=/dev/dri …", engine_of(container))};
}

std::vector<std::string> proof_of_devices(std::string_view container) {
  if (container == "kubernetes") return {"kubectl exec <pod> -- ls -l /dev/kfd /dev/dri", "kubectl describe node <node> | grep amd.com/gpu"};
  if (container == "lxc") return {"ls -l /dev/kfd /dev/dri"};
  if (is_apptainer(container)) return {"apptainer exec --rocm <image> ls -l /dev/kfd /dev/dri"};
  return {fmt::format("{} run --rm --device=/dev/kfd --device=/dev/dri <image> ls -l /dev/kfd /dev/dri", engine_of(container))};
}

std::string remove_boot_option(const Machine& machine, std::string_view option) { return change_boot_option(machine, false, option); }
std::string add_boot_option(const Machine& machine, std::string_view option) { return change_boot_option(machine, true, option); }

std::string install_kernel_headers(const Machine& machine, std::string_view release) {
  switch (family_of(machine)) {
    case Family::redhat:
      return "sudo dnf install " + shell_word(fmt::format("kernel-devel-{}", release));
    case Family::suse:
      return "sudo zypper install kernel-default-devel   (of the version that runs: " + shell_word(release) + ")";
    case Family::arch:
      return "sudo pacman -S linux-headers   (of the kernel that runs: " + shell_word(release) + ")";
    case Family::debian:
      return "sudo apt install " + shell_word(fmt::format("linux-headers-{}", release));
    case Family::unknown:
      break;
  }
  return fmt::format("sudo apt install {}   (Fedora, RHEL: sudo dnf install {})", shell_word(fmt::format("linux-headers-{}", release)),
                     shell_word(fmt::format("kernel-devel-{}", release)));
}

}  // namespace ff::device
