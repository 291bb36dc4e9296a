#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "capture/capture.h"

namespace ff::capture {

/// The child's side of a collecting worker: streams what it reads to the parent, so that everything read before a hang
/// arrives, and announces each step that may hang before it takes it.
class Emitter {
 public:
  /// `done`: steps that an earlier worker took or hung in; they are skipped.
  Emitter(int descriptor, const std::set<std::string, std::less<>>& done) : descriptor_(descriptor), done_(done) {}
  ~Emitter() { flush(); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  /// Announces that `path` is touched next. False: this or an earlier worker did that already; leave it alone. A listing
  /// of a directory is announced as "directory/" and may be repeated, unless it was what an earlier worker hung in.
  [[nodiscard]] bool begin(std::string_view path);
  void file(std::string_view path, std::string_view content);
  void link(std::string_view path, std::string_view target);
  void stat(std::string_view path, const NodeStat& stat);
  void error(std::string_view path, int error_number);
  /// Only the first part of the file was kept; `size_bytes` of the whole, 0 when unknown.
  void truncated(std::string_view path, std::uint64_t size_bytes);
  /// Answers of the same name are joined: objects member by member, lists end to end.
  void probe(std::string_view name, const Value& answer);
  /// Output that counts as that of a command.
  void command_output(std::string_view name, std::string_view out);
  void command_error(std::string_view name, int error_number);
  void flush();

 private:
  void message(char kind, std::string_view name, std::string_view data);
  int descriptor_;
  const std::set<std::string, std::less<>>& done_;
  std::set<std::string, std::less<>> begun_;
  std::string buffer_;
};

/// What a worker streamed.
struct Received {
  std::set<std::string, std::less<>> begun;
  std::optional<std::string> last_begun;  ///< the step in which it was when it stopped; nothing: it had finished
};

/// Adds a worker's stream to the capture. A stream that ends in the middle of a message (the worker was killed) is read
/// up to there. `ended_well`: the worker ended by itself, so that no step is open.
Received receive(std::string_view stream, bool ended_well, Capture& capture);

/// Joins two answers: objects member by member (recursively), lists end to end; else the newer one.
void join_values(Value& into, const Value& newer);

Value stat_to_value(const NodeStat& stat);
/// Fields of another type or out of range are ignored.
NodeStat stat_from_value(const Value& value);

}  // namespace ff::capture
