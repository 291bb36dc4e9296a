#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "binary/scan.h"
#include "cli/code_kernels.h"
#include "cli/command.h"
#include "cli/options.h"
#include "knowledge/knowledge.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct CodeOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> devices;
  KernelOptions kernel;
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
  if (file.from_name) {
    std::vector<elf::TargetId> named;
    for (const auto& row : file.targets) named.push_back(row.target);
    if (!named.empty())
      std::cout << fmt::format("  {}, by its name{}\n", target_list(named),
                               file.compute_units != 0 ? fmt::format("; for {} compute units", file.compute_units) : "");
  }
  for (const auto& row : file.targets) {
    if (file.from_name) break;
    std::vector<std::string> versions;
    for (const int version : row.versions) versions.push_back(fmt::format("V{}", version));
    std::cout << fmt::format("  {:<28}{:>5} code object{:<2}{:>10}  {}\n", report::printable(row.target.to_string(), 60), row.objects,
                             row.objects == 1 ? "" : "s", row.size_bytes != 0 ? human_bytes(row.size_bytes) : "", join(versions, " "));
  }
  if (file.entries) std::cout << fmt::format("  {} {}\n", *file.entries, file.entry_kind);
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

/// `unknown`: of some files nothing could be read, so what they hold is not known.
void print_answer(const binary::DeviceAnswer& answer, bool unknown, const report::Style& style) {
  const std::string device = answer.device.to_string();
  if (answer.components.empty() && unknown) {
    std::cout << "\n" << style.bold(device) << ": not known: no GPU code could be read, and what is damaged or not read may hold some\n";
    return;
  }
  if (answer.components.empty()) {
    std::cout << "\n" << style.bold(device) << ": holds no GPU code, so there is nothing that this GPU could lack\n";
    return;
  }
  const bool works = answer.first_to_fail == nullptr && answer.cover != elf::Cover::none;
  std::cout << "\n"
            << style.bold(device) << ": " << (works ? style.green(elf::cover_name(answer.cover)) : style.red(elf::cover_name(answer.cover))) << "\n";
  if (!answer.remark.empty())
    std::cout << "  " << style.yellow("?   ") << "  " << report::wrapped(answer.remark, 8, report::terminal_width()) << "\n";
  for (const auto& row : answer.components) print_row(row, style);
  if (unknown) std::cout << "  " << style.yellow("?   ") << "  what is damaged or was not read, above, is not in this answer\n";
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

/// A name that no GPU has is more often a slip than a new GPU; either way the answer must say so.
std::string remark_about(const elf::TargetId& device) {
  const auto& knowledge = knowledge::Knowledge::built_in();
  if (binary::limits_of(knowledge.table("targets"), device.processor)) return {};
  return fmt::format("{} is no target that is known here (knowledge of {}): compare it with what rocminfo shows",
                     report::printable(device.processor, 60), knowledge.date());
}

int list_code(const CodeOptions& options) {
  std::vector<elf::TargetId> devices;
  for (const auto& text : options.devices) {
    const auto target = elf::parse_target_id(text);
    if (!target)
      return report_error(
          Error{fmt::format("\"{}\" is no gfx target", text), "--for", "give the name that rocminfo shows, for example gfx1151 or gfx90a:xnack-", 2});
    if (target->generic())
      return report_error(Error{fmt::format("{} is a generic target, which code is built for; no GPU has that name", target->processor), "--for",
                                "give the GPU's own target, as rocminfo shows it", 2});
    devices.push_back(*target);
  }
  if (const auto valid = check_kernel_options(options.kernel); !valid) return report_error(valid.error());
  binary::Scan scan = binary::scan({.inputs = options.inputs});
  const bool want_kernels = options.kernels || options.kernel.disassemble || !options.kernel.names.empty() || !options.kernel.targets.empty() ||
                            !options.kernel.block.empty() || options.kernel.dynamic_lds != 0;
  FoundKernels kernels;
  if (want_kernels) kernels = find_kernels(scan, options.kernel);
  const auto parts = binary::components(scan);
  std::vector<binary::DeviceAnswer> answers;
  for (const auto& device : devices) {
    answers.push_back(binary::answer_for(device, parts));
    answers.back().remark = remark_about(device);
  }
  bool fault = kernels.fault() || (want_kernels && !not_found(kernels, options.kernel).empty());
  bool unread = !scan.errors.empty() || !kernels.no_code.empty();
  for (const auto& file : scan.files)
    for (const auto& problem : file.problems) (elf::beyond_this_program(problem) ? unread : fault) = true;
  for (const auto& answer : answers)
    fault = fault || answer.first_to_fail != nullptr || (!answer.components.empty() && answer.cover > elf::Cover::spirv);
  // A path that does not exist is wrong usage; what else could not be read or decoded is work that was not done.
  int exit_code = fault ? 1 : unread ? 3 : 0;
  for (const auto& error : scan.errors)
    if (scan.files.empty() || error.exit_code == 2) exit_code = std::max(error.exit_code, 2);
  if (options.json) {
    Value document = binary::scan_to_json(scan, parts, answers);
    if (want_kernels) kernels_to_json(kernels, options.kernel, document);
    for (const auto& text : kernels.no_code) {
      Value errors = document["errors"];
      document.set("errors", errors.push(text));
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
      std::cout << (elf::beyond_this_program(problem) ? style.yellow("not read ") : style.red("damaged ")) << report::printable(file.path) << ": "
                << report::printable(problem) << "\n";
  if (want_kernels) print_kernels(kernels, options.kernel, style);
  bool unknown = !scan.errors.empty();
  for (const auto& file : scan.files) unknown = unknown || !file.problems.empty();
  for (const auto& answer : answers) print_answer(answer, unknown, style);
  for (const auto& error : scan.errors) report_error(error);
  for (const auto& text : kernels.no_code) report_error(Error{text, {}, kernels.remedies.empty() ? std::string() : kernels.remedies.front(), 3});
  return exit_code;
}

}  // namespace

void add_code(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CodeOptions>();
  app.add_option("inputs", options->inputs, "Libraries, programs, code objects, bundles, wheels or directories (/opt/rocm, a virtual environment)");
  app.add_option("--target", options->kernel.targets, "Only kernels and instructions of this target (implies --kernels)")->allow_extra_args(false);
  app.add_option("--for", options->devices, "Is this GPU covered? A gfx target as rocminfo shows it: gfx1151, gfx90a:sramecc+:xnack-")
      ->allow_extra_args(false);
  app.add_flag("--kernels", options->kernels, "List every kernel: registers, LDS, scratch, spills, occupancy and what limits it");
  add_kernel_options(app, options->kernel);
  app.add_flag("--json", options->json, "Print one JSON document (firstfault/code/1)");
  app.footer(
      "Runs nothing and needs no GPU; without --kernels only headers are read.\nExit code 1: a GPU given with --for is not covered, device code is "
      "damaged, a launch must fail, or there is no such kernel.");
  add_code_build(*app.add_subcommand("build", "Compile a kernel and show what it needs of each target: registers, LDS, occupancy"), exit_code);
  app.callback([options, &app, &exit_code] {
    if (!app.get_subcommands().empty()) return;
    exit_code = options->inputs.empty() ? report_error(Error{"nothing to look at", "code", "give a library, wheel, code object or directory", 2})
                                        : list_code(*options);
  });
}

}  // namespace ff::cli
