#include "model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "model/header_scanner.h"

namespace ff::model {
namespace {

using Unexpected = std::unexpected<Violation>;

std::optional<std::uint64_t> multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

struct Entry {
  Tensor tensor;
  std::size_t at = 0;  ///< byte of the JSON at which its name stands
};

/// Reads the members of the header's object.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view json) : scan_(json) {}
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> repeated;
  std::string dtype;   ///< of a violation for an unknown type
  std::string tensor;  ///< being read

  [[nodiscard]] const HeaderScanner& scanner() const { return scan_; }

  bool read() {
    if (!scan_.expect('{', "the '{' of the header")) return false;
    std::unordered_map<std::string, std::size_t> seen;
    bool metadata_seen = false;
    for (bool first = true, more = true;; first = false) {
      if (!scan_.next('}', first, more)) return false;
      if (!more) break;
      (void)scan_.peek();
      const std::size_t at = scan_.at();
      std::string name;
      if (!scan_.text(name) || !scan_.expect(':', "':'")) return false;
      if (name == "__metadata__") {
        if (metadata_seen) return scan_.violation_at(at, "__metadata__ stands twice");
        metadata_seen = true;
        if (!read_metadata()) return false;
        continue;
      }
      tensor = name;
      Entry entry;
      entry.at = at;
      if (!read_tensor(entry.tensor)) return false;
      entry.tensor.name = name;
      tensor.clear();
      const auto [place, fresh] = seen.try_emplace(std::move(name), entries.size());
      if (fresh) {
        entries.push_back(std::move(entry));
      } else {
        if (std::find(repeated.begin(), repeated.end(), entry.tensor.name) == repeated.end()) repeated.push_back(entry.tensor.name);
        entries[place->second] = std::move(entry);  // as the reference reader does
      }
    }
    return scan_.end();
  }

 private:
  bool read_metadata() {
    if (scan_.peek() == 'n') return scan_.skip(1);
    if (!scan_.expect('{', "the '{' of __metadata__")) return false;
    for (bool first = true, more = true;; first = false) {
      if (!scan_.next('}', first, more)) return false;
      if (!more) return true;
      std::string key, value;
      if (!scan_.text(key) || !scan_.expect(':', "':'")) return false;
      if (scan_.peek() != '"') return scan_.violation(fmt::format("__metadata__ entry \"{}\" is no text", key));
      if (!scan_.text(value)) return false;
      metadata.emplace_back(std::move(key), std::move(value));
    }
  }

  bool read_dtype(Tensor& out) {
    std::string name;
    if (scan_.peek() != '"') return scan_.violation("dtype is no text");
    const std::size_t at = scan_.at();
    if (!scan_.text(name)) return false;
    const auto known = dtype_from_name(name);
    if (!known) {
      dtype = name;
      return scan_.violation_at(at, fmt::format("unknown dtype \"{}\"", name.substr(0, 40)));
    }
    out.dtype = *known;
    return true;
  }

  bool read_shape(Tensor& out) {
    if (!scan_.expect('[', "the '[' of shape")) return false;
    for (bool first = true, more = true;; first = false) {
      if (!scan_.next(']', first, more)) return false;
      if (!more) return true;
      if (!scan_.natural(out.shape.emplace_back(), "a size in shape")) return false;
    }
  }

  bool read_offsets(Tensor& out) {
    return scan_.expect('[', "the '[' of data_offsets") && scan_.natural(out.begin, "data_offsets[0]") &&
           scan_.expect(',', "',' (data_offsets has two numbers)") && scan_.natural(out.end, "data_offsets[1]") &&
           scan_.expect(']', "']' (data_offsets has two numbers)");
  }

  bool read_tensor(Tensor& out) {
    const std::size_t at = scan_.at();
    if (scan_.peek() == '[')  // the reference reader takes the three values without their names, too
      return scan_.expect('[', "'['") && read_dtype(out) && scan_.expect(',', "','") && read_shape(out) && scan_.expect(',', "','") &&
             read_offsets(out) && scan_.expect(']', "']'");
    if (!scan_.expect('{', "the '{' of a tensor")) return false;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    for (bool first = true, more = true;; first = false) {
      if (!scan_.next('}', first, more)) return false;
      if (!more) break;
      (void)scan_.peek();
      const std::size_t key_at = scan_.at();
      std::string key;
      if (!scan_.text(key) || !scan_.expect(':', "':'")) return false;
      bool* has = key == "dtype" ? &has_dtype : key == "shape" ? &has_shape : key == "data_offsets" ? &has_offsets : nullptr;
      if (has == nullptr) {
        if (!scan_.skip(2)) return false;
        continue;
      }
      if (*has) return scan_.violation_at(key_at, key + " stands twice");
      *has = true;
      if (!(key == "dtype" ? read_dtype(out) : key == "shape" ? read_shape(out) : read_offsets(out))) return false;
    }
    const auto* missing = !has_dtype ? "dtype" : !has_shape ? "shape" : !has_offsets ? "data_offsets" : nullptr;
    return missing == nullptr || scan_.violation_at(at, std::string(missing) + " is missing");
  }

  HeaderScanner scan_;
};

Unexpected header_violation(std::string what, std::uint64_t position, std::string tensor = {}) {
  return Unexpected(Violation{Violation::Kind::header, std::move(what), position, std::move(tensor), 0});
}

std::optional<std::size_t> invalid_utf8(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return std::nullopt;
  const std::string valid = to_utf8(text);
  if (valid == text) return std::nullopt;
  return static_cast<std::size_t>(std::mismatch(text.begin(), text.end(), valid.begin(), valid.end()).first - text.begin());
}

/// What the beginning of a file that is no safetensors file looks like.
std::string_view foreign_kind(std::string_view file) {
  using namespace std::string_view_literals;
  if (file.starts_with("PK\3\4"sv)) return "a zip archive (a PyTorch file under another name)";
  if (file.starts_with("\x80\x02"sv) || file.starts_with("\x80\x03"sv) || file.starts_with("\x80\x04"sv))
    return "a Python pickle (a PyTorch file under another name)";
  if (file.starts_with("\x89HDF"sv)) return "an HDF5 file";
  if (file.starts_with("GGUF"sv)) return "a GGUF file";
  if (file.starts_with("\x1f\x8b"sv)) return "a gzip file";
  if (file.starts_with("\x28\xb5\x2f\xfd"sv)) return "a zstd file";
  if (file.starts_with("{"sv)) return "a JSON text";
  if (std::all_of(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(file.size(), 4096)),
                  [](char c) { return c == '\0'; }))
    return "a file of zero bytes (never written, or a sparse copy)";
  return {};
}

Unexpected foreign(std::string_view file, std::string what) {
  const auto kind = foreign_kind(file);
  return Unexpected(
      Violation{Violation::Kind::foreign, kind.empty() ? std::move(what) : fmt::format("it is {}, no safetensors file", kind), 0, {}, 0});
}

}  // namespace

std::string Tensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

const Tensor* Safetensors::find(std::string_view name) const {
  for (const auto& t : tensors)
    if (t.name == name) return &t;
  return nullptr;
}

std::expected<Safetensors, Violation> parse_safetensors(std::string_view file) {
  if (file.size() < 8)
    return Unexpected(Violation{Violation::Kind::truncated,
                                fmt::format("the file has {} bytes and ends inside the 8 bytes of the header's length", file.size()),
                                file.size(),
                                {},
                                0});
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  if (header_bytes > safetensors_max_header_bytes)
    return foreign(
        file, fmt::format("the first 8 bytes give a header of {} bytes (limit {}): no safetensors file", header_bytes, safetensors_max_header_bytes));
  const std::uint64_t present = file.size() - 8;
  if (header_bytes > present) {
    // A real file begins its header with '{'.
    if (present == 0 || file[8] == '{')
      return Unexpected(Violation{Violation::Kind::truncated,
                                  fmt::format("the file ends inside its header: {} of {} bytes are there", present, header_bytes),
                                  file.size(),
                                  {},
                                  0});
    return foreign(file,
                   fmt::format("the first 8 bytes give a header of {} bytes, the file has {}, and no header begins there", header_bytes, present));
  }
  const std::string_view json = file.substr(8, header_bytes);
  if (header_bytes == 0) return foreign(file, "the header is empty");
  if (const auto at = invalid_utf8(json)) return header_violation("the header is no valid UTF-8", 8 + *at);
  HeaderReader reader(json);
  if (!reader.read()) {
    Violation out{reader.dtype.empty() ? Violation::Kind::header : Violation::Kind::unknown_dtype, reader.scanner().problem,
                  8 + reader.scanner().position, reader.tensor, 0};
    if (reader.scanner().position == 0 && !json.starts_with('{')) return foreign(file, "the header does not begin with '{'");
    return Unexpected(std::move(out));
  }

  auto& entries = reader.entries;
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return std::pair(a.tensor.begin, a.tensor.end) < std::pair(b.tensor.begin, b.tensor.end); });
  std::uint64_t covered = 0;
  const std::string* previous = nullptr;
  for (auto& [tensor, at] : entries) {
    const std::uint64_t where = 8 + at;
    if (tensor.end < tensor.begin)
      return header_violation(fmt::format("its data end (byte {}) before they begin (byte {})", tensor.end, tensor.begin), where, tensor.name);
    if (tensor.begin > covered)
      return header_violation(
          fmt::format("a hole of {} bytes lies before its data{}", tensor.begin - covered,
                      reader.repeated.empty() ? "" : fmt::format(" (\"{}\" stands twice in the header)", reader.repeated.front())),
          where, tensor.name);
    if (tensor.begin < covered)
      return header_violation(fmt::format("its data overlap those of \"{}\" by {} bytes", *previous, std::min(covered, tensor.end) - tensor.begin),
                              where, tensor.name);
    covered = tensor.end;
    previous = &tensor.name;
    std::optional<std::uint64_t> elements = 1;
    for (const auto n : tensor.shape) {
      elements = multiply(*elements, n);
      if (!elements) return header_violation(fmt::format("the number of elements of shape {} overflows", tensor.shape_text()), where, tensor.name);
    }
    const auto bits = multiply(*elements, dtype_bits(tensor.dtype));
    if (!bits) return header_violation(fmt::format("the size of shape {} overflows", tensor.shape_text()), where, tensor.name);
    if (*bits % 8 != 0)
      return header_violation(fmt::format("{} elements of {} do not fill whole bytes", *elements, dtype_name(tensor.dtype)), where, tensor.name);
    if (tensor.end - tensor.begin != *bits / 8)
      return header_violation(fmt::format("{} {} needs {} bytes, data_offsets give {}", dtype_name(tensor.dtype), tensor.shape_text(), *bits / 8,
                                          tensor.end - tensor.begin),
                              where, tensor.name);
    tensor.elements = *elements;
  }
  const std::uint64_t data_bytes = present - header_bytes;
  if (covered > data_bytes) {
    const auto first = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.tensor.end > data_bytes; });
    return Unexpected(Violation{Violation::Kind::truncated,
                                fmt::format("the file ends after {} of {} bytes of data, in tensor \"{}\"", data_bytes, covered, first->tensor.name),
                                file.size(), first->tensor.name, covered > UINT64_MAX - 8 - header_bytes ? 0 : 8 + header_bytes + covered});
  }
  if (covered < data_bytes) return header_violation(fmt::format("{} bytes follow the last tensor", data_bytes - covered), 8 + header_bytes + covered);

  Safetensors out;
  out.header_bytes = header_bytes;
  out.metadata = std::move(reader.metadata);
  out.repeated = std::move(reader.repeated);
  out.tensors.reserve(entries.size());
  for (auto& entry : entries) {
    entry.tensor.bytes = file.substr(8 + header_bytes + entry.tensor.begin, entry.tensor.end - entry.tensor.begin);
    out.tensors.push_back(std::move(entry.tensor));
  }
  return out;
}

}  // namespace ff::model
