#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "capture/redact.h"
#include "cli/check_session.h"

namespace ff::cli {
namespace {

constexpr std::size_t max_diff_bytes = 16U << 20;

std::string python_packages(const facts::PythonEnv& python) {
  std::vector<std::string> list;
  for (const auto& package : python.packages) list.push_back(package.name + "==" + package.version);
  std::ranges::sort(list);
  return list.empty() ? "" : join(list, "\n") + "\n";
}

}  // namespace

Result<void> write_restore_point(const CheckSession& session, const CheckOptions& options, const run::Run& run) {
  Value held = Value::list();
  for (const auto& rung : session.climb.rungs)
    if (rung.status == ladder::RungStatus::pass || rung.status == ladder::RungStatus::warn) held.push(std::string(rung_name(rung.rung)));
  if (held.items().empty()) return {};
  Value files = Value::list();
  const auto write = [&](const std::string& name, std::string_view content) -> Result<void> {
    if (content.empty()) return {};
    files.push(name);
    return run.write("restore/" + name, content);
  };
  std::size_t number = 0;
  for (const auto& python : session.machine.pythons) {
    const std::string name = number++ == 0 ? "requirements.txt" : "requirements-" + std::to_string(number) + ".txt";
    const std::string list = python_packages(python);
    if (auto written = write(name, list.empty() ? "" : "# " + python.prefix + "\n" + list); !written) return written;
  }
  std::string packages;
  for (const auto& [name, version] : session.machine.packages) packages += name + "=" + version.value_or("?") + "\n";
  if (auto written = write("system-packages.txt", packages); !written) return written;
  std::string environment;
  for (const auto& [name, value] : session.machine.env) environment += name + "=" + value.value_or("") + "\n";
  if (auto written = write("environment.txt", environment); !written) return written;
  if (options.from.empty() && !options.inputs.work_root.empty()) {
    // The diff of tracked files only: reading, never changing the repository (no index refresh, no external diff driver).
    ChildOptions git{
        .argv = {"git", "-c", "core.fsmonitor=false", "-C", options.inputs.work_root, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD"}};
    git.output_limit_bytes = max_diff_bytes;
    const auto diff = run_child(git);
    if (diff.ok() && !diff.truncated)
      if (auto written = write("uncommitted.diff", capture::redact_text(diff.out)); !written) return written;
  }
  for (const auto& path : options.configs) {
    // As it was read for the capture, secrets redacted: the file may have changed during the climb.
    const auto content = session.capture.probe("check")["configs"][path].as_text();
    if (auto written = write("config/" + std::filesystem::path(path).filename().string(), content); !written) return written;
  }
  Value point = Value::object({{"schema", "firstfault/restore/1"},
                               {"rungs_that_held", std::move(held)},
                               {"files", std::move(files)},
                               {"commit", session.capture.probe("work")["git"]["commit"]}});
  return run.write("restore/restore.json", to_json(point, 2) + "\n");
}

}  // namespace ff::cli
