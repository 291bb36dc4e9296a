#include <gnu/libc-version.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstring>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "capture/probes.h"
#include "capture/redact.h"

namespace ff::capture {
namespace {

Value limit_value(rlim_t limit) { return limit == RLIM_INFINITY ? Value("unlimited") : Value(static_cast<std::uint64_t>(limit)); }

Value limits() {
  constexpr std::array names{std::pair{"memlock", RLIMIT_MEMLOCK}, std::pair{"nofile", RLIMIT_NOFILE}, std::pair{"nproc", RLIMIT_NPROC},
                             std::pair{"stack", RLIMIT_STACK},     std::pair{"core", RLIMIT_CORE},     std::pair{"as", RLIMIT_AS}};
  Value out = Value::object();
  for (const auto& [name, resource] : names) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0)
      out.set(name, Value::object({{"soft", limit_value(limit.rlim_cur)}, {"hard", limit_value(limit.rlim_max)}}));
  }
  return out;
}

Value id_map(const std::string& path) {
  const auto text = read_file(path, 65536);
  if (!text) return {};
  Value::List out;
  for (const std::string_view line : lines(*text)) {
    Value::List numbers;
    for (const std::string_view word : words(line)) numbers.emplace_back(to_integer<std::int64_t>(word).value_or(-1));
    if (numbers.size() == 3) out.emplace_back(std::move(numbers));
  }
  return Value(std::move(out));
}

Value user_namespace() {
  const Value users = id_map("/proc/self/uid_map");
  const Value groups = id_map("/proc/self/gid_map");
  if (users.is_null() || groups.is_null()) return {};
  const Value whole = Value::list({Value::list({0, 0, std::int64_t{4294967295}})});
  return Value::object({{"mapped", users != whole || groups != whole}, {"uid_map", users}, {"gid_map", groups}});
}

Value variables(const CollectOptions& options) {
  Value out = Value::object();
  for (const auto& [name, value] : options.environment)
    if (is_kept_variable(name)) out.set(name, to_utf8(redact_value(name, value)));
  return out;
}

std::string hypervisor() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & (1u << 31)) == 0) return {};
  __cpuid(0x40000000, a, b, c, d);
  char text[13] = {};
  std::memcpy(text, &b, 4);
  std::memcpy(text + 4, &c, 4);
  std::memcpy(text + 8, &d, 4);
  return std::string(trim(text));
#else
  return {};
#endif
}

void add_processors(ProbeContext& context, Value& host) {
  const auto text = read_file(context.path("/proc/cpuinfo"), 64u << 20);
  if (!text) return;
  std::int64_t processors = 0;
  std::set<std::string> sockets, cores;
  std::string model, socket;
  for (const std::string_view line : lines(*text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (name == "processor") {
      ++processors;
      socket = "0";
    } else if (name == "model name" && model.empty()) {
      model = value;
    } else if (name == "physical id") {
      socket = value;
      sockets.emplace(value);
    } else if (name == "core id") {
      cores.insert(socket + ":" + std::string(value));
    }
  }
  if (processors != 0) host.set("logical_cpus", processors);
  if (!sockets.empty()) host.set("sockets", sockets.size());
  if (!cores.empty()) host.set("cores", cores.size());
  if (!model.empty()) host.set("cpu_model", model);
}

void add_governors(ProbeContext& context, Value& host) {
  int error = 0;
  std::set<std::string> governors;
  for (const std::string& name : directory_names(context.path("/sys/devices/system/cpu"), error)) {
    if (!name.starts_with("cpu") || name.size() < 4 || name[3] < '0' || name[3] > '9') continue;
    const auto text = read_file(context.path("/sys/devices/system/cpu/" + name + "/cpufreq/scaling_governor"), 4096);
    if (!text) break;  // no frequency control here
    governors.emplace(trim(*text));
  }
  if (!governors.empty()) host.set("governors", Value::list_of(governors));
}

}  // namespace

/// What cannot hang: this process's own limits, ids and variables, and the processors.
void probe_process(ProbeContext& context) {
  if (!context.emitter.begin("process")) return;
  context.emitter.probe("limits", limits());
  if (const Value space = user_namespace(); !space.is_null()) context.emitter.probe("user_namespace", space);
  context.emitter.probe("env", variables(context.options));

  Value host = Value::object();
  if (const auto name = read_file(context.path("/proc/sys/kernel/hostname"), 4096)) host.set("hostname", trim(*name));
  add_processors(context, host);
  int error = 0;
  std::int64_t nodes = 0;
  for (const std::string& name : directory_names(context.path("/sys/devices/system/node"), error))
    if (name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9') ++nodes;
  if (error == 0) host.set("numa_nodes", nodes);
  add_governors(context, host);
  if (context.live()) {
    utsname names{};
    if (::uname(&names) == 0) host.set("machine", names.machine);
    host.set("page_size", static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE)));
    host.set("libc", ::gnu_get_libc_version());
    if (const std::string name = hypervisor(); !name.empty()) host.set("hypervisor", name);
  }
  context.emitter.probe("host", host);
}

}  // namespace ff::capture
