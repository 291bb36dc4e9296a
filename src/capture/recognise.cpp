#include "capture/recognise.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "base/value.h"
#include "capture/hardware.h"
#include "capture/transcript.h"

namespace ff::capture {
namespace {

constexpr std::size_t look_at_bytes = 256 << 10;
constexpr std::size_t look_at_lines = 4000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(std::string_view s) {
  return !s.empty() && std::ranges::all_of(s, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// "03:00.0" or "0000:03:00.0".
bool is_slot(std::string_view s) {
  if (s.size() == 7) return is_hex(s.substr(0, 2)) && s[2] == ':' && is_hex(s.substr(3, 2)) && s[5] == '.' && s[6] >= '0' && s[6] <= '7';
  return is_pci_address(s);
}

bool is_binary(std::string_view text) {
  const std::string_view head = text.substr(0, 8192);
  if (head.find('\0') != std::string_view::npos) return true;
  const auto odd = std::ranges::count_if(
      head, [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != 0x1b && c != '\f' && c != '\b'; });
  return static_cast<std::size_t>(odd) * 20 > head.size();
}

/// "[    1.234567]" or "<6>[ 1.2]" at the front: how many characters, 0 when it is none.
std::size_t kernel_stamp(std::string_view s) {
  std::size_t at = 0;
  if (s.starts_with('<')) {
    const auto close = s.find('>');
    if (close == std::string_view::npos || close < 2 || close > 4 || !is_digit(s[1])) return 0;
    at = close + 1;
  }
  if (at >= s.size() || s[at] != '[') return 0;
  std::size_t end = at + 1;
  while (end < s.size() && s[end] == ' ') ++end;
  const std::size_t digits = end;
  while (end < s.size() && (is_digit(s[end]) || s[end] == '.')) ++end;
  if (end == digits || end >= s.size() || s[end] != ']' || s.substr(digits, end - digits).find('.') == std::string_view::npos) return 0;
  return end + 1;
}

/// "[Sun Mar  3 09:12:44 2024]" of dmesg -T.
bool has_dated_stamp(std::string_view s) {
  if (!s.starts_with('[') || s.size() < 26) return false;
  const auto close = s.find(']');
  if (close == std::string_view::npos || close < 24 || close > 40) return false;
  for (const std::string_view day : {"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "})
    if (s.substr(1).starts_with(day)) return true;
  return s.size() > 20 && is_digit(s[1]) && s[5] == '-' && s[11] == 'T';
}

/// "Feb 02 21:47:09 host kernel: …" and "2026-02-02T21:47:09.123456+01:00 host kernel: …".
bool is_journal_line(std::string_view line) {
  const auto parts = words(line.substr(0, 200));
  std::size_t next = 0;
  if (parts.size() < 3) return false;
  for (const std::string_view month : {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"})
    if (parts[0] == month && parts.size() > 3 && parts[2].size() >= 8 && parts[2][2] == ':') next = 3;
  if (next == 0 && parts[0].size() >= 19 && parts[0][4] == '-' && parts[0][10] == 'T' && is_digit(parts[0][0])) next = 1;
  if (next == 0 || next + 1 >= parts.size()) return false;
  return parts[next] == "kernel:" || parts[next + 1] == "kernel:" || parts[next + 1].starts_with("kernel[");
}

std::size_t count(const std::vector<std::string_view>& all, bool (*test)(std::string_view)) {
  return static_cast<std::size_t>(std::ranges::count_if(all, test));
}

bool is_rocminfo(std::string_view text) {
  if (contains(text, "HSA System Attributes") || contains(text, "rocminfo.cc:") || contains(text, "ROCk module is NOT loaded") ||
      contains(text, "ROCk module is loaded"))
    return true;
  // A filtered output still has the two-column names.
  return contains(text, "  Name:                    gfx") || contains(text, "amdgcn-amd-amdhsa--gfx") ||
         (contains(text, "  Marketing Name:          ") && contains(text, "  Name:                    "));
}

TextKind smi_json(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return TextKind::unknown;
  if (value->is_object()) {
    for (const auto& [name, member] : value->members()) {
      // rocm-smi: {"card0": {"GPU ID": "0x74a1", …}, "system": {…}}
      if (name.starts_with("card") && name.size() > 4 && is_digit(name[4]) && member.is_object()) return TextKind::rocm_smi_json;
    }
    if ((*value)["gpu_data"].is_list()) return smi_json(to_json((*value)["gpu_data"]));
    return TextKind::unknown;
  }
  for (const Value& item : value->items()) {
    if (!item.is_object() || item.find("gpu") == nullptr) continue;
    if (item.find("asic") != nullptr || item.find("vbios") != nullptr || item.find("board") != nullptr || item.find("driver") != nullptr)
      return TextKind::amd_smi_static_json;
    if (item.find("usage") != nullptr || item.find("temperature") != nullptr || item.find("mem_usage") != nullptr || item.find("ecc") != nullptr ||
        item.find("power") != nullptr)
      return TextKind::amd_smi_metric_json;
    if (item.find("bdf") != nullptr && item.find("uuid") != nullptr) return TextKind::amd_smi_list_json;
  }
  return TextKind::unknown;
}

bool is_pip_json(std::string_view text) {
  const auto value = parse_json(text);
  return value && !value->items().empty() &&
         std::ranges::all_of(value->items(), [](const Value& v) { return v["name"].is_text() && v["version"].is_text(); });
}

bool is_pip_table(const std::vector<std::string_view>& all) {
  for (std::size_t i = 0; i + 1 < all.size() && i < 20; ++i) {
    const auto heads = words(all[i]);
    if (heads.size() >= 2 && heads[0] == "Package" && heads[1] == "Version" && all[i + 1].starts_with("---")) return true;
  }
  return false;
}

bool is_requirement(std::string_view line) {
  const auto equals = line.find("==");
  if (equals != std::string_view::npos && equals != 0) {
    const std::string_view name = line.substr(0, equals);
    return std::ranges::all_of(name,
                               [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '[' || c == ']'; }) &&
           line.size() > equals + 2 && is_digit(line[equals + 2]);
  }
  return contains(line, " @ file://") || contains(line, " @ git+") || contains(line, " @ https://") || line.starts_with("-e git+");
}

/// "torch    2.4.0" without heading: what a filtered `pip list` leaves.
bool is_package_row(std::string_view line) {
  const auto parts = words(line);
  if (parts.size() < 2 || parts.size() > 4 || line.starts_with(' ')) return false;
  if (std::isalpha(static_cast<unsigned char>(parts[0][0])) == 0 || !is_digit(parts[1][0]) || parts[1].find('.') == std::string_view::npos)
    return false;
  return std::ranges::all_of(parts[0], [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

bool is_lspci_device(std::string_view line) {
  const auto blank = line.find(' ');
  return blank != std::string_view::npos && is_slot(line.substr(0, blank)) && contains(line, ": ");
}

bool is_node_row(std::string_view line) {
  const auto parts = words(line);
  if (parts.size() < 6) return false;
  const char type = parts[0][0];
  return (type == 'c' || type == 'b') && parts[0].size() >= 10 && contains(parts[0].substr(1, 3), "r") == (parts[0][1] == 'r') && contains(line, ",");
}

bool mentions_gpu_node(std::string_view line) {
  return contains(line, "/dev/kfd") || contains(line, "/dev/dri") || contains(line, "/dev/dxg") || contains(line, "renderD") ||
         contains(line, " kfd") || contains(line, " dxg") || contains(line, " card");
}

bool is_dkms_row(std::string_view line) {
  const auto colon = line.rfind(": ");
  if (colon == std::string_view::npos || line.find('/') == std::string_view::npos) return line.starts_with("amdgpu, ") && contains(line, ": ");
  const std::string_view state = line.substr(colon + 2);
  return state.starts_with("installed") || state.starts_with("built") || state.starts_with("added") || state.starts_with("broken");
}

bool is_value_heading(std::string_view line) {
  const auto path_start = [](std::string_view s) { return s.starts_with("/sys/") || s.starts_with("/proc/") || s.starts_with("/etc/"); };
  if (line.starts_with("==> ") && line.ends_with(" <==")) return path_start(line.substr(4));
  if (line.starts_with("# ")) return path_start(line.substr(2)) && line.find(' ', 2) == std::string_view::npos;
  return path_start(line) && line.find(':') != std::string_view::npos;
}

bool is_rpm_name(std::string_view line) {
  for (const std::string_view arch : {".x86_64", ".noarch", ".i686", ".aarch64"})
    if (line.ends_with(arch)) return line.find(' ') == std::string_view::npos && contains(line, "-");
  return false;
}

bool is_module_row(std::string_view line) {
  const auto parts = words(line);
  return parts.size() >= 3 && parts.size() <= 4 && to_integer(parts[1]).has_value() && to_integer(parts[2]).has_value();
}

/// An assignment as `env` prints it: names are in capitals but for a few. "time=… level=INFO msg=…" is a log.
bool is_variable_line(std::string_view line) {
  if (!is_assignment(line)) return false;
  if (line.starts_with("export ")) line.remove_prefix(7);
  if (line.starts_with("declare -x ")) line.remove_prefix(11);
  const std::string_view name = line.substr(0, line.find('='));
  if (name == "_" || name == "container" || name.ends_with("_proxy")) return true;
  return std::ranges::none_of(name, [](unsigned char c) { return std::islower(c) != 0; });
}

/// The kernel's own names for a device, and nothing else: variables of a process may be in capitals, too.
bool is_uevent(const std::vector<std::string_view>& all) {
  constexpr std::array names{"DRIVER",  "PCI_CLASS",   "PCI_ID",  "PCI_SUBSYS_ID", "PCI_SLOT_NAME", "MODALIAS",
                             "MAJOR",   "MINOR",       "DEVNAME", "DEVTYPE",       "DEVMODE",       "SUBSYSTEM",
                             "OF_NAME", "OF_FULLNAME", "DEVPATH", "SEQNUM",        "ACTION",        "USEC_INITIALIZED"};
  return std::ranges::all_of(all, [&](std::string_view line) {
    const auto equals = line.find('=');
    return equals != std::string_view::npos && std::ranges::find(names, line.substr(0, equals)) != names.end();
  });
}

bool is_command_line(std::string_view text) {
  const std::string_view line = trim(text);
  if (line.find('\n') != std::string_view::npos) return false;
  return line.starts_with("BOOT_IMAGE=") ||
         ((contains(line, " root=") || line.starts_with("root=")) &&
          (contains(line, " ro") || contains(line, " rw") || contains(line, "quiet") || contains(line, "console=")));
}

}  // namespace

bool is_kernel_line(std::string_view line) {
  if (kernel_stamp(line) != 0 || has_dated_stamp(line)) return true;
  if (line.starts_with("kernel: ")) return true;
  if (!line.starts_with("amdgpu ") && !line.starts_with("kfd kfd: ") && !line.starts_with("[drm")) return false;
  return line.starts_with("kfd kfd: ") || line.starts_with("[drm") || is_pci_address(line.substr(7, 12));
}

bool is_assignment(std::string_view line) {
  if (line.starts_with("export ")) line.remove_prefix(7);
  if (line.starts_with("declare -x ")) line.remove_prefix(11);
  const auto equals = line.find('=');
  if (equals == std::string_view::npos || equals == 0 || is_digit(line[0])) return false;
  return std::ranges::all_of(line.substr(0, equals), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::string_view text_kind_name(TextKind kind) {
  switch (kind) {
    case TextKind::unknown:
      return "text";
    case TextKind::binary:
      return "binary";
    case TextKind::transcript:
      return "shell";
    case TextKind::rocminfo:
      return "rocminfo";
    case TextKind::rocm_smi_json:
      return "rocm-smi-json";
    case TextKind::amd_smi_list_json:
      return "amd-smi-list-json";
    case TextKind::amd_smi_static_json:
      return "amd-smi-static-json";
    case TextKind::amd_smi_metric_json:
      return "amd-smi-metric-json";
    case TextKind::rocm_smi:
      return "rocm-smi";
    case TextKind::amd_smi:
      return "amd-smi";
    case TextKind::lspci_verbose:
      return "lspci-vvv";
    case TextKind::lspci:
      return "lspci";
    case TextKind::kernel_log:
      return "dmesg";
    case TextKind::journal:
      return "journalctl-k";
    case TextKind::pip_list:
      return "pip-list";
    case TextKind::collect_env:
      return "collect-env";
    case TextKind::environment:
      return "env";
    case TextKind::uevent:
      return "uevent";
    case TextKind::id:
      return "id";
    case TextKind::uname:
      return "uname-a";
    case TextKind::ls_nodes:
      return "ls-dev";
    case TextKind::dkms_status:
      return "dkms-status";
    case TextKind::dpkg_list:
      return "dpkg-l";
    case TextKind::rpm_list:
      return "rpm-qa";
    case TextKind::lsmod:
      return "lsmod";
    case TextKind::df:
      return "df";
    case TextKind::free:
      return "free";
    case TextKind::os_release:
      return "os-release";
    case TextKind::kernel_command_line:
      return "cmdline";
    case TextKind::file_values:
      return "values";
  }
  return "text";
}

TextKind recognise(std::string_view whole) {
  if (trim(whole).empty()) return TextKind::unknown;
  if (is_binary(whole)) return TextKind::binary;
  const std::string_view text = whole.substr(0, look_at_bytes);
  if (is_transcript(text)) return TextKind::transcript;
  const char first = trim(text)[0];
  if (first == '{' || first == '[') {
    if (const TextKind kind = smi_json(whole); kind != TextKind::unknown) return kind;
    if (is_pip_json(whole)) return TextKind::pip_list;
  }
  std::vector<std::string_view> all = lines(text);
  if (all.size() > look_at_lines) all.resize(look_at_lines);
  std::erase_if(all, [](std::string_view line) { return trim(line).empty(); });
  const std::size_t size = all.size();
  const auto most = [&](bool (*test)(std::string_view)) { return count(all, test) * 10 >= size * 6; };

  if (most(is_journal_line)) return TextKind::journal;
  if (most(is_kernel_line)) return TextKind::kernel_log;
  if (is_rocminfo(text)) return TextKind::rocminfo;
  if (contains(text, "ROCm System Management Interface") || contains(text, "ROCM-SMI version") ||
      (all[0].starts_with("GPU[") && contains(all[0], "]")))
    return TextKind::rocm_smi;
  if (contains(text, "| AMD-SMI ") || contains(text, "AMDSMI Tool:") || (all[0].starts_with("GPU: ") && size > 1 && all[1].starts_with("    ")))
    return TextKind::amd_smi;
  if (count(all, is_lspci_device) != 0 && is_lspci_device(all[0]))
    return contains(text, "\tCapabilities: [") || contains(text, "LnkSta:") ? TextKind::lspci_verbose : TextKind::lspci;
  if (contains(text, "PyTorch version:") &&
      (contains(text, "ROCM used to build PyTorch:") || contains(text, "CUDA used to build PyTorch:") || contains(text, "Is CUDA available:")))
    return TextKind::collect_env;
  if (is_pip_table(all) || most(is_requirement)) return TextKind::pip_list;
  if (all[0].starts_with("uid=") && contains(all[0], " gid=")) return TextKind::id;
  if (all[0].starts_with("Linux ") && contains(all[0], "GNU/Linux") && words(all[0]).size() >= 6) return TextKind::uname;
  if (std::ranges::any_of(all, is_node_row) && std::ranges::any_of(all, mentions_gpu_node)) return TextKind::ls_nodes;
  if (contains(text, "Desired=Unknown/Install/Remove/Purge/Hold") ||
      most([](std::string_view l) { return l.starts_with("ii  ") || l.starts_with("rc  "); }))
    return TextKind::dpkg_list;
  if (most(is_dkms_row)) return TextKind::dkms_status;
  if (all[0].starts_with("Module ") && contains(all[0], "Size") && contains(all[0], "Used by")) return TextKind::lsmod;
  if (all[0].starts_with("Filesystem") && contains(all[0], "Mounted on")) return TextKind::df;
  if (contains(all[0], "total") && contains(all[0], "used") && contains(all[0], "free") && size > 1 && all[1].starts_with("Mem:"))
    return TextKind::free;
  if (most(is_rpm_name)) return TextKind::rpm_list;
  if (most(is_assignment) && contains(text, "PRETTY_NAME=")) return TextKind::os_release;
  if (is_command_line(text)) return TextKind::kernel_command_line;
  if (is_value_heading(all[0])) return TextKind::file_values;
  if (is_uevent(all)) return TextKind::uevent;
  const auto assignments = count(all, is_variable_line);
  if (assignments * 10 >= size * 8 || (assignments >= 10 && most(is_variable_line))) return TextKind::environment;
  if (most(is_module_row) && contains(text, "amdgpu")) return TextKind::lsmod;
  if (size >= 2 && most(is_package_row)) return TextKind::pip_list;
  return TextKind::unknown;
}

}  // namespace ff::capture
