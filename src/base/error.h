#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace ff {

/// What went wrong, where, and what to do about it. The value of every failed operation that crosses a boundary.
struct Error {
  std::string what;    ///< one sentence: what could not be done and why
  std::string where;   ///< file, position ("weights.safetensors: byte 8"), command or field; may be empty
  std::string remedy;  ///< what the reader can do; may be empty
  int exit_code = 3;   ///< 2: wrong usage, 3: FirstFault could not do its work

  /// "where: what (remedy)".
  [[nodiscard]] std::string to_string() const;
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] std::unexpected<Error> fail(std::string what, std::string where = {}, std::string remedy = {});
/// A failure caused by the arguments that the user gave: exit code 2.
[[nodiscard]] std::unexpected<Error> usage_error(std::string what, std::string where = {}, std::string remedy = {});
/// "Permission denied" for EACCES.
[[nodiscard]] std::string errno_text(int error_number);
/// "EACCES" for EACCES, "errno 9999" when unknown.
[[nodiscard]] std::string errno_name(int error_number);

}  // namespace ff
