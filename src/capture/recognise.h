#pragma once

#include <string>
#include <string_view>

namespace ff::capture {

/// What a handed-over text is, told from its content.
enum class TextKind {
  unknown,
  binary,
  transcript,
  rocminfo,
  rocm_smi_json,
  amd_smi_list_json,
  amd_smi_static_json,
  amd_smi_metric_json,
  rocm_smi,
  amd_smi,
  lspci_verbose,
  lspci,
  kernel_log,  ///< dmesg
  journal,     ///< kernel messages with date and host, as journalctl and syslog write them
  pip_list,
  collect_env,
  environment,
  uevent,  ///< of a device in /sys: "DRIVER=amdgpu", "PCI_ID=1002:744C"
  id,
  uname,
  ls_nodes,
  dkms_status,
  dpkg_list,
  rpm_list,
  lsmod,
  df,
  free,
  os_release,
  kernel_command_line,
  file_values,  ///< "path:value", "==> path <==" or "# path" followed by content
};

[[nodiscard]] std::string_view text_kind_name(TextKind kind);

/// Looks at the first 256 KiB. Needs real signs of a kind; a text that merely mentions one stays unknown.
[[nodiscard]] TextKind recognise(std::string_view text);

/// True for one line of a kernel log without date: "[    1.234567] text", "<6>[ 1.234567] text", "kernel: text",
/// "amdgpu 0000:03:00.0: …".
[[nodiscard]] bool is_kernel_line(std::string_view line);

/// "KEY=value" with a name that variables have.
[[nodiscard]] bool is_assignment(std::string_view line);

}  // namespace ff::capture
