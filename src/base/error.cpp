#include "base/error.h"

#include <cstring>
#include <utility>

namespace ff {

std::string Error::to_string() const {
  std::string out;
  if (!where.empty()) out += where + ": ";
  out += what;
  if (!remedy.empty()) out += " (" + remedy + ")";
  return out;
}

std::unexpected<Error> fail(std::string what, std::string where, std::string remedy) {
  return std::unexpected(Error{std::move(what), std::move(where), std::move(remedy), 3});
}

std::unexpected<Error> usage_error(std::string what, std::string where, std::string remedy) {
  return std::unexpected(Error{std::move(what), std::move(where), std::move(remedy), 2});
}

std::string errno_text(int error_number) {
  char buffer[128];
  return strerror_r(error_number, buffer, sizeof buffer);  // GNU form: returns the text
}

std::string errno_name(int error_number) {
  const char* name = strerrorname_np(error_number);
  return name != nullptr ? std::string(name) : "errno " + std::to_string(error_number);
}

}  // namespace ff
