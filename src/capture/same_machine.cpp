#include "capture/same_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace ff::capture {
namespace {

using Names = std::set<std::string>;

/// The unique ids of the GPUs: amdgpu's files, and the topology's decimal ones.
Names unique_ids(const Capture& capture) {
  Names out;
  const auto add = [&](std::string id) {
    if (id.size() < 16) id.insert(0, 16 - id.size(), '0');
    if (id.find_first_not_of('0') != std::string::npos) out.insert(std::move(id));
  };
  for (const auto& [path, content] : capture.files()) {
    const std::string_view name = path;
    if (name.starts_with("/sys/class/drm/") && name.ends_with("/device/unique_id")) add(lower(trim(content)));
    if (!name.starts_with("/sys/class/kfd/") || !name.ends_with("/properties")) continue;
    for (const auto line : lines(content))
      if (line.starts_with("unique_id "))
        if (const auto id = to_integer<std::uint64_t>(line.substr(10))) add(fmt::format("{:016x}", *id));
  }
  return out;
}

/// "0000:03:00.0 1002:744c" of every AMD display or accelerator function.
Names gpus(const Capture& capture) {
  Names out;
  const std::string root = "/sys/bus/pci/devices/";
  for (const std::string& address : capture.list("/sys/bus/pci/devices")) {
    const auto vendor = capture.value(root + address + "/vendor"), device = capture.value(root + address + "/device"),
               kind = capture.value(root + address + "/class");
    if (vendor && device && *vendor == "0x1002" && (!kind || kind->starts_with("0x03") || kind->starts_with("0x12")))
      out.insert(fmt::format("{} {}", address, *device));
  }
  return out;
}

bool share(const Names& a, const Names& b) {
  return std::ranges::any_of(a, [&](const std::string& one) { return b.contains(one); });
}

bool in_container(const Capture& capture) {
  if (capture.exists("/.dockerenv") || capture.exists("/run/.containerenv")) return true;
  const auto group = capture.file("/proc/1/cgroup");
  return group && (contains(*group, "docker") || contains(*group, "kubepods") || contains(*group, "containerd") || contains(*group, "lxc"));
}

std::string host_name(const Capture& capture) {
  std::string name(capture.about()["hostname"].as_text());
  if (name.empty()) name = capture.value("/proc/sys/kernel/hostname").value_or("");
  // The first label: a name may be given with its domain or without.
  return lower(name.substr(0, name.find('.')));
}

/// What does not change with a card: processor, board, product.
std::string board_of(const Capture& capture) {
  std::string out;
  if (const Value* model = capture.probe("host").find("cpu_model")) out += model->as_text();
  for (const std::string name : {"product_name", "board_name"})
    if (const auto value = capture.value("/sys/class/dmi/id/" + name)) out += "/" + std::string(*value);
  return out;
}

}  // namespace

std::string different_machines(const Capture& before, const Capture& after) {
  const Names ids_before = unique_ids(before), ids_after = unique_ids(after);
  if (share(ids_before, ids_after)) return {};
  const Names gpus_before = gpus(before), gpus_after = gpus(after);
  const bool other_gpus = (!ids_before.empty() && !ids_after.empty()) || (!gpus_before.empty() && !gpus_after.empty() && gpus_before != gpus_after);
  const std::string name_before = host_name(before), name_after = host_name(after);
  std::string said = fmt::format("the one is called {}, the other {}", name_before, name_after);
  if (!name_before.empty() && !name_after.empty()) {
    if (name_before != name_after) {
      if (other_gpus) return said + ", and no GPU is in both";
      // A container has a name of its own; the processor and the board are the host's.
      const std::string board = board_of(before), other_board = board_of(after);
      const bool other_host = !board.empty() && !other_board.empty() && board != other_board;
      if (!other_host && (in_container(before) || in_container(after))) return {};
      return said;
    }
  }
  if (!other_gpus) return {};
  // All GPUs are others: cards were changed, or it is another machine with the same name.
  if (const std::string board = board_of(before); !board.empty() && board == board_of(after)) return {};
  return "no GPU is in both (" +
         (ids_before.empty() || ids_after.empty() ? *gpus_before.begin() + " and " + *gpus_after.begin()
                                                  : *ids_before.begin() + " and " + *ids_after.begin()) +
         ")";
}

}  // namespace ff::capture
