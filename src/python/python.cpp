#include "python/python.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"

namespace ff::python {
namespace {

/// Where probes may keep compiled Python until this program ends (probes/ff_probe.py); empty: nowhere.
std::string bytecode_folder() {
  static const auto folder = TemporaryDirectory::make("firstfault-bytecode");
  return folder ? folder->path().string() : std::string();
}

std::vector<std::string> environment_of(const Call& call, const std::string& records) {
  std::vector<std::string> set = call.environment;
  set.push_back("FIRSTFAULT_RECORDS=" + records);
  set.push_back("FIRSTFAULT_BYTECODE=" + bytecode_folder());
  set.emplace_back("PYTHONUNBUFFERED=1");
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = name_of(*entry);
    if (std::ranges::find(call.unset, name) != call.unset.end()) continue;
    if (std::ranges::any_of(set, [&](const std::string& other) { return name_of(other) == name; })) continue;
    out.emplace_back(*entry);
  }
  out.insert(out.end(), set.begin(), set.end());
  return out;
}

}  // namespace

std::string interpreter_of(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(given, error)) return given;
  for (const auto* name : {"bin/python", "bin/python3"})
    if (fs::exists(fs::path(given) / name, error)) return (fs::path(given) / name).string();
  return given;
}

Result<Answer> run(const Call& call) {
  if (std::ranges::none_of(probes(), [&](const Probe& probe) { return probe.name == call.probe; }))
    return fail("no such probe", call.probe, "this is a fault of FirstFault: report it");
  auto directory = TemporaryDirectory::make("firstfault-probe");
  if (!directory) return std::unexpected(directory.error());
  for (const Probe& probe : probes())
    if (auto written = write_file(directory->path() / probe.name, probe.source); !written) return std::unexpected(written.error());
  const std::filesystem::path records = directory->path() / "records.jsonl";

  ChildOptions options;
  options.argv = {interpreter_of(call.interpreter), "-B", "-X", "faulthandler", (directory->path() / call.probe).string()};
  options.argv.insert(options.argv.end(), call.arguments.begin(), call.arguments.end());
  options.environment = environment_of(call, records.string());
  options.directory = call.directory;
  options.time_limit = call.time_limit;
  options.output_limit_bytes = call.output_limit_bytes;

  Answer answer;
  answer.child = run_child(options);
  std::error_code none_yet;
  if (!std::filesystem::exists(records, none_yet)) return answer;
  auto text = read_file(records, 1ULL << 30);
  if (!text) return std::unexpected(text.error());
  // A killed probe leaves a last line without its end.
  for (std::size_t begin = 0, end = 0; (end = text->find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto record = parse_json(std::string_view(*text).substr(begin, end - begin), fmt::format("{}: a record", call.probe));
    if (!record) return std::unexpected(record.error());
    answer.records.push_back(std::move(*record));
  }
  return answer;
}

}  // namespace ff::python
