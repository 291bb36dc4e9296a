// What the main thread of a process waits for: the descriptors of its system call, and who is at the other end of its sockets.
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "binary/hang.h"
#include "diagnosis/explain.h"
#include "knowledge/knowledge.h"

namespace ff::binary {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t watched_limit = 4096;
constexpr long epoll_pwait2 = 441;

/// Bytes of the process; nothing when they may not be read.
std::optional<std::string> memory(int pid, std::uint64_t address, std::size_t size) {
  if (address == 0 || size == 0) return std::nullopt;
  std::string out(size, '\0');
  const iovec to{out.data(), size}, from{reinterpret_cast<void*>(address), size};
  if (::process_vm_readv(pid, &to, 1, &from, 1, 0) != static_cast<ssize_t>(size)) return std::nullopt;
  return out;
}

/// A struct timespec of the process in seconds; -1 when there is none.
double seconds_at(int pid, std::uint64_t address) {
  const auto bytes = memory(pid, address, sizeof(timespec));
  if (!bytes) return -1;
  timespec time{};
  std::memcpy(&time, bytes->data(), sizeof(time));
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double milliseconds(std::uint64_t argument) {
  const auto value = static_cast<std::int32_t>(argument);
  return value < 0 ? -1 : value / 1000.0;
}

struct Wait {
  std::vector<int> descriptors;
  bool known = false;
  double limit = -1;
};

Wait of_poll(int pid, const HangThread& thread, bool with_timespec) {
  Wait out;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(thread.arguments[1], watched_limit));
  out.limit = with_timespec ? seconds_at(pid, thread.arguments[2]) : milliseconds(thread.arguments[2]);
  out.known = count == 0;
  if (const auto bytes = memory(pid, thread.arguments[0], count * sizeof(pollfd))) {
    out.known = true;
    for (std::size_t i = 0; i < count; ++i) {
      pollfd row{};
      std::memcpy(&row, bytes->data() + i * sizeof(pollfd), sizeof(row));
      if (row.fd >= 0) out.descriptors.push_back(row.fd);
    }
  }
  return out;
}

Wait of_select(int pid, const HangThread& thread, bool with_timespec) {
  Wait out;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(thread.arguments[0], watched_limit));
  if (thread.arguments[4] != 0) {
    out.limit = seconds_at(pid, thread.arguments[4]);
    // struct timeval counts microseconds where timespec counts nanoseconds.
    if (!with_timespec && out.limit >= 0) out.limit = static_cast<double>(static_cast<std::int64_t>(out.limit));
  }
  out.known = true;
  const std::size_t size = (count + 63) / 64 * 8;
  for (std::size_t set = 1; set <= 3; ++set) {
    if (thread.arguments[set] == 0 || size == 0) continue;
    const auto bytes = memory(pid, thread.arguments[set], size);
    if (!bytes) {
      out.known = false;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i)
      if ((static_cast<unsigned char>((*bytes)[i / 8]) >> (i % 8) & 1U) != 0) out.descriptors.push_back(static_cast<int>(i));
  }
  return out;
}

Wait of_epoll(int pid, const HangThread& thread) {
  Wait out;
  out.limit = thread.system_call == epoll_pwait2 ? seconds_at(pid, thread.arguments[3]) : milliseconds(thread.arguments[3]);
  const auto info = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, thread.descriptor));
  if (!info) return out;
  out.known = true;
  for (const auto line : lines(*info)) {  // "tfd:       12 events:       19 data: …"
    const auto fields = words(line);
    if (fields.size() > 1 && fields[0] == "tfd:" && out.descriptors.size() < watched_limit)
      if (const auto descriptor = to_integer<int>(fields[1])) out.descriptors.push_back(*descriptor);
  }
  return out;
}

Wait wait_of(int pid, const HangThread& thread) {
  switch (thread.system_call) {
    case SYS_poll:
      return of_poll(pid, thread, false);
    case SYS_ppoll:
      return of_poll(pid, thread, true);
    case SYS_select:
      return of_select(pid, thread, false);
    case SYS_pselect6:
      return of_select(pid, thread, true);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case epoll_pwait2:
      return of_epoll(pid, thread);
    default:
      if (thread.descriptor < 0) return {};
      return {.descriptors = {thread.descriptor}, .known = true};
  }
}

/// "0100007F:1F90" is 127.0.0.1:8080: words of 32 bits in the machine's order, the port as a number.
std::string address(std::string_view text) {
  const auto colon = text.find(':');
  const auto port = colon == std::string_view::npos ? std::nullopt : to_integer<unsigned>(text.substr(colon + 1), 16);
  if (!port) return {};
  const std::string_view digits = text.substr(0, colon);
  std::array<unsigned char, 16> bytes{};
  if (digits.size() != 8 && digits.size() != 32) return {};
  for (std::size_t word = 0; word < digits.size() / 8; ++word) {
    const auto value = to_integer<std::uint32_t>(digits.substr(word * 8, 8), 16);
    if (!value) return {};
    std::memcpy(bytes.data() + word * 4, &*value, 4);
  }
  if (digits.size() == 8) return fmt::format("{}.{}.{}.{}:{}", bytes[0], bytes[1], bytes[2], bytes[3], *port);
  const bool mapped =
      std::all_of(bytes.begin(), bytes.begin() + 10, [](unsigned char b) { return b == 0; }) && bytes[10] == 0xff && bytes[11] == 0xff;
  if (mapped) return fmt::format("{}.{}.{}.{}:{}", bytes[12], bytes[13], bytes[14], bytes[15], *port);
  std::string out = "[";
  for (std::size_t i = 0; i < 16; i += 2) out += fmt::format("{}{:x}", i == 0 ? "" : ":", bytes[i] << 8 | bytes[i + 1]);
  return out + fmt::format("]:{}", *port);
}

Watched describe(int descriptor, const std::string& target, const std::vector<std::pair<std::uint64_t, Watched>>& sockets) {
  Watched out{.descriptor = descriptor, .kind = "other", .what = target};
  if (target.starts_with("socket:[")) {
    out.kind = "socket";
    const auto inode = to_integer<std::uint64_t>(std::string_view(target).substr(8, target.size() - 9));
    const auto found = inode ? std::ranges::find(sockets, *inode, &std::pair<std::uint64_t, Watched>::first) : sockets.end();
    if (found == sockets.end()) return out;
    out.kind = found->second.kind;
    if (!found->second.what.empty()) out.what = found->second.what;
  } else if (target.starts_with("pipe:")) {
    out.kind = "pipe";
  } else if (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") || target == "/dev/console") {
    out.kind = "terminal";
  } else if (target.find("eventfd") != std::string::npos || target.find("inotify") != std::string::npos ||
             target.find("eventpoll") != std::string::npos) {
    out.kind = "event";
  } else if (target.find("timerfd") != std::string::npos) {
    out.kind = "timer";
  } else if (target.find("signalfd") != std::string::npos) {
    out.kind = "signal";
  } else if (target.starts_with("/")) {
    out.kind = "file";
  }
  return out;
}

/// Runs in the child.
Value look(const HangView& view) {
  const Wait wait = wait_of(view.pid, view.threads.front());
  std::vector<std::pair<std::uint64_t, Watched>> sockets;
  for (const std::string_view protocol : {"tcp", "tcp6", "udp", "udp6", "unix"})
    if (const auto table = read_file(fmt::format("/proc/{}/net/{}", view.pid, protocol))) parse_socket_table(*table, protocol, sockets);
  Value watched = Value::list();
  std::vector<int> descriptors = wait.descriptors;
  // An epoll instance may be watched by another one: its own descriptors count.
  for (std::size_t i = 0; i < descriptors.size() && i < watched_limit; ++i) {
    std::error_code error;
    const std::string target = fs::read_symlink(fmt::format("/proc/{}/fd/{}", view.pid, descriptors[i]), error).string();
    if (target == "anon_inode:[eventpoll]") {
      HangThread inner;
      inner.descriptor = descriptors[i];
      for (const int descriptor : of_epoll(view.pid, inner).descriptors)
        if (std::ranges::find(descriptors, descriptor) == descriptors.end()) descriptors.push_back(descriptor);
      continue;
    }
    const Watched row = describe(descriptors[i], target, sockets);
    watched.push(Value::object({{"descriptor", row.descriptor}, {"kind", row.kind}, {"what", row.what}}));
  }
  return Value::object({{"watched", std::move(watched)}, {"known", wait.known}, {"limit", wait.limit}});
}

/// Runs in the child: the file may lie on a file system that does not answer.
std::string end_of_output(int pid) {
  constexpr std::uintmax_t tail_bytes = 256 << 10;
  std::string out;
  std::string before;
  for (const int descriptor : {1, 2}) {
    const std::string link = fmt::format("/proc/{}/fd/{}", pid, descriptor);
    std::error_code error;
    const std::string target = fs::read_symlink(link, error).string();
    if (error || target == before || !fs::is_regular_file(link, error)) continue;
    before = target;
    const auto size = fs::file_size(link, error);
    std::ifstream file(link, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(size > tail_bytes ? size - tail_bytes : 0));
    std::string piece(static_cast<std::size_t>(std::min(size, tail_bytes)), '\0');
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    piece.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
    out += piece + "\n";
  }
  return out;
}

}  // namespace

void parse_socket_table(std::string_view table, std::string_view protocol, std::vector<std::pair<std::uint64_t, Watched>>& out) {
  bool first = true;
  for (const auto line : lines(table)) {
    if (std::exchange(first, false)) continue;  // the heading
    const auto fields = words(line);
    Watched row;
    std::optional<std::uint64_t> inode;
    if (protocol == "unix") {  // "Num: RefCount Protocol Flags Type St Inode Path"
      if (fields.size() < 7) continue;
      constexpr std::uint64_t accepts = 0x10000;  // __SO_ACCEPTCON
      inode = to_integer<std::uint64_t>(fields[6]);
      row.kind = (to_integer<std::uint64_t>(fields[3], 16).value_or(0) & accepts) != 0 ? "listening" : "local";
      if (fields.size() > 7) row.what = fields[7];
    } else {  // "sl local remote st tx:rx tr:when retrnsmt uid timeout inode"
      if (fields.size() < 10) continue;
      inode = to_integer<std::uint64_t>(fields[9]);
      const std::string local = address(fields[1]), remote = address(fields[2]);
      constexpr unsigned listens = 10;
      if (protocol.starts_with("udp")) {
        row.kind = "listening";
        row.what = local + " (datagrams)";
      } else if (to_integer<unsigned>(fields[3], 16) == listens) {
        row.kind = "listening";
        row.what = local;
      } else {
        row.kind = "connected";
        row.what = remote + " (from " + local + ")";
      }
    }
    if (inode && *inode != 0) out.emplace_back(*inode, std::move(row));
  }
}

void add_watched(HangView& view) {
  if (view.threads.empty() || view.threads.front().system_call < 0) return;
  ChildOptions child;
  child.body = [&](int out) { (void)write_all(out, to_json(look(view))); };
  child.time_limit = std::chrono::seconds(3);
  const ChildResult result = run_child(child);
  const auto answer = parse_json(result.out, "descriptors");
  if (!result.ok() || !answer) {
    view.unreadable.push_back("what it waits for: " + result.describe());
    return;
  }
  view.watched_known = (*answer)["known"].as_bool();
  view.time_limit_seconds = (*answer)["limit"].as_real();
  for (const auto& row : (*answer)["watched"].items())
    view.watched.push_back({static_cast<int>(row["descriptor"].as_int()), std::string(row["kind"].as_text()), std::string(row["what"].as_text())});
}

void add_output(HangView& view) {
  ChildOptions child;
  child.body = [&](int out) { (void)write_all(out, end_of_output(view.pid)); };
  child.time_limit = std::chrono::seconds(3);
  const ChildResult result = run_child(child);
  if (!result.ok()) {
    view.unreadable.push_back("its output: " + result.describe());
    return;
  }
  if (trim(result.out).empty()) return;
  const auto explanation = diagnosis::explain_texts({{"output.txt", result.out}}, knowledge::Knowledge::built_in());
  if (!explanation) return;
  for (const auto& found : explanation->judgement.diagnoses) {
    if (found.benign || found.confidence == "possible") continue;
    view.output.push_back({found.cause, found.title, found.evidence_for.empty() ? std::string() : found.evidence_for.front().text});
  }
}

}  // namespace ff::binary
