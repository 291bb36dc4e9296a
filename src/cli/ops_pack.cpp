#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/seconds.h"
#include "base/text.h"
#include "capture/archive.h"
#include "capture/redact.h"
#include "cli/given_path.h"
#include "cli/ops_torch.h"
#include "cli/options.h"
#include "run/run.h"

extern char** environ;

namespace ff::cli {
namespace {

namespace fs = std::filesystem;

struct PackOptions {
  std::string output = "firstfault-compute.tar.zst", python, device, duration = "5m";
  std::vector<std::string> steps;
  bool json = false, small = false, force = false;
};

struct Step {
  std::string name;
  std::vector<std::string> arguments;
  double limit_s;
};

/// What is run, in this order; each in a process of its own, so that one that crashes or hangs costs itself only.
std::vector<Step> steps_of(const PackOptions& o) {
  const auto with_device = [&](std::vector<std::string> arguments) {
    if (!o.device.empty()) arguments.insert(arguments.end(), {"--device", o.device});
    return arguments;
  };
  std::vector<std::string> check{"check", "--json", "--keep-going"}, torch{"ops", "run", "--torch", "--json"},
      native{"ops", "run", "--native", "--json"};
  if (!o.python.empty()) {
    check.insert(check.end(), {"--python", o.python});
    torch.insert(torch.end(), {"--python", o.python});
  }
  if (o.small) {
    native.insert(native.end(), {"--small", "--repeat", "2"});
    torch.insert(torch.end(), {"--dtype", "float32", "--repeat", "2"});
  }
  std::vector<Step> all{{"snapshot", {"snapshot", "-o", "machine.tar.zst"}, 300},
                        {"check", with_device(check), 900},
                        {"native", with_device(native), 1800},
                        {"torch", with_device(torch), 3600},
                        {"stress", with_device({"stress", "all", "--json", "--for", o.duration}), 90000}};
  std::erase_if(all, [&](const Step& step) {
    if (o.steps.empty()) return step.name == "torch" && o.python.empty();
    return std::ranges::find(o.steps, step.name) == o.steps.end();
  });
  return all;
}

/// `scratch`: where a step's own temporary directories go, so that they end with ours when a step is killed.
std::vector<std::string> environment_of_steps(const std::string& runs, const std::string& scratch) {
  std::vector<std::string> out{"FIRSTFAULT_RUNS=" + runs, "TMPDIR=" + scratch};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("FIRSTFAULT_RUNS=") && !std::string_view(*entry).starts_with("TMPDIR=")) out.emplace_back(*entry);
  return out;
}

/// Everything below the folder into one archive, text with its secrets taken out. Written anew after every step: what ends the
/// program loses what was running, no more.
Result<std::uint64_t> write_pack(const fs::path& folder, const std::string& output) {
  auto members = capture::read_directory(folder);
  if (!members) return std::unexpected(members.error());
  for (auto& [name, content] : *members)
    if (name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".txt") || name.ends_with(".md"))
      content = capture::redact_text(content);
  if (auto written = capture::write_archive(output, *members); !written) return std::unexpected(written.error());
  std::error_code error;
  const auto size = fs::file_size(output, error);
  return error ? 0 : static_cast<std::uint64_t>(size);
}

int pack(PackOptions o) {
  auto interpreter = given_interpreter(o.python);
  if (!interpreter) return report_error(interpreter.error());
  o.python = std::move(*interpreter);
  static constexpr std::array<std::string_view, 5> known{"snapshot", "check", "native", "torch", "stress"};
  for (const auto& name : o.steps)
    if (std::ranges::find(known, name) == known.end())
      return report_error(Error{"is no step: " + name, "--steps", "snapshot, check, native, torch, stress", 2});
  if (auto free = free_output(o.output, o.force); !free) return report_error(free.error());
  o.output = fs::absolute(o.output).string();
  if (o.python.find('/') != std::string::npos) o.python = fs::absolute(o.python).string();
  auto folder = TemporaryDirectory::make("firstfault-pack");
  if (!folder) return report_error(folder.error());
  const auto scratch = TemporaryDirectory::make("firstfault-steps");
  if (!scratch) return report_error(scratch.error());
  Progress progress(!o.json);
  Value list = Value::list();
  bool fault = false;
  std::uint64_t bytes = 0;
  const auto steps = steps_of(o);
  for (const auto& step : steps) {
    progress.show(fmt::format("… {}: {}", step.name, join(step.arguments, " ")));
    ChildOptions child;
    child.argv = {"/proc/self/exe"};
    child.argv.insert(child.argv.end(), step.arguments.begin(), step.arguments.end());
    child.directory = folder->path().string();
    child.environment = environment_of_steps((folder->path() / "runs").string(), scratch->path().string());
    child.time_limit = milliseconds_of(step.limit_s);
    child.output_limit_bytes = 64u << 20;
    const auto ended = run_child(child);
    fault = fault || ended.exit_status != 0;
    const auto keep = [&](const std::string& name, const std::string& text) -> Result<void> {
      if (trim(text).empty()) return {};
      return write_file(folder->path() / name, text);
    };
    if (auto kept = keep(step.name + (contains(step.arguments.back(), "tar") ? ".txt" : ".json"), ended.out); !kept)
      return report_error(kept.error());
    if (auto kept = keep(step.name + ".stderr.txt", ended.err); !kept) return report_error(kept.error());
    list.push(Value::object({{"step", step.name},
                             {"arguments", Value::list_of(capture::redact_arguments(step.arguments))},
                             {"ended", ended.describe()},
                             {"exit_code", ended.exit_status ? Value(*ended.exit_status) : Value()},
                             {"seconds", seconds_of(ended.duration)}}));
    const Value document = Value::object({{"schema", "firstfault/ops-pack/1"}, {"written", run::utc_now()}, {"file", o.output}, {"steps", list}});
    if (auto kept = write_file(folder->path() / "pack.json", to_json(document, 1) + "\n"); !kept) return report_error(kept.error());
    auto written = write_pack(folder->path(), o.output);
    if (!written) return report_error(written.error());
    bytes = *written;
    progress.clear();
    if (!o.json)
      std::cout << fmt::format("  {:<9} {:<28} {:>7.1f} s\n", step.name,
                               ended.exit_status == 0   ? std::string("nothing wrong")
                               : ended.exit_status == 1 ? std::string("found something")
                                                        : ended.describe(),
                               seconds_of(ended.duration))
                << std::flush;
  }
  if (o.json)
    print_document(
        Value::object({{"schema", "firstfault/ops-pack/1"}, {"written", run::utc_now()}, {"file", o.output}, {"bytes", bytes}, {"steps", list}}));
  else
    std::cout << fmt::format("Wrote {} ({}): attach it to an issue. ", o.output, human_bytes(bytes))
              << "Tokens, passwords and keys are taken out; host and user names are in it.\n";
  return fault ? 1 : 0;
}

}  // namespace

void add_ops_pack(CLI::App& ops, int& exit_code) {
  auto o = std::make_shared<PackOptions>();
  auto* app = ops.add_subcommand(
      "pack", "Run it all (snapshot, check, native operators, PyTorch's, stress) and pack what came out into one file for an issue");
  app->add_option("-o,--output", o->output, "The archive (default firstfault-compute.tar.zst)");
  app->add_flag("--force", o->force, "Replace the archive that -o names");
  app->add_option("--python", o->python, "The interpreter that has PyTorch; without it PyTorch's operators are left out");
  app->add_option("--device", o->device, "cpu, cuda or hip (default: the first GPU that opens)")->check(CLI::IsMember({"cpu", "cuda", "hip"}));
  app->add_option("--for", o->duration, "How long the stress runs (default 5m)");
  app->add_option("--steps", o->steps, "Only these (comma separated): snapshot, check, native, torch, stress")->delimiter(',');
  app->add_flag("--small", o->small, "Small sizes and few repeats: a look in two minutes");
  app->add_flag("--json", o->json, "Print one JSON document (firstfault/ops-pack/1)");
  app->footer("The archive is written anew after every step. Exit code 1: a step found something; 0: nothing is wrong.");
  app->callback([o, &exit_code] { exit_code = pack(*o); });
}

}  // namespace ff::cli
