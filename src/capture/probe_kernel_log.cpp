#include <sys/klog.h>

#include <cerrno>
#include <string>

#include "capture/probes.h"
#include "capture/redact.h"

namespace ff::capture {

/// The kernel's ring buffer through syslog(2), as `dmesg --raw` prints it.
void probe_kernel_log(ProbeContext& context) {
  if (!context.live() || !context.options.run_commands || !context.emitter.begin("kernel log")) return;
  constexpr int read_all = 3, size_of_buffer = 10;
  const int size = ::klogctl(size_of_buffer, nullptr, 0);
  int taken = -1;
  std::string text;
  if (size >= 0) {
    text.resize(static_cast<std::size_t>(size));
    taken = ::klogctl(read_all, text.data(), size);
  }
  if (taken < 0) {
    context.emitter.command_error("dmesg", errno);
    return;
  }
  text.resize(static_cast<std::size_t>(taken));
  context.emitter.command_output("dmesg", redact_text(text));
}

}  // namespace ff::capture
