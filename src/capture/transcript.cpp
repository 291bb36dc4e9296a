#include "capture/transcript.h"

#include <cctype>
#include <optional>

#include "base/text.h"

namespace ff::capture {
namespace {

constexpr std::size_t longest_prompt = 120;

struct Prompt {
  std::string user, host;
  std::string_view command;
  bool bare_hash = false;  ///< "# text": a root prompt or a comment
};

bool is_name(std::string_view s) {
  if (s.empty() || s.size() > 64) return false;
  for (const char c : s)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.') return false;
  return true;
}

/// "user@host" at the front of `s`; what follows is left in `s`.
bool take_user_host(std::string_view& s, Prompt& prompt) {
  const auto at = s.find('@');
  if (at == std::string_view::npos || !is_name(s.substr(0, at))) return false;
  std::size_t end = at + 1;
  while (end < s.size() && is_name(s.substr(at + 1, end - at))) ++end;
  if (end == at + 1) return false;
  prompt.user = s.substr(0, at);
  prompt.host = s.substr(at + 1, end - at - 1);
  s.remove_prefix(end);
  return true;
}

/// "(venv) " in front of a prompt.
void skip_environment_name(std::string_view& s) {
  while (s.starts_with('(')) {
    const auto close = s.find(')');
    if (close == std::string_view::npos || close > 60) return;
    std::string_view rest = s.substr(close + 1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    s = rest;
  }
}

/// The sign that ends a prompt and one blank after it: "$ ", "# ", "% ", "❯ ", "➜ ".
std::optional<char> take_sign(std::string_view& s) {
  for (const std::string_view sign : {"$", "#", "%", "\u276f", "\u279c"}) {
    if (!s.starts_with(sign) || s.size() <= sign.size() || s[sign.size()] != ' ') continue;
    s.remove_prefix(sign.size() + 1);
    return sign == "#" ? '#' : '$';
  }
  return std::nullopt;
}

/// "# …" is far more often a comment or a program's heading than root's prompt: only what begins with one of these.
bool is_usual_program(std::string_view command) {
  const auto parts = words(command);
  if (parts.empty()) return false;
  for (const std::string_view program :
       {"dmesg",      "journalctl", "lspci",  "ls",      "cat",       "grep",    "rocminfo", "rocm-smi", "amd-smi", "modprobe",  "rmmod",
        "lsmod",      "modinfo",    "uname",  "id",      "env",       "echo",    "dkms",     "apt",      "apt-get", "dpkg",      "dnf",
        "yum",        "rpm",        "python", "python3", "pip",       "pip3",    "docker",   "podman",   "sudo",    "systemctl", "export",
        "cd",         "find",       "df",     "free",    "groups",    "usermod", "getfacl",  "head",     "tail",    "strings",   "ldd",
        "nvidia-smi", "mount",      "ps",     "kill",    "hipconfig", "hipcc",   "rvs",      "umr",      "ulimit"})
    if (parts[0] == program) return true;
  return false;
}

/// "C:\\dir> command" or "PS C:\\dir> command": the command.
std::optional<std::string_view> after_windows_prompt(std::string_view s) {
  if (s.starts_with("PS ")) s.remove_prefix(3);
  if (s.size() < 5 || std::isalpha(static_cast<unsigned char>(s[0])) == 0 || s[1] != ':' || s[2] != '\\') return std::nullopt;
  const auto end = s.find('>');
  if (end == std::string_view::npos || end > longest_prompt) return std::nullopt;
  const std::string_view command = trim(s.substr(end + 1));
  if (command.empty() || std::isalpha(static_cast<unsigned char>(command[0])) == 0) return std::nullopt;
  return command;
}

/// What a trace or a short prompt may begin with for the text to count as one: more than comments may, since "# for …" is prose.
bool is_command_word(std::string_view command) {
  if (is_usual_program(command)) return true;
  const auto parts = words(command);
  if (parts.empty()) return false;
  for (const std::string_view program :
       {"for",    "while",     "if",    "make",    "cmake",   "torchrun", "accelerate", "deepspeed", "wc",     "jq",     "awk",
        "sed",    "sort",      "bash",  "sh",      "set",     "uv",       "conda",      "srun",      "sbatch", "mpirun", "ollama",
        "vllm",   "nproc",     "lscpu", "sysctl",  "numactl", "lsblk",    "which",      "git",       "curl",   "wget",   "tail",
        "md5sum", "sha256sum", "sinfo", "kubectl", "ip",      "timeout",  "nohup",      "ffprobe",   "ffmpeg"})
    if (parts[0] == program) return true;
  return parts[0].starts_with("lerobot-") || parts[0].starts_with("./");
}

struct ShortPrompt {
  std::string_view name, command;
};

/// "node7% command", "bash-5.2$ command": a name and a sign, no more.
std::optional<ShortPrompt> after_short_prompt(std::string_view s) {
  const auto sign = s.find_first_of("%$");
  if (sign == std::string_view::npos || sign + 2 >= s.size() || s[sign + 1] != ' ' || !is_name(s.substr(0, sign)) ||
      std::isalpha(static_cast<unsigned char>(s[0])) == 0)
    return std::nullopt;
  return ShortPrompt{s.substr(0, sign), trim(s.substr(sign + 2))};
}

/// The name of the short prompts of a text, taken from one before a usual program ("100% of it" and "US$ 5" read alike); empty: it has none.
std::string_view short_name(std::string_view text) {
  for (const std::string_view line : lines(text))
    if (const auto p = after_short_prompt(line); p && is_command_word(p->command)) return p->name;
  return {};
}

/// "+ command" and "++ command" as `set -x` prints it.
std::optional<std::string_view> traced_command(std::string_view line) {
  while (line.starts_with("++")) line.remove_prefix(1);
  if (!line.starts_with("+ ") || line.size() < 3) return std::nullopt;
  const std::string_view command = trim(line.substr(2));
  const bool begins = !command.empty() && (std::isalpha(static_cast<unsigned char>(command[0])) != 0 || contains("/._~[", command.substr(0, 1)));
  return begins ? std::optional(command) : std::nullopt;
}

/// The text is the trace of a shell: "+ " before usual programs, and nothing of a difference between files, which has the same sign.
bool is_trace(std::string_view text) {
  bool usual = false;
  for (const std::string_view line : lines(text)) {
    if (line.starts_with("@@ ") || line.starts_with("diff ") || line.starts_with("+++ ") || line.starts_with("--- ") || line.starts_with("- "))
      return false;
    if (!usual && line.starts_with('+')) {
      const auto command = traced_command(line);
      usual = command && is_command_word(*command);
    }
  }
  return usual;
}

/// Behind "[15:21:10] ", "15:21:10 ", "2026-11-30 15:21:10 ", "[2026-11-30T15:21:10Z] ": where the line begins; 0: no time stamp stands there.
std::size_t behind_time(std::string_view line) {
  std::size_t at = line.starts_with('[') ? 1 : 0;
  const bool bracket = at == 1;
  const auto shape = [&](std::string_view form) {
    if (line.size() - at < form.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i)
      if (form[i] == '0' ? std::isdigit(static_cast<unsigned char>(line[at + i])) == 0 : line[at + i] != form[i]) return false;
    at += form.size();
    return true;
  };
  if (shape("0000-00-00") && at < line.size() && (line[at] == ' ' || line[at] == 'T')) ++at;
  if (!shape("00:00:00")) return 0;
  while (at < line.size() && (std::isdigit(static_cast<unsigned char>(line[at])) != 0 || contains(".,Z+:", line.substr(at, 1)))) ++at;
  if (bracket && (at >= line.size() || line[at++] != ']')) return 0;
  if (at == line.size()) return at;
  return line[at] == ' ' ? at + 1 : 0;
}

std::optional<Prompt> parse_prompt(std::string_view line) {
  Prompt prompt;
  std::string_view s = line;
  skip_environment_name(s);
  if (const auto command = after_windows_prompt(s)) {
    prompt.command = *command;
    return prompt;
  }
  if (const auto sign = take_sign(s)) {
    prompt.command = trim(s);
    prompt.bare_hash = *sign == '#';
    if (prompt.bare_hash) prompt.user = "root";
    // "$ 5.00" or "# =====" are no commands: one begins with a letter, a path, a variable or a bracket.
    if (prompt.command.empty()) return std::nullopt;
    if (prompt.bare_hash && !is_usual_program(prompt.command)) return std::nullopt;
    const char first = prompt.command[0];
    if (std::isalpha(static_cast<unsigned char>(first)) == 0 && first != '/' && first != '.' && first != '_' && first != '~' && first != '(' &&
        first != '[' && first != '!')
      return std::nullopt;
    return prompt;
  }
  const bool bracket = s.starts_with('[');
  if (bracket) s.remove_prefix(1);
  std::string_view before = s;
  if (take_user_host(s, prompt)) {
    // ":~/dir$ " or " dir]# "
    const auto end = bracket ? s.find(']') : std::string_view::npos;
    if (bracket && end == std::string_view::npos) return std::nullopt;
    if (bracket) s.remove_prefix(end + 1);
    auto sign = s.find_first_of("$#%");
    // fish: "user@host ~/dir> ", "user@host /dir (main)> "
    if (const auto arrow = s.find("> "); !bracket && arrow < sign && (s.starts_with(" ~") || s.starts_with(" /"))) sign = arrow;
    if (sign == std::string_view::npos || sign > longest_prompt || sign + 1 >= s.size() || s[sign + 1] != ' ') return std::nullopt;
    if (!bracket && !s.substr(0, sign).empty() && s[0] != ':' && s[0] != ' ') return std::nullopt;
    prompt.command = trim(s.substr(sign + 2));
    if (prompt.command.empty()) return std::nullopt;
    return prompt;
  }
  if (bracket) {
    // "[toolbox]$ command", "[root]# command"
    const auto end = before.find(']');
    if (end == std::string_view::npos || end > 40 || !is_name(before.substr(0, end))) return std::nullopt;
    s = before.substr(end + 1);
    while (s.starts_with(' ')) s.remove_prefix(1);
    if (!take_sign(s) || trim(s).empty()) return std::nullopt;
    prompt.command = trim(s);
    return prompt;
  }
  return std::nullopt;
}

/// True when the command goes on in the next line.
bool continues(std::string_view command) { return command.ends_with('\\') && !command.ends_with("\\\\"); }

}  // namespace

std::vector<TranscriptPiece> split_transcript(std::string_view text) {
  const bool trace = is_trace(text);
  const std::string_view name = short_name(text);
  const auto prompt_of = [&](std::string_view line) -> std::optional<Prompt> {
    if (const auto traced = trace ? traced_command(line) : std::nullopt) return Prompt{{}, {}, *traced, false};
    if (const auto p = name.empty() ? std::nullopt : after_short_prompt(line); p && p->name == name && !p->command.empty())
      return Prompt{{}, {}, p->command, false};
    return parse_prompt(line);
  };
  // A bare "# …" counts only when some line is a sure prompt; else it is a comment or a heading.
  bool sure = false;
  for (const std::string_view line : lines(text)) {
    const auto prompt = prompt_of(line);
    sure = sure || (prompt && !prompt->bare_hash);
  }
  std::vector<TranscriptPiece> pieces(1);
  std::size_t begin = 0;  // of the open piece's output
  std::size_t at = 0;
  std::uint64_t number = 0;
  bool continued = false;
  const auto close = [&](std::size_t end) { pieces.back().output = text.substr(begin, end - begin); };
  while (at < text.size()) {
    const auto newline = text.find('\n', at);
    const std::size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    std::string_view line = text.substr(at, next - at);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    ++number;
    if (continued) {
      std::string& command = pieces.back().command;
      command.pop_back();
      std::string_view more = line;
      if (more.starts_with("> ")) more.remove_prefix(2);
      command += " " + std::string(trim(more));
      continued = continues(command);
      begin = next;
      pieces.back().output_line = number + 1;
    } else if (line.starts_with("Script done on ")) {  // of script(1): no output of the last command
      close(at);
      pieces.emplace_back();
      begin = next;
      pieces.back().output_line = number + 1;
    } else if (const auto prompt = sure ? prompt_of(line) : std::nullopt) {
      close(at);
      pieces.push_back({std::string(prompt->command), prompt->user, prompt->host, {}, number, number + 1});
      continued = continues(prompt->command);
      begin = next;
    }
    at = next;
  }
  close(text.size());
  if (pieces.size() > 1 && trim(pieces.front().output).empty()) pieces.erase(pieces.begin());
  return pieces;
}

std::optional<std::string> without_times(std::string_view text) {
  std::string out;
  bool stamped = false;
  for (const std::string_view line : lines(text)) {
    const std::size_t from = behind_time(line);
    if (from == 0 && !trim(line).empty()) return std::nullopt;
    stamped = stamped || from != 0;
    out += line.substr(from);
    out += '\n';
  }
  return stamped ? std::optional(out) : std::nullopt;
}

std::optional<std::string> plain_transcript(std::string_view text) {
  const auto without = without_times(text);
  const std::string_view plain = without ? std::string_view(*without) : text;
  if (!is_transcript(plain)) return std::nullopt;
  const auto pieces = split_transcript(plain);
  std::string out;
  std::uint64_t number = 0;
  std::size_t next = 0;
  for (const std::string_view line : lines(plain)) {
    ++number;
    while (next < pieces.size() && pieces[next].command_line < number) ++next;
    // A command of several lines keeps its own.
    if (next < pieces.size() && pieces[next].command_line == number && !pieces[next].command.empty() && trim(line).ends_with(pieces[next].command))
      out += "$ " + pieces[next].command;
    else
      out += line;
    out += '\n';
  }
  return out;
}

bool is_transcript(std::string_view text) {
  for (const std::string_view line : lines(text)) {
    const auto prompt = parse_prompt(line);
    if (prompt && !prompt->bare_hash) return true;
  }
  return is_trace(text) || !short_name(text).empty();
}

}  // namespace ff::capture
