// Backtraces with elfutils. It reads whatever files the core names, so it runs in a child: a crash or a hang there is
// an answer ("could not be unwound"), not our end.
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/process.h"
#include "base/text.h"
#include "binary/core.h"
#include "binary/frames.h"
#include "elf/elf.h"

namespace ff::binary {
namespace {

constexpr std::size_t frame_limit = 128, thread_limit = 4096, message_limit = 4096;

struct Collector {
  Dwfl* dwfl = nullptr;
  Value threads = Value::list();
  Value frames;
};

int on_frame(Dwfl_Frame* frame, void* context) {
  auto& collector = *static_cast<Collector*>(context);
  Value row = describe_frame(collector.dwfl, frame);
  if (row.is_null()) return DWARF_CB_ABORT;
  collector.frames.push(std::move(row));
  return collector.frames.items().size() < frame_limit ? DWARF_CB_OK : DWARF_CB_ABORT;
}

int on_thread(Dwfl_Thread* thread, void* context) {
  auto& collector = *static_cast<Collector*>(context);
  collector.frames = Value::list();
  (void)dwfl_thread_getframes(thread, &on_frame, &collector);
  collector.threads.push(Value::object({{"id", static_cast<int>(dwfl_thread_tid(thread))}, {"frames", collector.frames}}));
  return collector.threads.items().size() < thread_limit ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/// Bytes of the core at an address, as far as the core holds them.
std::string memory_at(Elf* core, std::uint64_t address, std::size_t size) {
  std::size_t count = 0;
  if (elf_getphdrnum(core, &count) != 0) return {};
  std::size_t raw_size = 0;
  const char* raw = elf_rawfile(core, &raw_size);
  for (std::size_t i = 0; raw != nullptr && i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(core, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
    const auto inside = elf::Bytes(std::string_view(raw, raw_size)).sub(segment.p_offset, segment.p_filesz);
    if (!inside) return {};
    const auto rest = inside->from(address - segment.p_vaddr);
    return rest ? std::string(rest->view().substr(0, size)) : std::string();
  }
  return {};
}

/// The registers of a thread, in the order of struct user_regs_struct; empty when the core does not hold them.
std::vector<std::uint64_t> registers_of(Elf* core, int thread) {
  constexpr std::uint32_t status_note = 1;
  constexpr std::uint64_t status_size = 336, thread_at = 32, registers_at = 112, registers = 27;
  std::size_t size = 0;
  const char* raw = elf_rawfile(core, &size);
  const auto file = raw != nullptr ? elf::File::parse({raw, size}) : fail("no file");
  std::vector<std::uint64_t> out;
  if (!file) return out;
  for (const auto& note : file->notes()) {
    const elf::Bytes content(note.content);
    if (note.owner != "CORE" || note.type != status_note || content.size() < status_size || content.number<std::int32_t>(thread_at) != thread)
      continue;
    for (std::uint64_t i = 0; i < registers; ++i) out.push_back(*content.number<std::uint64_t>(registers_at + i * 8));
    return out;
  }
  return out;
}

/// A thread as it was before the call that led nowhere: what elfutils asks while it unwinds.
struct BeforeCall {
  Elf* core = nullptr;
  int thread = 0;
  std::vector<std::uint64_t> registers;  ///< by DWARF's numbers: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15 rip
};

/// A call to an address without code (a null function pointer): no unwind data is there, and elfutils' guess by the frame pointer loses
/// the caller. The return address is on top of the stack, so the caller's registers are known all the same.
Value frames_of_caller(const std::string& program, Elf* core, int thread, const Dwfl_Callbacks& callbacks) {
  BeforeCall state{.core = core, .thread = thread, .registers = {}};
  const auto all = registers_of(core, thread);
  if (all.empty()) return {};
  constexpr std::array<std::size_t, 16> order{10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
  for (const auto index : order) state.registers.push_back(all[index]);
  constexpr std::size_t stack = 7;
  const auto back = elf::Bytes(memory_at(core, state.registers[stack], 8)).number<std::uint64_t>(0);
  if (!back) return {};
  state.registers[stack] += 8;
  state.registers.push_back(*back - 1);  // within the call, so that its line is found
  Collector collector;
  collector.dwfl = dwfl_begin(&callbacks);
  static const Dwfl_Thread_Callbacks thread_callbacks = {
      .next_thread =
          [](Dwfl*, void* context, void** thread_context) {
            if (*thread_context != nullptr) return pid_t{0};
            *thread_context = context;
            return static_cast<pid_t>(static_cast<BeforeCall*>(context)->thread);
          },
      .get_thread = nullptr,
      .memory_read =
          [](Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* context) {
            const auto value = elf::Bytes(memory_at(static_cast<BeforeCall*>(context)->core, address, 8)).number<std::uint64_t>(0);
            if (value) *word = *value;
            return value.has_value();
          },
      .set_initial_registers =
          [](Dwfl_Thread* of, void* context) {
            const auto& registers = static_cast<BeforeCall*>(context)->registers;
            const std::vector<Dwarf_Word> words(registers.begin(), registers.end());
            dwfl_thread_state_register_pc(of, words.back());
            return dwfl_thread_state_registers(of, 0, static_cast<unsigned>(words.size()), words.data());
          },
      .detach = nullptr,
      .thread_detach = nullptr};
  Value frames;
  if (collector.dwfl != nullptr && dwfl_core_file_report(collector.dwfl, core, program.empty() ? nullptr : program.c_str()) >= 0 &&
      dwfl_report_end(collector.dwfl, nullptr, nullptr) == 0 && dwfl_attach_state(collector.dwfl, core, thread, &thread_callbacks, &state)) {
    (void)dwfl_getthreads(collector.dwfl, &on_thread, &collector);
    if (!collector.threads.items().empty()) {
      Value first = Value::list();
      for (const auto& frame : collector.threads.items().front()["frames"].items()) {
        Value row = frame;
        if (first.items().empty()) row.set("address", *back);
        first.push(std::move(row));
      }
      frames = std::move(first);
    }
  }
  return frames;
}

/// What assert() and glibc's own checks said: libc's variable __abort_msg points to {u32 size, text}.
std::string abort_message(Dwfl* dwfl, Elf* core) {
  std::uint64_t variable = 0;
  (void)dwfl_getmodules(
      dwfl,
      [](Dwfl_Module* module, void**, const char* name, Dwarf_Addr, void* out) {
        if (name == nullptr || std::strstr(name, "libc") == nullptr) return static_cast<int>(DWARF_CB_OK);
        const int count = dwfl_module_getsymtab(module);
        for (int i = 0; i < count; ++i) {
          GElf_Sym symbol;
          GElf_Addr value = 0;
          const char* found = dwfl_module_getsym_info(module, i, &symbol, &value, nullptr, nullptr, nullptr);
          if (found == nullptr || std::strcmp(found, "__abort_msg") != 0) continue;
          *static_cast<std::uint64_t*>(out) = value;
          return static_cast<int>(DWARF_CB_ABORT);
        }
        return static_cast<int>(DWARF_CB_OK);
      },
      &variable, 0);
  if (variable == 0) return {};
  const auto pointer = elf::Bytes(memory_at(core, variable, 8)).number<std::uint64_t>(0);
  if (!pointer || *pointer == 0) return {};
  const std::string text = memory_at(core, *pointer + 4, message_limit);
  return std::string(trim(std::string_view(text).substr(0, text.find('\0'))));
}

Value unwind(const std::string& path, const std::string& program) {
  // Never ask a server for debug information.
  ::unsetenv("DEBUGINFOD_URLS");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Value::object({{"problem", "the core file cannot be opened"}});
  elf_version(EV_CURRENT);
  Elf* core = elf_begin(descriptor, ELF_C_READ_MMAP, nullptr);
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks = {
      .find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo, .section_address = nullptr, .debuginfo_path = &debug_path};
  Collector collector;
  collector.dwfl = dwfl_begin(&callbacks);
  if (core == nullptr || collector.dwfl == nullptr) return Value::object({{"problem", "elfutils cannot read the core file"}});
  Value out = Value::object();
  if (dwfl_core_file_report(collector.dwfl, core, program.empty() ? nullptr : program.c_str()) < 0 ||
      dwfl_report_end(collector.dwfl, nullptr, nullptr) != 0 || dwfl_core_file_attach(collector.dwfl, core) < 0) {
    const char* why = dwfl_errmsg(-1);
    return Value::object({{"problem", std::string("elfutils: ") + (why != nullptr ? why : "unknown error")}});
  }
  (void)dwfl_getthreads(collector.dwfl, &on_thread, &collector);
  Value threads = Value::list();
  for (const auto& thread : collector.threads.items()) {
    const auto& frames = thread["frames"].items();
    const auto address = frames.empty() ? 0 : static_cast<Dwarf_Addr>(frames.front()["address"].as_int());
    Value row = thread;
    if (!frames.empty() && frames.front()["address"].kind() == Value::Kind::integer && dwfl_addrmodule(collector.dwfl, address) == nullptr) {
      const Value before = frames_of_caller(program, core, static_cast<int>(thread["id"].as_int()), callbacks);
      if (!before.items().empty()) {
        Value whole = Value::list();
        whole.push(frames.front());
        for (const auto& frame : before.items()) whole.push(frame);
        row.set("frames", std::move(whole));
      }
    }
    threads.push(std::move(row));
  }
  out.set("threads", std::move(threads));
  out.set("abort_message", abort_message(collector.dwfl, core));
  return out;
}

}  // namespace

void add_backtraces(Core& core, const std::string& path, const std::string& program, int seconds) {
  ChildOptions child;
  child.body = [&](int out) {
    const std::string text = to_json(unwind(path, program));
    for (std::string_view rest = text; !rest.empty();) {
      const auto written = ::write(out, rest.data(), rest.size());
      if (written <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  };
  child.time_limit = std::chrono::seconds(seconds);
  const ChildResult result = run_child(child);
  const auto answer = parse_json(result.out, "backtraces");
  if (!result.ok() || !answer) {
    core.problems.push_back("no backtraces: the unwinder " + result.describe());
    return;
  }
  if (const auto problem = (*answer)["problem"].as_text(); !problem.empty()) core.problems.push_back("no backtraces: " + std::string(problem));
  core.abort_message = (*answer)["abort_message"].as_text();
  std::string executable = program;
  if (executable.empty())
    for (const auto& range : core.files)
      if (range.path.ends_with("/" + core.program)) executable = range.path;
  std::map<std::int64_t, const Value*> by_id;
  for (const auto& row : (*answer)["threads"].items()) by_id[row["id"].as_int()] = &row["frames"];
  for (auto& thread : core.threads) {
    const auto found = by_id.find(thread.id);
    if (found == by_id.end()) continue;
    for (const auto& row : found->second->items()) {
      CoreFrame frame;
      frame.address = static_cast<std::uint64_t>(row["address"].as_int());
      if (row["address"].is_text()) frame.address = to_integer<std::uint64_t>(row["address"].as_text()).value_or(0);
      frame.module = row["module"].as_text();
      if (frame.module.empty())
        if (const auto* range = core.file_at(frame.address)) frame.module = range->path;
      frame.function = row["function"].as_text();
      frame.source = row["source"].as_text();
      frame.owner = owner_of(frame.module, executable);
      thread.frames.push_back(std::move(frame));
    }
  }
}

}  // namespace ff::binary
