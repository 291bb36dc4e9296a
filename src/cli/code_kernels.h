#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "binary/disassemble.h"
#include "binary/kernels.h"
#include "binary/scan.h"
#include "report/style.h"

namespace CLI {
class App;
}

namespace ff::cli {

/// What `code` and `code build` ask about kernels.
struct KernelOptions {
  std::vector<std::string> names;    ///< parts of names; empty: all
  std::vector<std::string> targets;  ///< only code of these targets; empty: all
  std::string block, at, disassembler;
  std::uint64_t dynamic_lds = 0;
  bool disassemble = false;
};
void add_kernel_options(CLI::App& app, KernelOptions& options);

struct FoundKernel {
  std::string file, target;
  binary::Kernel kernel;
};
struct FoundCode {
  std::string file, target;
  binary::DisassembleAnswer answer;
};
struct FoundKernels {
  std::vector<FoundKernel> kernels;
  std::vector<FoundCode> code;        ///< with --disassemble
  std::vector<std::string> no_code;   ///< why some code could not be disassembled, in words
  std::vector<std::string> remedies;  ///< what to do about it
  std::set<std::string> passed_over;  ///< names of kernels that were not asked for; `most_names` at most
  std::set<std::string> passed_over_targets;
  static constexpr std::size_t most_names = 1000;
  [[nodiscard]] bool fault() const;  ///< a launch must fail
};

/// Errors: a workgroup size, target or address that is none.
Result<void> check_kernel_options(const KernelOptions& options);
/// Kernels of the code objects in some bytes, added to `found`; returns damage in words.
std::vector<std::string> find_kernels(std::string_view bytes, const std::string& path, const KernelOptions& options, FoundKernels& found);
/// Kernels of the files found, members of wheels among them.
FoundKernels find_kernels(binary::Scan& scan, const KernelOptions& options);

/// Which kernel, target or address was asked for and is not there, and what is there instead; empty: nothing is missing.
std::string not_found(const FoundKernels& found, const KernelOptions& options);
void print_kernels(const FoundKernels& found, const KernelOptions& options, const report::Style& style);
/// "kernels", with --disassemble "disassembly", and "not_found" when something is.
void kernels_to_json(const FoundKernels& found, const KernelOptions& options, Value& document);

void add_code_build(CLI::App& app, int& exit_code);

}  // namespace ff::cli
