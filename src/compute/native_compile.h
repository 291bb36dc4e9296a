#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "gpu/device.h"

namespace ff::compute {

/// What the run-time compiler made of one kernel source for one target.
struct CompileResult {
  std::string target, source, status;  ///< "pass", "fail", "crash", "hang", "not-run" (no compiler is at hand)
  std::size_t code_bytes = 0;
  double seconds = 0;
  std::string detail;
};

/// Compiles every kernel source for every target with hipRTC (or NVRTC for "sm_…"), each in a child process: a compiler that
/// aborts is a result. No device is needed. With `keep` the code objects are written there as <source>.<target>.co.
std::vector<CompileResult> compile_kernels(const std::vector<std::string>& targets, const std::string& keep,
                                           const std::vector<std::string>& library_folders, const std::function<void(std::string_view)>& progress);

}  // namespace ff::compute
