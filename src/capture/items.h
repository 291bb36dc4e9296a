#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ff::capture {

enum class ItemKind {
  file,   ///< its content
  link,   ///< its target
  stat,   ///< type, owner, mode, ACL
  names,  ///< what lies directly below, as stats
};

/// One entry of the collector's table: a path pattern ("*" matches within one name) and what to keep of it.
struct Item {
  std::string_view pattern;
  ItemKind kind = ItemKind::file;
  std::size_t limit_bytes = 64 << 10;
  /// Reading it asks the device (and so wakes it when it sleeps), as opposed to what the kernel remembers.
  bool asks_hardware = false;
};

/// Files that one child reads, so that one that hangs takes only its neighbours along.
struct ItemGroup {
  std::string_view name;
  std::span<const Item> items;
};

/// What is read of every machine, in groups.
[[nodiscard]] std::span<const ItemGroup> host_groups();
/// Of every PCI device; patterns are relative to its directory.
[[nodiscard]] std::span<const Item> pci_device_items();
/// In addition of AMD GPUs and the bridges above them; relative to the PCI device's directory.
[[nodiscard]] std::span<const Item> pci_path_items();
/// Of AMD GPUs; relative to /sys/class/drm/cardN.
[[nodiscard]] std::span<const Item> drm_card_items();

/// A command whose output is kept.
struct CommandItem {
  std::string_view name;
  std::vector<std::string> argv;
  std::chrono::milliseconds time_limit;
  std::size_t output_limit_bytes;
  bool wakes_gpu = false;
};
[[nodiscard]] const std::vector<CommandItem>& commands_to_run();

}  // namespace ff::capture
