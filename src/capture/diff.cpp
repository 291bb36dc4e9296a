#include "capture/diff.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "capture/reader.h"

namespace ff::capture {
namespace {

/// name -> value of one kind of thing; nothing: this capture did not look.
using Things = std::optional<std::map<std::string, std::string>>;

constexpr std::size_t most_lines = 6;
/// Files longer than this are compared as a whole.
constexpr std::size_t line_diff_limit_bytes = 1u << 20;

std::string shorten(std::string_view text) {
  constexpr std::size_t most = 200;
  const std::string_view s = trim(text);
  return s.size() <= most ? to_utf8(s) : to_utf8(s.substr(0, most)) + " …";
}

void add_value(std::map<std::string, std::string>& out, const Capture& c, const std::string& path, const std::string& name) {
  if (const auto value = c.value(path)) out[name] = shorten(*value);
}

Things table_of_command(const Capture& c, std::string_view command) {
  const CommandOutput* output = c.command(command);
  if (output == nullptr || output->start_errno != 0 || output->timed_out) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string_view line : lines(output->out)) {
    const auto fields = split(line, '\t');
    // dpkg keeps removed packages as "rc ".
    if (fields.size() < 2 || (fields.size() > 2 && !trim(fields[2]).starts_with("ii"))) continue;
    // Kernels and the like are installed in several versions side by side.
    std::string& value = out[std::string(fields[0])];
    value += (value.empty() ? "" : ", ") + std::string(fields[1]);
  }
  return out;
}

Things system_packages(const Capture& c) {
  if (auto dpkg = table_of_command(c, "dpkg")) return dpkg;
  return table_of_command(c, "rpm");
}

Things python_packages(const Capture& c) {
  const Value& pythons = c.probe("pythons");
  if (pythons.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  const bool several = pythons.items().size() > 1;
  for (const Value& python : pythons.items()) {
    const std::string in = several ? " in " + std::string(python["prefix"].as_text()) : std::string();
    for (const Value& package : python["packages"].items()) {
      const std::string name = lower(replace_all(replace_all(std::string(package["name"].as_text()), "_", "-"), ".", "-"));
      out[name + in] = std::string(package["version"].as_text()) + (package["editable"].as_bool() ? " (editable)" : "");
    }
    if (python["torch"].is_object())
      for (const std::string_view build : {"hip", "cuda"})
        if (python["torch"].find(build) != nullptr)
          out["torch's " + std::string(build) + in] = python["torch"][build].is_null() ? "none" : std::string(python["torch"][build].as_text());
  }
  return out;
}

Things pythons(const Capture& c) {
  const Value& list = c.probe("pythons");
  if (list.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  std::size_t number = 0;
  for (const Value& python : list.items())
    if (!python["prefix"].as_text().empty())
      out["environment " + std::to_string(number++)] = std::string(python["prefix"].as_text()) + ", Python " + python["version"].to_string();
  return out;
}

Things environment(const Capture& c) {
  const Value& env = c.probe("env");
  if (env.is_null()) return std::nullopt;
  constexpr std::array by_themselves{"SLURM_JOB_ID", "SLURM_JOBID",     "SLURM_STEP_ID", "SLURM_TASK_PID",
                                     "MASTER_PORT",  "XDG_RUNTIME_DIR", "WSL_INTEROP",   "TORCHELASTIC_RUN_ID"};
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : env.members())
    if (std::ranges::find(by_themselves, std::string_view(name)) == by_themselves.end()) out[name] = value.to_string();
  return out;
}

Things kernel(const Capture& c) {
  std::map<std::string, std::string> out;
  add_value(out, c, "/proc/sys/kernel/osrelease", "running kernel");
  add_value(out, c, "/etc/os-release", "operating system");
  if (const auto os = c.file("/etc/os-release"))
    for (const std::string_view line : lines(*os))
      if (line.starts_with("PRETTY_NAME=")) out["operating system"] = replace_all(std::string(line.substr(12)), "\"", "");
  return out.empty() ? Things() : Things(out);
}

Things modules(const Capture& c) {
  std::map<std::string, std::string> out;
  bool looked = false;
  for (const std::string_view name : {"amdgpu", "amdkcl", "amdxcp", "radeon", "nouveau", "nvidia", "vfio_pci"}) {
    const std::string path = "/sys/module/" + std::string(name);
    looked = looked || c.exists(path) || c.known_absent(path);
    if (!c.exists(path)) continue;
    std::string what = "loaded";
    if (const auto version = c.value(path + "/version")) what += ", version " + std::string(*version);
    if (const auto source = c.value(path + "/srcversion")) what += ", srcversion " + std::string(*source);
    out[std::string(name)] = what;
  }
  return looked ? Things(out) : Things();
}

Things module_parameters(const Capture& c) {
  if (!c.exists("/sys/module/amdgpu")) return c.known_absent("/sys/module/amdgpu") ? Things(std::map<std::string, std::string>()) : Things();
  std::map<std::string, std::string> out;
  for (const std::string& name : c.list("/sys/module/amdgpu/parameters")) add_value(out, c, "/sys/module/amdgpu/parameters/" + name, name);
  return out;
}

Things dkms(const Capture& c) {
  const CommandOutput* output = c.command("dkms-status");
  if (output == nullptr || output->timed_out || (output->start_errno != 0 && output->start_errno != 2)) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string_view line : lines(output->out)) {
    const auto colon = line.rfind(": ");
    if (colon != std::string_view::npos) out[std::string(line.substr(0, colon))] = line.substr(colon + 2);
  }
  return out;
}

Things rocm(const Capture& c) {
  const Value& installs = c.probe("rocm");
  if (installs.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const Value& install : installs.items()) {
    const std::string root(install["root"].as_text());
    out[root] = std::string(install["version"].as_text("version unknown")) +
                (install["is_link_to"].is_text() ? " -> " + std::string(install["is_link_to"].as_text()) : "");
    for (const auto& [name, path] : install["libraries"].members())
      if (!install["is_link_to"].is_text()) out[root + " " + name] = path.as_text();
  }
  return out;
}

/// Cards under a name that does not change with the order of loading: the PCI address when it is known.
std::string card_name(const Capture& c, const std::string& card) {
  if (const auto uevent = c.file("/sys/class/drm/" + card + "/device/uevent"))
    for (const std::string_view line : lines(*uevent))
      if (line.starts_with("PCI_SLOT_NAME=")) return std::string(line.substr(14));
  if (const auto link = c.link("/sys/class/drm/" + card + "/device")) {
    const auto parts = split(*link, '/');
    if (!parts.empty()) return std::string(parts.back());
  }
  return card;
}

std::vector<std::string> cards(const Capture& c) {
  std::vector<std::string> out;
  for (const std::string& name : c.list("/sys/class/drm"))
    if (name.starts_with("card") && c.exists("/sys/class/drm/" + name + "/device")) out.push_back(name);
  return out;
}

Things firmware(const Capture& c) {
  std::map<std::string, std::string> out;
  bool looked = false;
  for (const std::string& card : cards(c)) {
    looked = true;
    const std::string device = "/sys/class/drm/" + card + "/device";
    const std::string name = card_name(c, card);
    for (const std::string& file : c.list(device + "/fw_version")) {
      const auto value = c.value(device + "/fw_version/" + file);
      // Firmware that this GPU has not reads as zero.
      if (value && *value != "0x00000000" && *value != "0x0") out[name + " " + replace_all(file, "_fw_version", "")] = std::string(*value);
    }
    add_value(out, c, device + "/vbios_version", name + " vbios");
  }
  return looked ? Things(out) : Things();
}

Things pci_devices(const Capture& c) {
  const auto names = c.list("/sys/bus/pci/devices");
  if (names.empty() && !c.known_absent("/sys/bus/pci/devices")) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string& address : names) {
    const std::string path = "/sys/bus/pci/devices/" + address;
    const auto vendor = c.value(path + "/vendor");
    const auto device = c.value(path + "/device");
    if (!vendor || !device) continue;
    std::string what = std::string(*vendor) + ":" + std::string(*device);
    if (const auto driver = c.link(path + "/driver")) what += ", driver " + std::string(driver->substr(driver->rfind('/') + 1));
    // The width says how the card sits in its slot. The speed follows the load and is left out.
    if (const auto width = c.value(path + "/current_link_width"); width && *width != "0" && *width != "255") what += ", x" + std::string(*width);
    out[address] = what;
  }
  return out;
}

Things gpus(const Capture& c) {
  std::map<std::string, std::string> out;
  bool looked = c.known_absent("/sys/class/drm") || !c.list("/sys/bus/pci/devices").empty();
  for (const std::string& card : cards(c)) {
    looked = true;
    const std::string device = "/sys/class/drm/" + card + "/device";
    const std::string name = card_name(c, card);
    for (const std::string_view file :
         {"unique_id", "mem_info_vram_total", "mem_info_vis_vram_total", "current_compute_partition", "current_memory_partition", "numa_node",
          "reset_method", "enforce_isolation", "power_dpm_force_performance_level", "product_name"})
      add_value(out, c, device + "/" + std::string(file), name + " " + std::string(file));
    // Where only the card's own tree was handed over; among all PCI devices the width stands with the address.
    if (const auto width = c.value(device + "/current_link_width");
        width && *width != "0" && *width != "255" && c.list("/sys/bus/pci/devices").empty())
      out[name + " link width"] = "x" + std::string(*width);
    if (const auto pages = c.file(device + "/ras/gpu_vram_bad_pages")) out[name + " retired pages"] = std::to_string(lines(*pages).size());
    for (const std::string& hwmon : c.list(device + "/hwmon"))
      add_value(out, c, device + "/hwmon/" + hwmon + "/power1_cap", name + " power cap (µW)");
  }
  return looked ? Things(out) : Things();
}

Things kfd_nodes(const Capture& c) {
  const std::string root = "/sys/class/kfd/kfd/topology/nodes";
  const auto names = c.list(root);
  if (names.empty() && !c.known_absent(root)) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string& node : names)
    if (const auto text = c.file(root + "/" + node + "/properties"))
      for (const std::string_view line : lines(*text)) {
        const auto parts = words(line);
        if (parts.size() == 2) out["node " + node + " " + std::string(parts[0])] = parts[1];
      }
  return out;
}

Things host(const Capture& c) {
  std::map<std::string, std::string> out;
  for (const std::string_view name : {"cpu_model", "logical_cpus", "sockets", "numa_nodes", "hypervisor"})
    if (const Value* value = c.probe("host").find(name)) out[std::string(name)] = value->to_string();
  for (const std::string_view name : {"sys_vendor", "product_name", "board_name", "bios_version", "bios_date"})
    add_value(out, c, "/sys/class/dmi/id/" + std::string(name), std::string(name));
  if (const auto memory = c.file("/proc/meminfo"))
    for (const std::string_view line : lines(*memory))
      for (const std::string_view name : {"MemTotal:", "SwapTotal:"})
        if (line.starts_with(name)) out[std::string(name.substr(0, name.size() - 1))] = trim(line.substr(name.size()));
  return out.empty() ? Things() : Things(out);
}

Things settings(const Capture& c) {
  std::map<std::string, std::string> out;
  for (const std::string_view path :
       {"/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/dmesg_restrict", "/proc/sys/kernel/randomize_va_space",
        "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count", "/proc/sys/vm/nr_hugepages",
        "/proc/sys/vm/swappiness", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/module/pcie_aspm/parameters/policy",
        "/sys/kernel/security/lockdown", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max"})
    add_value(out, c, std::string(path), std::string(path));
  if (const Value* governors = c.probe("host").find("governors")) out["CPU frequency governors"] = governors->to_string();
  for (const Value& disk : c.probe("disks").items()) {
    const std::string name = "disk " + std::string(disk["purpose"].as_text());
    if (disk["mount"].is_text())
      out[name + " mount"] = std::string(disk["mount"].as_text()) + " (" + std::string(disk["filesystem"].as_text()) + ", " +
                             std::string(disk["options"].as_text()) + ")";
    if (disk["writable"].kind() == Value::Kind::boolean) out[name + " writable"] = disk["writable"].as_bool() ? "yes" : "no";
  }
  if (c.probe("shm")["total_bytes"].is_number())
    out["/dev/shm size"] = human_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(c.probe("shm")["total_bytes"].as_int(), 0)));
  return out.empty() ? Things() : Things(out);
}

Things work(const Capture& c) {
  const Value& work = c.probe("work");
  if (work.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string_view name : {"commit", "branch", "remote"})
    if (work["git"][name].is_text()) out["git " + std::string(name)] = work["git"][name].as_text();
  for (const Value& file : work["git"]["modified"].items()) out["modified " + std::string(file.as_text())] = "yes";
  return out;
}

/// What `firstfault check` was asked with (probe "check").
Things check_members(const Capture& c, std::string_view which) {
  const Value& members = c.probe("check")[which];
  if (members.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : members.members()) out[name] = value.as_text();
  return out;
}
Things check_options(const Capture& c) { return check_members(c, "options"); }
Things check_configs(const Capture& c) { return check_members(c, "configs"); }

/// Configuration files; compared line by line.
Things files(const Capture& c) {
  std::map<std::string, std::string> out;
  for (const auto& [path, content] : c.files()) {
    const bool configuration = (path.starts_with("/etc/") && path != "/etc/os-release") || path.starts_with("/lib/modprobe.d/") ||
                               path.starts_with("/usr/lib/modprobe.d/") || path.starts_with("/run/modprobe.d/");
    const bool of_work = !path.starts_with("/proc/") && !path.starts_with("/sys/") && !path.starts_with("/dev/") && c.probe("work").is_object() &&
                         path.starts_with(c.probe("work")["root"].as_text("\n"));
    if (configuration || of_work) out[path] = content;
  }
  return out.empty() && c.kind() == "loose" ? Things() : Things(out);
}

Things kernel_arguments(const Capture& c) {
  const auto line = c.value("/proc/cmdline");
  if (!line) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const std::string_view argument : words(*line)) {
    const auto equals = argument.find('=');
    const std::string name(argument.substr(0, equals));
    if (name == "BOOT_IMAGE" || name == "initrd") continue;  // follows the kernel
    std::string& value = out[name];
    const std::string_view given = equals == std::string_view::npos ? std::string_view{"(set)"} : argument.substr(equals + 1);
    value += (value.empty() ? "" : ", ") + std::string(given);  // console= may stand twice
  }
  return out;
}

Things access(const Capture& c) {
  std::map<std::string, std::string> out;
  bool looked = false;
  for (const auto& [path, answer] : c.probe("access").members()) {
    looked = true;
    const int error = static_cast<int>(answer["errno"].as_int());
    out["open " + path] = error == 0 ? "works" : errno_text(error);
  }
  for (const auto& [path, stat] : c.stats()) {
    if (path != "/dev/kfd" && !path.starts_with("/dev/dri/") && path != "/dev/dxg") continue;
    looked = true;
    std::string mode = "0000";
    for (std::size_t i = 0; i < 4; ++i) mode[3 - i] = static_cast<char>('0' + ((stat.mode >> (3 * i)) & 7));
    out["owner of " + path] = (stat.user.empty() ? std::to_string(stat.uid) : stat.user) + ":" +
                              (stat.group.empty() ? std::to_string(stat.gid) : stat.group) + " " + mode + (stat.acl.empty() ? "" : " " + stat.acl);
  }
  return looked ? Things(out) : Things();
}

Things user(const Capture& c) {
  const Value& user = c.probe("user");
  if (user.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  if (user["uid"].is_number()) out["uid"] = user["uid"].to_string();
  std::vector<std::string> groups;
  for (const Value& group : user["groups"].items())
    groups.push_back(group["name"].as_text().empty() ? group["gid"].to_string() : std::string(group["name"].as_text()));
  std::ranges::sort(groups);
  out["groups"] = join(groups, ", ");
  return out;
}

Things limits(const Capture& c) {
  const Value& limits = c.probe("limits");
  if (limits.is_null()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& [name, limit] : limits.members()) out[name] = limit["soft"].to_string() + " (hard " + limit["hard"].to_string() + ")";
  return out;
}

struct Domain {
  std::string_view group, what;
  Things (*read)(const Capture&);
  bool by_line = false;
};
constexpr std::array domains{
    Domain{"packages", "system package", system_packages},
    Domain{"packages", "Python package", python_packages},
    Domain{"packages", "Python environment", pythons},
    Domain{"environment", "variable", environment},
    Domain{"driver", "kernel", kernel},
    Domain{"driver", "module", modules},
    Domain{"driver", "amdgpu parameter", module_parameters},
    Domain{"driver", "dkms module", dkms},
    Domain{"driver", "ROCm", rocm},
    Domain{"driver", "GPU firmware", firmware},
    Domain{"hardware", "PCI device", pci_devices},
    Domain{"hardware", "GPU", gpus},
    Domain{"hardware", "KFD topology", kfd_nodes},
    Domain{"hardware", "host", host},
    Domain{"configuration", "file", files, true},
    Domain{"configuration", "setting", settings},
    Domain{"configuration", "work tree", work},
    Domain{"configuration", "file given with --config", check_configs, true},
    Domain{"command-line", "kernel argument", kernel_arguments},
    Domain{"command-line", "option of check", check_options},
    Domain{"access", "device node", access},
    Domain{"access", "user", user},
    Domain{"access", "limit", limits},
};

/// Lines that are only on one side, as sets: enough to see what was edited, and cheap.
void line_difference(std::string_view before, std::string_view after, Change& change) {
  if (before.size() > line_diff_limit_bytes || after.size() > line_diff_limit_bytes) return;
  const auto as_set = [](std::string_view text) {
    std::set<std::string_view> out;
    for (const std::string_view line : lines(text))
      if (!trim(line).empty()) out.insert(line);
    return out;
  };
  const auto a = as_set(before);
  const auto b = as_set(after);
  for (const std::string_view line : lines(before))
    if (!trim(line).empty() && !b.contains(line) && change.removed_lines.size() < most_lines) change.removed_lines.push_back(shorten(line));
  for (const std::string_view line : lines(after))
    if (!trim(line).empty() && !a.contains(line) && change.added_lines.size() < most_lines) change.added_lines.push_back(shorten(line));
}

void compare(const Domain& domain, const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after,
             std::vector<Change>& out) {
  std::set<std::string> names;
  for (const auto& [name, value] : before) names.insert(name);
  for (const auto& [name, value] : after) names.insert(name);
  for (const std::string& name : names) {
    const auto a = before.find(name);
    const auto b = after.find(name);
    if (a != before.end() && b != after.end() && a->second == b->second) continue;
    Change change{std::string(domain.group), std::string(domain.what), name, {}, {}, {}, {}};
    if (domain.by_line) {
      if (a != before.end()) change.before = human_bytes(a->second.size());
      if (b != after.end()) change.after = human_bytes(b->second.size());
      line_difference(a != before.end() ? a->second : "", b != after.end() ? b->second : "", change);
    } else {
      if (a != before.end()) change.before = a->second;
      if (b != after.end()) change.after = b->second;
    }
    out.push_back(std::move(change));
  }
}

Value side(const Capture& capture, std::string_view name) {
  return Value::object({{"name", name}, {"hostname", capture.about()["hostname"]}, {"taken_at", capture.about()["taken_at"]}});
}

}  // namespace

const std::vector<std::string>& diff_groups() {
  static const std::vector<std::string> groups{"packages", "environment", "driver", "hardware", "configuration", "command-line", "access"};
  return groups;
}

std::vector<std::string> Difference::groups_changed() const {
  std::vector<std::string> out;
  for (const std::string& group : diff_groups())
    if (std::ranges::any_of(changes, [&](const Change& change) { return change.group == group; })) out.push_back(group);
  return out;
}

Difference diff(const Capture& before, const Capture& after) {
  Difference out;
  for (const Domain& domain : domains) {
    const Things a = domain.read(before);
    const Things b = domain.read(after);
    if (a && b) {
      ++out.compared;
      compare(domain, *a, *b, out.changes);
    } else if (a || b) {
      out.not_compared.push_back({std::string(domain.group), std::string(domain.what), !a});
    }
  }
  return out;
}

bool holds_comparable(const Capture& capture) {
  return std::ranges::any_of(domains, [&](const Domain& domain) { return domain.read(capture).has_value(); });
}

Value diff_to_value(const Difference& difference, const Capture& before, const Capture& after, std::string_view before_name,
                    std::string_view after_name) {
  Value changes = Value::list();
  for (const Change& change : difference.changes) {
    Value one = Value::object({{"group", change.group}, {"what", change.what}, {"name", to_utf8(change.name)}});
    one.set("before", change.before ? Value(to_utf8(*change.before)) : Value());
    one.set("after", change.after ? Value(to_utf8(*change.after)) : Value());
    if (!change.removed_lines.empty()) one.set("removed_lines", Value::list_of(change.removed_lines));
    if (!change.added_lines.empty()) one.set("added_lines", Value::list_of(change.added_lines));
    changes.push(std::move(one));
  }
  Value missing = Value::list();
  for (const NotCompared& domain : difference.not_compared)
    missing.push(Value::object({{"group", domain.group}, {"what", domain.what}, {"missing_in", domain.missing_in_first ? "before" : "after"}}));
  return Value::object({{"schema", "firstfault/diff/1"},
                        {"before", side(before, before_name)},
                        {"after", side(after, after_name)},
                        {"groups_changed", Value::list_of(difference.groups_changed())},
                        {"changes", changes},
                        {"not_compared", missing}});
}

}  // namespace ff::capture
