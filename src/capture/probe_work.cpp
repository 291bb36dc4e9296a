#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "capture/probes.h"
#include "capture/redact.h"

namespace ff::capture {
namespace {

constexpr std::array lock_files{"uv.lock",           "poetry.lock",          "pdm.lock",        "Pipfile.lock",     "requirements.txt",
                                "requirements.lock", "requirements-dev.txt", "environment.yml", "environment.yaml", "conda-lock.yml",
                                "pixi.lock",         "pyproject.toml",       "setup.cfg",       "setup.py"};
constexpr std::size_t lock_file_limit_bytes = 4u << 20;
constexpr std::size_t most_modified = 200;

/// What git says, read with git itself when it is there: worktrees, packed references and submodules are its business.
std::string git(const ProbeContext& context, std::vector<std::string> arguments) {
  const std::string program = find_program(context.options, "git");
  if (program.empty() || !context.options.run_commands) return {};
  // No locks, no pager, no hooks of a foreign repository; a repository of another owner is refused by git itself.
  std::vector<std::string> argv{program, "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const ChildResult result = run_child(
      {.argv = argv, .directory = context.options.work_root, .time_limit = std::chrono::milliseconds(1500), .output_limit_bytes = 4u << 20});
  return result.ok() ? result.out : std::string();
}

}  // namespace

void probe_work(ProbeContext& context) {
  const std::string& root = context.options.work_root;
  if (root.empty() || !context.emitter.begin("work: files")) return;
  Value locks = Value::list();
  for (const std::string_view name : lock_files) {
    const std::string path = root + "/" + std::string(name);
    struct stat status{};
    if (::stat(context.path(path).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    locks.push(Value::object({{"path", path}, {"size_bytes", static_cast<std::uint64_t>(status.st_size)}}));
    if (const auto text = read_file(context.path(path), lock_file_limit_bytes))
      context.emitter.file(path, redact_text(*text));
    else
      context.emitter.truncated(path, static_cast<std::uint64_t>(status.st_size));
  }
  context.emitter.probe("work", Value::object({{"root", root}, {"lock_files", locks}}));
  context.emitter.flush();

  if (!context.emitter.begin("work: git")) return;
  const std::string commit = git(context, {"rev-parse", "HEAD"});
  if (trim(commit).empty()) return;
  Value answer = Value::object({{"commit", trim(commit)}});
  if (const auto branch = git(context, {"rev-parse", "--abbrev-ref", "HEAD"}); !branch.empty()) answer.set("branch", trim(branch));
  if (const auto remote = git(context, {"config", "--get", "remote.origin.url"}); !remote.empty()) answer.set("remote", redact_text(trim(remote)));
  Value modified = Value::list();
  for (const std::string_view line : lines(git(context, {"status", "--porcelain", "--untracked-files=no"})))
    if (line.size() > 3 && modified.items().size() < most_modified) modified.push(to_utf8(line.substr(3)));
  answer.set("modified", modified);
  context.emitter.probe("work", Value::object({{"git", answer}}));
}

}  // namespace ff::capture
