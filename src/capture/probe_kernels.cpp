#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/text.h"
#include "capture/probes.h"

namespace ff::capture {

void probe_kernels(ProbeContext& context) {
  if (!context.emitter.begin("kernels")) return;
  const auto release_text = read_file(context.path("/proc/sys/kernel/osrelease"), 4096);
  const std::string release = release_text ? std::string(trim(*release_text)) : std::string();
  int error = 0;
  Value::List installed, images;
  for (const std::string& name : directory_names(context.path("/lib/modules"), error))
    if (::access(context.path("/lib/modules/" + name + "/modules.dep").c_str(), F_OK) == 0) installed.emplace_back(name);
  for (const std::string& name : directory_names(context.path("/boot"), error))
    if (name.starts_with("vmlinuz") || name.starts_with("vmlinux")) images.emplace_back(name);
  Value kernels = Value::object({{"running", release}, {"installed", Value(std::move(installed))}, {"boot_images", Value(std::move(images))}});
  if (!release.empty()) kernels.set("headers", ::access(context.path("/lib/modules/" + release + "/build/Makefile").c_str(), F_OK) == 0);
  context.emitter.probe("kernels", kernels);

  Value files = Value::object({{"module", nullptr}, {"firmware_directory", nullptr}});
  for (const std::string_view place : {"updates/dkms", "extra", "updates", "kernel/drivers/gpu/drm/amd/amdgpu"})
    for (const std::string_view suffix : {".ko", ".ko.zst", ".ko.xz", ".ko.gz"}) {
      const std::string path = "/lib/modules/" + release + "/" + std::string(place) + "/amdgpu" + std::string(suffix);
      if (!release.empty() && files["module"].is_null() && ::access(context.path(path).c_str(), F_OK) == 0) files.set("module", path);
    }
  for (const std::string_view place : {"/lib/firmware/updates/amdgpu", "/lib/firmware/amdgpu", "/usr/lib/firmware/amdgpu"}) {
    const auto names = directory_names(context.path(place), error);
    if (error != 0 || !files["firmware_directory"].is_null()) continue;
    files.set("firmware_directory", place);
    files.set("firmware_files", names.size());
  }
  context.emitter.probe("amdgpu_files", files);
}

}  // namespace ff::capture
