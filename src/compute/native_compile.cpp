#include "compute/native_compile.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/process.h"
#include "base/seconds.h"
#include "base/text.h"
#include "gpu/kernels.h"

namespace ff::compute {
namespace {

/// The wavefront that a target's kernels are compiled for: 64 for GCN and CDNA (gfx9 and before), 32 for RDNA and for CUDA.
unsigned wavefront_of(const std::string& target) {
  return target.starts_with("gfx") && target.size() > 3 && (target[3] >= '6' && target[3] <= '9') ? 64 : 32;
}

}  // namespace

std::vector<CompileResult> compile_kernels(const std::vector<std::string>& targets, const std::string& keep,
                                           const std::vector<std::string>& library_folders, const std::function<void(std::string_view)>& progress) {
  std::vector<CompileResult> out;
  gpu::OpenOptions options;
  options.library_folders = library_folders;
  for (const auto& target : targets) {
    const auto api = target.starts_with("sm_") ? gpu::Api::cuda : gpu::Api::hip;
    for (const auto& source : gpu::kernel_sources()) {
      progress(fmt::format("{} for {}", source.name, target));
      ChildOptions child;
      child.time_limit = std::chrono::seconds(120);
      child.body = [&](int descriptor) {
        Value answer = Value::object();
        auto code = gpu::compile_only(api, source, target, wavefront_of(target), options);
        if (!code) {
          answer.set("error", code.error().to_string());
          answer.set("not_run", code.error().exit_code == 3);
        } else {
          answer.set("bytes", static_cast<unsigned long>(code->size()));
          if (!keep.empty()) {
            const auto written =
                write_file(std::filesystem::path(keep) / fmt::format("{}.{}.co", source.name, target.substr(0, target.find(':'))), *code);
            if (!written) answer.set("error", written.error().to_string());
          }
        }
        (void)write_all(descriptor, to_json(answer) + "\n");
      };
      const auto ended = run_child(child);
      CompileResult r{.target = target, .source = std::string(source.name), .status = "crash"};
      r.seconds = seconds_of(ended.duration);
      const auto all = lines(ended.out);
      const auto answer = all.empty() ? Result<Value>(Value()) : parse_json(all.back());
      if (ended.timed_out) {
        r.status = "hang";
        r.detail = ended.describe();
      } else if (answer && answer->is_object()) {
        const Value* error = answer->find("error");
        r.status = error == nullptr ? "pass" : (*answer)["not_run"].as_bool() ? "not-run" : "fail";
        r.code_bytes = static_cast<std::size_t>((*answer)["bytes"].as_int());
        if (error != nullptr)
          r.detail = error->as_text();
        else if (!ended.ok())
          r.detail = "the compiler's process ended badly after its work: " + ended.describe();
      } else {
        r.detail = "the compiler took its process with it: " + ended.describe();
        if (!trim(ended.err).empty()) r.detail += "; " + std::string(trim(ended.err.substr(0, 300)));
      }
      out.push_back(std::move(r));
    }
  }
  return out;
}

}  // namespace ff::compute
