#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/mapped_file.h"
#include "base/text.h"
#include "binary/kernels.h"
#include "binary/scan.h"
#include "cli/command.h"
#include "cli/options.h"
#include "knowledge/knowledge.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct CodeOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> devices;
  std::vector<std::string> kernel_names;
  std::string block;
  std::uint64_t dynamic_lds = 0;
  bool kernels = false;
  bool json = false;
};

std::string target_list(const std::vector<elf::TargetId>& targets) {
  std::vector<std::string> out;
  for (const auto& target : targets) out.push_back(report::printable(target.to_string(), 60));
  return out.empty() ? "no target" : join(out, " ");
}

void print_file(const binary::FileReport& file, const report::Style& style) {
  std::cout << style.bold(report::printable(file.path)) << "  " << style.dim(file.kind.empty() ? "no file that holds device code" : file.kind)
            << "\n";
  if (file.bundles != 0)
    std::cout << fmt::format(
        "  {} bundle{}{}\n", file.bundles, file.bundles == 1 ? "" : "s",
        file.compressed_bundles != 0 ? fmt::format(", {} compressed (format {})", file.compressed_bundles, file.newest_compression) : "");
  for (const auto& row : file.targets) {
    std::vector<std::string> versions;
    for (const int version : row.versions) versions.push_back(fmt::format("V{}", version));
    std::cout << fmt::format("  {:<28}{:>5} code object{:<2}{:>10}  {}\n", report::printable(row.target.to_string(), 60), row.objects,
                             row.objects == 1 ? "" : "s", row.size_bytes != 0 ? human_bytes(row.size_bytes) : "", join(versions, " "));
  }
  if (file.targets.empty()) std::cout << (file.kpack_split ? "  its device code is in .kpack files\n" : "  no device code\n");
}

void print_component(const binary::ComponentReport& part, const report::Style& style) {
  std::cout << fmt::format("{}  {}{}\n", style.bold(report::printable(part.component.name)), style.dim(report::printable(part.component.root)),
                           part.files > 1 ? style.dim(fmt::format(" ({} files)", part.files)) : "");
  const std::string targets =
      part.kpack_missing ? std::string("its device code is in .kpack files, none of which was found") : target_list(part.targets);
  std::cout << "    " << report::wrapped(targets, 4, report::terminal_width()) << "\n";
}

void print_row(const binary::ComponentCoverage& row, const report::Style& style) {
  const auto& coverage = row.coverage;
  std::string text(elf::cover_name(coverage.cover));
  if (!coverage.override_version.empty())
    text += fmt::format(": HSA_OVERRIDE_GFX_VERSION={} runs its {} code", coverage.override_version, coverage.by);
  else if (coverage.cover == elf::Cover::generic)
    text += fmt::format(" ({})", coverage.by);
  if (!coverage.why.empty()) text += "; " + coverage.why;
  if (!coverage.works() && row.component->component.fallback) text += "; " + row.component->component.without;
  const std::string mark = coverage.works() ? style.green("yes ") : row.component->component.fallback ? style.yellow("slow") : style.red("no  ");
  std::cout << "  " << mark << "  " << report::printable(row.component->component.name) << ": " << report::wrapped(text, 8, report::terminal_width())
            << "\n";
}

void print_answer(const binary::DeviceAnswer& answer, const report::Style& style) {
  const std::string device = answer.device.to_string();
  if (answer.components.empty()) {
    std::cout << "\n" << style.bold(device) << ": no device code was found, so nothing can be said\n";
    return;
  }
  const bool works = answer.first_to_fail == nullptr && answer.cover != elf::Cover::none;
  std::cout << "\n"
            << style.bold(device) << ": " << (works ? style.green(elf::cover_name(answer.cover)) : style.red(elf::cover_name(answer.cover))) << "\n";
  for (const auto& row : answer.components) print_row(row, style);
  if (answer.first_to_fail == nullptr) return;
  const auto& first = *answer.first_to_fail;
  const auto width = report::terminal_width();
  std::cout << "\n  " << style.bold("First to fail: ")
            << report::wrapped(fmt::format("{}, {}: it has {}. Then {}.", report::printable(first.component->component.name),
                                           report::printable(first.component->component.root), target_list(first.component->targets),
                                           first.component->component.without),
                               4, width)
            << "\n  " << style.bold("What to do: ");
  switch (first.coverage.cover) {
    case elf::Cover::override_ok:
      std::cout << report::wrapped(fmt::format("install a build with code for {}, or set HSA_OVERRIDE_GFX_VERSION={} before the program starts.",
                                               device, first.coverage.override_version),
                                   4, width);
      break;
    case elf::Cover::override_unsafe:
      std::cout << report::wrapped(fmt::format("install a build with code for {}. HSA_OVERRIDE_GFX_VERSION={} lets it start, but its results and its "
                                               "stability are not to be trusted: {}.",
                                               device, first.coverage.override_version, first.coverage.why),
                                   4, width);
      break;
    case elf::Cover::setting:
      std::cout << report::wrapped(first.coverage.why, 4, width);
      break;
    default:
      std::cout << report::wrapped(
          fmt::format("install a build with code for {} (its wheel or device package for this GPU), or build it with that target.", device), 4,
          width);
  }
  std::cout << "\n";
}

/// "256" or "16,16,1".
Result<binary::Launch> parse_launch(const CodeOptions& options) {
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

struct FoundKernel {
  std::string file, target;
  binary::Kernel kernel;
};

/// Kernels of the files found, and of nothing inside wheels (unpack those first).
std::vector<FoundKernel> find_kernels(binary::Scan& scan, const CodeOptions& options, const binary::Launch& launch) {
  const Value& table = knowledge::Knowledge::built_in().table("targets");
  std::vector<FoundKernel> found;
  const auto wanted = [&](const std::string& name) {
    if (options.kernel_names.empty()) return true;
    for (const auto& part : options.kernel_names)
      if (contains(name, part)) return true;
    return false;
  };
  for (auto& report : scan.files) {
    if (report.targets.empty() || contains(report.path, "!")) continue;
    auto file = MappedFile::open(report.path);
    if (!file) continue;
    const auto problems =
        elf::visit_code(file->bytes(), elf::list_code_objects(file->bytes()), [&](const elf::CodeObject& object, std::string_view code) {
          if (!code.starts_with("\x7f"
                                "ELF"))
            return;  // bitcode, SPIR-V
          auto kernels = binary::read_kernels(code, binary::limits_of(table, object.target.processor), launch);
          if (!kernels) {
            report.problems.push_back(fmt::format("{} at {:#x}: {}", object.target.to_string(), object.offset, kernels.error().what));
            return;
          }
          for (auto& kernel : *kernels)
            if (wanted(kernel.name)) found.push_back({report.path, object.target.to_string(), std::move(kernel)});
        });
    for (const auto& problem : problems) report.problems.push_back(problem);
  }
  return found;
}

void print_kernels(const std::vector<FoundKernel>& kernels, const report::Style& style) {
  std::cout << "\n"
            << style.bold(fmt::format("{:<32} {:<22} {:>5} {:>5} {:>5} {:>7} {:>8} {:>6} {:>5} {:>5}  {}", "kernel", "target", "VGPR", "AGPR", "SGPR",
                                      "LDS", "scratch", "spills", "wave", "group", "waves/SIMD"))
            << "\n";
  for (const auto& found : kernels) {
    const Value& m = found.kernel.metadata;
    const auto cell = [&](std::string_view name) { return m.find(name) == nullptr ? std::string("-") : m[name].to_string(); };
    std::string occupancy = "not known";
    if (const auto& o = found.kernel.occupancy)
      occupancy = fmt::format("{} of {}{}", o->waves_per_simd, o->waves_per_simd_max, o->limited_by == "hardware" ? "" : " (" + o->limited_by + ")");
    std::cout << fmt::format("{:<32} {:<22} {:>5} {:>5} {:>5} {:>7} {:>8} {:>6} {:>5} {:>5}  {}\n", report::printable(found.kernel.name, 32),
                             report::printable(found.target, 22), cell("vgpr_count"), cell("agpr_count"), cell("sgpr_count"),
                             cell("group_segment_fixed_size"), cell("private_segment_fixed_size"), cell("vgpr_spill_count"), cell("wavefront_size"),
                             cell("max_flat_workgroup_size"), occupancy);
    for (const auto& fault : found.kernel.faults) std::cout << "  " << style.red("fault ") << report::printable(fault) << "\n";
    for (const auto& remark : found.kernel.remarks) std::cout << "  " << style.yellow("slow ") << report::printable(remark) << "\n";
  }
}

int list_code(const CodeOptions& options) {
  std::vector<elf::TargetId> devices;
  for (const auto& text : options.devices) {
    const auto target = elf::parse_target_id(text);
    if (!target)
      return report_error(
          Error{fmt::format("\"{}\" is no gfx target", text), "--for", "give the name that rocminfo shows, for example gfx1151 or gfx90a:xnack-", 2});
    devices.push_back(*target);
  }
  const auto launch = parse_launch(options);
  if (!launch) return report_error(launch.error());
  binary::Scan scan = binary::scan({.inputs = options.inputs});
  const bool want_kernels = options.kernels || !options.kernel_names.empty() || launch->x != 0 || launch->dynamic_lds_bytes != 0;
  std::vector<FoundKernel> kernels;
  if (want_kernels) kernels = find_kernels(scan, options, *launch);
  const auto parts = binary::components(scan);
  std::vector<binary::DeviceAnswer> answers;
  for (const auto& device : devices) answers.push_back(binary::answer_for(device, parts));
  bool fault = false;
  for (const auto& file : scan.files) fault = fault || !file.problems.empty();
  for (const auto& found : kernels) fault = fault || !found.kernel.faults.empty();
  for (const auto& answer : answers) fault = fault || answer.first_to_fail != nullptr || answer.cover > elf::Cover::spirv;
  const int exit_code = !scan.errors.empty() && scan.files.empty() ? 3 : fault ? 1 : scan.errors.empty() ? 0 : 3;
  if (options.json) {
    Value document = binary::scan_to_json(scan, parts, answers);
    if (want_kernels) {
      Value list = Value::list();
      for (const auto& found : kernels) list.push(binary::kernel_to_json(found.kernel, found.file, found.target));
      document.set("kernels", std::move(list));
    }
    print_document(document);
    return exit_code;
  }
  const auto style = report::Style::for_stdout();
  // Few files: each by itself. Many: by component.
  constexpr std::size_t few = 8;
  if (scan.files.size() <= few) {
    for (const auto& file : scan.files) print_file(file, style);
  } else {
    std::cout << fmt::format("{} files with device code among {} looked at\n\n", scan.files.size(), scan.files_looked_at);
    for (const auto& part : parts) print_component(part, style);
  }
  if (scan.files.empty() && scan.errors.empty()) std::cout << fmt::format("No device code in {} files.\n", scan.files_looked_at);
  for (const auto& file : scan.files)
    for (const auto& problem : file.problems)
      std::cout << style.red("damaged ") << report::printable(file.path) << ": " << report::printable(problem) << "\n";
  if (want_kernels && !kernels.empty()) print_kernels(kernels, style);
  if (want_kernels && kernels.empty()) std::cout << (options.kernel_names.empty() ? "No kernel was found.\n" : "No kernel of that name was found.\n");
  for (const auto& answer : answers) print_answer(answer, style);
  for (const auto& error : scan.errors) report_error(error);
  return exit_code;
}

}  // namespace

void add_code(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CodeOptions>();
  app.add_option("inputs", options->inputs, "Libraries, programs, code objects, bundles, wheels or directories (/opt/rocm, a virtual environment)")
      ->required();
  app.add_option("--for", options->devices, "Is this GPU covered? A gfx target as rocminfo shows it: gfx1151, gfx90a:sramecc+:xnack-")
      ->allow_extra_args(false);
  app.add_flag("--kernels", options->kernels, "List every kernel: registers, LDS, scratch, spills, occupancy and what limits it");
  app.add_option("--kernel", options->kernel_names, "Only kernels whose name contains this text")->allow_extra_args(false);
  app.add_option("--block", options->block, "Check a launch with this workgroup size: 256 or 16,16,1");
  app.add_option("--dynamic-lds", options->dynamic_lds, "Check a launch with so many bytes of dynamic LDS");
  app.add_flag("--json", options->json, "Print one JSON document (firstfault/code/1)");
  app.footer(
      "Runs nothing and needs no GPU; without --kernels only headers are read.\nExit code 1: a GPU given with --for is not covered, or device code "
      "is damaged.");
  app.callback([options, &exit_code] { exit_code = list_code(*options); });
}

}  // namespace ff::cli
