#pragma once

#include <string>
#include <string_view>

namespace ff {

/// One line of progress on stderr: rewritten in place on a terminal, silent elsewhere (a log wants results, not motion).
class Progress {
 public:
  explicit Progress(bool enabled = true);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace ff
