#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.h"
#include "base/text.h"
#include "capture/probes.h"

namespace ff::capture {
namespace {

/// A directory that programs of this field write to: the variables that name it (first that is set wins; `below` is
/// appended to the value), else a place below the cache or home directory.
struct Place {
  std::string_view purpose;
  std::array<std::pair<std::string_view, std::string_view>, 3> variables;  // (name, below)
  std::string_view otherwise;                                              // "~/…" or an absolute path; "~cache/…" is below XDG_CACHE_HOME
};
constexpr std::array places{
    Place{"tmp", {{{"TMPDIR", ""}}}, "/tmp"},
    Place{"home", {{{"HOME", ""}}}, "~"},
    Place{"root", {}, "/"},
    Place{"shm", {}, "/dev/shm"},
    Place{"cache:huggingface", {{{"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", ""}}}, "~cache/huggingface"},
    Place{"cache:lerobot", {{{"HF_LEROBOT_HOME", ""}, {"HF_HOME", "/lerobot"}}}, "~cache/huggingface/lerobot"},
    Place{"cache:torch", {{{"TORCH_HOME", ""}}}, "~cache/torch"},
    Place{"cache:triton", {{{"TRITON_CACHE_DIR", ""}, {"TRITON_HOME", "/.triton/cache"}}}, "~/.triton/cache"},
    Place{"cache:inductor", {{{"TORCHINDUCTOR_CACHE_DIR", ""}}}, "~tmp/torchinductor"},
    Place{"cache:miopen", {{{"MIOPEN_CUSTOM_CACHE_DIR", ""}}}, "~cache/miopen"},
    Place{"cache:miopen-db", {{{"MIOPEN_USER_DB_PATH", ""}}}, "~/.config/miopen"},
    Place{"cache:comgr", {{{"AMD_COMGR_CACHE_DIR", ""}}}, "~cache/comgr"},
    Place{"cache:matplotlib", {{{"MPLCONFIGDIR", ""}}}, "~/.config/matplotlib"},
    Place{"cache:numba", {{{"NUMBA_CACHE_DIR", ""}}}, ""},
    Place{"cache:pip", {{{"PIP_CACHE_DIR", ""}}}, "~cache/pip"},
};

struct Mount {
  std::string point, filesystem, options;
};

std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> out;
  for (const std::string_view line : lines(text)) {
    const auto fields = words(line);
    std::size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (fields.size() < 6 || dash + 3 >= fields.size()) continue;
    std::string options(fields[5]);
    for (const std::string_view option : split(fields[dash + 3], ','))
      if (option != "rw" && option != "ro" && !contains("," + options + ",", "," + std::string(option) + ",")) options += "," + std::string(option);
    // Blanks stand as \040.
    out.push_back({replace_all(std::string(fields[4]), "\\040", " "), std::string(fields[dash + 1]), options});
  }
  return out;
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    const bool above = mount.point == "/" || path == mount.point ||
                       (path.starts_with(mount.point) && path.size() > mount.point.size() && path[mount.point.size()] == '/');
    if (above && (best == nullptr || mount.point.size() >= best->point.size())) best = &mount;
  }
  return best;
}

std::string expand_place(const ProbeContext& context, const Place& place) {
  for (const auto& [name, below] : place.variables)
    if (!name.empty() && !context.variable(name).empty()) return std::string(context.variable(name)) + std::string(below);
  const std::string home(context.variable("HOME"));
  const std::string_view otherwise = place.otherwise;
  if (otherwise.starts_with("~cache/")) {
    const std::string_view cache = context.variable("XDG_CACHE_HOME");
    if (!cache.empty()) return std::string(cache) + "/" + std::string(otherwise.substr(7));
    return home.empty() ? std::string() : home + "/.cache/" + std::string(otherwise.substr(7));
  }
  if (otherwise.starts_with("~tmp/")) {
    const std::string_view tmp = context.variable("TMPDIR");
    const std::string_view user = context.variable("USER");
    return std::string(tmp.empty() ? "/tmp" : tmp) + "/" + std::string(otherwise.substr(5)) + (user.empty() ? "" : "_" + std::string(user));
  }
  if (otherwise.starts_with('~')) return home.empty() ? std::string() : home + std::string(otherwise.substr(1));
  return std::string(otherwise);
}

Value measure(const ProbeContext& context, std::string_view purpose, const std::string& path, const std::vector<Mount>& mounts) {
  Value out = Value::object({{"purpose", purpose}, {"path", path}});
  std::string at = path;
  while (at.size() > 1 && ::access(context.path(at).c_str(), F_OK) != 0) {
    const auto slash = at.rfind('/');
    if (slash == std::string::npos) break;
    at = slash == 0 ? "/" : at.substr(0, slash);
  }
  out.set("exists", at == path);
  out.set("measured_at", at);
  struct statvfs space{};
  if (::statvfs(context.path(at).c_str(), &space) != 0) {
    out.set("errno", errno);
    return out;
  }
  const std::uint64_t block = space.f_frsize != 0 ? space.f_frsize : space.f_bsize;
  const bool root = ::geteuid() == 0;
  out.set("free_bytes", static_cast<std::uint64_t>(root ? space.f_bfree : space.f_bavail) * block);
  out.set("total_bytes", static_cast<std::uint64_t>(space.f_blocks) * block);
  out.set("free_inodes", static_cast<std::uint64_t>(root ? space.f_ffree : space.f_favail));
  out.set("total_inodes", static_cast<std::uint64_t>(space.f_files));
  // Asked, not tried: a snapshot writes nothing. Root is told "yes" except on a read-only file system.
  const bool writable = ::access(context.path(at).c_str(), W_OK | X_OK) == 0;
  out.set("writable", writable);
  if (!writable) out.set("errno", errno);
  if (const Mount* mount = mount_of(mounts, at)) {
    out.set("mount", mount->point);
    out.set("filesystem", mount->filesystem);
    out.set("options", mount->options);
  }
  if (purpose == "shm")
    context.emitter.probe("shm", Value::object({{"path", path},
                                                {"total_bytes", static_cast<std::uint64_t>(space.f_blocks) * block},
                                                {"free_bytes", static_cast<std::uint64_t>(space.f_bavail) * block},
                                                {"used_bytes", static_cast<std::uint64_t>(space.f_blocks - space.f_bfree) * block}}));
  return out;
}

}  // namespace

void probe_disks(ProbeContext& context) {
  const auto mount_text = read_file(context.path("/proc/self/mountinfo"), 16u << 20);
  const std::vector<Mount> mounts = parse_mounts(mount_text ? *mount_text : std::string());
  std::vector<std::pair<std::string, std::string>> wanted;
  if (!context.options.work_root.empty()) {
    wanted.emplace_back("work", context.options.work_root);
  } else if (std::array<char, 4096> here{}; ::getcwd(here.data(), here.size()) != nullptr) {
    wanted.emplace_back("work", here.data());
  }
  for (const Place& place : places)
    if (const std::string path = expand_place(context, place); path.starts_with('/')) wanted.emplace_back(place.purpose, path);
  for (const auto& [purpose, path] : wanted) {
    if (!context.emitter.begin("disk: " + purpose)) continue;
    Value::List one;
    one.push_back(measure(context, purpose, path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path, mounts));
    context.emitter.probe("disks", Value(std::move(one)));
  }
}

}  // namespace ff::capture
