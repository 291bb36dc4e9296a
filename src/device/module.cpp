// The kernel module: built, loadable, loaded, current, and with which parameters.
#include <fmt/format.h>

#include "base/shell.h"
#include "base/text.h"
#include "device/advice.h"
#include "device/judge.h"
#include "device/log.h"
#include "device/rung.h"
#include "knowledge/knowledge.h"

namespace ff::device {
namespace {

struct DkmsEntry {
  std::string version, kernel, state, line;
};

/// Lines of `dkms status` about amdgpu, in both forms that dkms has had:
/// "amdgpu/6.16.13-2278356.24.04, 6.8.0-60-generic, x86_64: installed" and "amdgpu, 6.2.4-1683306.22.04, 5.15.0-86-generic, x86_64: installed".
std::vector<DkmsEntry> dkms_entries(std::string_view status) {
  std::vector<DkmsEntry> out;
  for (const auto raw : lines(status)) {
    const auto line = trim(raw);
    if (!line.starts_with("amdgpu/") && !line.starts_with("amdgpu,") && !line.starts_with("amdgpu-dkms")) continue;
    const auto colon = line.rfind(": ");
    if (colon == std::string_view::npos) continue;
    DkmsEntry entry;
    entry.state = std::string(trim(line.substr(colon + 2)));
    entry.line = std::string(line);
    auto parts = split(line.substr(0, colon), ',');
    const auto slash = parts.front().find('/');
    if (slash != std::string_view::npos) {
      entry.version = std::string(trim(parts.front().substr(slash + 1)));
      parts.erase(parts.begin());
    } else {
      parts.erase(parts.begin());
      if (!parts.empty()) {
        entry.version = std::string(trim(parts.front()));
        parts.erase(parts.begin());
      }
    }
    if (!parts.empty()) entry.kernel = std::string(trim(parts.front()));
    out.push_back(std::move(entry));
  }
  return out;
}

bool has_dkms_package(const Machine& m) { return m.packages.count("amdgpu-dkms") != 0; }

std::optional<bool> loaded(const Machine& m) {
  if (m.driver.amdgpu_builtin.value_or(false)) return true;
  if (m.driver.amdgpu_loaded) return *m.driver.amdgpu_loaded;
  for (const auto& gpu : m.gpus)
    if ((gpu.driver && *gpu.driver == "amdgpu") || gpu.kfd_node) return true;
  return std::nullopt;
}

std::string kernel_of(const Machine& m) { return m.host.kernel_release ? *m.host.kernel_release : std::string("this kernel"); }

bool names_word(std::string_view cmdline, std::string_view word) {
  for (const auto piece : words(cmdline))
    if (piece == word) return true;
  return false;
}

/// The amdgpu module that DKMS should have made for the running kernel is not there.
std::optional<DkmsEntry> missing_build(const Machine& m) {
  if (!m.driver.dkms_status || !m.host.kernel_release) return std::nullopt;
  const auto entries = dkms_entries(*m.driver.dkms_status);
  if (entries.empty()) return std::nullopt;
  for (const auto& entry : entries)
    if (entry.kernel == *m.host.kernel_release && entry.state.starts_with("installed")) return std::nullopt;
  for (const auto& entry : entries)
    if (entry.kernel == *m.host.kernel_release) return entry;
  return entries.front();
}

}  // namespace

CheckResult dkms_built(const CheckContext& context) {
  const auto& m = context.machine;
  if (!m.driver.dkms_status) {
    if (has_dkms_package(m)) return not_captured("dkms status");
    return complete(context) ? not_applicable("the driver is not built with DKMS") : CheckResult::skip("the evidence holds no dkms status");
  }
  const auto entries = dkms_entries(*m.driver.dkms_status);
  if (entries.empty()) return not_applicable("DKMS builds no amdgpu here: the kernel's own driver is used");
  if (!m.host.kernel_release) return not_captured("kernel release to compare the DKMS builds with");
  const auto measured = Value::object({{"running_kernel", *m.host.kernel_release}, {"dkms", entries.front().line}});
  const auto missing = missing_build(m);
  if (!missing) {
    for (const auto& entry : entries)
      if (entry.kernel == *m.host.kernel_release) {
        auto result =
            contains(entry.state, "WARNING")
                ? CheckResult::warn(
                      "driver.dkms-build-failed",
                      fmt::format("The amdgpu {} that DKMS built for {} is not the file that is installed", entry.version, entry.kernel), measured)
                : CheckResult::pass(fmt::format("DKMS built amdgpu {} for the running kernel {}", entry.version, entry.kernel), measured);
        return result.because(evidence(m.driver.dkms_status));
      }
  }
  const auto text =
      fmt::format("DKMS has no amdgpu {} for the running kernel {}", missing ? missing->version : entries.front().version, *m.host.kernel_release);
  const auto state =
      missing ? (missing->kernel.empty() ? missing->state : fmt::format("{} for {}", missing->state, missing->kernel)) : std::string("unknown");
  auto result = loaded(m).value_or(false)
                    ? CheckResult::warn("driver.dkms-build-failed",
                                        fmt::format("{} (state: {}); the kernel's own amdgpu drives the GPU instead", text, state), measured)
                    : CheckResult::fail("driver.dkms-build-failed", fmt::format("{} (state: {}), and no amdgpu is loaded", text, state), measured);
  if (m.host.kernel_headers && !*m.host.kernel_headers) result.because(evidence(m.host.kernel_headers));
  return result.because(evidence(m.driver.dkms_status)).because(evidence(m.host.kernel_release));
}

CheckResult kernel_headers(const CheckContext& context) {
  const auto& m = context.machine;
  const bool dkms = has_dkms_package(m) || (m.driver.dkms_status && !dkms_entries(*m.driver.dkms_status).empty());
  if (!dkms)
    return complete(context) ? not_applicable("the driver is not built with DKMS, so no kernel headers are needed")
                             : CheckResult::skip("the evidence does not say that the driver is built with DKMS");
  if (!m.host.kernel_headers) return not_captured("answer whether the kernel's headers are installed");
  const auto measured = Value::object({{"kernel", kernel_of(m)}, {"headers", *m.host.kernel_headers}});
  if (*m.host.kernel_headers)
    return CheckResult::pass(fmt::format("The headers of {} are installed", kernel_of(m)), measured).because(evidence(m.host.kernel_headers));
  auto result =
      loaded(m).value_or(false)
          ? CheckResult::warn("driver.dkms-build-failed",
                              fmt::format("The headers of {} are not installed: DKMS cannot rebuild amdgpu for it", kernel_of(m)), measured)
          : CheckResult::fail(
                "driver.dkms-build-failed",
                fmt::format("The headers of {} are not installed, so DKMS cannot build amdgpu for it, and no amdgpu is loaded", kernel_of(m)),
                measured);
  if (m.host.kernel_release) result.fix.push_back(install_kernel_headers(m, *m.host.kernel_release));
  return result.because(evidence(m.host.kernel_headers));
}

CheckResult driver_loaded(const CheckContext& context) {
  const auto& m = context.machine;
  if (m.host.wsl.value_or(false)) return not_applicable("under WSL the driver runs in Windows");
  std::vector<std::string> given_away;
  for (const auto& gpu : m.gpus)
    if (is_given_away(gpu)) given_away.push_back(fmt::format("{} ({})", name_of(gpu), *gpu.driver));
  const auto usable = usable_gpus(m);
  if (usable.empty() && !given_away.empty()) {
    auto result = CheckResult::fail("driver.passthrough", fmt::format("{} kept for virtual machines: {}",
                                                                      given_away.size() == 1 ? "The GPU is" : "All GPUs are", enumerate(given_away)));
    for (const auto& gpu : m.gpus) result.because(evidence(gpu.driver));
    return result;
  }
  for (const auto* gpu : usable)
    if (gpu->driver && !gpu->driver->empty() && *gpu->driver != "amdgpu" && *gpu->driver != "pcieport") {
      auto result = CheckResult::fail("driver.module-not-loaded",
                                      fmt::format("{} is driven by \"{}\" and not by amdgpu, so it offers no compute", name_of(*gpu), *gpu->driver),
                                      Value::object({{"driver", *gpu->driver}}));
      if (*gpu->driver == "radeon")
        result.fix.push_back(
            "Boot with radeon.si_support=0 radeon.cik_support=0 amdgpu.si_support=1 amdgpu.cik_support=1 (ROCm itself no longer supports GPUs of "
            "this age)");
      return result.because(evidence(gpu->driver));
    }
  const auto is_loaded = loaded(m);
  if (!is_loaded) return not_captured("word on whether amdgpu is loaded");
  Value measured = Value::object({{"loaded", *is_loaded}, {"kernel", kernel_of(m)}});
  if (m.driver.amdgpu_version && !m.driver.amdgpu_version->empty()) measured.set("version", *m.driver.amdgpu_version);
  if (*is_loaded) {
    const bool dkms = m.driver.amdgpu_version && !m.driver.amdgpu_version->empty();
    const std::string which = dkms                                      ? fmt::format("amdgpu {} (DKMS)", *m.driver.amdgpu_version)
                              : m.driver.amdgpu_builtin.value_or(false) ? std::string("amdgpu (built into the kernel)")
                              : m.driver.amdgpu_version                 ? std::string("the kernel's own amdgpu")
                                                                        : std::string("amdgpu");
    std::string text = fmt::format("{} is loaded in {}", which, kernel_of(m));
    if (!given_away.empty()) text += fmt::format("; kept for virtual machines: {}", enumerate(given_away));
    auto result = CheckResult::pass(std::move(text), std::move(measured));
    if (m.driver.amdgpu_loaded) result.because(evidence(m.driver.amdgpu_loaded));
    return result;
  }

  const auto build = [&](std::string cause, std::string text) {
    auto result = CheckResult::fail(std::move(cause), std::move(text), measured);
    if (m.driver.amdgpu_loaded) result.because(evidence(m.driver.amdgpu_loaded));
    return result;
  };
  const std::string cmdline = m.host.kernel_cmdline.value_or("");
  for (const auto* option : {"nomodeset", "amdgpu.modeset=0", "module_blacklist=amdgpu", "modprobe.blacklist=amdgpu"})
    if (names_word(cmdline, option)) {
      auto result = build("driver.module-blacklisted", fmt::format("amdgpu is not loaded: the kernel was booted with \"{}\"", option));
      result.fix.push_back(remove_boot_option(m, option));
      result.verify = {"cat /proc/cmdline", "lsmod | grep amdgpu"};
      return result.because(evidence(m.host.kernel_cmdline));
    }
  if (m.driver.amdgpu_blacklisted.value_or(false)) {
    auto result = build("driver.module-blacklisted",
                        fmt::format("amdgpu is not loaded: it is blocked by \"{}\"", m.driver.blacklist_reason.value_or("a modprobe configuration")));
    if (m.driver.blacklist_reason) {
      result.because(evidence(m.driver.blacklist_reason));
      const auto& source = m.driver.blacklist_reason.origin.source;
      if (source == "/proc/cmdline") {
        // The option may name several modules: only amdgpu has to go.
        const auto& option = m.driver.blacklist_reason.origin.text;
        std::vector<std::string> kept;
        const auto equals = option.find('=');
        if (equals != std::string::npos)
          for (const auto name : split(std::string_view(option).substr(equals + 1), ','))
            if (name != "amdgpu") kept.emplace_back(name);
        if (!kept.empty()) result.fix.push_back(add_boot_option(m, option.substr(0, equals + 1) + join(kept, ",")));
        result.fix.push_back(remove_boot_option(m, option));
        result.verify = {"cat /proc/cmdline", "lsmod | grep amdgpu"};
      } else if (!source.empty()) {
        result.fix.push_back(fmt::format(
            "Remove the line from {}, run sudo update-initramfs -u (Fedora, RHEL: sudo dracut -f), then sudo modprobe amdgpu", shell_word(source)));
      }
    } else {
      result.because(evidence(m.driver.amdgpu_blacklisted));
    }
    return result;
  }
  // Kernel: kernel/module/signing.c and lockdown; "Key was rejected by service" is what modprobe prints for the same refusal.
  const auto unsigned_module = find_records(m, {"Loading of unsigned module is rejected", "module with unavailable key is rejected",
                                                "Key was rejected by service", "unsigned module loading is restricted"});
  if (!unsigned_module.empty()) {
    auto result = build("driver.secure-boot-unsigned",
                        "amdgpu is not loaded: the kernel refuses modules that are not signed with a key it trusts (Secure Boot)");
    for (auto& e : evidence_of(unsigned_module)) result.because(std::move(e));
    return result;
  }
  if (const auto missing = missing_build(m)) {
    auto result =
        build("driver.dkms-build-failed", fmt::format("amdgpu is not loaded: DKMS has not installed it for the running kernel {}", kernel_of(m)));
    return result.because(evidence(m.driver.dkms_status));
  }
  if (m.driver.amdgpu_installed && !*m.driver.amdgpu_installed) {
    auto result = build("driver.module-not-loaded", fmt::format("amdgpu is not loaded: {} has no amdgpu module installed", kernel_of(m)));
    if (m.host.os_id && *m.host.os_id == "ubuntu" && m.host.kernel_release)
      result.fix.push_back(fmt::format("sudo apt install {} && sudo modprobe amdgpu", shell_word("linux-modules-extra-" + *m.host.kernel_release)));
    return result.because(evidence(m.driver.amdgpu_installed));
  }
  auto result = build("driver.module-not-loaded", fmt::format("amdgpu is not loaded in {}", kernel_of(m)));
  for (auto& e :
       evidence_of(find_records(m, {"amdgpu: disagrees about version", "amdgpu: Unknown symbol", "amdgpu: loading out-of-tree", "amdgpu: probe of"})))
    result.because(std::move(e));
  return result;
}

CheckResult module_parameters(const CheckContext& context) {
  const auto& m = context.machine;
  if (m.driver.parameters.empty()) return CheckResult::skip(why_nothing(context, "the capture holds no module parameters of amdgpu"));
  const auto& table = context.knowledge.table("amdgpu_parameters");
  if (table["parameters"].items().empty()) return CheckResult::skip("the knowledge base holds no table of amdgpu's parameters");
  Findings findings;
  std::size_t compared = 0;
  std::vector<std::string> harmless;
  for (const auto& row : table["parameters"].items()) {
    const auto found = m.driver.parameters.find(std::string(row["name"].as_text()));
    if (found == m.driver.parameters.end() || !found->second) continue;
    ++compared;
    const auto& value = *found->second;
    bool is_default = false;
    for (const auto& d : row["defaults"].items()) is_default = is_default || d.to_string() == value;
    if (is_default) {
      findings.good();
      continue;
    }
    std::string effect(row["effect"].as_text());
    bool fine = false;
    for (const auto& known : row["values"].items())
      if (known["value"].to_string() == value) {
        effect = std::string(known["effect"].as_text());
        fine = known["harmless"].as_bool();
      }
    findings.measured("changed", Value::object({{"parameter", row["name"]},
                                                {"value", value},
                                                {"default", row["defaults"].items().empty() ? Value() : row["defaults"].items().front()}}));
    if (fine) {
      findings.good();
      harmless.push_back(fmt::format("{}={}", found->first, value));
      continue;
    }
    findings.warn("driver.module-parameter",
                  fmt::format("amdgpu runs with {}={} (default {}): {}", found->first, value,
                              row["defaults"].items().empty() ? std::string("unknown") : row["defaults"].items().front().to_string(), effect),
                  {evidence(found->second)});
  }
  findings.set("compared", compared);
  std::string pass = fmt::format("All {} known parameters of amdgpu have their defaults", compared);
  if (!harmless.empty()) pass = fmt::format("Of {} known parameters of amdgpu only harmless ones are changed: {}", compared, enumerate(harmless));
  return findings.result(std::move(pass), "none of amdgpu's captured parameters is in the knowledge base");
}

CheckResult reboot_pending(const CheckContext& context) {
  const auto& m = context.machine;
  Findings findings;
  const bool container = !m.container.kind.value_or("").empty();
  if (m.host.kernel_release && m.driver.newest_kernel_installed && !container) {
    findings.set("running_kernel", *m.host.kernel_release);
    findings.set("newest_kernel", *m.driver.newest_kernel_installed);
    if (compare_versions(*m.host.kernel_release, *m.driver.newest_kernel_installed) < 0)
      findings.warn("driver.reboot-pending",
                    fmt::format("Kernel {} runs, {} is installed and waits for a reboot", *m.host.kernel_release, *m.driver.newest_kernel_installed),
                    {evidence(m.host.kernel_release), evidence(m.driver.newest_kernel_installed)});
    else
      findings.good();
  }
  if (m.driver.amdgpu_version && m.driver.amdgpu_version_on_disk && !m.driver.amdgpu_version->empty() && !m.driver.amdgpu_version_on_disk->empty()) {
    findings.set("loaded_driver", *m.driver.amdgpu_version);
    findings.set("driver_on_disk", *m.driver.amdgpu_version_on_disk);
    if (compare_versions(*m.driver.amdgpu_version, *m.driver.amdgpu_version_on_disk) != 0)
      findings.warn(
          "driver.reboot-pending",
          fmt::format("amdgpu {} is loaded, {} is installed and waits for a reboot", *m.driver.amdgpu_version, *m.driver.amdgpu_version_on_disk),
          {evidence(m.driver.amdgpu_version), evidence(m.driver.amdgpu_version_on_disk)});
    else
      findings.good();
  }
  if (m.driver.reboot_required) {
    const auto packages = m.driver.reboot_packages.value_or("");
    if (*m.driver.reboot_required)
      findings.warn("driver.reboot-pending",
                    packages.empty() ? std::string("The package manager asks for a reboot")
                                     : fmt::format("The package manager asks for a reboot, because of {}", packages),
                    {evidence(m.driver.reboot_required)});
    else
      findings.good();
  }
  return findings.result("What is installed is what runs",
                         "the capture holds neither installed kernels nor driver versions to compare with what runs");
}

}  // namespace ff::device
