#include "capture/loose_text.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "capture/emitter.h"
#include "capture/hardware.h"
#include "capture/loose_parsers.h"
#include "capture/redact.h"
#include "capture/transcript.h"

namespace ff::capture {
namespace {

/// "dmesg", then "dmesg#2", …
std::string free_name(const Capture& capture, std::string_view name) {
  std::string out(name);
  for (int number = 2; capture.command(out) != nullptr; ++number) out = std::string(name) + "#" + std::to_string(number);
  return out;
}

void add_command(std::string_view name, std::string_view text, const TextSource& source, Capture& capture) {
  CommandOutput output;
  for (const std::string_view word : words(source.command)) output.argv.emplace_back(word);
  output.argv = redact_arguments(output.argv);
  output.out = redact_text(text);
  const std::string free = free_name(capture, name);
  capture.add_command(free, std::move(output));
  note_source(capture, "cmd/" + free + "/stdout", source);
}

void add_file(std::string_view path, std::string content, const TextSource& source, Capture& capture) {
  capture.add_file(path, std::move(content));
  note_source(capture, path, source);
}

void add_to_probe(std::string_view name, const Value& answer, const TextSource& source, Capture& capture) {
  Value all = capture.probe(name);
  if (all.is_null())
    all = answer;
  else
    join_values(all, answer);
  capture.add_probe(name, std::move(all));
  note_source(capture, "probe/" + std::string(name), source);
}

void add_python(Value entry, const TextSource& source, Capture& capture) {
  for (const Value& package : entry["packages"].items())
    if (entry.find("torch") == nullptr && package["name"].as_text() == "torch")
      entry.set("torch", Value::object({{"version", package["version"]}, {"path", source.name}}));
  add_to_probe("pythons", Value::list({std::move(entry)}), source, capture);
}

void add_nodes(std::string_view text, const TextSource& source, Capture& capture) {
  for (const ListedNode& node : parse_ls_nodes(text)) {
    if (node.error != 0)
      capture.add_error(node.path, node.error);
    else
      capture.add_stat(node.path, node.stat);
    note_source(capture, node.path, source);
  }
}

void add_values(std::string_view text, const TextSource& source, Capture& capture) {
  for (FileValue& value : parse_file_values(text)) {
    TextSource place = source;
    place.first_line += value.line - 1;
    add_file(value.path, std::move(value.content), place, capture);
  }
}

void add_uname(std::string_view text, const TextSource& source, Capture& capture) {
  const auto all = lines(text);
  const auto parts = words(all.empty() ? std::string_view{} : all[0]);
  if (parts.size() < 3) return;
  add_file("/proc/sys/kernel/hostname", std::string(parts[1]) + "\n", source, capture);
  add_file("/proc/sys/kernel/osrelease", std::string(parts[2]) + "\n", source, capture);
}

/// The program that a typed command runs first and its arguments: "sudo -E HSA_X=1 timeout 5 rocminfo | grep Name" is rocminfo.
std::vector<std::string_view> first_program(std::string_view command) {
  command = command.substr(0, command.find_first_of("|;<>&"));
  std::vector<std::string_view> parts = words(command);
  while (!parts.empty()) {
    const std::string_view first = parts[0];
    if (first == "sudo" || first == "time" || first == "env" || first == "nice" || first == "exec" || first == "command" || is_assignment(first) ||
        first == "-E" || first == "-n") {
      if (first == "env" && parts.size() == 1) break;
      parts.erase(parts.begin());
    } else if (first == "timeout" && parts.size() > 2) {
      parts.erase(parts.begin(), parts.begin() + 2);
    } else {
      break;
    }
  }
  return parts;
}

/// "cat /one/absolute/path" without anything after it: that file.
std::string_view shown_file(std::string_view command) {
  if (command.find_first_of("|;<>&*$`") != std::string_view::npos) return {};
  const auto parts = first_program(command);
  return parts.size() == 2 && parts[0] == "cat" && parts[1].starts_with('/') ? parts[1] : std::string_view{};
}

bool one_word(std::string_view text) { return words(trim(text)).size() == 1 && trim(text).find('\n') == std::string_view::npos; }

/// Outputs that only the command explains. False: look at the output alone.
bool add_by_command(const TranscriptPiece& piece, const TextSource& source, Capture& capture) {
  const std::string_view text = piece.output;
  if (const std::string_view path = shown_file(piece.command); !path.empty()) {
    const int error = contains(text, "No such file or directory") ? ENOENT : contains(text, "Permission denied") ? EACCES : 0;
    if (error == 0)
      add_file(path, redact_text(text), source, capture);
    else if (text.starts_with("cat:"))
      capture.add_error(path, error);
    return true;
  }
  const auto parts = first_program(piece.command);
  if (parts.empty()) return false;
  const bool whole = piece.command.find_first_of("|;") == std::string::npos;
  if (parts[0] == "uname" && whole && one_word(text) && (parts.size() == 1 || parts[1] == "-r")) {
    if (parts.size() == 2) add_file("/proc/sys/kernel/osrelease", std::string(trim(text)) + "\n", source, capture);
    return true;
  }
  if (parts[0] == "hostname" && whole && one_word(text)) {
    add_file("/proc/sys/kernel/hostname", std::string(trim(text)) + "\n", source, capture);
    return true;
  }
  if (parts[0] == "ls" && contains(piece.command, "/dev")) {
    add_command("ls-dev", text, source, capture);
    add_nodes(text, source, capture);
    return true;
  }
  if (parts[0] == "grep" && contains(piece.command, "os-release") && contains(text, "=")) {
    add_file("/etc/os-release", std::string(text), source, capture);
    return true;
  }
  // Filtered outputs keep too little to be told by their content.
  struct Known {
    std::string_view program, name;
  };
  for (const Known& known : {Known{"dmesg", "dmesg"}, Known{"rocminfo", "rocminfo"}, Known{"rocm-smi", "rocm-smi"}, Known{"amd-smi", "amd-smi"},
                             Known{"dkms", "dkms-status"}, Known{"lspci", "lspci"}, Known{"df", "df"}, Known{"free", "free"}, Known{"lsmod", "lsmod"},
                             Known{"modinfo", "modinfo"}, Known{"hipcc", "hipcc-version"}, Known{"hipconfig", "hipconfig"},
                             Known{"nvidia-smi", "nvidia-smi"}, Known{"dpkg", "dpkg-l"}, Known{"rpm", "rpm-qa"}, Known{"ulimit", "ulimit"}}) {
    if (parts[0] != known.program && !parts[0].ends_with("/" + std::string(known.program))) continue;
    const TextKind kind = recognise(text);
    // What the content says goes first; a filtered or counted output keeps the program's name.
    if (kind != TextKind::unknown && kind != TextKind::pip_list && kind != TextKind::environment && add_recognised(kind, text, source, capture))
      return true;
    add_command(known.name, text, source, capture);
    return true;
  }
  if (parts[0] == "journalctl" && contains(text, "kernel")) {
    const bool previous = contains(piece.command, "-b -1") || contains(piece.command, "-b-1") || contains(piece.command, "--boot=-1");
    add_command(previous ? "journalctl-k-previous" : "journalctl-k", text, source, capture);
    return true;
  }
  if (contains(piece.command, "pip list") || contains(piece.command, "pip freeze") || contains(piece.command, "conda list")) {
    add_recognised(TextKind::pip_list, text, source, capture);
    return true;
  }
  if (parts[0] == "env" || parts[0] == "printenv" || parts[0] == "export") {
    if (parts[0] == "printenv" && parts.size() == 2 && one_word(text))
      add_to_probe("env", Value::object({{std::string(parts[1]), redact_value(parts[1], trim(text))}}), source, capture);
    else
      add_recognised(TextKind::environment, text, source, capture);
    return true;
  }
  return false;
}

}  // namespace

void note_source(Capture& capture, std::string_view item, const TextSource& source) {
  Value all = capture.probe("sources");
  all.set(item, Value::object({{"name", source.name}, {"line", source.first_line}}));
  capture.add_probe("sources", std::move(all));
}

bool add_recognised(TextKind kind, std::string_view text, const TextSource& source, Capture& capture) {
  switch (kind) {
    case TextKind::unknown:
    case TextKind::binary:
    case TextKind::transcript:
      return false;
    case TextKind::os_release:
      add_file("/etc/os-release", std::string(text), source, capture);
      return true;
    case TextKind::kernel_command_line: {
      std::vector<std::string> arguments;
      for (const std::string_view word : words(trim(text))) arguments.emplace_back(word);
      add_file("/proc/cmdline", join(redact_arguments(arguments), " ") + "\n", source, capture);
      return true;
    }
    case TextKind::file_values:
      add_values(text, source, capture);
      return true;
    case TextKind::pip_list: {
      add_command("pip-list", text, source, capture);
      add_python(Value::object({{"prefix", ""}, {"asked_by", source.name}, {"packages", parse_pip_list(text, source.name, source.first_line)}}),
                 source, capture);
      return true;
    }
    case TextKind::collect_env:
      add_command("collect-env", text, source, capture);
      add_python(parse_collect_env(text, source.name, source.first_line), source, capture);
      return true;
    case TextKind::environment:
      add_command("env", text, source, capture);
      add_to_probe("env", parse_environment(text), source, capture);
      return true;
    case TextKind::uevent: {
      const auto slot = lower(between(text, "PCI_SLOT_NAME=", "\n").value_or(""));
      if (!is_pci_address(slot)) return false;
      add_file("/sys/bus/pci/devices/" + slot + "/uevent", std::string(text), source, capture);
      return true;
    }
    case TextKind::id:
      add_command("id", text, source, capture);
      if (const Value user = parse_id(text); !user.is_null()) {
        capture.add_probe("user", user);
        note_source(capture, "probe/user", source);
      }
      return true;
    case TextKind::uname:
      add_command("uname-a", text, source, capture);
      add_uname(text, source, capture);
      return true;
    case TextKind::ls_nodes:
      add_command("ls-dev", text, source, capture);
      add_nodes(text, source, capture);
      return true;
    case TextKind::lsmod:
      add_command("lsmod", text, source, capture);
      if (std::string modules = lsmod_to_proc_modules(text); !modules.empty()) add_file("/proc/modules", std::move(modules), source, capture);
      return true;
    default:
      add_command(text_kind_name(kind), text, source, capture);
      return true;
  }
}

void add_transcript(std::string_view text, const std::string& name, Capture& capture) {
  for (const TranscriptPiece& piece : split_transcript(text)) {
    if (trim(piece.output).empty()) continue;
    const TextSource source{name, piece.output_line, piece.command};
    if (!piece.command.empty() && add_by_command(piece, source, capture)) continue;
    const TextKind kind = recognise(piece.output);
    if (kind != TextKind::transcript) add_recognised(kind, piece.output, source, capture);
  }
}

}  // namespace ff::capture
