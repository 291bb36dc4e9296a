// A stand-in for libamdhip64 and hipRTC, for tests: memory is host memory, kernels are this program's own for the CPU, played
// with the wavefront of the target. Where FIRSTFAULT_AMD_EMULATOR names an emulator, kernels are compiled by clang for the target and
// every launch is handed to it (emulator_server.py). Any call can be made to fail with any code.
//
//   FF_DOUBLE_TARGET   gfx90a:sramecc+:xnack- (default), gfx1100, ...      FF_DOUBLE_DEVICES  how many (default 1)
//   FF_DOUBLE_VERSION  what hipRuntimeGetVersion says (default 60443482)    FF_DOUBLE_FAIL     "hipMalloc:2" or "hipMalloc:2:3": the third call
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gpu/fiber.h"
#include "gpu/kernels.h"

namespace {

namespace gpu = ff::gpu;
using Address = std::uint64_t;

constexpr int success = 0, invalid_value = 1, out_of_memory = 2, no_device = 100, invalid_device = 101, invalid_image = 200, invalid_handle = 400,
              not_found = 500, launch_failure = 719, invalid_configuration = 9, not_supported = 801;

std::string environment(const char* name, const char* otherwise) {
  const char* v = std::getenv(name);
  return v != nullptr && *v != '\0' ? v : otherwise;
}

// ---- faults to inject

struct Fault {
  std::string function;
  int code = 0, nth = 0;
};
Fault fault;
bool fault_read = false;

/// 0, or the code with which this call has to fail.
int injected(const char* function) {
  if (!fault_read) {
    fault_read = true;
    const std::string text = environment("FF_DOUBLE_FAIL", "");
    const auto a = text.find(':');
    if (a != std::string::npos) {
      fault.function = text.substr(0, a);
      fault.code = std::atoi(text.c_str() + a + 1);
      const auto b = text.find(':', a + 1);
      fault.nth = b == std::string::npos ? 1 : std::atoi(text.c_str() + b + 1);
    }
  }
  if (fault.function != function) return 0;
  return --fault.nth == 0 ? fault.code : 0;
}
#define FF_ENTRY \
  if (const int wanted_code = injected(__func__); wanted_code != 0) return wanted_code

// ---- memory: one arena at a fixed address, in a file that an emulator can map as well

constexpr Address arena_base = 0x600000000000;
constexpr std::size_t arena_size = 1ull << 30;

struct Arena {
  int file = -1;
  std::map<Address, std::size_t> used;
  std::size_t taken = 0;
  Arena() {
    file = ::memfd_create("hip_double", 0);
    if (file < 0 || ::ftruncate(file, arena_size) != 0) return;
    if (::mmap(reinterpret_cast<void*>(arena_base), arena_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0) == MAP_FAILED)
      ::abort();
  }
  Address take(std::size_t size) {
    Address at = arena_base + 4096;
    for (const auto& [start, length] : used) {
      if (start - at >= size + 512) break;
      at = (start + length + 512 + 255) / 256 * 256;
    }
    if (at + size + 512 > arena_base + arena_size) return 0;
    used[at] = size;
    taken += size;
    return at;
  }
  bool give(Address at) {
    const auto found = used.find(at);
    if (found == used.end()) return false;
    taken -= found->second;
    used.erase(found);
    return true;
  }
  [[nodiscard]] bool inside(Address at, std::size_t size) const {
    auto found = used.upper_bound(at);
    if (found == used.begin()) return false;
    --found;
    return at - found->first <= found->second && size <= found->second - (at - found->first);
  }
};
Arena& arena() {
  static Arena one;
  return one;
}

std::string target() { return environment("FF_DOUBLE_TARGET", "gfx90a:sramecc+:xnack-"); }
unsigned wavefront() { return target().starts_with("gfx9") ? 64 : 32; }
const char* emulator() { return std::getenv("FIRSTFAULT_AMD_EMULATOR"); }

// ---- the emulator: a Python process that maps the arena, one line a request

struct Server {
  std::FILE* to = nullptr;
  std::FILE* from = nullptr;
  bool start() {
    if (to != nullptr) return true;
    int request[2], answer[2];
    if (::pipe(request) != 0 || ::pipe(answer) != 0) return false;
    const int arena_file = arena().file;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(request[0], 0);
      ::dup2(answer[1], 1);
      ::fcntl(arena_file, F_SETFD, 0);
      const std::string file = std::to_string(arena_file), base = std::to_string(arena_base), size = std::to_string(arena_size);
      ::execlp("python3", "python3", "-B", FF_EMULATOR_SERVER, emulator(), file.c_str(), base.c_str(), size.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(request[0]);
    ::close(answer[1]);
    to = ::fdopen(request[1], "w");
    from = ::fdopen(answer[0], "r");
    return pid > 0 && to != nullptr && from != nullptr;
  }
  /// "ok ..." or "error text"; empty when the server is gone.
  std::string ask(const std::string& line) {
    if (!start()) return {};
    std::fputs((line + "\n").c_str(), to);
    std::fflush(to);
    char* text = nullptr;
    std::size_t capacity = 0;
    const auto n = ::getline(&text, &capacity, from);
    std::string out = n > 0 ? std::string(text, static_cast<std::size_t>(n - 1)) : std::string();
    std::free(text);
    return out;
  }
};
Server& server() {
  static Server one;
  return one;
}

// ---- modules

struct Kernel {
  std::string module, name;
  const gpu::HostKernel* host = nullptr;
  std::vector<std::size_t> sizes;  ///< of the arguments, with an emulator
};
struct Module {
  std::string id;
  const gpu::KernelSource* source = nullptr;
  std::map<std::string, Kernel> kernels;
};

struct Program {
  std::string name, source, log, code;
};

int launch(const Kernel& k, gpu::Extent grid, gpu::Extent block, unsigned shared, void** arguments) {
  if (k.host != nullptr) return gpu::host::run_grid(k.host->entry, arguments, grid, block, shared, wavefront(), 0) ? success : launch_failure;
  std::ostringstream line;
  line << "launch " << k.module << ' ' << k.name << ' ' << grid.x << ' ' << grid.y << ' ' << grid.z << ' ' << block.x << ' ' << block.y << ' '
       << block.z << ' ' << shared << " args";
  for (std::size_t i = 0; i < k.sizes.size(); ++i) {
    line << ' ';
    const auto* bytes = static_cast<const unsigned char*>(arguments[i]);
    constexpr const char* digits = "0123456789abcdef";
    for (std::size_t b = 0; b < k.sizes[i]; ++b) line << digits[bytes[b] >> 4] << digits[bytes[b] & 15];
  }
  line << " memory";
  for (const auto& [start, size] : arena().used) line << ' ' << start << ':' << size;
  const std::string answer = server().ask(line.str());
  if (answer.starts_with("ok")) return success;
  std::fprintf(stderr, "emulator: %s: %s\n", k.name.c_str(), answer.empty() ? "gone" : answer.c_str());
  return answer.starts_with("unsupported") ? not_supported : launch_failure;
}

/// One launch with its arguments kept, for graphs.
struct Recorded {
  Kernel* kernel;
  gpu::Extent grid, block;
  unsigned shared;
  std::vector<std::string> arguments;
};
struct Stream {
  bool capturing = false;
  std::vector<Recorded> recorded;
};
using Graph = std::vector<Recorded>;

struct Event {
  std::chrono::steady_clock::time_point at;
  bool recorded = false;
};

}  // namespace

extern "C" {

/// The nth call of `function` from now on fails with `code`; 0 for nth: none does.
void ff_double_fail(const char* function, int code, int nth) {
  fault_read = true;
  fault = {function, code, nth};
}

int hipInit(unsigned) {
  FF_ENTRY;
  return environment("FF_DOUBLE_DEVICES", "1") == "0" ? no_device : success;
}
int hipDriverGetVersion(int* version) {
  FF_ENTRY;
  *version = std::atoi(environment("FF_DOUBLE_VERSION", "60443482").c_str());
  return success;
}
int hipRuntimeGetVersion(int* version) {
  FF_ENTRY;
  *version = std::atoi(environment("FF_DOUBLE_VERSION", "60443482").c_str());
  return success;
}
int hipGetDeviceCount(int* count) {
  FF_ENTRY;
  *count = std::atoi(environment("FF_DOUBLE_DEVICES", "1").c_str());
  return *count > 0 ? success : no_device;
}
int hipDeviceGet(int* device, int ordinal) {
  FF_ENTRY;
  *device = ordinal;
  return ordinal >= 0 && ordinal < std::atoi(environment("FF_DOUBLE_DEVICES", "1").c_str()) ? success : invalid_device;
}
int hipSetDevice(int) {
  FF_ENTRY;
  return success;
}
int hipDeviceGetName(char* name, int size, int) {
  FF_ENTRY;
  std::snprintf(name, static_cast<std::size_t>(size), "stand-in for an AMD GPU");
  return success;
}
int hipDeviceGetAttribute(int* value, int attribute, int) {
  FF_ENTRY;
  switch (attribute) {
    case 87:
      *value = static_cast<int>(wavefront());
      break;
    case 56:
    case 26:
    case 27:
    case 28:
      *value = 1024;
      break;
    case 29:
      *value = 2147483647;
      break;
    case 30:
    case 31:
      *value = 65536;
      break;
    case 74:
      *value = 65536;
      break;
    case 63:
      *value = 4;
      break;
    default:
      *value = 0;
      break;
  }
  return success;
}
int hipDeviceTotalMem(std::size_t* size, int) {
  FF_ENTRY;
  *size = arena_size;
  return success;
}
int hipDeviceGetPCIBusId(char* text, int size, int) {
  FF_ENTRY;
  std::snprintf(text, static_cast<std::size_t>(size), "0000:03:00.0");
  return success;
}
int hipGetDevicePropertiesR0600(void* properties, int) {
  FF_ENTRY;
  std::memset(properties, 0, 1472);
  std::snprintf(static_cast<char*>(properties), 256, "stand-in for an AMD GPU");
  std::snprintf(static_cast<char*>(properties) + 1160, 256, "%s", target().c_str());
  return success;
}
int hipDeviceSynchronize() {
  FF_ENTRY;
  return success;
}
int hipMemGetInfo(std::size_t* free, std::size_t* total) {
  FF_ENTRY;
  *total = arena_size;
  *free = arena_size - arena().taken;
  return success;
}
int hipMalloc(Address* address, std::size_t size) {
  FF_ENTRY;
  *address = size > arena_size ? 0 : arena().take(size);
  return *address != 0 ? success : out_of_memory;
}
int hipFree(Address address) {
  FF_ENTRY;
  return arena().give(address) ? success : invalid_value;
}
int hipHostMalloc(void** memory, std::size_t size, unsigned) {
  FF_ENTRY;
  *memory = std::malloc(size);
  return *memory != nullptr ? success : out_of_memory;
}
int hipHostFree(void* memory) {
  FF_ENTRY;
  std::free(memory);
  return success;
}
int hipMemcpyHtoD(Address to, const void* from, std::size_t size) {
  FF_ENTRY;
  if (!arena().inside(to, size)) return invalid_value;
  std::memcpy(reinterpret_cast<void*>(to), from, size);
  return success;
}
int hipMemcpyDtoH(void* to, Address from, std::size_t size) {
  FF_ENTRY;
  if (!arena().inside(from, size)) return invalid_value;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return success;
}
int hipMemcpyDtoD(Address to, Address from, std::size_t size) {
  FF_ENTRY;
  if (!arena().inside(to, size) || !arena().inside(from, size)) return invalid_value;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  return success;
}
int hipMemcpyHtoDAsync(Address to, const void* from, std::size_t size, void*) {
  FF_ENTRY;
  return hipMemcpyHtoD(to, from, size);
}
int hipMemcpyDtoHAsync(void* to, Address from, std::size_t size, void*) {
  FF_ENTRY;
  return hipMemcpyDtoH(to, from, size);
}
int hipMemcpyDtoDAsync(Address to, Address from, std::size_t size, void*) {
  FF_ENTRY;
  return hipMemcpyDtoD(to, from, size);
}
int hipMemsetD8(Address to, unsigned char value, std::size_t size) {
  FF_ENTRY;
  if (!arena().inside(to, size)) return invalid_value;
  std::memset(reinterpret_cast<void*>(to), value, size);
  return success;
}
int hipMemsetD8Async(Address to, unsigned char value, std::size_t size, void*) {
  FF_ENTRY;
  return hipMemsetD8(to, value, size);
}
int hipStreamCreateWithFlags(void** stream, unsigned) {
  FF_ENTRY;
  *stream = new Stream();
  return success;
}
int hipStreamDestroy(void* stream) {
  FF_ENTRY;
  delete static_cast<Stream*>(stream);
  return success;
}
int hipStreamSynchronize(void*) {
  FF_ENTRY;
  return success;
}
int hipStreamWaitEvent(void*, void*, unsigned) {
  FF_ENTRY;
  return success;
}
int hipEventCreateWithFlags(void** event, unsigned) {
  FF_ENTRY;
  *event = new Event();
  return success;
}
int hipEventDestroy(void* event) {
  FF_ENTRY;
  delete static_cast<Event*>(event);
  return success;
}
int hipEventRecord(void* event, void*) {
  FF_ENTRY;
  *static_cast<Event*>(event) = {std::chrono::steady_clock::now(), true};
  return success;
}
int hipEventSynchronize(void*) {
  FF_ENTRY;
  return success;
}
int hipEventElapsedTime(float* ms, void* from, void* to) {
  FF_ENTRY;
  const auto *a = static_cast<Event*>(from), *b = static_cast<Event*>(to);
  if (!a->recorded || !b->recorded) return invalid_handle;
  *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
  return success;
}
int hipModuleLoadData(void** module, const void* image) {
  FF_ENTRY;
  auto made = std::make_unique<Module>();
  const auto* text = static_cast<const char*>(image);
  if (std::strncmp(text, "FFDOUBLE:", 9) == 0) {
    std::string name = text + 9;
    made->source = gpu::kernel_source(name.substr(0, name.find('.')));
    if (made->source == nullptr) return invalid_image;
  } else if (std::strncmp(text, "FFCODE:", 7) == 0) {  // the path of a code object that the emulator loads
    const std::string answer = server().ask("load " + std::string(text + 7));
    if (!answer.starts_with("ok ")) {
      std::fprintf(stderr, "emulator: %s\n", answer.c_str());
      return invalid_image;
    }
    // ok ID kernel:size,size kernel:size ...
    std::istringstream words(answer.substr(3));
    words >> made->id;
    for (std::string word; words >> word;) {
      Kernel k;
      k.module = made->id;
      const auto colon = word.find(':');
      k.name = word.substr(0, colon);
      std::istringstream sizes(word.substr(colon + 1));
      for (std::string size; std::getline(sizes, size, ',');)
        if (!size.empty()) k.sizes.push_back(static_cast<std::size_t>(std::atoi(size.c_str())));
      made->kernels[k.name] = k;
    }
  } else {
    return invalid_image;
  }
  *module = made.release();
  return success;
}
int hipModuleUnload(void* module) {
  FF_ENTRY;
  delete static_cast<Module*>(module);
  return success;
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
  FF_ENTRY;
  auto& m = *static_cast<Module*>(module);
  if (m.source != nullptr && !m.kernels.contains(name))
    for (const auto& host : m.source->host)
      if (std::strcmp(host.name, name) == 0) m.kernels[name] = {"", name, &host, {}};
  const auto found = m.kernels.find(name);
  if (found == m.kernels.end()) return not_found;
  *function = &found->second;
  return success;
}
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* on,
                          void** arguments, void**) {
  FF_ENTRY;
  const std::uint64_t threads = static_cast<std::uint64_t>(bx) * by * bz;
  if (gx == 0 || gy == 0 || gz == 0 || threads == 0 || threads > 1024) return invalid_configuration;
  if (shared > 65536) return invalid_value;
  auto& kernel = *static_cast<Kernel*>(function);
  if (auto* stream = static_cast<Stream*>(on); stream != nullptr && stream->capturing) {
    const std::vector<std::size_t> sizes =
        kernel.host != nullptr ? std::vector<std::size_t>(kernel.host->sizes.begin(), kernel.host->sizes.end()) : kernel.sizes;
    Recorded one{&kernel, {gx, gy, gz}, {bx, by, bz}, shared, {}};
    for (std::size_t i = 0; i < sizes.size(); ++i) one.arguments.emplace_back(static_cast<const char*>(arguments[i]), sizes[i]);
    stream->recorded.push_back(std::move(one));
    return success;
  }
  return launch(kernel, {gx, gy, gz}, {bx, by, bz}, shared, arguments);
}
int hipStreamBeginCapture(void* stream, int) {
  FF_ENTRY;
  if (stream == nullptr) return invalid_handle;
  static_cast<Stream*>(stream)->capturing = true;
  return success;
}
int hipStreamEndCapture(void* stream, void** graph) {
  FF_ENTRY;
  auto& s = *static_cast<Stream*>(stream);
  if (!s.capturing) return invalid_value;
  s.capturing = false;
  *graph = new Graph(std::exchange(s.recorded, {}));
  return success;
}
int hipGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  FF_ENTRY;
  *executable = new Graph(*static_cast<Graph*>(graph));
  return success;
}
int hipGraphLaunch(void* executable, void*) {
  FF_ENTRY;
  for (auto& one : *static_cast<Graph*>(executable)) {
    std::vector<void*> arguments;
    for (auto& bytes : one.arguments) arguments.push_back(bytes.data());
    if (const int code = launch(*one.kernel, one.grid, one.block, one.shared, arguments.data()); code != success) return code;
  }
  return success;
}
int hipGraphDestroy(void* graph) {
  FF_ENTRY;
  delete static_cast<Graph*>(graph);
  return success;
}
int hipGraphExecDestroy(void* executable) {
  FF_ENTRY;
  delete static_cast<Graph*>(executable);
  return success;
}
int hipDeviceCanAccessPeer(int* can, int device, int peer) {
  FF_ENTRY;
  *can = device != peer ? 1 : 0;
  return success;
}
int hipDeviceEnablePeerAccess(int, unsigned) {
  FF_ENTRY;
  return success;
}
int hipMemcpyPeer(Address to, int, Address from, int, std::size_t size) {
  FF_ENTRY;
  if (!arena().inside(to, size) || !arena().inside(from, size)) return invalid_value;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  return success;
}
const char* hipGetErrorName(int code) {
  switch (code) {
    case success:
      return "hipSuccess";
    case invalid_value:
      return "hipErrorInvalidValue";
    case out_of_memory:
      return "hipErrorOutOfMemory";
    case no_device:
      return "hipErrorNoDevice";
    case invalid_device:
      return "hipErrorInvalidDevice";
    case invalid_configuration:
      return "hipErrorInvalidConfiguration";
    case invalid_image:
      return "hipErrorInvalidImage";
    case invalid_handle:
      return "hipErrorInvalidHandle";
    case not_found:
      return "hipErrorNotFound";
    case launch_failure:
      return "hipErrorLaunchFailure";
    case not_supported:
      return "hipErrorNotSupported";
    default:
      return "hipErrorUnknown";
  }
}

int hiprtcCreateProgram(void** program, const char* source, const char* name, int, const char* const*, const char* const*) {
  FF_ENTRY;
  *program = new Program{name, source, "", ""};
  return success;
}
int hiprtcCompileProgram(void* program, int count, const char* const* options) {
  FF_ENTRY;
  auto& p = *static_cast<Program*>(program);
  if (emulator() == nullptr) {
    p.code = "FFDOUBLE:" + p.name;
    p.code.push_back('\0');
    return success;
  }
  const std::string base = environment("TMPDIR", "/tmp") + "/hip_double-" + std::to_string(::getpid()) + "-" + p.name;
  std::ofstream(base + ".hip") << p.source;
  std::string command = environment("FF_DOUBLE_CLANG", "clang++-19") +
                        " -x hip -nogpuinc -nogpulib --cuda-device-only --no-gpu-bundle-output -mcode-object-version=5 --ld-path=/usr/bin/ld.lld-19";
  for (int i = 0; i < count; ++i) command += std::string(" '") + options[i] + "'";
  command += " -o " + base + ".co " + base + ".hip > " + base + ".log 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream log(base + ".log");
  p.log.assign(std::istreambuf_iterator<char>(log), {});
  ::unlink((base + ".hip").c_str());
  ::unlink((base + ".log").c_str());
  if (status != 0) return 6;  // HIPRTC_ERROR_COMPILATION
  p.code = "FFCODE:" + base + ".co";
  p.code.push_back('\0');
  return success;
}
int hiprtcGetProgramLogSize(void* program, std::size_t* size) {
  FF_ENTRY;
  *size = static_cast<Program*>(program)->log.size() + 1;
  return success;
}
int hiprtcGetProgramLog(void* program, char* log) {
  FF_ENTRY;
  const auto& text = static_cast<Program*>(program)->log;
  std::memcpy(log, text.c_str(), text.size() + 1);
  return success;
}
int hiprtcGetCodeSize(void* program, std::size_t* size) {
  FF_ENTRY;
  *size = static_cast<Program*>(program)->code.size();
  return success;
}
int hiprtcGetCode(void* program, char* code) {
  FF_ENTRY;
  const auto& bytes = static_cast<Program*>(program)->code;
  std::memcpy(code, bytes.data(), bytes.size());
  return success;
}
int hiprtcDestroyProgram(void** program) {
  FF_ENTRY;
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return success;
}
const char* hiprtcGetErrorString(int code) { return code == 6 ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR"; }

}  // extern "C"
