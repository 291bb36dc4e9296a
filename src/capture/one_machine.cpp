#include "capture/one_machine.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/text.h"
#include "base/value.h"
#include "capture/hardware.h"

namespace ff::capture {
namespace {

constexpr std::uint32_t vendor_amd = 0x1002;

/// "0000:03:00.0" out of that or "03:00.0"; "" when it is no address.
std::string whole_address(std::string_view text) {
  std::string address(trim(text));
  if (address.size() == 7) address = "0000:" + address;
  address = lower(address);
  return is_pci_address(address) ? address : std::string();
}

std::optional<std::uint32_t> hex(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return to_integer<std::uint32_t>(text, 16);
}

std::string_view value_after(std::string_view content, std::string_view key) {
  for (const auto line : lines(content))
    if (line.starts_with(key)) return trim(line.substr(key.size()));
  return {};
}

/// Which AMD device each item says to be at an address.
class Census {
 public:
  void note(std::string_view address_text, std::optional<std::uint32_t> device, const std::string& item) {
    const auto address = whole_address(address_text);
    if (address.empty() || !device || *device == 0 || *device == 0xffff) return;
    const auto [it, fresh] = seen_.emplace(address, Seen{*device, item});
    if (!fresh && it->second.device != *device && conflict_.empty()) {
      conflict_ = fmt::format("{} is {:04x} in {} and {:04x} in {}", address, it->second.device, named(it->second.item), *device, named(item));
      at_ = item;
    }
  }

  explicit Census(const Capture& capture) : sources_(capture.probe("sources")) {}
  [[nodiscard]] const std::string& conflict() const { return conflict_; }
  [[nodiscard]] std::string at() const { return named(at_); }

 private:
  struct Seen {
    std::uint32_t device;
    std::string item;
  };
  [[nodiscard]] std::string named(const std::string& item) const {
    const auto name = sources_[item]["name"].as_text();
    return name.empty() ? item : std::string(name);
  }
  Value sources_;
  std::map<std::string, Seen, std::less<>> seen_;
  std::string conflict_, at_;
};

void note_uevent(Census& census, std::string_view content, const std::string& item) {
  const auto ids = split(value_after(content, "PCI_ID="), ':');
  if (ids.size() == 2 && hex(ids[0]) == vendor_amd) census.note(value_after(content, "PCI_SLOT_NAME="), hex(ids[1]), item);
}

void note_node(Census& census, std::string_view content, const std::string& item) {
  const auto number = [&](std::string_view key) { return to_integer<std::uint32_t>(value_after(content, key)); };
  const auto location = number("location_id "), device = number("device_id ");
  if (number("vendor_id ") != vendor_amd || !location || *location == 0) return;
  // The low three bits are the function on a whole GPU and the number of a partition; the address is that of the package.
  census.note(fmt::format("{:04x}:{:02x}:{:02x}.0", number("domain ").value_or(0), *location >> 8 & 0xff, *location >> 3 & 0x1f), device, item);
}

void note_lspci(Census& census, std::string_view text, const std::string& item) {
  for (const auto line : lines(text)) {
    const auto at = line.find("[1002:");
    if (at == std::string_view::npos || line.empty() || line.front() == '\t' || line.front() == ' ') continue;
    census.note(line.substr(0, line.find(' ')), hex(line.substr(at + 6, 4)), item);
  }
}

void note_smi(Census& census, std::string_view text, const std::string& item) {
  const auto start = text.find_first_of("[{");
  if (start == std::string_view::npos) return;
  const auto document = parse_json(text.substr(start));
  if (!document) return;
  for (const auto& [card, record] : document->members())
    if (card.starts_with("card")) {
      const auto& id = record["Device ID"].is_text() ? record["Device ID"] : record["GPU ID"];
      census.note(record["PCI Bus"].as_text(), hex(id.as_text()), item);
    }
  const Value& list = document->is_list() ? *document : (*document)["gpu_data"];
  for (const auto& record : list.items()) census.note(record["bus"]["bdf"].as_text(), hex(record["asic"]["device_id"].as_text()), item);
}

}  // namespace

Result<void> check_one_machine(const Capture& capture) {
  Census census(capture);
  constexpr std::string_view pci = "/sys/bus/pci/devices/";
  for (const auto& [path, content] : capture.files()) {
    const std::string_view name = path;
    if (name.ends_with("/uevent")) note_uevent(census, content, path);
    if (name.starts_with("/sys/class/kfd/") && name.ends_with("/properties")) note_node(census, content, path);
    if (name.starts_with(pci) && name.ends_with("/device")) {
      const auto address = name.substr(pci.size(), name.size() - pci.size() - 7);
      const auto vendor = capture.value(std::string(pci) + std::string(address) + "/vendor");
      if (vendor && hex(*vendor) == vendor_amd) census.note(address, hex(content), path);
    }
  }
  for (const auto& [name, output] : capture.all_commands()) {
    const std::string item = "cmd/" + name + "/stdout";
    if (name.starts_with("lspci")) note_lspci(census, output.out, item);
    if (name.starts_with("rocm-smi-json") || name.starts_with("amd-smi")) note_smi(census, output.out, item);
  }
  if (census.conflict().empty()) return {};
  return fail("two machines in one: " + census.conflict(), census.at(), "give the files of one machine at a time");
}

}  // namespace ff::capture
