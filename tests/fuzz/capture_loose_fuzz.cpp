// One handed-over text: recognised and mapped, under a place that its first line names.
#include <cstdint>
#include <string>

#include "capture/loose.h"
#include "capture/redact.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ff::capture::Capture capture;
  const std::string place = ff::capture::tree_prefix(text.substr(0, text.find('\n')));
  (void)ff::capture::add_loose({{"input.txt", text}, {"x/nodes/0/properties", text}, {"card0/device/uevent", text}, {place + "vendor", text}},
                               capture);
  (void)ff::capture::redact_text(text);
  return 0;
}
