#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "capture/capture.h"
#include "facts/machine.h"

namespace ff::facts {

/// How every reader of this directory looks at a capture: values trimmed, padding cut, each with its origin.
class Evidence {
 public:
  explicit Evidence(const capture::Capture& capture) : capture_(capture) {}

  [[nodiscard]] const capture::Capture& capture() const { return capture_; }
  /// Content of a text file up to its first NUL: copies of sysfs files are often padded to a page.
  [[nodiscard]] std::optional<std::string_view> text(std::string_view path) const;
  /// The same without blanks around it; nothing when empty.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view path) const;
  /// Standard output of a command under any of its numbers ("dmesg", "dmesg#2", ...), with the origin's source name.
  [[nodiscard]] std::vector<std::pair<std::string, std::string_view>> outputs(std::string_view command) const;

  /// Names the handed-over file when the item comes from one.
  [[nodiscard]] Origin origin(std::string_view source, std::uint64_t line, std::string_view text) const;

  [[nodiscard]] Known<std::string> known_text(std::string_view path) const;
  template <class Integer>
  [[nodiscard]] Known<Integer> known_integer(std::string_view path, int base = 10) const {
    const auto v = value(path);
    if (!v) return {};
    const auto number = to_integer<Integer>(*v, base);
    if (!number) return {};
    return {*number, origin(path, 1, *v)};
  }

 private:
  const capture::Capture& capture_;
};

/// Text up to the first NUL.
[[nodiscard]] std::string_view cut_at_nul(std::string_view s);

/// "key value" lines, as KFD's properties files have them.
class Properties {
 public:
  Properties(const Evidence& evidence, std::string path);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  template <class Integer>
  [[nodiscard]] Known<Integer> integer(std::string_view key) const {
    for (const auto& entry : entries_) {
      if (entry.key != key) continue;
      if (const auto number = to_integer<Integer>(entry.value)) return {*number, evidence_.origin(path_, entry.line, entry.text)};
      return {};
    }
    return {};
  }

 private:
  struct Entry {
    std::string_view key, value, text;
    std::uint64_t line;
  };
  const Evidence& evidence_;
  std::string path_;
  std::vector<Entry> entries_;
};

/// Sets `to` unless it is known already.
template <class T>
void fill(Known<T>& to, Known<T> from) {
  if (!to && from) to = std::move(from);
}

/// A PCI address in the form "0000:03:00.0".
struct PciAddress {
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;
  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
  [[nodiscard]] std::string to_string() const;
};
/// "0000:03:00.0" or "03:00.0" (domain 0), hexadecimal; nothing for anything else.
[[nodiscard]] std::optional<PciAddress> parse_pci(std::string_view s);
/// Every PCI address among the components of a path.
[[nodiscard]] std::vector<std::string> pci_addresses_of_path(std::string_view path);

/// N of "cardN" when `name` is `stem` and digits and nothing else.
[[nodiscard]] std::optional<int> number_after(std::string_view name, std::string_view stem);

}  // namespace ff::facts
