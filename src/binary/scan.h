#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "elf/code_objects.h"
#include "elf/coverage.h"
#include "facts/components.h"

namespace ff::binary {

using facts::Component;
using facts::component_of;

/// All code of one target in one file.
struct TargetCount {
  elf::TargetId target;
  std::uint64_t objects = 0;
  std::uint64_t size_bytes = 0;
  std::vector<int> versions;  ///< code object versions seen, ascending; empty: not read
};

struct FileReport {
  std::string path;  ///< members of wheels as "torch.whl!torch/lib/libtorch_hip.so"
  std::string kind;  ///< of elf::Listing, or "Tensile library", "MIOpen database", "AOTriton images"
  Component component;
  std::vector<TargetCount> targets;
  std::uint64_t size_bytes = 0;
  std::uint64_t bundles = 0, compressed_bundles = 0, newest_compression = 0;
  std::optional<std::uint64_t> entries;  ///< of a MIOpen database: kernels, tuned parameters or find results
  std::string entry_kind;                ///< "compiled kernels"
  int compute_units = 0;                 ///< of a MIOpen database: those of the GPU it was made on (RDNA: work-group processors); 0: all
  bool from_name = false;                ///< the targets are those of the file's name; its content was not read
  bool is_index = false;                 ///< an index of lazily loaded files: without it the others are never found
  bool kpack_split = false;              ///< its code is in .kpack files
  std::string kpack_binary;              ///< how those name it: "lib/librocblas.so.5"
  std::vector<std::string> kpack_paths;  ///< where it looks for them, relative to itself
  std::string archive;                   ///< of a row of a .kpack archive: the archive
  std::vector<std::string> problems;
};

struct ScanOptions {
  std::vector<std::string> inputs;  ///< files, directories, wheels
  unsigned threads = 0;             ///< 0: as many as there are CPUs, at most 8
  std::function<void(std::string_view)> progress = [](std::string_view) {};
};

/// What was found, sorted by path.
struct Scan {
  std::vector<FileReport> files;  ///< those that hold device code, claim to, or are damaged
  std::uint64_t files_looked_at = 0;
  std::vector<Error> errors;  ///< inputs and files that could not be read
};

/// Lists the device code below the inputs. A file named directly is always reported, with no targets when it has none; one that is of
/// no kind that could hold any (empty, text, a packed tree) is an error. Wheels inside wheels are opened as well.
/// Symbolic links inside directories are not followed (their targets are met under their own names).
Scan scan(const ScanOptions& options);
/// The report of bytes that are in memory, under a path that names them. Nothing when they hold no device code.
std::optional<FileReport> report_of(std::string_view path, std::string_view bytes);

/// All files of one component together.
struct ComponentReport {
  Component component;
  std::vector<elf::TargetId> targets;  ///< each once, sorted
  std::uint64_t files = 0, size_bytes = 0;
  bool kpack_missing = false;  ///< a kpack-split library whose .kpack files were not found
};
/// In the order in which a program needs them.
std::vector<ComponentReport> components(const Scan& scan);

struct ComponentCoverage {
  const ComponentReport* component = nullptr;
  elf::Coverage coverage;
};
/// The answer for one device over everything that was found.
struct DeviceAnswer {
  elf::TargetId device;
  elf::Cover cover = elf::Cover::none;  ///< of the first component to fail; native or generic when none fails
  std::vector<ComponentCoverage> components;
  const ComponentCoverage* first_to_fail = nullptr;  ///< into `components`; components with a fallback never fail
  std::string remark;                                ///< about the device itself, for example that no such target is known
};
DeviceAnswer answer_for(const elf::TargetId& device, const std::vector<ComponentReport>& components);

/// The "firstfault/code/1" document (docs/schema/code.json) without kernels.
Value scan_to_json(const Scan& scan, const std::vector<ComponentReport>& components, const std::vector<DeviceAnswer>& answers);

}  // namespace ff::binary
