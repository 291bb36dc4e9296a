#include "diagnosis/kind.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "knowledge/model.h"

namespace ff::diagnosis {

using namespace knowledge;

namespace {

/// "amdgpu 0000:03:00.0": a driver that speaks of a PCI function, of any domain.
bool names_pci_function(std::string_view s, std::string_view driver) {
  for (auto at = s.find(driver); at != std::string_view::npos; at = s.find(driver, at + 1)) {
    const std::string_view domain = s.substr(at + driver.size(), 5);
    if (domain.size() == 5 && domain[4] == ':' && domain.find_first_not_of("0123456789abcdef") == 4) return true;
  }
  return false;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return name.ends_with(end); });
}

bool is_assignment(std::string_view line) {
  line = trim(line);
  if (line.starts_with("export ")) line = trim(line.substr(7));
  const auto sign = line.find('=');
  if (sign == std::string_view::npos || sign < 2 || sign > 60) return false;
  return line.substr(0, sign).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string_view::npos;
}

struct Counts {
  std::size_t lines = 0, kernel = 0, assignments = 0, packages = 0, pci = 0, prompts = 0, code = 0, pairs = 0;
};

bool is_prompt(std::string_view line) {
  if (line.starts_with("$ ") || line.starts_with("> ") || line.starts_with("❯ ") || line.starts_with(">>> ") || line.starts_with("PS ")) return true;
  const auto at = line.find('@');
  return at < 40 && (contains(line.substr(0, 120), "$ ") || contains(line.substr(0, 120), "# "));
}

bool is_package(std::string_view line) {
  const auto parts = words(line);
  if (parts.size() == 1) {
    const auto sign = line.find("==");
    return sign != std::string_view::npos && sign + 2 < line.size() && line[sign + 2] >= '0' && line[sign + 2] <= '9';
  }
  return (parts.size() == 2 || parts.size() == 3) && !parts[1].empty() && parts[1][0] >= '0' && parts[1][0] <= '9' && contains(parts[1], ".") &&
         parts[0].find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == std::string_view::npos;
}

bool is_pci_line(std::string_view line) {
  if (line.starts_with("0000:")) line.remove_prefix(5);
  return line.size() > 9 && line[2] == ':' && line[5] == '.' && line[7] == ' ' && to_integer<int>(line.substr(0, 2), 16) &&
         to_integer<int>(line.substr(3, 2), 16);
}

Counts count(std::string_view sample) {
  Counts c;
  for (std::string_view line : lines(sample)) {
    if (trim(line).empty()) continue;
    if (++c.lines > 4000) break;
    if (looks_like_kernel_line(line)) ++c.kernel;
    if (is_assignment(line)) ++c.assignments;
    if (is_package(line)) ++c.packages;
    if (is_pci_line(line)) ++c.pci;
    if (is_prompt(line)) ++c.prompts;
    const std::string_view t = trim(line);
    if (t.starts_with("import ") || t.starts_with("def ") || t.starts_with("class ") || (t.starts_with("from ") && contains(t, " import ")) ||
        t.starts_with("return "))
      ++c.code;
    const auto colon = t.find(':');
    if (colon < 40 && t.substr(0, colon).find(' ') == std::string_view::npos && (colon + 1 == t.size() || t[colon + 1] == ' ')) ++c.pairs;
  }
  return c;
}

}  // namespace

bool looks_like_kernel_line(std::string_view line) {
  std::string_view s = line.substr(0, 160);
  if (s.size() > 3 && s[0] == '<' && (s[2] == '>' || s[3] == '>')) s.remove_prefix(s.find('>') + 1);
  if (!s.empty() && s[0] == '[') {
    std::size_t i = 1;
    while (i < s.size() && s[i] == ' ') ++i;
    const std::size_t digits = i;
    while (i < s.size() && s[i] >= '0' && s[i] <= '9') ++i;
    if (i > digits && i + 7 < s.size() && s[i] == '.' && s[i + 7] == ']') return true;
  }
  return has_any(s, {" kernel: ", "kfd kfd: ", "[drm:", "[drm] ", "amdgpu: [", "AMD-Vi: "}) || names_pci_function(s, "amdgpu ") ||
         names_pci_function(s, "pcieport ");
}

namespace {

/// Of a name in lower case: prose, or no ending at all.
bool is_document(std::string_view name) {
  return ends_with_any(name, {".md", ".markdown", ".rst", ".adoc", ".txt"}) || name.substr(name.rfind('/') + 1).find('.') == std::string_view::npos;
}

}  // namespace

bool quotes_messages(std::string_view path) {
  std::string whole = lower(path);
  for (std::string_view packed : {".gz", ".xz", ".zst", ".bz2"})
    if (whole.ends_with(packed)) whole.resize(whole.size() - packed.size());
  const std::string name = whole.substr(whole.rfind('/') + 1);
  if (ends_with_any(name, {".py",  ".pyi", ".c",  ".cc", ".cpp",  ".cxx", ".h",  ".hh",  ".hpp", ".hip",  ".cu",  ".cuh",  ".js",
                           ".mjs", ".ts",  ".rs", ".go", ".java", ".rb",  ".pl", ".lua", ".sh",  ".bash", ".zsh", ".fish", ".cmake"}))
    return true;
  if (whole.find("/share/doc/") != std::string::npos && !name.ends_with(".log")) return true;
  if (!is_document(name)) return false;
  for (std::string_view document : {"readme", "changelog", "changes", "history", "news", "contributing", "faq", "troubleshooting", "install",
                                    "license", "copying", "release-notes", "release_notes", "releasenotes"}) {
    if (!name.starts_with(document)) continue;
    const std::string_view rest = std::string_view(name).substr(document.size());
    // install.txt and history.txt are outputs as often as documents.
    const bool ambiguous = document == "install" || document == "history" || document == "changes" || document == "news";
    if ((rest.empty() || rest[0] == '.' || rest[0] == '_' || rest[0] == '-') && !(ambiguous && (rest.empty() || rest.ends_with(".txt")))) return true;
  }
  return false;
}

bool lists_packages(std::string_view text) {
  static const RE2 package_line(
      R"(^(?:Start-Date: |End-Date: |Commandline: |Requested-By: |(?:Install|Upgrade|Remove|Purge|Reinstall): \S+[: ]|Log (?:started|ended): |)"
      R"(Selecting previously unselected package |Preparing to unpack |Unpacking \S+ \(|Setting up \S+ \(|Processing triggers for |\(Reading database |)"
      R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:status|install|upgrade|configure|trigproc|startup|remove|purge) |)"
      R"(\[\d{4}-\d\d-\d\d\S*\] \[(?:ALPM|PACMAN)|\d{4}-\d\d-\d\dT\S+ (?:SUBDEBUG|DDEBUG) |)"
      R"( *(?:Collecting|Requirement already satisfied:|Downloading|Using cached|Installing collected packages:|Successfully installed) ))",
      RE2::Quiet);
  std::size_t all = 0;
  std::size_t ours = 0;
  for (std::string_view line : lines(text.substr(0, kind_sample_bytes))) {
    if (trim(line).empty()) continue;
    if (++all > 1000) break;
    if (RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), package_line)) ++ours;
  }
  return all >= 3 && ours * 5 >= all * 3;
}

bool reports_success(std::string_view line) {
  // Which words: gtest, pytest, unittest, TAP, ctest, and what people print themselves.
  static const RE2 passed(
      R"((?i)(?:^|[\s\]:|])(?:tests? (?:case )?pass(?:ed)?\b|pass(?:ed)?: |pass(?:ed)? - |\[ +(?:passed|ok) +\])|::\S+ (?:passed|xfail(?:ed)?)\b|)"
      R"(\bpassed\s*(?:\[ *\d+%\])?\s*$|^(?:passed|skipped|xfail(?:ed)?|xpass(?:ed)?) (?:\[\d+\] )?\S+\.py\b|::\S+ (?:skipped|xpass(?:ed)?)\b|)"
      R"(^\.*\s*\S+\.py [.sx]+\s*(?:\[ *\d+%\])?\s*$|\[ (?:run|skipped) +\]|^\s*start +\d+: |)"
      R"(^ok \d+\b|\.\.\. ?(?:ok|skipped\b.*)\s*$|test +#\d+: .*\bpassed\b|)"
      R"(\bas expected\b|\(expected\)|\bexpected (?:error|exception|failure)\b|error\w* (?:was |is )?(?:correctly |gracefully )?handled\b|handled (?:correctly|gracefully))",
      RE2::Quiet);
  static const RE2 failed(R"((?i)\b(?:failed|not|but|unhandled|unexpected|aborted|aborting|instead)\b)", RE2::Quiet);
  // Why a test was left out may be said with any words.
  static const RE2 left_out(R"((?i)^skipped \[\d+\] \S+\.py\b|::\S+ skipped\b|\[ +skipped +\])", RE2::Quiet);
  return line.size() < 2000 && (RE2::PartialMatch(line, left_out) || (RE2::PartialMatch(line, passed) && !RE2::PartialMatch(line, failed)));
}

std::uint32_t kinds_of_line(std::string_view line) {
  std::uint32_t kinds = 0;
  if (looks_like_kernel_line(line)) kinds |= kind_kernel_log;
  if (is_assignment(line)) kinds |= kind_env;
  return kinds;
}

std::uint32_t kinds_of(std::string_view path, std::string_view sample) {
  sample = sample.substr(0, kind_sample_bytes);
  const std::string name = lower(path);
  const Counts c = count(sample);
  std::uint32_t kinds = 0;
  if (c.kernel > 0) kinds |= kind_kernel_log;
  if (has_any(sample, {"HSA Agents", "HSA System Attributes", "Marketing Name:", "ROCk module"})) kinds |= kind_rocminfo;
  if (has_any(sample, {"ROCm System Management", "AMD-SMI", "amd-smi", "GPU[0]", "NVIDIA-SMI", "rocm-smi"})) kinds |= kind_smi;
  if (c.pci > 0 || has_any(sample, {"LnkSta:", "LnkCap:", "Kernel driver in use"})) kinds |= kind_lspci;
  if ((c.packages >= 1 && has_any(sample, {"Package ", "pip list", "pip freeze"})) || c.packages >= 3 ||
      (c.packages > 0 && c.packages * 2 >= c.lines))
    kinds |= kind_pip_list;
  if (c.assignments > 0) kinds |= kind_env;
  if (has_any(sample, {"Thread 0x", "(gdb)", "py-spy", "Python v3", "rocgdb", "wave_"}) || contains(name, "py-spy") || contains(name, "stack"))
    kinds |= kind_stacks;
  const bool code_name = ends_with_any(name, {".py", ".pyi", ".cpp", ".cc", ".hip", ".cu", ".h"});
  const bool config_name = ends_with_any(
      name, {".json", ".jsonl", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".conf", "dockerfile", ".sh", ".sbatch", ".slurm", ".service"});
  if (code_name || c.code >= 3) kinds |= kind_code;
  const std::string_view head = trim(sample.substr(0, 200));
  if (config_name || head.starts_with("{") || head.starts_with("[{") || head.starts_with("#!") || contains(sample, "#SBATCH") ||
      (c.pairs * 2 > c.lines && c.lines > 2))
    kinds |= kind_config;
  // Logs, transcripts and prose; a configuration file or source code says nothing about what was printed.
  const bool only_kernel = c.kernel * 10 >= c.lines * 9 && c.lines > 0;
  if (!code_name && !config_name && !only_kernel) kinds |= kinds_of_prose;
  if ((kinds & kind_config) != 0) kinds |= kind_env;
  if (c.prompts > 0) kinds |= kinds_of_prose;
  if (contains(sample, "Traceback (most recent call last)")) kinds |= kinds_of_prose;
  if (quotes_messages(path))  // what a document states of its project still holds
    kinds = (kinds & ~kinds_of_prose) | kind_quotes | (is_document(name) ? std::uint32_t{kind_text} : 0u);
  if (name.ends_with(".sh") || name.ends_with(".sbatch") || name.ends_with(".slurm")) kinds |= kind_shell;
  if (has_any(sample, {"success_rate", "pc_success", "success rate", "Success rate", "episode", "Episode"})) kinds |= kind_evaluation;
  return kinds;
}

}  // namespace ff::diagnosis
