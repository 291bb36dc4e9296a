// Every text parser of src/facts. The first byte chooses the parser, the rest is its text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capture/capture.h"
#include "facts/kernel_log.h"
#include "facts/lspci.h"
#include "facts/read.h"
#include "facts/rocminfo.h"
#include "facts/smi.h"
#include "facts/subjects.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ff::capture::Capture none;
  const ff::facts::Evidence evidence(none);
  switch (data[0]) {
    case 'k': {
      for (const auto& record : ff::facts::split_kernel_log("log", text)) (void)ff::facts::kernel_message(record.text);
      break;
    }
    case 'l':
      (void)ff::facts::parse_lspci(evidence, "lspci", text);
      break;
    case 'r':
      (void)ff::facts::parse_rocminfo(evidence, "rocminfo", text);
      break;
    case 'a':
      (void)ff::facts::amd_smi_text(text);
      break;
    case 's':
      (void)ff::facts::rocm_smi_text(text);
      break;
    case 'p':
      (void)ff::facts::parse_pip_list(evidence, "pip", text);
      break;
    default:
      break;
  }
  return 0;
}
