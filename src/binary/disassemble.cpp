#include "binary/disassemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "binary/disassembler.h"
#include "binary/source_lines.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t executable = 4;  // SHF_EXECINSTR
constexpr std::uint64_t descriptor_properties = 56, wave32_bit = 1U << 10;
/// Code object version 2: STT_AMDGPU_HSA_KERNEL, and where its header (amd_kernel_code_t) says where the code begins.
constexpr int version_2_kernel = 10;
constexpr std::uint64_t version_2_entry = 16;

/// "libLLVM-19.so.1" and "libLLVM.so.19.1" are 19; nothing for other names.
std::optional<int> llvm_version(std::string_view name) {
  if (!name.starts_with("libLLVM") || !contains(name, ".so")) return std::nullopt;
  const auto digit = name.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  // "libLLVMSupport.so.19" holds one component only.
  const auto between = name.substr(7, digit - 7);
  if (between != "-" && between != ".so.") return std::nullopt;
  const auto end = name.find_first_not_of("0123456789", digit);
  return to_integer<int>(name.substr(digit, end - digit));
}

std::vector<std::string> library_directories() {
  std::vector<std::string> out{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"};
  std::error_code error;
  const auto below = [&](const char* parent, std::string_view prefix, std::initializer_list<const char*> ends) {
    for (const auto& entry : fs::directory_iterator(parent, error))
      if (entry.path().filename().string().starts_with(prefix))
        for (const auto* end : ends) out.push_back((entry.path() / end).string());
  };
  below("/usr/lib", "llvm", {"lib"});
  below("/usr/lib64", "llvm", {"lib", "lib64"});
  below("/opt", "rocm", {"lib", "lib/llvm/lib", "llvm/lib"});
  return out;
}

/// Runs in the child: decodes and writes lines of blank-free fields separated by tabs.
class Writer {
 public:
  explicit Writer(int out) : out_(out) {}
  ~Writer() { flush(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void line(std::initializer_list<std::string_view> fields) {
    bool first = true;
    for (const auto field : fields) {
      if (!first) text_ += '\t';
      first = false;
      for (const char c : field) text_ += c == '\t' || c == '\n' ? ' ' : c;
    }
    text_ += '\n';
    if (text_.size() > (1U << 16)) flush();
  }

 private:
  void flush() {
    (void)write_all(out_, text_);
    text_.clear();
  }
  int out_;
  std::string text_;
};

std::string word_text(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    if (!out.empty()) out += ' ';
    for (std::size_t i = std::min<std::size_t>(4, bytes.size() - at); i-- > 0;)
      out += fmt::format("{:02x}", static_cast<std::uint8_t>(bytes[at + i]));
  }
  return out;
}

/// SOPP branches: the low 16 bits of the word are a signed count of dwords from the next instruction.
std::optional<std::uint64_t> branch_target(std::string_view text, std::string_view bytes, std::uint64_t address) {
  if (!text.starts_with("s_branch") && !text.starts_with("s_cbranch_")) return std::nullopt;
  const auto offset = elf::Bytes(bytes).number<std::int16_t>(0);
  if (bytes.size() != 4 || !offset) return std::nullopt;
  return address + 4 + static_cast<std::uint64_t>(std::int64_t{*offset} * 4);
}

std::optional<std::uint64_t> address_in(const DeviceFunction& function, const DisassembleOptions& options) {
  if (!options.at) return std::nullopt;
  return options.at_is_offset ? elf::add(function.address, *options.at) : options.at;
}

void decode(Writer& out, const std::vector<DeviceFunction>& functions, const elf::TargetId& target, const std::string& library,
            const SourceLines& lines, const DisassembleOptions& options) {
  std::size_t left = options.limit;
  std::unique_ptr<Disassembler> engines[2];  // wavefronts of 64 and of 32
  for (std::size_t number = 0; number < functions.size(); ++number) {
    const auto& function = functions[number];
    auto& engine = engines[function.wave32 ? 1 : 0];
    if (!engine) {
      auto opened = Disassembler::open(library, target.processor, function.wave32);
      if (!opened) {
        out.line({"error", opened.error().what});
        return;
      }
      engine = std::move(*opened);
      if (number == 0) out.line({"engine", library});
      for (const auto& remark : engine->remarks()) out.line({"remark", remark});
    }
    const auto wanted = address_in(function, options);
    struct Row {
      std::uint64_t address;
      std::string_view bytes;
      std::string text;
    };
    std::vector<Row> window;  // with `at`: what stands before it
    std::size_t after = options.around;
    bool met = !wanted, cut = false;
    const auto write = [&](const Row& row) {
      const auto target_address = branch_target(row.text, row.bytes, row.address);
      out.line({"i", fmt::format("{}", number), fmt::format("{:x}", row.address), word_text(row.bytes), row.text, lines.at(row.address),
                target_address ? fmt::format("{:x}", *target_address) : ""});
      --left;
    };
    for (std::uint64_t at = 0; at < function.code.size() && left != 0;) {
      const std::uint64_t address = function.address + at;
      const std::string_view rest = function.code.substr(static_cast<std::size_t>(at));
      std::string text;
      std::uint64_t size = engine->decode(rest, address, text);
      if (size == 0 || size > rest.size()) {  // padding, data, or an instruction newer than the library
        size = std::min<std::uint64_t>(4, rest.size());
        text = ".long 0x" + word_text(rest.substr(0, static_cast<std::size_t>(size)));
      }
      Row row{address, rest.substr(0, static_cast<std::size_t>(size)), std::move(text)};
      at += size;
      if (met) {
        if (wanted && after-- == 0) {
          cut = true;
          break;
        }
        write(row);
        continue;
      }
      met = *wanted < row.address + size;
      if (met) {
        for (const auto& before : window)
          if (left > 1) write(before);
        write(row);
      } else {
        window.push_back(std::move(row));
        if (window.size() > options.around) {
          window.erase(window.begin());
          cut = true;
        }
      }
    }
    if (cut || left == 0) out.line({"cut", fmt::format("{}", number)});
    if (left == 0) return;
  }
}

}  // namespace

std::vector<DeviceFunction> device_functions(const elf::File& file) {
  std::vector<DeviceFunction> out;
  auto symbols = file.symbols(false);
  if (symbols.empty()) symbols = file.symbols(true);
  std::map<std::string_view, bool> wave32;
  bool any_wave32 = false;
  for (const auto& symbol : symbols) {
    if (!symbol.name.ends_with(".kd")) continue;
    auto bytes = file.at_address(symbol.value);
    if (file.header().type == elf::type_relocatable) bytes.reset();
    if (!bytes && symbol.section < file.sections().size())
      if (const auto content = file.content(file.sections()[symbol.section])) bytes = content->from(symbol.value);
    const auto properties = bytes ? bytes->number<std::uint16_t>(descriptor_properties) : std::nullopt;
    if (!properties) continue;
    wave32[symbol.name.substr(0, symbol.name.size() - 3)] = (*properties & wave32_bit) != 0;
    any_wave32 = any_wave32 || (*properties & wave32_bit) != 0;
  }
  std::vector<const elf::Symbol*> code;
  for (const auto& symbol : symbols) {
    if (symbol.section == 0 || symbol.section >= file.sections().size() || symbol.name.empty()) continue;
    // Assembled kernels (Tensile) may leave the type out; labels inside a function are local.
    const bool function = symbol.type() == 2 || symbol.type() == version_2_kernel || (symbol.type() == 0 && wave32.contains(symbol.name));
    if (function && (file.sections()[symbol.section].flags & executable) != 0) code.push_back(&symbol);
  }
  std::ranges::sort(code, [](const elf::Symbol* a, const elf::Symbol* b) {
    return std::tie(a->section, a->value, b->size) < std::tie(b->section, b->value, a->size);
  });
  for (std::size_t i = 0; i < code.size(); ++i) {
    const elf::Section& section = file.sections()[code[i]->section];
    const auto content = file.content(section);
    const bool relocatable = file.header().type == elf::type_relocatable;
    if (!content || (!relocatable && code[i]->value < section.address)) continue;
    const std::uint64_t offset = relocatable ? code[i]->value : code[i]->value - section.address;
    std::uint64_t size = code[i]->size;
    if (size == 0) {
      size = content->size() > offset ? content->size() - offset : 0;
      for (std::size_t next = i + 1; next < code.size(); ++next)
        if (code[next]->section == code[i]->section && code[next]->value > code[i]->value) {
          size = std::min(size, code[next]->value - code[i]->value);
          break;
        }
    }
    auto bytes = content->sub(offset, size);
    if (!bytes || bytes->empty()) continue;
    if (code[i]->type() == version_2_kernel) {
      // What stands before the code says where it begins.
      const auto begin = bytes->number<std::uint64_t>(version_2_entry);
      const auto rest = begin ? bytes->from(*begin) : std::nullopt;
      if (!rest || rest->empty()) continue;
      out.push_back({std::string(code[i]->name), code[i]->value + *begin, rest->size(), rest->view(), false});
      continue;
    }
    const auto known = wave32.find(code[i]->name);
    out.push_back({std::string(code[i]->name), code[i]->value, size, bytes->view(), known != wave32.end() ? known->second : any_wave32});
  }
  return out;
}

std::vector<std::string> disassembler_libraries() {
  std::vector<std::pair<int, std::string>> llvm;
  std::vector<std::string> comgr;
  std::set<std::string> seen;
  std::error_code error;
  for (const auto& directory : library_directories())
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      const std::string name = entry.path().filename().string();
      const auto version = llvm_version(name);
      if (!version && !name.starts_with("libamd_comgr.so")) continue;
      std::error_code broken;
      const std::string real = fs::canonical(entry.path(), broken).string();
      if (broken || !seen.insert(real).second) continue;
      if (version)
        llvm.emplace_back(*version, real);
      else
        comgr.push_back(real);
    }
  std::ranges::stable_sort(llvm, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (auto& [version, path] : llvm) out.push_back(std::move(path));
  std::ranges::sort(comgr, std::greater<>());
  for (auto& path : comgr) out.push_back(std::move(path));
  return out;
}

Result<DisassembleAnswer> disassemble(std::string_view code, const elf::TargetId& target, const std::vector<DeviceFunction>& functions,
                                      const DisassembleOptions& options) {
  std::vector<std::string> libraries{options.library};
  if (options.library.empty()) libraries = disassembler_libraries();
  constexpr const char* remedy =
      "install LLVM's shared library (Debian and Ubuntu: libllvm19 or newer; ROCm: rocm-llvm or comgr), or name one with --disassembler PATH";
  if (libraries.empty()) return fail("no disassembler is at hand: neither libLLVM nor libamd_comgr is in the system's directories", {}, remedy);
  std::vector<DeviceFunction> wanted;
  for (const auto& function : functions) {
    const auto at = address_in(function, options);
    if (!options.at || (at && *at >= function.address && *at - function.address < function.size)) wanted.push_back(function);
  }
  std::vector<std::string> reasons;
  for (const auto& library : libraries) {
    ChildOptions child;
    child.body = [&](int out) {
      Writer writer(out);
      const auto lines = SourceLines::read(code);
      if (!lines.empty()) writer.line({"lines"});
      decode(writer, wanted, target, library, lines, options);
      writer.line({"end"});
    };
    child.time_limit = std::chrono::seconds(options.seconds);
    child.output_limit_bytes = std::size_t{256} << 20;
    const ChildResult result = run_child(child);
    DisassembleAnswer answer;
    for (const auto& function : wanted)
      answer.functions.push_back({.function = function.name,
                                  .address = function.address,
                                  .size = function.size,
                                  .instructions = {},
                                  .at = address_in(function, options),
                                  .cut = false});
    std::string error;
    bool ended = false;
    const auto function_of = [&](std::string_view number) -> Disassembly* {
      const auto index = to_integer<std::size_t>(number);
      return index && *index < answer.functions.size() ? &answer.functions[*index] : nullptr;
    };
    for (const auto line : lines(result.out)) {
      const auto fields = split(line, '\t');
      if (fields[0] == "engine" && fields.size() > 1) answer.engine = fields[1];
      if (fields[0] == "remark" && fields.size() > 1) answer.remarks.emplace_back(fields[1]);
      if (fields[0] == "error" && fields.size() > 1) error = fields[1];
      if (fields[0] == "lines") answer.source_lines = true;
      if (fields[0] == "end") ended = true;
      if (fields[0] == "cut" && fields.size() > 1)
        if (auto* function = function_of(fields[1])) function->cut = true;
      if (fields[0] == "i" && fields.size() == 7)
        if (auto* function = function_of(fields[1]))
          function->instructions.push_back({.address = to_integer<std::uint64_t>(fields[2], 16).value_or(0),
                                            .bytes = std::string(fields[3]),
                                            .text = std::string(fields[4]),
                                            .source = std::string(fields[5]),
                                            .target = to_integer<std::uint64_t>(fields[6], 16)});
    }
    if (error.empty() && result.ok() && ended) return answer;
    if (error.empty()) {
      error = result.describe();
      if (const auto said = trim(std::string_view(result.err).substr(0, result.err.find('\n'))); !said.empty()) error += ": " + std::string(said);
    }
    reasons.push_back(library + ": " + error);
  }
  return fail(fmt::format("{} code cannot be disassembled here: {}", target.processor, join(reasons, "; ")), {}, remedy);
}

Value disassembly_to_json(const Disassembly& disassembly) {
  Value instructions = Value::list();
  for (const auto& row : disassembly.instructions) {
    Value item = Value::object({{"address", row.address}, {"bytes", row.bytes}, {"text", row.text}});
    if (!row.source.empty()) item.set("source", row.source);
    if (row.target) item.set("target", *row.target);
    instructions.push(std::move(item));
  }
  return Value::object({{"function", disassembly.function},
                        {"address", disassembly.address},
                        {"size", disassembly.size},
                        {"cut", disassembly.cut},
                        {"instructions", std::move(instructions)}});
}

}  // namespace ff::binary
