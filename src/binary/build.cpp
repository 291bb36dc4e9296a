#include "binary/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/dynlib.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "binary/hip_stand_in.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t code_limit_bytes = std::size_t{256} << 20;

bool is_hiprtc(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("libhiprtc"); }

std::vector<std::string> rocm_roots() {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/opt", error))
    if (entry.path().filename().string().starts_with("rocm")) out.push_back(entry.path().string());
  std::ranges::sort(out, std::greater<>());
  return out;
}

/// A directory that holds include/hip/hip_runtime.h; empty when there is none.
std::string hip_headers() {
  auto roots = rocm_roots();
  roots.insert(roots.end(), {"/usr", "/usr/local"});
  std::error_code error;
  for (const auto& root : roots)
    if (fs::exists(root + "/include/hip/hip_runtime.h", error)) return root;
  return {};
}

/// Runs in the child: what hipRTC made goes out as "code <size>\n<bytes>" or "failed\n", then its log.
void compile_with_hiprtc(int out, const std::string& library, const std::string& source, const std::string& name, const std::string& target,
                         const BuildOptions& options) {
  const auto say = [&](const std::string& text) { (void)write_all(out, text); };
  const auto opened = DynamicLibrary::open({library});
  if (!opened) return say("absent\n" + opened.error().what);
  using Program = void*;
  auto* create = opened->function<int(Program*, const char*, const char*, int, const char**, const char**)>("hiprtcCreateProgram");
  auto* compile = opened->function<int(Program, int, const char**)>("hiprtcCompileProgram");
  auto* log_size = opened->function<int(Program, std::size_t*)>("hiprtcGetProgramLogSize");
  auto* log = opened->function<int(Program, char*)>("hiprtcGetProgramLog");
  auto* code_size = opened->function<int(Program, std::size_t*)>("hiprtcGetCodeSize");
  auto* code = opened->function<int(Program, char*)>("hiprtcGetCode");
  if (create == nullptr || compile == nullptr || log_size == nullptr || log == nullptr || code_size == nullptr || code == nullptr)
    return say("absent\nit lacks functions of hipRTC");
  Program program = nullptr;
  if (create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr) != 0) return say("absent\nhiprtcCreateProgram failed");
  std::vector<std::string> arguments{"--offload-arch=" + target, "-O3", "-I" + fs::path(options.source).parent_path().string()};
  if (options.lines) arguments.emplace_back("-gline-tables-only");
  arguments.insert(arguments.end(), options.extra.begin(), options.extra.end());
  std::vector<const char*> pointers;
  for (const auto& argument : arguments) pointers.push_back(argument.c_str());
  const int status = compile(program, static_cast<int>(pointers.size()), pointers.data());
  std::string text;
  if (std::size_t size = 0; log_size(program, &size) == 0 && size > 1) {
    text.resize(size);
    if (log(program, text.data()) != 0) text.clear();
    text = text.substr(0, text.find('\0'));
  }
  std::string bytes;
  if (std::size_t size = 0; status == 0 && code_size(program, &size) == 0 && size != 0) {
    bytes.resize(size);
    if (code(program, bytes.data()) != 0) bytes.clear();
  }
  say(bytes.empty() ? "failed\n" + text : fmt::format("code {}\n", bytes.size()) + bytes + text);
}

struct Attempt {
  Built built;
  std::string broken;  ///< the compiler itself could not work: why
};

Attempt with_hiprtc(const std::string& library, const std::string& source, const std::string& target, const BuildOptions& options) {
  Attempt attempt{.built = {.target = target, .code = {}, .diagnostics = {}}, .broken = {}};
  ChildOptions child;
  child.body = [&](int out) { compile_with_hiprtc(out, library, source, fs::path(options.source).filename().string(), target, options); };
  child.time_limit = std::chrono::seconds(options.seconds);
  child.output_limit_bytes = code_limit_bytes;
  const ChildResult result = run_child(child);
  const std::string_view out = result.out;
  const auto line_end = out.find('\n');
  if (!result.ok() || line_end == std::string_view::npos) {
    attempt.broken = result.describe();
    return attempt;
  }
  const auto head = out.substr(0, line_end);
  const auto rest = out.substr(line_end + 1);
  if (head == "absent") attempt.broken = rest;
  if (head == "failed") attempt.built.diagnostics = rest;
  if (head.starts_with("code ")) {
    const auto size = to_integer<std::size_t>(head.substr(5)).value_or(0);
    attempt.built.code = rest.substr(0, size);
    attempt.built.diagnostics = rest.substr(std::min(size, rest.size()));
  }
  return attempt;
}

Attempt with_clang(const std::string& program, const std::string& headers, const std::string& stand_in, const fs::path& directory,
                   const std::string& target, bool bare, const BuildOptions& options) {
  Attempt attempt{.built = {.target = target, .code = {}, .diagnostics = {}}, .broken = {}};
  const std::string out = (directory / "kernel.co").string();
  std::error_code error;
  fs::remove(out, error);
  ChildOptions child;
  child.argv = {program, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "--offload-arch=" + target, "-O3", "-std=c++17", "-o", out};
  // Generic targets exist in code object version 6 only; clang 19 writes 5 unless told.
  if (target.find("-generic") != std::string::npos) child.argv.emplace_back("-mcode-object-version=6");
  if (stand_in.empty())
    child.argv.insert(child.argv.end(), {"--rocm-path=" + headers, "-I" + headers + "/include"});
  else
    child.argv.insert(child.argv.end(), {"-nogpulib", "-nogpuinc", "-I" + stand_in});
  // hipRTC's sources include nothing; those that define the words of the language themselves need nothing.
  if (!stand_in.empty() && bare) child.argv.insert(child.argv.end(), {"-include", "hip/hip_runtime.h"});
  if (options.lines) child.argv.emplace_back("-gline-tables-only");
  child.argv.insert(child.argv.end(), options.extra.begin(), options.extra.end());
  child.argv.push_back(options.source);
  child.time_limit = std::chrono::seconds(options.seconds);
  const ChildResult result = run_child(child);
  attempt.built.diagnostics = result.err;
  if (!result.exit_status) {
    attempt.broken = result.describe();
    return attempt;
  }
  if (result.ok()) {
    auto code = read_file(out, code_limit_bytes);
    if (code)
      attempt.built.code = std::move(*code);
    else
      attempt.broken = code.error().to_string();
    return attempt;
  }
  // These say that the installation is incomplete, not that the source is wrong.
  for (const std::string_view sign :
       {"cannot find ROCm device library", "cannot find HIP runtime", "unable to execute command", "unsupported HIP gpu architecture",
        "invalid target ID", "no available targets are compatible", "unknown argument", "\"lld\" doesn't exist"})
    if (contains(result.err, sign)) {
      for (const auto line : lines(result.err))
        if (contains(line, sign)) attempt.broken = trim(line);
      break;
    }
  return attempt;
}

}  // namespace

std::vector<std::string> device_compilers() {
  std::vector<std::string> libraries, programs;
  std::set<std::string> seen;
  std::error_code error;
  std::vector<std::string> directories{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"};
  for (const auto& root : rocm_roots()) directories.push_back(root + "/lib");
  const auto add = [&](const fs::path& path, std::vector<std::string>& to) {
    std::error_code broken;
    const auto real = fs::canonical(path, broken).string();
    if (!broken && seen.insert(real).second) to.push_back(path.string());
  };
  for (const auto& directory : directories)
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libhiprtc.so")) add(entry.path(), libraries);
    }
  std::ranges::sort(libraries, std::greater<>());
  for (const auto& root : rocm_roots())
    for (const auto* place : {"/lib/llvm/bin/clang++", "/llvm/bin/clang++"})
      if (fs::exists(root + place, error)) add(root + place, programs);
  std::vector<std::string> path;
  if (const char* variable = std::getenv("PATH"))
    for (const auto piece : split(variable, ':'))
      if (piece.starts_with('/')) path.emplace_back(piece);
  constexpr int newest = 40, oldest = 15;
  for (int version = newest; version >= oldest; --version)
    for (const auto& directory : path)
      if (const auto candidate = fmt::format("{}/clang++-{}", directory, version); fs::exists(candidate, error)) add(candidate, programs);
  for (const auto& directory : path)
    if (fs::exists(directory + "/clang++", error)) add(directory + "/clang++", programs);
  libraries.insert(libraries.end(), programs.begin(), programs.end());
  return libraries;
}

Result<BuildAnswer> build_kernels(const BuildOptions& options) {
  constexpr std::size_t source_limit_bytes = std::size_t{64} << 20;
  const auto source = read_file(options.source, source_limit_bytes);
  if (!source) return std::unexpected(source.error());
  auto directory = TemporaryDirectory::make();
  if (!directory) return std::unexpected(directory.error());
  std::vector<std::string> compilers{options.compiler};
  if (options.compiler.empty()) compilers = device_compilers();
  constexpr const char* remedy =
      "install ROCm's compiler (rocm-llvm, hipcc) or hipRTC, or clang 15 or newer with lld (Debian and Ubuntu: clang-19 lld-19); or name one with "
      "--compiler PATH";
  if (compilers.empty()) return fail("no compiler for GPU code is at hand: neither hipRTC nor clang", {}, remedy);
  BuildAnswer answer;
  const std::string headers = hip_headers();
  const bool bare = !contains(*source, "hip/hip_") && !contains(*source, "define __global__");
  for (const auto& compiler : compilers) {
    // clang: first with the HIP headers and device libraries of an installation, then with the stand-in.
    std::vector<bool> ways{false};
    if (!is_hiprtc(compiler)) ways = headers.empty() ? std::vector<bool>{true} : std::vector<bool>{false, true};
    for (const bool stand_in : ways) {
      std::string includes;
      if (stand_in) {
        includes = (directory->path() / "include").string();
        std::error_code error;
        fs::create_directories(includes + "/hip", error);
        for (const auto* name : {"hip/hip_runtime.h", "hip/hip_fp16.h"})
          if (auto written = write_file(includes + "/" + name, hip_stand_in); !written) return std::unexpected(written.error());
      }
      answer.built.clear();
      std::string broken;
      for (const auto& target : options.targets) {
        Attempt attempt = is_hiprtc(compiler) ? with_hiprtc(compiler, *source, target, options)
                                              : with_clang(compiler, headers, includes, directory->path(), target, bare, options);
        broken = attempt.broken;
        if (!broken.empty()) {
          broken = fmt::format("{} for {}: {}", compiler, target, broken);
          break;
        }
        answer.built.push_back(std::move(attempt.built));
      }
      if (!broken.empty()) {
        answer.tried.push_back(std::move(broken));
        continue;
      }
      answer.compiler = compiler;
      answer.stand_in = stand_in;
      return answer;
    }
  }
  return fail("no compiler at hand could compile it: " + join(answer.tried, "; "), options.source, remedy);
}

}  // namespace ff::binary
