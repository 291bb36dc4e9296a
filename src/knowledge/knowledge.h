#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::knowledge {

/// What must be changed when this cause holds; the text that every report prints.
struct CauseText {
  std::string id, layer, title, explain;
  std::vector<std::string> fix;
  std::vector<std::string> verify;
  std::vector<std::string> sources;
};

/// Everything that is known: tables, causes, signals; compiled from knowledge/*.yaml into the program, plus the
/// user's own directories. Read-only after loading.
class Knowledge {
 public:
  /// The knowledge that was compiled in.
  static const Knowledge& built_in();
  /// The built-in knowledge with the user's directories on top. Errors name file, line and field.
  static Result<std::shared_ptr<const Knowledge>> with(const std::vector<std::string>& directories);

  [[nodiscard]] std::string_view date() const;  ///< "2026-11-30": when the facts were last brought up to date
  [[nodiscard]] const CauseText* cause(std::string_view id) const;
  [[nodiscard]] std::vector<const CauseText*> causes() const;  ///< sorted by id

  /// A table of knowledge/tables/<name>.yaml; null when there is none. Decoded on first use.
  [[nodiscard]] const Value& table(std::string_view name) const;

  struct Impl;
  explicit Knowledge(std::shared_ptr<const Impl> impl);
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ff::knowledge
