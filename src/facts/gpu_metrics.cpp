#include "facts/gpu_metrics.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace ff::facts {
namespace {

constexpr std::size_t header_bytes = 4;  ///< u16 structure_size, u8 format_revision, u8 content_revision
constexpr std::uint64_t largest_count = 1024;

std::uint64_t little_endian(std::string_view bytes, std::size_t offset, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  return value;
}

struct Scalar {
  std::size_t width = 0;
  bool is_signed = false;
};

std::optional<Scalar> scalar_type(std::string_view name) {
  if (name == "uint8" || name == "U8") return Scalar{1, false};
  if (name == "uint16" || name == "U16") return Scalar{2, false};
  if (name == "uint32" || name == "U32") return Scalar{4, false};
  if (name == "uint64" || name == "U64") return Scalar{8, false};
  if (name == "int8" || name == "S8") return Scalar{1, true};
  if (name == "int16" || name == "S16") return Scalar{2, true};
  if (name == "int32" || name == "S32") return Scalar{4, true};
  if (name == "int64" || name == "S64") return Scalar{8, true};
  return std::nullopt;
}

/// Null when all bits are set: "not available".
Value read_scalar(std::string_view bytes, std::size_t offset, Scalar type) {
  const std::uint64_t raw = little_endian(bytes, offset, type.width);
  const std::uint64_t all_ones = type.width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * type.width)) - 1;
  if (raw == all_ones) return {};
  if (!type.is_signed) return raw;
  const unsigned unused = static_cast<unsigned>(64 - 8 * type.width);
  return static_cast<std::int64_t>(raw << unused) >> unused;
}

/// One value or a list; null when nothing of it is available.
Value read_array(std::string_view bytes, std::size_t offset, Scalar type, std::uint64_t count) {
  if (count == 1) return read_scalar(bytes, offset, type);
  Value::List items;
  bool any = false;
  for (std::uint64_t i = 0; i < count; ++i) {
    items.push_back(read_scalar(bytes, offset + i * type.width, type));
    any = any || !items.back().is_null();
  }
  return any ? Value(std::move(items)) : Value();
}

std::optional<std::uint64_t> size_member(const Value& object, std::string_view name) {
  const Value& v = object[name];
  if (v.kind() != Value::Kind::integer || v.as_int() < 0) return std::nullopt;
  return static_cast<std::uint64_t>(v.as_int());
}

/// The fields of a structure of the table, as far as the bytes reach. Structures hold structures at most once (xcp_stats).
Value read_struct(std::string_view bytes, const Value& structs, const Value& layout, int depth) {
  Value out = Value::object();
  for (const Value& field : layout["fields"].items()) {
    const auto name = field["name"].as_text();
    const auto type_name = field["type"].as_text();
    const auto offset = size_member(field, "offset");
    const auto size = size_member(field, "size");
    const auto count = size_member(field, "count");
    if (!offset || !size || !count || *count == 0 || *count > largest_count) continue;
    if (name.starts_with("padding") || name.starts_with("reserved") || name == "common_header") continue;
    if (*offset > bytes.size() || *size > bytes.size() - *offset) continue;
    if (const auto type = scalar_type(type_name)) {
      if (type->width * *count != *size) continue;
      Value value = read_array(bytes, *offset, *type, *count);
      if (!value.is_null()) out.set(name, std::move(value));
      continue;
    }
    const Value& inner = structs[type_name];
    if (!inner.is_object() || depth >= 2 || *size % *count != 0) continue;
    Value::List items;
    const std::uint64_t each = *size / *count;
    bool any = false;
    for (std::uint64_t i = 0; i < *count; ++i) {
      items.push_back(read_struct(bytes.substr(*offset + i * each, each), structs, inner, depth + 1));
      any = any || !items.back().members().empty();
    }
    if (any) out.set(name, Value(std::move(items)));
  }
  return out;
}

/// Revision 1.9 and later describe themselves: a count, then records of an encoding word and values.
Result<Value> read_records(std::string_view bytes, const Value& description) {
  constexpr std::int64_t most_records = 4096;
  if (bytes.size() < header_bytes + 4) return fail("gpu_metrics ends inside its header", "byte 4");
  const auto count = static_cast<std::int32_t>(little_endian(bytes, header_bytes, 4));
  if (count < 0 || count > most_records) return fail(fmt::format("gpu_metrics announces {} records", count), "byte 4");
  const auto& names = description["attr_ids"].items();
  const auto& types = description["types"].items();
  Value out = Value::object();
  std::size_t at = header_bytes + 4;
  for (std::int32_t i = 0; i < count; ++i) {
    if (bytes.size() - at < 8) return fail("gpu_metrics ends inside a record", fmt::format("byte {}", at));
    const std::uint64_t encoding = little_endian(bytes, at, 8);
    at += 8;
    const auto instances = encoding & 0x3ff;
    const auto id = encoding >> 10 & 0x3ff;
    const auto type_index = encoding >> 20 & 0xf;
    const auto type = type_index < types.size() ? scalar_type(types[type_index].as_text()) : std::nullopt;
    if (!type || instances == 0) return fail("gpu_metrics holds a record of unknown type", fmt::format("byte {}", at - 8));
    const std::uint64_t size = type->width * instances;
    if (size > bytes.size() - at) return fail("gpu_metrics ends inside a record", fmt::format("byte {}", at));
    Value value = read_array(bytes, at, *type, instances);
    at += size;
    // Records of newer firmware that the table does not name are passed over, their size is known.
    if (id < names.size() && !value.is_null()) out.set(lower(names[id].as_text()), std::move(value));
  }
  return out;
}

struct Bit {
  int bit;
  const char* name;
};
constexpr std::array<Bit, 34> throttle_bits{
    {{0, "PPT0"},          {1, "PPT1"},          {2, "PPT2"},          {3, "PPT3"},          {4, "SPL"},          {5, "FPPT"},
     {6, "SPPT"},          {7, "SPPT_APU"},      {16, "TDC_GFX"},      {17, "TDC_SOC"},      {18, "TDC_MEM"},     {19, "TDC_VDD"},
     {20, "TDC_CVIP"},     {21, "EDC_CPU"},      {22, "EDC_GFX"},      {23, "APCC"},         {32, "TEMP_GPU"},    {33, "TEMP_CORE"},
     {34, "TEMP_MEM"},     {35, "TEMP_EDGE"},    {36, "TEMP_HOTSPOT"}, {37, "TEMP_SOC"},     {38, "TEMP_VR_GFX"}, {39, "TEMP_VR_SOC"},
     {40, "TEMP_VR_MEM0"}, {41, "TEMP_VR_MEM1"}, {42, "TEMP_LIQUID0"}, {43, "TEMP_LIQUID1"}, {44, "VRHOT0"},      {45, "VRHOT1"},
     {46, "PROCHOT_CPU"},  {47, "PROCHOT_GFX"},  {56, "PPM"},          {57, "FIT"}}};

}  // namespace

Result<GpuMetrics> decode_gpu_metrics(std::string_view bytes, const Value& layouts) {
  if (bytes.size() < header_bytes) return fail("gpu_metrics is shorter than its header", "byte 0");
  const auto structure_size = little_endian(bytes, 0, 2);
  GpuMetrics out;
  out.format = static_cast<int>(little_endian(bytes, 2, 1));
  out.content = static_cast<int>(little_endian(bytes, 3, 1));
  // Copies are often padded: only what the table says it is long counts.
  if (structure_size >= header_bytes && structure_size < bytes.size()) bytes = bytes.substr(0, structure_size);
  if (out.format == 1 && out.content >= 9 && layouts["v1_9"].is_object()) {
    auto values = read_records(bytes, layouts["v1_9"]);
    if (!values) return std::unexpected(values.error());
    out.values = std::move(*values);
    return out;
  }
  const Value& layout = layouts["structs"][fmt::format("gpu_metrics_v{}_{}", out.format, out.content)];
  if (!layout.is_object()) return fail(fmt::format("no layout is known for gpu_metrics revision {}.{}", out.format, out.content), "byte 2");
  out.values = read_struct(bytes, layouts["structs"], layout, 0);
  return out;
}

std::vector<std::string> throttle_reasons(std::uint64_t bits) {
  std::vector<std::string> out;
  for (const auto& known : throttle_bits)
    if ((bits >> known.bit & 1) != 0) out.emplace_back(known.name);
  return out;
}

}  // namespace ff::facts
