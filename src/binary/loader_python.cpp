#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "binary/loader.h"

namespace ff::binary {

namespace fs = std::filesystem;

std::vector<std::string> torch_modules(const std::string& python) {
  std::vector<std::string> out;
  if (!fs::path(python).filename().string().starts_with("python")) return out;
  std::error_code error;
  // A virtual environment's interpreter is a link; its packages are beside the link.
  for (const auto& program : {fs::absolute(python, error), fs::canonical(python, error)}) {
    if (program.empty()) continue;
    for (const auto* folder : {"lib", "lib64"}) {
      for (const auto& version : fs::directory_iterator(program.parent_path().parent_path() / folder, error)) {
        if (!version.path().filename().string().starts_with("python3")) continue;
        const fs::path torch = version.path() / "site-packages" / "torch";
        if (!fs::is_directory(torch, error)) continue;
        for (const auto* library : {"libtorch_global_deps.so", "libtorch_python.so"})
          if (fs::exists(torch / "lib" / library, error)) out.push_back((torch / "lib" / library).string());
        for (const auto& entry : fs::directory_iterator(torch, error)) {
          const std::string name = entry.path().filename().string();
          if (name.starts_with("_C") && name.ends_with(".so")) out.push_back(entry.path().string());
        }
        if (!out.empty()) return out;
      }
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> parse_loader_list(std::string_view output) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto line : lines(output)) {
    // "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)", "\t/lib64/ld-linux-x86-64.so.2 (0x…)", "\tlibx.so => not found"
    std::string_view text = trim(line);
    if (const auto address = text.rfind(" (0x"); address != std::string_view::npos) text = text.substr(0, address);
    const auto arrow = text.find(" => ");
    if (arrow == std::string_view::npos) {
      if (text.starts_with('/')) out.emplace_back(text, text);
      continue;
    }
    const std::string_view path = trim(text.substr(arrow + 4));
    out.emplace_back(text.substr(0, arrow), path == "not found" ? std::string_view{} : path);
  }
  return out;
}

}  // namespace ff::binary
