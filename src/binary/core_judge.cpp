// What a core file says in words: what kind of fault, whose code, what to ask next.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/interrupt.h"
#include "base/text.h"
#include "binary/core.h"
#include "elf/elf.h"

namespace ff::binary {
namespace {

constexpr std::uint64_t first_page = 65536;  // vm.mmap_min_addr: nothing is ever mapped below it
constexpr std::uint64_t guard_window = std::uint64_t{1} << 16;

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }
bool any_prefix(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string place_of(const CoreFrame& frame) {
  const std::string module = frame.module.empty() ? fmt::format("{:#x} (no mapped file)", frame.address) : std::string(name_of(frame.module));
  return module + (frame.function.empty() ? std::string() : ": " + frame.function) +
         (frame.source.empty() ? std::string() : " (" + frame.source + ")");
}

/// The stack ran out: the fault is within reach of the stack pointer and just below a mapping that the pointer was in, or
/// the pointer itself lies in no mapping at all, below the stack (a local array larger than what is left).
bool stack_exhausted(const Core& core, elf::Bytes bytes) {
  if (core.signal != SIGSEGV || core.threads.empty()) return false;
  const std::uint64_t stack = core.threads[0].stack, address = core.address;
  const std::uint64_t distance = stack > address ? stack - address : address - stack;
  constexpr std::uint64_t largest_frame = std::uint64_t{1} << 30;
  if (distance > largest_frame) return false;
  const auto file = elf::File::parse(bytes.view());
  if (!file) return false;
  bool inside = false, near = false, pointer_mapped = false, stack_above = false;
  for (const auto& segment : file->segments()) {
    if (segment.type != elf::segment_load || segment.memory_size == 0) continue;
    const bool writable = (segment.flags & 2U) != 0;
    if (address >= segment.address && address - segment.address < segment.memory_size)
      inside = inside || writable;
    else if (writable && segment.address > address && segment.address - address <= guard_window)
      near = true;
    pointer_mapped = pointer_mapped || (stack >= segment.address && stack - segment.address < segment.memory_size);
    const std::uint64_t lower = std::min(stack, address);
    stack_above = stack_above || (writable && segment.address > lower && segment.address - lower <= largest_frame);
  }
  if (inside) return false;
  return (near && distance <= guard_window) || (!pointer_mapped && stack_above && stack != 0 && address + guard_window >= stack);
}

std::string segfault(const Core& core, elf::Bytes bytes, CoreVerdict& verdict) {
  if (stack_exhausted(core, bytes)) {
    verdict.next.emplace_back(
        "Endless recursion, or a large local array? Look for a function that repeats in the backtrace; ulimit -s (main thread) and "
        "threading.stack_size in Python set the limit.");
    return "the stack is exhausted";
  }
  if (core.code == 128) {
    verdict.next.emplace_back("The address was no address of this processor (not canonical): freed or overwritten memory was used as a pointer.");
    return "a pointer with a senseless value was used";
  }
  if (!core.threads.empty() && core.threads[0].instruction == core.address && core.file_at(core.address) == nullptr)
    return core.address < first_page ? "a null function pointer was called" : "the program jumped to an address that is no code";
  if (core.address < first_page) {
    verdict.next.emplace_back("A null pointer (or a member of a null object): which pointer is it at the place above?");
    return fmt::format("a null pointer was used (address {:#x})", core.address);
  }
  if (core.code == 2) {
    const auto* range = core.file_at(core.address);
    return fmt::format("memory was accessed against its protection at {:#x}{}", core.address,
                       range != nullptr ? " (" + range->path + ")" : std::string());
  }
  verdict.next.emplace_back(
      "Freed memory, an overrun, or an address of GPU memory used by the CPU? Run once under valgrind or with AddressSanitizer; for GPU memory see "
      "HSA_XNACK and hipMallocManaged.");
  return fmt::format("memory that is not mapped was used (address {:#x})", core.address);
}

std::string bus_error(const Core& core, CoreVerdict& verdict) {
  if (core.code == 4 || core.code == 5) {
    verdict.next.emplace_back("Look for \"Hardware Error\" and \"Memory failure\" in the kernel log: a memory page of this machine is bad.");
    return fmt::format("a broken memory page was used (address {:#x})", core.address);
  }
  const auto* range = core.file_at(core.address);
  if (range != nullptr && (range->path.starts_with("/dev/shm/") || contains(range->path, "/torch_"))) {
    verdict.next.emplace_back(
        "Is /dev/shm full? df -h /dev/shm; in a container give --shm-size or --ipc=host, or lower num_workers of the DataLoader.");
    return fmt::format("shared memory could not be had: {}", range->path);
  }
  if (range != nullptr && range->path.starts_with("/dev/")) {
    verdict.next.emplace_back("Was the GPU reset or removed? Look at the kernel log for amdgpu lines of that time.");
    return fmt::format("memory of a device could not be had: {}", range->path);
  }
  if (range != nullptr) {
    verdict.next.emplace_back(fmt::format(
        "Was {} shortened or replaced while it was in use (a download, a checkpoint, a network file system), or is its disk full?", range->path));
    return fmt::format("a mapped file is shorter than its mapping: {}", range->path);
  }
  verdict.next.emplace_back("Is /dev/shm, a huge-page pool or a disk full?");
  return fmt::format("memory at {:#x} could not be had", core.address);
}

std::string illegal(const Core& core, elf::Bytes bytes, CoreVerdict& verdict) {
  std::string opcode;
  if (const auto file = elf::File::parse(bytes.view()); file && !core.threads.empty())
    if (const auto code = file->at_address(core.threads[0].instruction)) opcode = std::string(code->view().substr(0, 8));
  // Code pages are not in the core; the file itself has them.
  if (opcode.starts_with("\x0f\x0b")) {
    verdict.next.emplace_back("The compiler put ud2 where the program must never come: an assertion, a missing return, or __builtin_trap.");
    return "the program ran into a trap that the compiler placed";
  }
  if (!opcode.empty() && static_cast<unsigned char>(opcode[0]) == 0x62) {
    verdict.next.emplace_back("Does this CPU have AVX-512 (lscpu)? The library was built for a newer CPU.");
    return "an AVX-512 instruction was not understood by this CPU";
  }
  verdict.next.emplace_back(
      "Was the library built for a newer CPU (-march=native, AVX-512)? Compare lscpu with the machine it was built on. A GPU's illegal instruction "
      "never arrives as SIGILL.");
  return "an instruction was not understood by this CPU";
}

}  // namespace

std::string_view owner_name(Owner owner) {
  switch (owner) {
    case Owner::gpu_runtime:
      return "GPU runtime";
    case Owner::gpu_driver:
      return "GPU driver (user side)";
    case Owner::torch:
      return "PyTorch";
    case Owner::python:
      return "Python";
    case Owner::python_extension:
      return "Python extension";
    case Owner::system:
      return "C library";
    case Owner::program:
      return "program";
    case Owner::library:
      return "library";
    case Owner::nowhere:
      break;
  }
  return "no mapped file";
}

Owner owner_of(std::string_view path, std::string_view program) {
  if (path.empty()) return Owner::nowhere;
  const std::string_view name = name_of(path);
  if (any_prefix(name, {"libamdhip64", "libhsa-runtime64", "libamd_comgr", "librocblas", "libhipblas", "libMIOpen", "librccl", "libroc", "libhip",
                        "libaotriton", "libamdocl", "librocm"}))
    return Owner::gpu_runtime;
  if (any_prefix(name, {"libdrm", "libhsakmt", "radeonsi", "libgallium", "libvulkan_radeon", "libEGL", "libGL"}) || path.starts_with("/dev/dri") ||
      path.starts_with("/dev/kfd"))
    return Owner::gpu_driver;
  if (any_prefix(name, {"libtorch", "libc10", "libshm"}) || contains(path, "/torch/_C")) return Owner::torch;
  if (any_prefix(name, {"libpython"}) || (name.starts_with("python") && name.size() <= 12) || contains(path, "/lib-dynload/")) return Owner::python;
  if (contains(path, "site-packages/") || contains(path, "dist-packages/") || contains(name, ".cpython-") || name.ends_with(".abi3.so"))
    return Owner::python_extension;
  if (path == program) return Owner::program;
  if (any_prefix(name, {"libc.so", "libc-2", "libm.so", "libpthread", "libstdc++", "libgcc_s", "ld-linux", "ld-2", "[vdso]", "linux-vdso", "libdl.so",
                        "librt.so"}))
    return Owner::system;
  return Owner::library;
}

CoreVerdict judge(const Core& core, elf::Bytes bytes) {
  CoreVerdict verdict;
  if (core.gpu_only) {
    verdict.what = "a GPU fault: this is the GPU's half of the dump";
    verdict.owner = Owner::gpu_runtime;
    verdict.next.emplace_back(
        "The host's core file of the same process holds the threads; rocgdb reads the waves: rocgdb --core=<this file>, then: info threads, bt, x/i "
        "$pc");
    return verdict;
  }
  if (!core.threads.empty()) {
    // abort() and its callers in the C library are how it died, not who: the first frame outside decides.
    const auto& frames = core.threads[0].frames;
    // So is a call that led to no code at all: whoever made it decides.
    auto found = std::ranges::find_if(frames, [](const CoreFrame& frame) { return frame.owner != Owner::system && frame.owner != Owner::nowhere; });
    if (found == frames.end()) found = frames.begin();
    if (found != frames.end()) {
      verdict.owner = found->owner;
      verdict.place = place_of(*found);
    } else if (const auto* range = core.file_at(core.threads[0].instruction)) {
      // Without a stack the program is known by its name, of which the kernel keeps 15 bytes.
      constexpr std::size_t kept = 15;
      const bool is_program = !core.program.empty() && name_of(range->path).substr(0, kept) == std::string_view(core.program).substr(0, kept);
      verdict.owner = owner_of(range->path, is_program ? std::string_view(range->path) : std::string_view{});
      verdict.place = std::string(name_of(range->path));
    }
  }
  // A code of zero and less says that a process sent the signal (man 2 sigaction): no instruction failed.
  const bool sent =
      core.code_known && core.code <= 0 && (core.signal == SIGSEGV || core.signal == SIGBUS || core.signal == SIGILL || core.signal == SIGFPE);
  if (sent)
    verdict.what = core.sender != 0 ? fmt::format("the signal was sent by process {}; no instruction failed", core.sender)
                                    : std::string("the signal was sent by a process; no instruction failed");
  switch (sent ? -1 : core.signal) {
    case -1:
      break;
    case SIGSEGV:
      verdict.what = segfault(core, bytes, verdict);
      break;
    case SIGBUS:
      verdict.what = bus_error(core, verdict);
      break;
    case SIGILL:
      verdict.what = illegal(core, bytes, verdict);
      break;
    case SIGFPE:
      verdict.what = core.code == 1 ? "an integer was divided by zero" : "an arithmetic fault";
      break;
    case SIGABRT:
      verdict.what = "the process ended itself (abort)";
      if (!core.abort_message.empty()) verdict.what += ": " + core.abort_message;
      if (verdict.owner == Owner::gpu_runtime)
        verdict.next.emplace_back(
            "ROCr aborts after a GPU memory fault or queue error: read the last lines of stderr (\"Memory access fault by GPU node\", "
            "HSA_STATUS_ERROR_…) and the kernel log.");
      else if (core.abort_message.empty())
        verdict.next.emplace_back("An uncaught C++ exception, a failed check or a damaged heap? The reason stands in the last lines of stderr.");
      break;
    case 0:
      verdict.what = "no signal stands in the file (gcore takes such a picture of a living process)";
      break;
    default:
      verdict.what = "ended by " + signal_name(core.signal);
  }
  if (core.code_known && core.code == 0 && core.sender != 0)
    verdict.next.emplace_back(fmt::format("Process {} sent the signal; it was no fault of this process's own instruction.", core.sender));
  if (core.truncated)
    verdict.next.emplace_back(
        "The core file is cut short: raise ulimit -c or the limit of systemd-coredump (ProcessSizeMax, ExternalSizeMax) for the next one.");
  return verdict;
}

Value core_to_json(const Core& core, const CoreVerdict& verdict) {
  Value threads = Value::list();
  for (const auto& thread : core.threads) {
    Value frames = Value::list();
    for (const auto& frame : thread.frames)
      frames.push(Value::object({{"address", fmt::format("{:#x}", frame.address)},
                                 {"module", frame.module},
                                 {"function", frame.function},
                                 {"source", frame.source},
                                 {"owner", owner_name(frame.owner)}}));
    threads.push(Value::object({{"id", thread.id},
                                {"instruction", fmt::format("{:#x}", thread.instruction)},
                                {"stack", fmt::format("{:#x}", thread.stack)},
                                {"frames", std::move(frames)}}));
  }
  Value modules = Value::list();
  for (const auto& module : core.modules)
    modules.push(Value::object({{"path", module.path}, {"build_id", module.build_id}, {"remark", module.remark}}));
  Value out = Value::object(
      {{"schema", "firstfault/core/1"},
       {"signal", Value::object({{"number", core.signal},
                                 {"name", core.signal == 0 ? std::string() : signal_name(core.signal)},
                                 {"code", core.code},
                                 {"code_name", core.code_known ? signal_code_name(core.signal, core.code) : std::string_view{}},
                                 {"address", fmt::format("{:#x}", core.address)}})},
       {"process", Value::object({{"pid", core.pid}, {"program", core.program}, {"command_line", core.command_line}})},
       {"verdict",
        Value::object(
            {{"what", verdict.what}, {"owner", owner_name(verdict.owner)}, {"place", verdict.place}, {"next", Value::list_of(verdict.next)}})},
       {"abort_message", core.abort_message},
       {"threads", std::move(threads)},
       {"modules", std::move(modules)},
       {"truncated", core.truncated},
       {"problems", Value::list_of(core.problems)}});
  if (core.gpu) {
    Value agents = Value::list(), queues = Value::list();
    for (const auto& agent : core.gpu->agents)
      agents.push(Value::object({{"gpu_id", agent.gpu_id},
                                 {"device_id", agent.device_id},
                                 {"gfx_target_version", agent.gfx_target_version},
                                 {"exceptions", Value::list_of(agent.exceptions)}}));
    for (const auto& queue : core.gpu->queues) {
      Value packets = Value::list();
      for (const auto& packet : queue.packets)
        packets.push(Value::object({{"index", packet.index},
                                    {"type", packet.type},
                                    {"grid", Value::list_of(packet.grid)},
                                    {"workgroup", Value::list_of(packet.workgroup)},
                                    {"scratch_bytes", packet.scratch_bytes},
                                    {"lds_bytes", packet.lds_bytes},
                                    {"kernel_object", packet.kernel_object},
                                    {"kernel", packet.kernel},
                                    {"code_object", packet.code_object}}));
      queues.push(Value::object({{"queue_id", queue.queue_id},
                                 {"gpu_id", queue.gpu_id},
                                 {"type", queue.type},
                                 {"ring_size_bytes", queue.ring_size_bytes},
                                 {"exceptions", Value::list_of(queue.exceptions)},
                                 {"packets", std::move(packets)},
                                 {"packets_missing", queue.packets_missing}}));
    }
    out.set("gpu", Value::object({{"kfd", fmt::format("{}.{}", core.gpu->kfd_major, core.gpu->kfd_minor)},
                                  {"agents", std::move(agents)},
                                  {"queues", std::move(queues)}}));
  }
  return out;
}

}  // namespace ff::binary
