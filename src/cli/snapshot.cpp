#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "capture/collect.h"
#include "capture/store.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct Options {
  std::string out;
  std::vector<std::string> pythons;
  std::string work_root;
  std::string root = "/";
  bool wake = false;
  bool json = false;
  bool force = false;
};

struct Summary {
  std::uint64_t bytes = 0;
  std::size_t files = 0, commands_run = 0, commands_absent = 0;
  std::vector<std::pair<std::string, std::string>> unreadable;  ///< (what, why), absent ones left out
};

Summary summarise(const capture::Capture& capture) {
  Summary summary;
  summary.files = capture.files().size();
  for (const auto& [path, content] : capture.files()) summary.bytes += content.size();
  for (const auto& [name, command] : capture.all_commands()) {
    summary.bytes += command.out.size() + command.err.size();
    if (command.start_errno == ENOENT)
      ++summary.commands_absent;
    else if (command.start_errno == EBUSY)
      summary.unreadable.emplace_back(name, "not run: it would wake a sleeping GPU (--wake runs it)");
    else if (command.start_errno != 0)
      summary.unreadable.emplace_back(name, errno_text(command.start_errno));
    else if (command.timed_out)
      summary.unreadable.emplace_back(name, "did not answer in time and was left behind");
    else
      ++summary.commands_run;
  }
  for (const auto& [path, error] : capture.errors()) {
    if (error == ENOENT) continue;
    if (error == EINVAL && path.starts_with("/sys/")) continue;  // the driver has no value: the speed of a link that is down
    if (error == ETIMEDOUT)
      summary.unreadable.emplace_back(path, "did not answer in time and was left behind");
    else if (error == EBUSY && !path.starts_with("/dev/"))
      summary.unreadable.emplace_back(path, "not read: the device sleeps (--wake reads it)");
    else
      summary.unreadable.emplace_back(path, errno_text(error));
  }
  return summary;
}

std::string default_name(const capture::Capture& capture) {
  std::string host(capture.about()["hostname"].as_text());
  for (char& c : host)
    if (std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-").find(c) == std::string_view::npos) c = '-';
  const std::string when = replace_all(replace_all(std::string(capture.about()["taken_at"].as_text()), ":", ""), "-", "");
  return fmt::format("firstfault-{}-{}.tar.zst", host.empty() ? "machine" : host, when);
}

void print(const capture::Capture& capture, const Summary& summary, const std::string& target, std::uint64_t stored_bytes,
           std::int64_t milliseconds) {
  std::cout << fmt::format("Capture of {} in {} ({} stored, {} read, {} ms)\n", capture.about()["hostname"].as_text("this machine"),
                           report::printable(target, 1000), human_bytes(stored_bytes), human_bytes(summary.bytes), milliseconds);
  std::cout << fmt::format("  {} files, {} commands ran, {} not installed\n", summary.files, summary.commands_run, summary.commands_absent);
  const auto gpus = capture.list("/sys/class/kfd/kfd/topology/nodes").size();
  if (capture.known_absent("/dev/kfd"))
    std::cout << "  no AMD compute driver here: /dev/kfd does not exist\n";
  else if (gpus != 0)
    std::cout << fmt::format("  {} KFD nodes\n", gpus);
  for (const Value& sleeper : capture.probe("asleep").items())
    std::cout << fmt::format("  asleep and left so: {} {}\n", sleeper["card"].as_text(), sleeper["pci"].as_text());
  for (const Value& python : capture.probe("pythons").items())
    std::cout << fmt::format("  Python {} in {}: {} packages{}\n", python["version"].as_text("of unknown version"), python["prefix"].as_text(),
                             python["packages"].items().size(),
                             python["torch"].is_object() ? fmt::format(", torch {}", python["torch"]["version"].as_text()) : ", no torch");
  if (summary.unreadable.empty()) {
    std::cout << "  everything that was found could be read\n";
    return;
  }
  constexpr std::size_t most = 20;
  std::cout << fmt::format("Could not be read ({}):\n", summary.unreadable.size());
  for (std::size_t i = 0; i < summary.unreadable.size() && i < most; ++i)
    std::cout << fmt::format("  {}: {}\n", summary.unreadable[i].first, summary.unreadable[i].second);
  if (summary.unreadable.size() > most)
    std::cout << fmt::format("  and {} more: see \"errors\" in manifest.json\n", summary.unreadable.size() - most);
}

void print_json(const capture::Capture& capture, const Summary& summary, const std::string& target, std::uint64_t stored_bytes,
                std::int64_t milliseconds) {
  Value unreadable = Value::list();
  for (const auto& [what, why] : summary.unreadable) unreadable.push(Value::object({{"what", what}, {"why", why}}));
  const Value document = Value::object({{"schema", "firstfault/snapshot/1"},
                                        {"capture", target},
                                        {"hostname", capture.about()["hostname"]},
                                        {"taken_at", capture.about()["taken_at"]},
                                        {"stored_bytes", stored_bytes},
                                        {"read_bytes", summary.bytes},
                                        {"duration_ms", milliseconds},
                                        {"files", summary.files},
                                        {"commands_run", summary.commands_run},
                                        {"commands_not_installed", summary.commands_absent},
                                        {"asleep", capture.probe("asleep")},
                                        {"unreadable", unreadable}});
  std::cout << to_json(document, 2) << "\n";
}

std::uint64_t size_on_disk(const std::filesystem::path& target) {
  std::error_code error;
  if (!std::filesystem::is_directory(target, error)) return std::filesystem::file_size(target, error);
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(target, error))
    if (entry.is_regular_file(error)) sum += entry.file_size(error);
  return sum;
}

/// What can be known to be wrong with the target before the machine is read.
Result<void> check_target(const Options& options) {
  std::error_code error;
  if (options.out == "-") {
    if (options.json) return usage_error("standard output can hold the capture or the document, not both", "-o - --json", "give -o a file name");
    if (::isatty(STDOUT_FILENO) != 0) return usage_error("a capture is not written to a terminal", "-o -", "redirect it, or give -o a file name");
  } else if (!options.out.empty() && !std::filesystem::is_directory(options.out, error)) {
    if (auto free = free_output(options.out, options.force); !free) return free;
  }
  return {};
}

/// -o -: the archive on standard output; the summary would be in its way.
Result<void> store_to_output(const capture::Capture& capture) {
  const auto directory = TemporaryDirectory::make("firstfault-snapshot");
  if (!directory) return std::unexpected(directory.error());
  const auto path = directory->path() / "capture.tar.zst";
  if (auto stored = capture::store(capture, path); !stored) return stored;
  const auto bytes = read_file(path, 4ULL << 30);
  if (!bytes) return std::unexpected(bytes.error());
  if (const int number = write_all(STDOUT_FILENO, *bytes); number != 0) return fail("cannot be written: " + errno_text(number), "standard output");
  return {};
}

int run_snapshot(const Options& options) {
  const Monotonic start = monotonic_now();
  if (const auto sound = check_target(options); !sound) return report_error(sound.error());
  std::vector<std::string> pythons;
  for (const auto& given : options.pythons) {
    auto python = options.root == "/" ? given_python(given) : Result<std::string>(given);
    if (!python) return report_error(python.error());
    pythons.push_back(std::move(*python));
  }
  capture::CollectOptions collect{
      .root = options.root, .pythons = std::move(pythons), .wake = options.wake, .environment = capture::current_environment()};
  if (!options.work_root.empty() && options.root == "/")
    if (const auto given = given_path(options.work_root); !given) return report_error(given.error());
  if (!options.work_root.empty()) collect.work_root = std::filesystem::absolute(options.work_root).lexically_normal().string();
  const auto capture = capture::collect(collect);
  if (!capture) return report_error(capture.error());
  if (options.out == "-") {
    const auto stored = store_to_output(*capture);
    return stored ? 0 : report_error(stored.error());
  }
  const std::string target = options.out.empty() ? default_name(*capture) : options.out;
  if (const auto stored = capture::store(*capture, target); !stored) return report_error(stored.error());
  const Summary summary = summarise(*capture);
  const std::uint64_t stored_bytes = size_on_disk(target);
  if (options.json)
    print_json(*capture, summary, target, stored_bytes, milliseconds_since(start));
  else
    print(*capture, summary, target, stored_bytes, milliseconds_since(start));
  return 0;
}

}  // namespace

void add_snapshot(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  app.add_option("-o,--out", options->out,
                 "a new directory, a file name that ends in .tar.zst, or - for standard output (default: firstfault-HOST-TIME.tar.zst here)");
  app.add_flag("--force", options->force, "replace the archive that -o names");
  app.add_option("--python", options->pythons, "a Python interpreter or environment directory to look at; may be repeated (default: the active one)")
      ->type_name("PATH");
  app.add_option("--work-root", options->work_root, "also record commit, lock files and disk of this directory")->type_name("DIR");
  app.add_flag("--wake", options->wake, "read sleeping GPUs as well, which wakes them");
  app.add_option("--root", options->root, "read the machine below this directory instead of /")->type_name("DIR");
  app.add_flag("--json", options->json, "print one JSON document");
  app.callback([options, &exit_code] { exit_code = run_snapshot(*options); });
}

}  // namespace ff::cli
