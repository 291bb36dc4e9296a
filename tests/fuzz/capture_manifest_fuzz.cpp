// The manifest of a stored capture. What is accepted must survive being stored and read again.
#include <cstdint>
#include <string>

#include "capture/store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ff::capture::Members members{{"manifest.json", std::string(reinterpret_cast<const char*>(data), size)},
                                     {"fs/etc/os-release", "ID=x\n"},
                                     {"cmd/a/argv.json", "[\"a\"]"},
                                     {"cmd/a/status.json", "{\"exit_status\": 0}"},
                                     {"cmd/a/stdout", "out"},
                                     {"text/t", "text"}};
  const auto capture = ff::capture::from_members(members, "input");
  if (!capture) return 0;
  const auto again = ff::capture::from_members(ff::capture::to_members(*capture), "again");
  if (!again || again->files() != capture->files() || again->errors() != capture->errors() || again->commands() != capture->commands())
    __builtin_trap();
  return 0;
}
