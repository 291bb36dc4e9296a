#include "cli/code_kernels.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <utility>

#include "base/mapped_file.h"
#include "base/text.h"
#include "binary/miopen_db.h"
#include "elf/code_objects.h"
#include "elf/zip.h"
#include "knowledge/knowledge.h"

namespace ff::cli {
namespace {

/// "256" or "16,16,1".
Result<binary::Launch> parse_launch(const KernelOptions& options) {
  binary::Launch launch;
  launch.dynamic_lds_bytes = options.dynamic_lds;
  if (options.block.empty()) return launch;
  const auto pieces = split(options.block, ',');
  std::uint64_t* const sizes[] = {&launch.x, &launch.y, &launch.z};
  for (std::size_t i = 0; i < pieces.size() && i < 3; ++i) {
    const auto size = to_integer<std::uint64_t>(pieces[i]);
    if (!size || *size == 0 || pieces.size() > 3)
      return usage_error(fmt::format("\"{}\" is no workgroup size", options.block), "--block", "give 256 or 16,16,1");
    *sizes[i] = *size;
  }
  return launch;
}

/// "0x1700", "5888", or "+0x40" from the start of each function.
Result<void> parse_at(const std::string& text, binary::DisassembleOptions& options) {
  if (text.empty()) return {};
  std::string_view number = text;
  if (number.starts_with('+')) {
    options.at_is_offset = true;
    number.remove_prefix(1);
  }
  options.at = to_integer<std::uint64_t>(number, number.starts_with("0x") ? 16 : 10);
  if (options.at) return {};
  return usage_error(fmt::format("\"{}\" is no address", text), "--at",
                     "give an address in the code object (0x1700), or an offset in the kernel (+0x40 with --kernel NAME)");
}

bool matches(const std::string& name, const KernelOptions& options) {
  return options.names.empty() || std::ranges::any_of(options.names, [&](const auto& part) { return contains(name, part); });
}

bool wanted_target(const elf::TargetId& target, const KernelOptions& options) {
  return options.targets.empty() || std::ranges::any_of(options.targets, [&](const auto& text) {
           const auto wanted = elf::parse_target_id(text);
           return wanted && wanted->processor == target.processor;
         });
}

void disassemble_object(std::string_view code, const elf::CodeObject& object, const std::string& path, const KernelOptions& options,
                        FoundKernels& found) {
  const auto file = elf::File::parse(code);
  if (!file) return;
  std::vector<binary::DeviceFunction> functions;
  for (auto& function : binary::device_functions(*file))
    if (matches(function.name, options)) functions.push_back(std::move(function));
  if (functions.empty()) return;
  binary::DisassembleOptions how;
  how.library = options.disassembler;
  (void)parse_at(options.at, how);  // checked before
  auto answer = binary::disassemble(code, object.target, functions, how);
  if (!answer) {
    const auto add = [](std::vector<std::string>& list, const std::string& text) {
      if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
    };
    add(found.no_code, answer.error().what);
    add(found.remedies, answer.error().remedy);
    return;
  }
  if (!answer->functions.empty()) found.code.push_back({path, object.target.to_string(), std::move(*answer)});
}

void print_code(const FoundCode& code, const report::Style& style) {
  for (const auto& function : code.answer.functions) {
    std::cout << "\n"
              << style.bold(report::printable(function.function))
              << fmt::format("  {}  {:#x} to {:#x}\n", report::printable(code.target), function.address, function.address + function.size);
    std::string_view source;
    for (const auto& row : function.instructions) {
      if (row.source != source) std::cout << style.dim(report::printable(row.source.empty() ? "(no source line)" : row.source, 200)) << "\n";
      source = row.source;
      const bool here = function.at && *function.at >= row.address && *function.at < row.address + (row.bytes.size() + 1) / 9 * 4;
      std::string text = report::printable(row.text, 200);
      if (row.target) text += fmt::format("  -> {:#x}", *row.target);
      std::cout << (here ? style.red("=> ") : std::string("   ")) << fmt::format("{:#8x}  {:<56} {}\n", row.address, text, style.dim(row.bytes));
    }
    if (function.cut) std::cout << style.dim("   (more code before or after)") << "\n";
  }
}

}  // namespace

void add_kernel_options(CLI::App& app, KernelOptions& options) {
  app.add_option("--kernel", options.names, "Only kernels whose name contains this text")->allow_extra_args(false);
  app.add_option("--block", options.block, "Check a launch with this workgroup size: 256 or 16,16,1");
  app.add_option("--dynamic-lds", options.dynamic_lds, "Check a launch with so many bytes of dynamic LDS");
  app.add_flag("--disassemble", options.disassemble,
               "Show instructions, with source lines where the file has them (LLVM or comgr, opened when needed)");
  app.add_option("--at", options.at, "Disassemble around this address of the code object, or at +OFFSET in each kernel");
  app.add_option("--disassembler", options.disassembler, "The libLLVM or libamd_comgr to use (default: the newest in the system's directories)");
}

bool FoundKernels::fault() const {
  return std::ranges::any_of(kernels, [](const auto& found) { return !found.kernel.faults.empty(); });
}

Result<void> check_kernel_options(const KernelOptions& options) {
  if (const auto launch = parse_launch(options); !launch) return std::unexpected(launch.error());
  for (const auto& text : options.targets)
    if (!elf::parse_target_id(text)) return usage_error(fmt::format("\"{}\" is no gfx target", text), "--target", "give a name as gfx1100");
  binary::DisassembleOptions how;
  if (auto at = parse_at(options.at, how); !at) return at;
  if (how.at_is_offset && options.names.empty())
    return usage_error("an offset needs a kernel to count from", "--at", "add --kernel NAME, or give an address of the code object");
  if (!options.at.empty() && !options.disassemble) return usage_error("it says where to disassemble", "--at", "add --disassemble");
  return {};
}

namespace {

/// The kernels of one code object; damage in words.
void read_object(std::string_view code, const elf::CodeObject& object, const std::string& place, const KernelOptions& options,
                 const binary::Launch& launch, FoundKernels& found, std::vector<std::string>& damage) {
  if (!code.starts_with(elf::elf_magic)) return;  // bitcode, SPIR-V
  if (!wanted_target(object.target, options)) {
    found.passed_over_targets.insert(object.target.to_string());
    return;
  }
  const Value& table = knowledge::Knowledge::built_in().table("targets");
  auto kernels = binary::read_kernels(code, binary::limits_of(table, object.target.processor), launch);
  if (!kernels) {
    damage.push_back(fmt::format("{} at {:#x}: {}", object.target.to_string(), object.offset, kernels.error().what));
    return;
  }
  for (auto& kernel : *kernels) {
    if (matches(kernel.name, options))
      found.kernels.push_back({place, object.target.to_string(), std::move(kernel)});
    else if (found.passed_over.size() < FoundKernels::most_names)
      found.passed_over.insert(kernel.name);
  }
  if (options.disassemble) disassemble_object(code, object, place, options, found);
}

/// Code objects that MIOpen compiled and keeps in a database, each under the name of its source.
std::vector<std::string> kernels_of_database(const binary::FileReport& report, const KernelOptions& options, FoundKernels& found) {
  std::vector<std::string> damage;
  const auto launch = parse_launch(options).value_or(binary::Launch{});
  auto problems = binary::visit_miopen_kernels(report.path, [&](std::string_view name, std::string_view code) {
    const auto listing = elf::list_code_objects(code);
    for (const auto& object : listing.objects) {
      if (object.target.processor != report.targets.front().target.processor)
        damage.push_back(fmt::format("its name says {}, {} is for {}", report.targets.front().target.processor, name, object.target.to_string()));
    }
    const std::string place = fmt::format("{}!{}", report.path, name);
    const auto more = elf::visit_code(code, listing, [&](const elf::CodeObject& object, std::string_view inner) {
      read_object(inner, object, place, options, launch, found, damage);
    });
    damage.insert(damage.end(), more.begin(), more.end());
    if (listing.objects.empty()) damage.push_back(fmt::format("{}: no code object", name));
  });
  damage.insert(damage.end(), problems.begin(), problems.end());
  return damage;
}

}  // namespace

std::vector<std::string> find_kernels(std::string_view bytes, const std::string& path, const KernelOptions& options, FoundKernels& found) {
  std::vector<std::string> damage;
  const auto launch = parse_launch(options).value_or(binary::Launch{});
  const auto problems = elf::visit_code(bytes, elf::list_code_objects(bytes), [&](const elf::CodeObject& object, std::string_view code) {
    read_object(code, object, object.container.ends_with("kpack") ? fmt::format("{}!{}", path, object.id) : path, options, launch, found, damage);
  });
  damage.insert(damage.end(), problems.begin(), problems.end());
  return damage;
}

namespace {

/// The wheels that the last file was in, the outermost first: its neighbours come next.
class OpenWheels {
 public:
  /// The bytes of "torch.whl!torch/lib/libtorch_hip.so", "house.zip!torch.whl!…": kept until the next call.
  Result<std::string_view> bytes_of(const std::string& path) {
    std::size_t level = 0, start = 0;
    std::string_view around;
    for (std::size_t mark = next_mark(path, 0); mark != std::string::npos; mark = next_mark(path, start), ++level) {
      const std::string place = path.substr(0, mark);
      if (level == levels_.size() || levels_[level].place != place) {
        levels_.resize(level);
        Level opened{.place = place, .file = {}, .content = {}, .members = {}};
        if (level == 0) {
          auto file = MappedFile::open(place);
          if (!file) return std::unexpected(file.error());
          opened.file = std::move(*file);
        } else {
          auto content = member(levels_[level - 1], around, std::string_view(place).substr(start));
          if (!content) return std::unexpected(content.error());
          opened.content = std::move(*content);
        }
        auto listed = elf::read_zip_directory(opened.bytes());
        if (!listed) return std::unexpected(listed.error());
        opened.members = std::move(*listed);
        levels_.push_back(std::move(opened));
      }
      around = levels_[level].bytes();
      start = mark + 1;
    }
    if (level == 0) {
      auto file = MappedFile::open(path);
      if (!file) return std::unexpected(file.error());
      plain_ = std::move(*file);
      return plain_->bytes();
    }
    auto content = member(levels_[level - 1], around, std::string_view(path).substr(start));
    if (!content) return std::unexpected(content.error());
    last_ = std::move(*content);
    return last_->bytes();
  }

 private:
  struct Level {
    std::string place;
    std::optional<MappedFile> file;
    std::optional<elf::ZipContent> content;
    std::vector<elf::ZipMember> members;
    [[nodiscard]] std::string_view bytes() const { return file ? file->bytes() : content->bytes(); }
  };
  static std::size_t next_mark(const std::string& path, std::size_t from) {
    const auto at = std::min(path.find(".whl!", from), path.find(".zip!", from));
    return at == std::string::npos ? at : at + 4;
  }
  static Result<elf::ZipContent> member(const Level& level, std::string_view bytes, std::string_view name) {
    const auto found = std::ranges::find(level.members, name, &elf::ZipMember::name);
    if (found == level.members.end()) return fail("no such member in the archive", level.place);
    return elf::open_zip_member(bytes, *found);
  }

  std::vector<Level> levels_;
  std::optional<MappedFile> plain_;
  std::optional<elf::ZipContent> last_;
};

}  // namespace

FoundKernels find_kernels(binary::Scan& scan, const KernelOptions& options) {
  FoundKernels found;
  OpenWheels wheels;
  std::string last_archive;
  for (auto& report : scan.files) {
    if (report.targets.empty()) continue;
    std::vector<std::string> problems;
    if (report.kind == "MIOpen database") {
      for (auto& problem : kernels_of_database(report, options, found)) report.problems.push_back(std::move(problem));
      continue;
    }
    // An archive has a row for each of its libraries, and is read once.
    if (!report.archive.empty() && std::exchange(last_archive, report.archive) == report.archive) continue;
    const std::string path = report.archive.empty() ? report.path : report.archive;
    if (const auto bytes = wheels.bytes_of(path))
      problems = find_kernels(*bytes, path, options, found);
    else
      problems.push_back(bytes.error().what);
    for (auto& problem : problems) report.problems.push_back(std::move(problem));
  }
  return found;
}

std::string not_found(const FoundKernels& found, const KernelOptions& options) {
  const auto some = [](const std::set<std::string>& all, std::string_view what) {
    constexpr std::size_t shown = 6;
    std::vector<std::string> names;
    for (const auto& name : all)
      if (names.size() < shown) names.push_back(report::printable(name, 80));
    return fmt::format("{}{}{}", what, join(names, ", "),
                       all.size() <= shown
                           ? std::string()
                           : fmt::format(" and {}{} more", all.size() >= FoundKernels::most_names ? "at least " : "", all.size() - shown));
  };
  if (found.kernels.empty() && found.code.empty()) {
    if (!options.names.empty() && !found.passed_over.empty())
      return fmt::format("No kernel's name contains \"{}\". {}.", report::printable(join(options.names, "\" or \"")),
                         some(found.passed_over, "There are "));
    if (!options.targets.empty() && !found.passed_over_targets.empty())
      return fmt::format("No code for {} was found. {}.", report::printable(join(options.targets, " or ")),
                         some(found.passed_over_targets, "There is code for "));
    if (!options.names.empty() || !options.targets.empty()) return "No kernel was found.";
  }
  if (options.disassemble && !options.at.empty() && found.code.empty() && found.no_code.empty())
    return fmt::format("No function holds the address {}.", report::printable(options.at));
  return {};
}

void print_kernels(const FoundKernels& found, const KernelOptions& options, const report::Style& style) {
  const std::string missing = not_found(found, options);
  if (found.kernels.empty()) {
    std::cout << (missing.empty() ? "No kernel was found." : report::wrapped(missing, 0, report::terminal_width())) << "\n";
  } else {
    std::cout << "\n"
              << style.bold(fmt::format("{:<32} {:<22} {:>5} {:>5} {:>5} {:>7} {:>8} {:>6} {:>5} {:>5}  {}", "kernel", "target", "VGPR", "AGPR",
                                        "SGPR", "LDS", "scratch", "spills", "wave", "group", "waves/SIMD"))
              << "\n";
  }
  std::string launch;
  if (const auto asked = parse_launch(options); asked && !options.block.empty())
    launch = fmt::format("a workgroup of {} work-items", asked->x * asked->y * asked->z);
  if (options.dynamic_lds != 0) launch += fmt::format("{}{} bytes of dynamic LDS", launch.empty() ? "" : " and ", options.dynamic_lds);
  for (const auto& row : found.kernels) {
    const Value& m = row.kernel.metadata;
    const auto cell = [&](std::string_view name) { return m.find(name) == nullptr ? std::string("-") : m[name].to_string(); };
    std::string occupancy = "not known";
    if (const auto& o = row.kernel.occupancy)
      occupancy = fmt::format("{} of {}{}", o->waves_per_simd, o->waves_per_simd_max, o->limited_by == "hardware" ? "" : " (" + o->limited_by + ")");
    std::cout << fmt::format("{:<32} {:<22} {:>5} {:>5} {:>5} {:>7} {:>8} {:>6} {:>5} {:>5}  {}\n", report::printable(row.kernel.name, 32),
                             report::printable(row.target, 22), cell("vgpr_count"), cell("agpr_count"), cell("sgpr_count"),
                             cell("group_segment_fixed_size"), cell("private_segment_fixed_size"), cell("vgpr_spill_count"), cell("wavefront_size"),
                             cell("max_flat_workgroup_size"), occupancy);
    for (const auto& fault : row.kernel.faults) std::cout << "  " << style.red("fault ") << report::printable(fault) << "\n";
    for (const auto& remark : row.kernel.remarks) std::cout << "  " << style.yellow("slow ") << report::printable(remark) << "\n";
    if (row.kernel.faults.empty() && !launch.empty()) std::cout << "  " << style.green("fits ") << launch << "\n";
  }
  if (!options.disassemble) return;
  for (const auto& code : found.code) print_code(code, style);
  std::vector<std::string> told;
  for (const auto& code : found.code)
    for (const auto& remark : code.answer.remarks)
      if (std::ranges::find(told, remark) == told.end()) {
        std::cout << style.dim(report::printable(remark)) << "\n";
        told.push_back(remark);
      }
  if (!found.code.empty()) {
    const auto& answer = found.code.front().answer;
    std::cout << "\n"
              << style.dim(fmt::format("decoded by {}{}", report::printable(answer.engine),
                                       answer.source_lines ? "" : "; the file has no line table (compile with -g to see source lines)"))
              << "\n";
  } else if (found.no_code.empty() && !found.kernels.empty()) {
    std::cout << (missing.empty() ? "No function was found to disassemble." : missing) << "\n";
  }
}

void kernels_to_json(const FoundKernels& found, const KernelOptions& options, Value& document) {
  Value kernels = Value::list();
  for (const auto& row : found.kernels) kernels.push(binary::kernel_to_json(row.kernel, row.file, row.target));
  document.set("kernels", std::move(kernels));
  if (const auto missing = not_found(found, options); !missing.empty()) document.set("not_found", missing);
  if (!options.disassemble) return;
  Value list = Value::list();
  for (const auto& code : found.code)
    for (const auto& function : code.answer.functions) {
      Value row = binary::disassembly_to_json(function);
      row.set("file", code.file);
      row.set("target", code.target);
      row.set("engine", code.answer.engine);
      row.set("remarks", Value::list_of(code.answer.remarks));
      list.push(std::move(row));
    }
  document.set("disassembly", std::move(list));
}

}  // namespace ff::cli
