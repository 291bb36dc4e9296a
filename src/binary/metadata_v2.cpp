#include "binary/metadata_v2.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "elf/bytes.h"
#include "knowledge/yaml.h"

namespace ff::binary {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr std::array kernel_names =
    std::to_array<Names>({{"Name", "name"}, {"SymbolName", "symbol"}, {"Language", "language"}, {"LanguageVersion", "language_version"}});
constexpr std::array attribute_names = std::to_array<Names>({{"ReqdWorkGroupSize", "reqd_workgroup_size"},
                                                             {"WorkGroupSizeHint", "workgroup_size_hint"},
                                                             {"VecTypeHint", "vec_type_hint"},
                                                             {"RuntimeHandle", "device_enqueue_symbol"}});
constexpr std::array code_names = std::to_array<Names>({{"KernargSegmentSize", "kernarg_segment_size"},
                                                        {"KernargSegmentAlign", "kernarg_segment_align"},
                                                        {"GroupSegmentFixedSize", "group_segment_fixed_size"},
                                                        {"PrivateSegmentFixedSize", "private_segment_fixed_size"},
                                                        {"WavefrontSize", "wavefront_size"},
                                                        {"NumSGPRs", "sgpr_count"},
                                                        {"NumVGPRs", "vgpr_count"},
                                                        {"NumSpilledSGPRs", "sgpr_spill_count"},
                                                        {"NumSpilledVGPRs", "vgpr_spill_count"},
                                                        {"MaxFlatWorkGroupSize", "max_flat_workgroup_size"},
                                                        {"IsDynamicCallStack", "uses_dynamic_stack"}});
constexpr std::array argument_names = std::to_array<Names>({{"Name", "name"},
                                                            {"TypeName", "type_name"},
                                                            {"Size", "size"},
                                                            {"PointeeAlign", "pointee_align"},
                                                            {"IsConst", "is_const"},
                                                            {"IsRestrict", "is_restrict"},
                                                            {"IsVolatile", "is_volatile"},
                                                            {"IsPipe", "is_pipe"}});
/// Their values are words: "GlobalBuffer" is "global_buffer" since version 3.
constexpr std::array argument_words = std::to_array<Names>({{"ValueKind", "value_kind"},
                                                            {"ValueType", "value_type"},
                                                            {"AddrSpaceQual", "address_space"},
                                                            {"AccQual", "access"},
                                                            {"ActualAccQual", "actual_access"}});

std::string with_underscores(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !out.empty()) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

template <std::size_t N>
void take(const Value& from, const std::array<Names, N>& names, Value& to) {
  for (const auto& [old_name, name] : names)
    if (const Value* member = from.find(old_name)) to.set(std::string(name), *member);
}

Value arguments(const Value& list) {
  Value out = Value::list();
  std::uint64_t end = 0;
  for (const auto& item : list.items()) {
    Value argument = Value::object();
    take(item, argument_names, argument);
    for (const auto& [old_name, name] : argument_words)
      if (const Value* member = item.find(old_name)) argument.set(std::string(name), with_underscores(member->as_text()));
    const std::int64_t alignment = item["Align"].as_int(), size = item["Size"].as_int();
    constexpr std::int64_t limit = std::int64_t{1} << 31;
    if (alignment > 0 && (alignment & (alignment - 1)) == 0 && size >= 0 && size < limit && alignment < limit) {
      end = elf::align_up(end, static_cast<std::uint64_t>(alignment)).value_or(end);
      argument.set("offset", static_cast<std::int64_t>(end));
      end += static_cast<std::uint64_t>(size);
    }
    out.push(std::move(argument));
  }
  return out;
}

}  // namespace

Result<Value> read_version_2_kernels(std::string_view yaml) {
  // The note is padded, and clang ends the document with "...".
  yaml = yaml.substr(0, yaml.find('\0'));
  const auto parsed = knowledge::parse_yaml(yaml, "metadata");
  if (!parsed) return std::unexpected(parsed.error());
  const Value document = knowledge::to_value(*parsed);
  Value out = Value::list();
  for (const auto& row : document["Kernels"].items()) {
    Value kernel = Value::object();
    take(row, kernel_names, kernel);
    take(row["Attrs"], attribute_names, kernel);
    take(row["CodeProps"], code_names, kernel);
    if (const Value* list = row.find("Args")) kernel.set("args", arguments(*list));
    out.push(std::move(kernel));
  }
  return out;
}

}  // namespace ff::binary
