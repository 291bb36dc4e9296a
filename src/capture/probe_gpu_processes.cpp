#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "capture/probes.h"
#include "capture/redact.h"

namespace ff::capture {
namespace {

constexpr std::size_t command_limit_bytes = 512;
constexpr std::size_t argument_limit = 8;

bool is_gpu_node(std::string_view path) { return path == "/dev/kfd" || path == "/dev/dxg" || path.starts_with("/dev/dri/"); }

/// Device nodes that the process holds open; errno in `error` when its descriptors may not be seen.
std::set<std::string> held_nodes(const std::string& directory, int& error) {
  std::set<std::string> out;
  for (const std::string& number : directory_names(directory + "/fd", error)) {
    std::array<char, 64> target;
    const ssize_t size = ::readlink((directory + "/fd/" + number).c_str(), target.data(), target.size());
    if (size > 0 && is_gpu_node({target.data(), static_cast<std::size_t>(size)})) out.emplace(target.data(), static_cast<std::size_t>(size));
  }
  return out;
}

std::uint64_t kfd_vram_bytes(const ProbeContext& context, const std::string& pid, bool& known) {
  std::uint64_t sum = 0;
  int error = 0;
  const std::string directory = context.path("/sys/class/kfd/kfd/proc/" + pid);
  for (const std::string& name : directory_names(directory, error)) {
    if (!name.starts_with("vram_")) continue;
    const auto text = read_file(directory + "/" + name, 4096);
    if (const auto number = text ? to_integer<std::uint64_t>(*text) : std::nullopt) {
      sum += *number;
      known = true;
    }
  }
  return sum;
}

std::string command_line(const std::string& path) {
  const auto text = read_file(path, 1u << 20);
  if (!text || text->empty()) return {};
  std::vector<std::string> arguments;
  for (const std::string_view argument : split(std::string_view(*text).substr(0, 8192), '\0')) arguments.emplace_back(argument);
  if (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  const bool more = arguments.size() > argument_limit;
  if (more) arguments.resize(argument_limit);
  std::string out = join(redact_arguments(arguments), " ");
  if (out.size() > command_limit_bytes) out.resize(command_limit_bytes);
  return to_utf8(more ? out + " …" : out);
}

}  // namespace

void probe_gpu_processes(ProbeContext& context) {
  if (::access(context.path("/dev/kfd").c_str(), F_OK) != 0 && ::access(context.path("/dev/dri").c_str(), F_OK) != 0 &&
      ::access(context.path("/dev/dxg").c_str(), F_OK) != 0)
    return;
  int error = 0;
  std::int64_t unreadable = 0;
  std::vector<std::string> holders;
  for (const std::string& pid : directory_names(context.path("/proc"), error)) {
    if (!std::ranges::all_of(pid, [](char c) { return c >= '0' && c <= '9'; })) continue;
    const std::string directory = context.path("/proc/" + pid);
    if (!context.emitter.begin("/proc/" + pid + "/fd")) continue;
    int hidden = 0;
    const std::set<std::string> nodes = held_nodes(directory, hidden);
    if (hidden == EACCES || hidden == EPERM) ++unreadable;
    if (nodes.empty()) continue;
    holders.push_back(pid);
    Value process = Value::object({{"pid", to_integer<std::int64_t>(pid).value_or(0)}});
    struct stat status{};
    if (::stat(directory.c_str(), &status) == 0) process.set("uid", static_cast<unsigned>(status.st_uid));
    const auto name = read_file(directory + "/comm", 4096);
    process.set("command", name ? to_utf8(trim(*name)) : std::string());
    process.set("devices", Value::list_of(nodes));
    bool known = false;
    if (const auto bytes = kfd_vram_bytes(context, pid, known); known) process.set("vram_bytes", bytes);
    context.emitter.probe("gpu_processes", Value::object({{"processes", Value::list({process})}}));
  }
  context.emitter.probe("gpu_processes", Value::object({{"unreadable", unreadable}, {"processes", Value::list()}}));
  // Last: a process that hangs in the kernel may hold the lock that reading its command line needs.
  for (const std::string& pid : holders) {
    if (!context.emitter.begin("/proc/" + pid + "/cmdline")) continue;
    if (const std::string command = command_line(context.path("/proc/" + pid + "/cmdline")); !command.empty())
      context.emitter.probe("gpu_process_commands", Value::object({{pid, command}}));
  }
}

}  // namespace ff::capture
