#include "binary/kernels.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "binary/metadata_v2.h"
#include "elf/elf.h"
#include "elf/msgpack.h"
#include "elf/target.h"

namespace ff::binary {
namespace {

constexpr std::uint32_t metadata_note = 32;
constexpr std::uint32_t version_2_note = 10;  ///< NT_AMD_HSA_METADATA
constexpr int version_2_kernel = 10;          ///< STT_AMDGPU_HSA_KERNEL: its first 256 bytes are an amd_kernel_code_t
constexpr std::uint64_t descriptor_size = 64;
/// Demangling is quadratic in the worst case; longer names are left as they are.
constexpr std::size_t demangle_limit = 8192;

std::string_view without_dot(std::string_view name) { return name.starts_with('.') ? name.substr(1) : name; }

/// ".args": [{".name": …}] becomes "args": [{"name": …}].
Value plain_names(const Value& value) {
  if (value.is_list()) {
    Value out = Value::list();
    for (const auto& item : value.items()) out.push(plain_names(item));
    return out;
  }
  if (!value.is_object()) return value;
  Value::Object members;
  for (const auto& [name, member] : value.members()) members.emplace_back(without_dot(name), plain_names(member));
  return Value(std::move(members));
}

std::optional<Descriptor> read_descriptor(const elf::File& file, const elf::Symbol& symbol) {
  auto bytes = file.at_address(symbol.value);
  // Before linking there are no segments: the value counts from its section.
  if (!bytes && symbol.section < file.sections().size())
    if (const auto content = file.content(file.sections()[symbol.section])) bytes = content->from(symbol.value);
  if (!bytes || bytes->size() < descriptor_size) return std::nullopt;
  return Descriptor{.lds_bytes = *bytes->number<std::uint32_t>(0),
                    .scratch_bytes = *bytes->number<std::uint32_t>(4),
                    .kernarg_bytes = *bytes->number<std::uint32_t>(8),
                    .rsrc1 = *bytes->number<std::uint32_t>(48),
                    .rsrc2 = *bytes->number<std::uint32_t>(52),
                    .rsrc3 = *bytes->number<std::uint32_t>(44),
                    .properties = *bytes->number<std::uint16_t>(56),
                    .kernarg_preload = *bytes->number<std::uint16_t>(58)};
}

/// The header that stands before a kernel's code in code object version 2. Source: LLVM AMDKernelCodeT.h.
std::optional<Descriptor> read_version_2_header(const elf::File& file, const elf::Symbol& symbol) {
  constexpr std::uint64_t header_size = 256;
  auto bytes = file.at_address(symbol.value);
  if (!bytes && symbol.section < file.sections().size())
    if (const auto content = file.content(file.sections()[symbol.section])) bytes = content->from(symbol.value);
  if (!bytes || bytes->size() < header_size) return std::nullopt;
  return Descriptor{.lds_bytes = *bytes->number<std::uint32_t>(64),
                    .scratch_bytes = *bytes->number<std::uint32_t>(60),
                    .kernarg_bytes = static_cast<std::uint32_t>(*bytes->number<std::uint64_t>(72)),
                    .rsrc1 = *bytes->number<std::uint32_t>(48),
                    .rsrc2 = *bytes->number<std::uint32_t>(52),
                    .rsrc3 = 0,
                    .properties = 0,
                    .kernarg_preload = 0};
}

std::uint64_t count(const Value& metadata, std::string_view name) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, metadata[name].as_int()));
}

void judge(Kernel& kernel, const std::optional<TargetLimits>& limits, const Launch& launch) {
  const Value& metadata = kernel.metadata;
  const std::uint64_t largest = count(metadata, "max_flat_workgroup_size"), wavefront = std::max<std::uint64_t>(1, count(metadata, "wavefront_size"));
  const std::uint64_t static_lds = count(metadata, "group_segment_fixed_size");
  std::uint64_t asked = 0;
  if (launch.x != 0) {
    const auto area = elf::multiply(launch.x, launch.y);
    const auto volume = area ? elf::multiply(*area, launch.z) : std::nullopt;
    asked = volume.value_or(~std::uint64_t{0});
    if (largest != 0 && asked > largest)
      kernel.faults.push_back(fmt::format(
          "a workgroup of {} work-items is more than the {} that the kernel was compiled for (launch bounds): hipErrorInvalidConfiguration", asked,
          largest));
    const auto& required = metadata["reqd_workgroup_size"].items();
    if (required.size() == 3 &&
        (count(Value::object({{"v", required[0]}}), "v") != launch.x || static_cast<std::uint64_t>(required[1].as_int()) != launch.y ||
         static_cast<std::uint64_t>(required[2].as_int()) != launch.z))
      kernel.faults.push_back(fmt::format("the kernel must be launched with workgroups of {} x {} x {}", required[0].as_int(), required[1].as_int(),
                                          required[2].as_int()));
    if (asked % wavefront != 0)
      kernel.remarks.push_back(
          fmt::format("{} work-items are no multiple of the wavefront of {}: {} lanes idle", asked, wavefront, wavefront - asked % wavefront));
  }
  if (limits) {
    const auto lds = elf::add(static_lds, launch.dynamic_lds_bytes).value_or(~std::uint64_t{0});
    if (lds > limits->lds_per_workgroup)
      kernel.faults.push_back(fmt::format("{} bytes of LDS ({} static, {} dynamic) are more than the {} that a workgroup can have on {}", lds,
                                          static_lds, launch.dynamic_lds_bytes, limits->lds_per_workgroup, limits->name));
    KernelNeeds needs{.wavefront = wavefront,
                      .vgprs = count(metadata, "vgpr_count"),
                      .agprs = count(metadata, "agpr_count"),
                      .sgprs = count(metadata, "sgpr_count"),
                      .lds_bytes = std::min(lds, limits->lds_per_workgroup),
                      .workgroup = std::min(asked != 0 ? asked : largest, limits->max_workgroup),
                      .workgroup_processor = true};
    if (const Value* mode = metadata.find("workgroup_processor_mode"))
      needs.workgroup_processor = mode->as_int() != 0;
    else if (kernel.descriptor)
      needs.workgroup_processor = kernel.descriptor->workgroup_processor();
    kernel.occupancy = occupancy(*limits, needs);
  }
  if (const auto spilled = count(metadata, "vgpr_spill_count"); spilled != 0)
    kernel.remarks.push_back(fmt::format("{} vector registers are spilled to memory", spilled));
  if (const auto spilled = count(metadata, "sgpr_spill_count"); spilled != 0)
    kernel.remarks.push_back(fmt::format("{} scalar registers are spilled", spilled));
  if (const auto scratch = count(metadata, "private_segment_fixed_size"); scratch != 0)
    kernel.remarks.push_back(fmt::format("{} bytes of scratch memory a work-item", scratch));
  if (metadata["uses_dynamic_stack"].as_bool())
    kernel.remarks.push_back("uses a dynamic stack (recursion or indirect calls): its scratch size is not known");
  if (kernel.descriptor && kernel.descriptor->lds_bytes != static_lds)
    kernel.faults.push_back(
        fmt::format("the descriptor says {} bytes of LDS, the metadata {}: the code object is damaged", kernel.descriptor->lds_bytes, static_lds));
}

}  // namespace

std::uint64_t Descriptor::vgprs_allocated(int generation, bool unified_registers) const {
  const std::uint64_t granules = (rsrc1 & 0x3fU) + 1;
  if (generation >= 10) return granules * (wave32() ? 8 : 4);
  return granules * (unified_registers ? 8 : 4);
}

Result<std::vector<Kernel>> read_kernels(std::string_view code, const std::optional<TargetLimits>& limits, const Launch& launch) {
  const auto file = elf::File::parse(code);
  if (!file) return std::unexpected(file.error());
  if (!elf::read_code_object_header(file->header())) return fail("an ELF file that holds no GPU code itself");
  Value rows = Value::list();
  bool found = false, old = false;
  // Linked from several assembled objects (hipBLASLt's are), a code object has a note of each.
  for (const auto& note : file->notes()) {
    const bool version_2 = note.owner == "AMD" && note.type == version_2_note;
    if (!version_2 && (note.owner != "AMDGPU" || note.type != metadata_note)) continue;
    auto read = version_2 ? read_version_2_kernels(note.content) : elf::read_msgpack(note.content);
    if (!read) return fail("its metadata note is damaged: " + read.error().what);
    const Value more = version_2 ? std::move(*read) : plain_names((*read)["amdhsa.kernels"]);
    for (const auto& row : more.items()) rows.push(row);
    found = true;
    old = version_2;
  }
  if (!found) return fail("a code object without metadata");
  std::map<std::string_view, elf::Symbol> symbols;
  for (const bool dynamic : {true, false})
    for (const auto& symbol : file->symbols(dynamic))
      if (symbol.section != 0 && (old ? symbol.type() == version_2_kernel : symbol.name.ends_with(".kd"))) symbols.emplace(symbol.name, symbol);
  std::vector<Kernel> kernels;
  for (const auto& row : rows.items()) {
    Kernel kernel{.name = std::string(row["name"].as_text()), .metadata = row, .descriptor = {}, .occupancy = {}, .faults = {}, .remarks = {}};
    if (const auto symbol = symbols.find(old ? row["name"].as_text() : row["symbol"].as_text()); symbol != symbols.end())
      kernel.descriptor = old ? read_version_2_header(*file, symbol->second) : read_descriptor(*file, symbol->second);
    if (!kernel.descriptor) kernel.faults.push_back("its descriptor is not in the code object");
    judge(kernel, limits, launch);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

Value kernel_to_json(const Kernel& kernel, std::string_view file, std::string_view target) {
  Value out = Value::object({{"file", file}, {"target", target}});
  for (const auto& [name, member] : kernel.metadata.members()) out.members_mut().emplace_back(name, member);
  if (kernel.name.size() < demangle_limit) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(kernel.name.c_str(), nullptr, nullptr, &status), &std::free);
    if (status == 0 && plain) out.set("demangled", std::string(plain.get()));
  }
  if (const auto& d = kernel.descriptor)
    out.set("descriptor", Value::object({{"group_segment_fixed_size", d->lds_bytes},
                                         {"private_segment_fixed_size", d->scratch_bytes},
                                         {"kernarg_size", d->kernarg_bytes},
                                         {"compute_pgm_rsrc1", d->rsrc1},
                                         {"compute_pgm_rsrc2", d->rsrc2},
                                         {"compute_pgm_rsrc3", d->rsrc3},
                                         {"kernel_code_properties", static_cast<int>(d->properties)},
                                         {"kernarg_preload", static_cast<int>(d->kernarg_preload)},
                                         {"wavefront_size32", d->wave32()},
                                         {"uses_dynamic_stack", d->dynamic_stack()}}));
  if (const auto& o = kernel.occupancy)
    out.set("occupancy", Value::object({{"waves_per_simd", o->waves_per_simd},
                                        {"waves_per_simd_max", o->waves_per_simd_max},
                                        {"limited_by", o->limited_by},
                                        {"by_vgpr", o->by_vgpr},
                                        {"by_sgpr", o->by_sgpr},
                                        {"by_lds", o->by_lds}}));
  out.set("faults", Value::list_of(kernel.faults));
  out.set("remarks", Value::list_of(kernel.remarks));
  return out;
}

}  // namespace ff::binary
