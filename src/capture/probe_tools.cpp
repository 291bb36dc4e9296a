#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/text.h"
#include "capture/probes.h"

namespace ff::capture {
namespace {

constexpr std::array tool_names{"rocgdb",  "rocprofv3", "py-spy", "gdb",  "rocminfo", "amd-smi",    "rocm-smi", "hipcc",  "amdclang", "ffmpeg",
                                "ffprobe", "docker",    "podman", "perf", "git",      "nvidia-smi", "lspci",    "strace", "conda",    "uv"};

bool is_program(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string search_path(const CollectOptions& options) {
  const auto it = options.environment.find("PATH");
  std::string path = it != options.environment.end() && !it->second.empty() ? it->second : "/usr/local/bin:/usr/bin:/bin";
  for (const std::string_view more : {"/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/rocm/bin"})
    if (!contains(":" + path + ":", ":" + std::string(more) + ":")) path += ":" + std::string(more);
  return path;
}

std::string find_program(const CollectOptions& options, std::string_view name) {
  const std::string path = search_path(options);
  for (const std::string_view directory : split(path, ':')) {
    if (!directory.starts_with('/')) continue;
    const std::string candidate = std::string(directory) + "/" + std::string(name);
    if (is_program(below_root(options.root, candidate))) return candidate;
  }
  return {};
}

void probe_tools(ProbeContext& context) {
  if (!context.emitter.begin("tools")) return;
  Value out = Value::object();
  for (const std::string_view name : tool_names) {
    const std::string path = find_program(context.options, name);
    out.set(name, path.empty() ? Value() : Value(path));
  }
  out.set("rocm-debug-agent", nullptr);
  for (const std::string_view library : {"/opt/rocm/lib/librocm-debug-agent.so.2", "/opt/rocm/lib/librocm-debug-agent.so"})
    if (::access(context.path(library).c_str(), F_OK) == 0) out.set("rocm-debug-agent", library);
  context.emitter.probe("tools", out);
}

}  // namespace ff::capture
