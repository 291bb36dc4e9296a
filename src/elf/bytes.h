#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace ff::elf {

/// a + b, nothing when it overflows.
[[nodiscard]] constexpr std::optional<std::uint64_t> add(std::uint64_t a, std::uint64_t b) {
  if (a > std::numeric_limits<std::uint64_t>::max() - b) return std::nullopt;
  return a + b;
}
/// a * b, nothing when it overflows.
[[nodiscard]] constexpr std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) return std::nullopt;
  return a * b;
}
/// The next multiple of `alignment` (a power of two), nothing when it overflows.
[[nodiscard]] constexpr std::optional<std::uint64_t> align_up(std::uint64_t value, std::uint64_t alignment) {
  const auto sum = add(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

/// Untrusted bytes. Every read of an ELF file, bundle, note or archive goes through these few checked operations;
/// nothing else in this directory turns an offset of a file into a pointer.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr Bytes(std::string_view data) : data_(data) {}  // NOLINT: a view is its bytes
  Bytes(const std::string& data) : data_(data) {}          // NOLINT
  Bytes(const char*) = delete;                             // would end at the first NUL

  [[nodiscard]] constexpr std::uint64_t size() const { return data_.size(); }
  [[nodiscard]] constexpr bool empty() const { return data_.empty(); }
  [[nodiscard]] constexpr std::string_view view() const { return data_; }

  /// Bytes [offset, offset + size), nothing unless all of them are there.
  [[nodiscard]] constexpr std::optional<Bytes> sub(std::uint64_t offset, std::uint64_t size) const {
    if (offset > data_.size() || size > data_.size() - offset) return std::nullopt;
    return Bytes(data_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
  }
  /// Bytes from the offset to the end.
  [[nodiscard]] constexpr std::optional<Bytes> from(std::uint64_t offset) const {
    if (offset > data_.size()) return std::nullopt;
    return Bytes(data_.substr(static_cast<std::size_t>(offset)));
  }
  /// Items [0, count) of `item_size` bytes each at `offset`.
  [[nodiscard]] constexpr std::optional<Bytes> table(std::uint64_t offset, std::uint64_t count, std::uint64_t item_size) const {
    const auto size = multiply(count, item_size);
    return size ? sub(offset, *size) : std::nullopt;
  }
  /// A little-endian number (every format here is little-endian, and so is every host that is supported).
  template <class T>
  [[nodiscard]] std::optional<T> number(std::uint64_t offset) const {
    static_assert(std::is_integral_v<T>);
    const auto part = sub(offset, sizeof(T));
    if (!part) return std::nullopt;
    T value;
    std::memcpy(&value, part->data_.data(), sizeof(T));
    return value;
  }
  /// The text up to the next NUL; nothing when there is no NUL before the end.
  [[nodiscard]] constexpr std::optional<std::string_view> text(std::uint64_t offset) const {
    const auto rest = from(offset);
    if (!rest) return std::nullopt;
    const auto end = rest->data_.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    return rest->data_.substr(0, end);
  }
  [[nodiscard]] constexpr bool starts_with(std::string_view magic) const { return data_.starts_with(magic); }

 private:
  std::string_view data_;
};

}  // namespace ff::elf
